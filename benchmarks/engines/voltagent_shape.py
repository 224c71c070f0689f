"""Semantic search as VoltAgent's adapters for LibSQL and PostgreSQL do it: every vector is read and compared here.

The table, the statement and the steps are those of @voltagent/libsql 2.1.2: a row is selected with its vector, its
metadata are parsed and compared to the filter, its vector is decoded and compared to the query's, and what reaches the
threshold is sorted whole. Where they decode and compare number by number in JavaScript, this does it in numpy, a row at
a time: in its own runtime it takes longer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SCHEMA = """
CREATE TABLE voltagent_vectors (
    id TEXT PRIMARY KEY, vector BLOB NOT NULL, dimensions INTEGER NOT NULL, metadata TEXT, content TEXT,
    created_at DATETIME DEFAULT CURRENT_TIMESTAMP, updated_at DATETIME DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX idx_voltagent_vectors_created ON voltagent_vectors(created_at);
CREATE INDEX idx_voltagent_vectors_dimensions ON voltagent_vectors(dimensions);
"""
INSERT = "INSERT INTO voltagent_vectors (id, vector, dimensions, metadata, content) VALUES (?, ?, ?, ?, ?)"
SELECT = "SELECT id, vector, dimensions, metadata, content FROM voltagent_vectors WHERE dimensions = ?"

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Item:
    """A vector with what it stands for."""

    id: str
    vector: Vector
    metadata: Mapping[str, str]
    content: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a search found; the score is (1 + cosine) / 2."""

    id: str
    score: float
    metadata: Mapping[str, str]
    content: str


class VoltagentShape:
    """Vectors in SQLite."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.executescript(SCHEMA)

    def store(self, items: Iterable[Item]) -> None:
        """Store vectors under new ids."""
        rows = (
            (one.id, one.vector.tobytes(), len(one.vector), json.dumps(dict(one.metadata)), one.content)
            for one in items
        )
        with self._connection:
            self._connection.executemany(INSERT, rows)

    def search(
        self, query: Vector, *, limit: int = 10, threshold: float = 0.0, wanted: Mapping[str, str] | None = None
    ) -> list[Result]:
        """The best results whose metadata have all that is wanted and whose score is at least the threshold."""
        found = []
        norm = float(np.sqrt(query @ query))
        for identifier, blob, _, encoded, content in self._connection.execute(SELECT, (len(query),)):
            metadata = json.loads(encoded)
            if wanted and any(metadata.get(key) != value for key, value in wanted.items()):
                continue
            score = (1 + _cosine(query, norm, np.frombuffer(blob, "<f4"))) / 2
            if score >= threshold:
                found.append(Result(identifier, score, metadata, content))
        found.sort(key=lambda result: -result.score)
        return found[:limit]

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _cosine(query: Vector, norm: float, vector: Vector) -> float:
    """0 where a vector has no direction."""
    norms = norm * float(np.sqrt(vector @ vector))
    return float(query @ vector) / norms if norms else 0.0
