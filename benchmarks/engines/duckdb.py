"""DuckDB in process, with a statement per call."""

from __future__ import annotations

import time
import uuid

import duckdb
from benchmarks.engines.in_process import InProcess

SCHEMA = (
    "CREATE TABLE messages (conversation_id INTEGER, sequence BIGINT, id VARCHAR, text VARCHAR, create_time BIGINT)"
)
INSERT = """
INSERT INTO messages
SELECT $1, coalesce(max(sequence), 0) + 1, $2, $3, $4 FROM messages WHERE conversation_id = $1 RETURNING sequence
"""
NEWEST = "SELECT * FROM messages WHERE conversation_id = ? ORDER BY sequence DESC LIMIT 50"


class Duckdb(InProcess):
    """A transaction for each append."""

    name = "duckdb"

    def open(self) -> None:
        self._connection = duckdb.connect(str(self.directory / "messages.duckdb"), config={"threads": 1})
        self._connection.execute(SCHEMA)

    def insert(self, client: int, text: str) -> None:
        self._connection.execute(INSERT, (client, uuid.uuid4().hex, text, time.time_ns() // 1000)).fetchall()

    def newest(self, client: int) -> list[tuple[object, ...]]:
        return self._connection.execute(NEWEST, (client,)).fetchall()

    def stop(self) -> None:
        self._connection.close()
