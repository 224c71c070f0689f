"""What a run of records makes of the tables: rows to delete, then rows to insert, the last change of a row winning."""

from __future__ import annotations

from typing import TypeAlias

import duckdb

from remora_server._native import Rows
from remora_server.storage import arrow

Columns: TypeAlias = tuple[tuple[str, arrow.ArrowType], ...]

CONVERSATIONS = (
    ("tenant_id", arrow.TEXT),
    ("id", arrow.TEXT),
    ("uid", arrow.UINT64),
    ("user_id", arrow.TEXT),
    ("resource_id", arrow.TEXT),
    ("title", arrow.TEXT),
    ("storage_limit", arrow.INT32),
    ("body", arrow.BLOB),
    ("create_time", arrow.INT64),
)
HEADS = (
    ("tenant_id", arrow.TEXT),
    ("uid", arrow.UINT64),
    ("last_sequence", arrow.UINT64),
    ("message_count", arrow.INT64),
    ("last_time", arrow.INT64),
    ("update_time", arrow.INT64),
    ("revision", arrow.UINT64),
)
MESSAGES = (
    ("tenant_id", arrow.TEXT),
    ("conversation_uid", arrow.UINT64),
    ("sequence", arrow.UINT64),
    ("revision", arrow.UINT64),
    ("user_id", arrow.TEXT),
    ("id", arrow.TEXT),
    ("role", arrow.TEXT),
    ("name", arrow.TEXT),
    ("text", arrow.TEXT),
    ("body", arrow.BLOB),
    ("sent_time", arrow.INT64),
    ("session_id", arrow.TEXT),
    ("create_time", arrow.INT64),
    ("update_time", arrow.INT64),
    ("token_count", arrow.INT32),
)
EMBEDDINGS = (
    ("tenant_id", arrow.TEXT),
    ("conversation_uid", arrow.UINT64),
    ("sequence", arrow.UINT64),
    ("message_revision", arrow.UINT64),
    ("model", arrow.TEXT),
    ("by_caller", arrow.BOOL),
    ("dimension", arrow.INT32),
    ("values", arrow.VECTOR),
    ("text_digest", arrow.UINT64),
    ("pieces", arrow.BLOB),
)
STEPS = (
    ("tenant_id", arrow.TEXT),
    ("conversation_uid", arrow.UINT64),
    ("user_id", arrow.TEXT),
    ("id", arrow.TEXT),
    ("operation_id", arrow.TEXT),
    ("step_index", arrow.INT32),
    ("revision", arrow.UINT64),
    ("ordinal", arrow.INT32),
    ("body", arrow.BLOB),
)
WORKING_MEMORIES = (
    ("tenant_id", arrow.TEXT),
    ("conversation_uid", arrow.UINT64),
    ("user_id", arrow.TEXT),
    ("content", arrow.BLOB),
    ("update_time", arrow.INT64),
    ("revision", arrow.UINT64),
)
REQUESTS = (
    ("tenant_id", arrow.TEXT),
    ("request_id", arrow.TEXT),
    ("fingerprint", arrow.BLOB),
    ("revision", arrow.UINT64),
    ("time", arrow.INT64),
    ("outcome", arrow.BLOB),
)

_DIMENSION = [name for name, _ in EMBEDDINGS].index("dimension")

_UID = (("uid", arrow.UINT64),)
_PLACE = (("conversation_uid", arrow.UINT64), ("sequence", arrow.UINT64))
_PART = (("conversation_uid", arrow.UINT64), ("user_id", arrow.TEXT))
_STEP = (*_PART, ("id", arrow.TEXT))
_MEMORY = (("tenant_id", arrow.TEXT), *_PART)

_BY_UID = {
    "conversations": "uid",
    "heads": "uid",
    "messages": "conversation_uid",
    "embeddings": "conversation_uid",
    "steps": "conversation_uid",
    "working_memories": "conversation_uid",
}


