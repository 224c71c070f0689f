"""A run of records as changes of rows: deletes first, then inserts. The last change of a row wins."""

from __future__ import annotations

import duckdb

from remora_server._native import Rows
from remora_server.storage.database import arrow
from remora_server.storage.database.tables import (
    CONVERSATIONS,
    EMBEDDINGS,
    EXPIRY,
    HEADS,
    MESSAGES,
    OWNER,
    PARTITION,
    RECORD,
    REQUESTS,
    Columns,
    columns_of,
)
from remora_server.storage.schema.kinds import Kind, Kinds, all_tables

_DIMENSION = [name for name, _ in EMBEDDINGS].index("dimension")

_UID = (("uid", arrow.UINT64),)
_PLACE = (("conversation_uid", arrow.UINT64), ("sequence", arrow.UINT64))
_PART = (("conversation_uid", arrow.UINT64), ("user_id", arrow.TEXT))
_PREFIX = (*OWNER, ("partition", arrow.BLOB))
_USER = (("tenant_id", arrow.TEXT), ("user_id", arrow.TEXT))


class NotApplicable(Exception):
    """A record with changes, or with kinds of records, that this version of Remora does not know."""

    def __init__(self, cause: ValueError) -> None:
        super().__init__(f"the journal holds what this version of Remora cannot apply: {cause}")


class Batch:
    """The rows of a run of records. Fill it with `add`, in order of revision; then `write` it in one transaction.

    `dimension` is that of the longest vector that was written.
    """

    def __init__(self, kinds: Kinds) -> None:
        self.revision = self.dimension = 0
        self._kinds = kinds
        self._rows = Rows(kinds.native())

    def add(self, revision: int, payload: bytes) -> None:
        """Take in the next record. Raises NotApplicable."""
        try:
            self._rows.add(revision, payload)
        except ValueError as error:
            raise NotApplicable(error) from error
        self.revision = revision

    def write(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Write everything and the revision that it reaches, inside the caller's transaction."""
        self._delete_rows(cursor)
        self._insert(cursor, "conversations", CONVERSATIONS)
        self._insert(cursor, "heads", HEADS)
        self._insert(cursor, "messages", MESSAGES)
        self._insert(cursor, "requests", REQUESTS)
        self._insert_embeddings(cursor)
        for kind in self._kinds:
            self._write_records(cursor, kind)
        cursor.execute("INSERT OR REPLACE INTO meta VALUES ('applied_revision', ?)", [str(self.revision)])

    def _delete_rows(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._execute(
            cursor,
            "deleted",
            _UID,
            *(
                f"DELETE FROM {table.name} USING fresh WHERE {table.name}.{table.uid} = fresh.uid"  # noqa: S608 - ours
                for table in all_tables(self._kinds)
                if table.uid
            ),
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

    def _write_records(self, cursor: duckdb.DuckDBPyConnection, kind: Kind) -> None:
        """The records of a kind: those of what is removed as a whole go first, then single ones."""
        name = kind.name
        self._execute(
            cursor,
            f"{kind.number}.prefixes",
            _PREFIX,
            f"""DELETE FROM {name} USING fresh WHERE {name}.tenant_id = fresh.tenant_id
                AND {name}.conversation_uid = fresh.conversation_uid
                AND array_slice({name}.partition, 1, octet_length(fresh.partition)) = fresh.partition""",  # noqa: S608
        )
        for gone, key in (("partitions", PARTITION), ("users", _USER), ("moved", RECORD)):
            self._execute(cursor, f"{kind.number}.{gone}", key, _deletion(name, key))
        self._execute(
            cursor,
            f"{kind.number}.expiry",
            EXPIRY,
            f"UPDATE {name} SET expire_time = fresh.expire_time FROM fresh WHERE {_same(name, EXPIRY[:-1])}",  # noqa: S608
        )
        rows, columns = f"{kind.number}.records", columns_of(kind)
        self._execute(cursor, rows, columns, f"INSERT INTO {name} BY NAME SELECT * FROM fresh")  # noqa: S608 - ours

    def _insert(self, cursor: duckdb.DuckDBPyConnection, name: str, columns: Columns) -> None:
        self._execute(cursor, name, columns, f"INSERT INTO {name} SELECT * FROM fresh")  # noqa: S608 - a table of ours

    def _delete(self, cursor: duckdb.DuckDBPyConnection, gone: str, key: Columns, *names: str) -> None:
        """Delete from tables the rows that have a key of `gone`."""
        self._execute(cursor, gone, key, *(_deletion(name, key) for name in names))

    def _execute(self, cursor: duckdb.DuckDBPyConnection, rows: str, columns: Columns, *statements: str) -> None:
        """Execute statements that read rows as the table `fresh`; nothing if there are none."""
        count, buffers = self._rows.table(rows)
        if columns is EMBEDDINGS:
            self.dimension = max(memoryview(buffers[_DIMENSION][2]).cast("i"), default=0)
        if count:
            cursor.register("fresh", arrow.table(columns, count, buffers))
            for statement in statements:
                cursor.execute(statement)
            cursor.unregister("fresh")


def _deletion(name: str, key: Columns) -> str:
    return f"DELETE FROM {name} USING fresh WHERE {_same(name, key)}"  # noqa: S608 - a table of ours


def _same(name: str, key: Columns) -> str:
    return " AND ".join(f"{name}.{column} = fresh.{column}" for column, _ in key)
