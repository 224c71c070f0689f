"""SQLite in process: WAL, synchronous=FULL."""

from __future__ import annotations

import sqlite3
import time
import uuid

from benchmarks.engines.in_process import InProcess

SCHEMA = """
CREATE TABLE messages (
    conversation_id INTEGER NOT NULL, sequence INTEGER NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL,
    create_time INTEGER NOT NULL, PRIMARY KEY (conversation_id, sequence)
) WITHOUT ROWID
"""
INSERT = """
INSERT INTO messages
SELECT ?1, coalesce(max(sequence), 0) + 1, ?2, ?3, ?4 FROM messages WHERE conversation_id = ?1 RETURNING sequence
"""
NEWEST = "SELECT * FROM messages WHERE conversation_id = ? ORDER BY sequence DESC LIMIT 50"


class Sqlite(InProcess):
    """A transaction for each append."""

    name = "sqlite"

    def open(self) -> None:
        path = self.directory / "messages.db"
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(SCHEMA)

    def insert(self, client: int, text: str) -> None:
        self._connection.execute(INSERT, (client, uuid.uuid4().hex, text, time.time_ns())).fetchall()

    def newest(self, client: int) -> list[tuple[object, ...]]:
        return self._connection.execute(NEWEST, (client,)).fetchall()

    def stop(self) -> None:
        self._connection.close()
