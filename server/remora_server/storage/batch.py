"""What a run of records makes of the tables: rows to delete, then rows to insert, the last change of a row winning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import duckdb

from remora.v1 import message_pb2
from remora_server.storage import arrow
from remora_server.storage.v1 import record_pb2

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

_UID = (("uid", arrow.UINT64),)
_PLACE = (("conversation_uid", arrow.UINT64), ("sequence", arrow.UINT64))
_PART = (("conversation_uid", arrow.UINT64), ("user_id", arrow.TEXT))
_STEP = (("conversation_uid", arrow.UINT64), ("user_id", arrow.TEXT), ("id", arrow.TEXT))
_MEMORY = (("tenant_id", arrow.TEXT), ("conversation_uid", arrow.UINT64), ("user_id", arrow.TEXT))

_BY_UID = {
    "conversations": "uid",
    "heads": "uid",
    "messages": "conversation_uid",
    "embeddings": "conversation_uid",
    "steps": "conversation_uid",
    "working_memories": "conversation_uid",
}


class Batch:
    """The rows of a run of records. Fill it with `add`, in order of revision; then `write` it in one transaction."""

    def __init__(self) -> None:
        self.revision = 0
        self._deleted: set[int] = set()
        self._conversations: dict[int, tuple[Any, ...]] = {}
        self._heads: dict[int, tuple[Any, ...]] = {}
        self._messages: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._moved: set[tuple[int, int]] = set()
        self._cleared: set[tuple[int, str]] = set()
        self._embeddings: dict[tuple[int, int], dict[str, tuple[Any, ...]]] = {}
        self._steps: dict[tuple[int, str, str], tuple[Any, ...]] = {}
        self._ordinal = 0
        self._saved_steps: set[tuple[int, str, str]] = set()
        self._cleared_steps: set[tuple[int, str]] = set()
        self._memories: dict[tuple[str, int, str], tuple[Any, ...] | None] = {}
        self._requests: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._changes: dict[str, Callable[[record_pb2.Record, Any, int], None]] = {
            "put_conversation": self._put_conversation,
            "put_head": self._put_head,
            "delete_conversation": self._delete_conversation,
            "put_message": self._put_message,
            "remove_messages": self._remove_messages,
            "put_step": self._put_step,
            "remove_steps": self._remove_steps,
            "put_working_memory": self._put_memory,
            "delete_working_memory": self._delete_memory,
            "put_embedding": self._put_embedding,
        }

    def add(self, revision: int, payload: bytes) -> None:
        """Take in the next record."""
        record = record_pb2.Record.FromString(payload)
        self.revision = revision
        for change in record.changes:
            kind = change.WhichOneof("kind")
            if kind is None:
                raise ValueError(f"record {revision} holds a change that this version does not know")
            self._changes[kind](record, getattr(change, kind), revision)
        if record.request_id:
            self._requests[record.tenant_id, record.request_id] = (
                record.tenant_id,
                record.request_id,
                record.fingerprint,
                revision,
                record.time,
                record.outcome.SerializeToString(),
            )

    def _put_conversation(self, record: record_pb2.Record, put: record_pb2.PutConversation, revision: int) -> None:
        uid, row = put.conversation_uid or revision, put.conversation
        limit = row.storage_limit if row.HasField("storage_limit") else None
        body = row.SerializeToString()
        self._conversations[uid] = (
            record.tenant_id, row.id, uid, row.user_id, row.resource_id, row.title, limit, body, put.create_time,
        )  # fmt: skip

    def _put_head(self, record: record_pb2.Record, put: record_pb2.PutHead, revision: int) -> None:
        uid = put.conversation_uid or revision
        self._heads[uid] = (
            record.tenant_id, uid, put.last_sequence, put.message_count, put.last_time, put.update_time, revision,
        )  # fmt: skip

    def _delete_conversation(self, record: record_pb2.Record, gone: record_pb2.DeleteConversation, _: int) -> None:
        uid = gone.conversation_uid
        self._deleted.add(uid)
        self._conversations.pop(uid, None)
        self._heads.pop(uid, None)
        self._drop(self._messages, lambda key: key[0] == uid)
        self._drop(self._embeddings, lambda key: key[0] == uid)
        self._drop(self._steps, lambda key: key[0] == uid)
        self._memories.pop((record.tenant_id, uid, ""), None)

    def _put_message(self, record: record_pb2.Record, put: record_pb2.PutMessage, revision: int) -> None:
        uid = put.conversation_uid or revision
        message = message_pb2.Message.FromString(put.body)
        text = message.text
        message.ClearField("text")
        sent = message.sent_time.ToMicroseconds() if message.HasField("sent_time") else None
        key = (uid, put.sequence)
        if put.replaces:
            self._moved.add(key)
            self._embeddings.pop(key, None)
        self._messages[key] = (
            record.tenant_id, uid, put.sequence, revision, put.user_id, put.id, message.role, message.name, text,
            message.SerializeToString(), sent, message.session_id, put.create_time, put.update_time, put.token_count,
        )  # fmt: skip
        if put.embedding_model:
            values = put.embedding
            self._embed(
                (record.tenant_id, *key, revision, put.embedding_model, True, len(values) // 4, values, 0, None)
            )

    def _remove_messages(self, _record: record_pb2.Record, gone: record_pb2.RemoveMessages, _: int) -> None:
        uid = gone.conversation_uid
        if gone.all:
            self._cleared.add((uid, gone.user_id))
            self._drop_messages(
                {key for key, row in self._messages.items() if key[0] == uid and row[4] == gone.user_id}
            )
            return
        places = {(uid, sequence) for sequence in gone.sequences}
        self._moved |= places
        self._drop_messages(places)

    def _drop_messages(self, places: set[tuple[int, int]]) -> None:
        for place in places:
            self._messages.pop(place, None)
            self._embeddings.pop(place, None)

    def _put_step(self, record: record_pb2.Record, put: record_pb2.PutStep, revision: int) -> None:
        uid, step = put.conversation_uid or revision, put.step
        key = (uid, step.user_id, step.id)
        self._saved_steps.add(key)
        self._ordinal += 1
        self._steps[key] = (
            record.tenant_id, uid, step.user_id, step.id, step.operation_id, step.step_index, revision,
            self._ordinal, step.SerializeToString(),
        )  # fmt: skip

    def _remove_steps(self, _record: record_pb2.Record, gone: record_pb2.RemoveSteps, _: int) -> None:
        self._cleared_steps.add((gone.conversation_uid, gone.user_id))
        self._drop(self._steps, lambda key: key[:2] == (gone.conversation_uid, gone.user_id))

    def _put_memory(self, record: record_pb2.Record, put: record_pb2.PutWorkingMemory, revision: int) -> None:
        uid = 0 if put.user_id else put.conversation_uid or revision
        key = (record.tenant_id, uid, put.user_id)
        self._memories[key] = (*key, put.content, put.update_time, revision)

    def _delete_memory(self, record: record_pb2.Record, gone: record_pb2.DeleteWorkingMemory, _: int) -> None:
        self._memories[record.tenant_id, gone.conversation_uid, gone.user_id] = None

    def _put_embedding(self, record: record_pb2.Record, put: record_pb2.PutEmbedding, _: int) -> None:
        self._embed((
            record.tenant_id, put.conversation_uid, put.sequence, put.message_revision, put.model, False,
            len(put.values) // 4, put.values, put.text_digest, put.pieces if put.HasField("pieces") else None,
        ))  # fmt: skip

    def _embed(self, row: tuple[Any, ...]) -> None:
        """Keep the vector of the newest text; of two for one text the caller's."""
        _, uid, sequence, revision, model, by_caller, *_ = row
        models = self._embeddings.setdefault((uid, sequence), {})
        before = models.get(model)
        if before is None or (before[3], before[5]) <= (revision, by_caller):
            models[model] = row

    @staticmethod
    def _drop(rows: dict[Any, Any], gone: Callable[[Any], bool]) -> None:
        for key in [key for key in rows if gone(key)]:
            del rows[key]

    def write(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Write everything and the revision that it reaches, inside the caller's transaction."""
        self._delete_rows(cursor)
        _insert(cursor, "conversations", CONVERSATIONS, self._conversations.values())
        _insert(cursor, "heads", HEADS, self._heads.values())
        _insert(cursor, "messages", MESSAGES, self._messages.values())
        _insert(cursor, "steps", STEPS, self._steps.values())
        _insert(cursor, "working_memories", WORKING_MEMORIES, [row for row in self._memories.values() if row])
        _insert(cursor, "requests", REQUESTS, self._requests.values())
        self._insert_embeddings(cursor)
        cursor.execute("INSERT OR REPLACE INTO meta VALUES ('applied_revision', ?)", [str(self.revision)])

    def _delete_rows(self, cursor: duckdb.DuckDBPyConnection) -> None:
        gone = [(uid,) for uid in self._deleted]
        for name, column in _BY_UID.items():
            _delete(cursor, name, _UID, gone, f"{name}.{column} = gone.uid")
        _delete(cursor, "conversations", _UID, [(uid,) for uid in self._conversations], "conversations.uid = gone.uid")
        _delete(cursor, "heads", _UID, [(uid,) for uid in self._heads], "heads.uid = gone.uid")
        place = "{0}.conversation_uid = gone.conversation_uid AND {0}.sequence = gone.sequence"
        part = "{0}.conversation_uid = gone.conversation_uid AND {0}.user_id = gone.user_id"
        _delete_embeddings_of(cursor, self._cleared)
        _delete(cursor, "messages", _PLACE, self._moved, place.format("messages"))
        _delete(cursor, "embeddings", _PLACE, self._moved, place.format("embeddings"))
        _delete(cursor, "messages", _PART, self._cleared, part.format("messages"))
        _delete(cursor, "steps", _PART, self._cleared_steps, part.format("steps"))
        step = " AND ".join(f"steps.{name} = gone.{name}" for name, _ in _STEP)
        _delete(cursor, "steps", _STEP, self._saved_steps, step)
        memory = " AND ".join(f"working_memories.{name} = gone.{name}" for name, _ in _MEMORY)
        _delete(cursor, "working_memories", _MEMORY, self._memories, memory)

    def _insert_embeddings(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Those whose message has not moved on, over what an earlier one of the model left; a caller's vector stays."""
        rows = [row for models in self._embeddings.values() for row in models.values()]
        if not rows:
            return
        cursor.register("fresh", arrow.table(EMBEDDINGS, rows))
        cursor.execute(
            """CREATE TEMP TABLE current AS SELECT fresh.* FROM fresh
               JOIN messages ON messages.conversation_uid = fresh.conversation_uid
                   AND messages.sequence = fresh.sequence AND messages.revision = fresh.message_revision
               LEFT JOIN embeddings AS kept ON kept.conversation_uid = fresh.conversation_uid
                   AND kept.sequence = fresh.sequence AND kept.model = fresh.model
                   AND kept.message_revision = fresh.message_revision AND kept.by_caller AND NOT fresh.by_caller
               WHERE kept.model IS NULL"""
        )
        cursor.unregister("fresh")
        cursor.execute(
            """DELETE FROM embeddings USING current WHERE embeddings.conversation_uid = current.conversation_uid
               AND embeddings.sequence = current.sequence AND embeddings.model = current.model"""
        )
        cursor.execute("INSERT INTO embeddings SELECT * FROM current")
        cursor.execute("DROP TABLE current")


def _delete_embeddings_of(cursor: duckdb.DuckDBPyConnection, parts: Iterable[tuple[int, str]]) -> None:
    _with(
        cursor,
        _PART,
        parts,
        """DELETE FROM embeddings USING fresh, messages
           WHERE messages.conversation_uid = fresh.conversation_uid AND messages.user_id = fresh.user_id
           AND embeddings.conversation_uid = messages.conversation_uid AND embeddings.sequence = messages.sequence""",
    )


def _insert(cursor: duckdb.DuckDBPyConnection, name: str, columns: Columns, rows: Iterable[tuple[Any, ...]]) -> None:
    _with(cursor, columns, rows, f"INSERT INTO {name} SELECT * FROM fresh")  # noqa: S608 - a table of ours


def _delete(
    cursor: duckdb.DuckDBPyConnection, name: str, columns: Columns, rows: Iterable[tuple[Any, ...]], where: str
) -> None:
    _with(cursor, columns, rows, f"DELETE FROM {name} USING fresh AS gone WHERE {where}")  # noqa: S608 - ours


def _with(cursor: duckdb.DuckDBPyConnection, columns: Columns, rows: Iterable[tuple[Any, ...]], sql: str) -> None:
    """Execute a statement that reads `rows` as the table `fresh`; nothing where there are none."""
    listed = list(rows)
    if listed:
        cursor.register("fresh", arrow.table(columns, listed))
        cursor.execute(sql)
        cursor.unregister("fresh")