class Batch:
    """The rows of a run of records. Fill it with `add`, in order of revision; then `write` it in one transaction.

    `dimension` is that of the longest vector that was written.
    """

    def __init__(self) -> None:
        self.revision = self.dimension = 0
        self._rows = Rows()

    def add(self, revision: int, payload: bytes) -> None:
        """Take in the next record. Raises ValueError where it cannot be applied."""
        self._rows.add(revision, payload)
        self.revision = revision

    def write(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Write everything and the revision that it reaches, inside the caller's transaction."""
        self._delete_rows(cursor)
        self._insert(cursor, "conversations", CONVERSATIONS)
        self._insert(cursor, "heads", HEADS)
        self._insert(cursor, "messages", MESSAGES)
        self._insert(cursor, "steps", STEPS)
        self._insert(cursor, "working_memories", WORKING_MEMORIES)
        self._insert(cursor, "requests", REQUESTS)
        self._insert_embeddings(cursor)
        cursor.execute("INSERT OR REPLACE INTO meta VALUES ('applied_revision', ?)", [str(self.revision)])

    def _delete_rows(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._execute(
            cursor,
            "deleted",
            _UID,
            *(f"DELETE FROM {name} USING fresh WHERE {name}.{column} = fresh.uid" for name, column in _BY_UID.items()),  # noqa: S608 - tables of ours
        )
        self._delete(cursor, "replaced_conversations", _UID, "conversations")
        self._delete(cursor, "replaced_heads", _UID, "heads")
        self._execute(
            cursor,
            "cleared",
            _PART,
            """DELETE FROM embeddings USING fresh, messages
               WHERE messages.conversation_uid = fresh.conversation_uid AND messages.user_id = fresh.user_id
               AND embeddings.conversation_uid = messages.conversation_uid
               AND embeddings.sequence = messages.sequence""",
        )
        self._delete(cursor, "moved", _PLACE, "messages", "embeddings")
        self._delete(cursor, "cleared", _PART, "messages")
        self._delete(cursor, "cleared_steps", _PART, "steps")
        self._delete(cursor, "saved_steps", _STEP, "steps")
        self._delete(cursor, "moved_memories", _MEMORY, "working_memories")

    def _insert_embeddings(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Those whose message has not moved on. A vector of the server takes the place of those that it made before, by
        whatever model; a caller's stays.
        """
        self._execute(
            cursor,
            "embeddings",
            EMBEDDINGS,
            """CREATE TEMP TABLE current AS SELECT fresh.* FROM fresh
               JOIN messages ON messages.conversation_uid = fresh.conversation_uid
                   AND messages.sequence = fresh.sequence AND messages.revision = fresh.message_revision
               LEFT JOIN embeddings AS kept ON kept.conversation_uid = fresh.conversation_uid
                   AND kept.sequence = fresh.sequence AND kept.model = fresh.model
                   AND kept.message_revision = fresh.message_revision AND kept.by_caller AND NOT fresh.by_caller
               WHERE kept.model IS NULL""",
            """DELETE FROM embeddings USING current WHERE embeddings.conversation_uid = current.conversation_uid
               AND embeddings.sequence = current.sequence
               AND (embeddings.model = current.model OR NOT embeddings.by_caller AND NOT current.by_caller)""",
            "INSERT INTO embeddings SELECT * FROM current",
            "DROP TABLE current",
        )

    def _insert(self, cursor: duckdb.DuckDBPyConnection, name: str, columns: Columns) -> None:
        self._execute(cursor, name, columns, f"INSERT INTO {name} SELECT * FROM fresh")  # noqa: S608 - a table of ours

    def _delete(self, cursor: duckdb.DuckDBPyConnection, gone: str, key: Columns, *names: str) -> None:
        """Delete from tables the rows that have a key of `gone`."""
        self._execute(cursor, gone, key, *(_deletion(name, key) for name in names))

    def _execute(self, cursor: duckdb.DuckDBPyConnection, rows: str, columns: Columns, *statements: str) -> None:
        """Execute statements that read rows as the table `fresh`; nothing where there are none."""
        count, buffers = self._rows.table(rows)
        if columns is EMBEDDINGS:
            self.dimension = max(memoryview(buffers[_DIMENSION][2]).cast("i"), default=0)
        if count:
            cursor.register("fresh", arrow.table(columns, count, buffers))
            for statement in statements:
                cursor.execute(statement)
            cursor.unregister("fresh")


def _deletion(name: str, key: Columns) -> str:
    same = " AND ".join(f"{name}.{column} = fresh.{column}" for column, _ in key)
    return f"DELETE FROM {name} USING fresh WHERE {same}"  # noqa: S608 - a table of ours
