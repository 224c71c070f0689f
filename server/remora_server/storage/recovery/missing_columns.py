"""What stands for columns that cannot be read: what the other columns of the row say, or that it is not known.

A column that has no filling here is one without which a row is worth nothing, or might be given to another user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import duckdb

from remora.v1 import conversation_pb2, message_pb2
from remora_server import _native, wire
from remora_server.storage.database import arrow
from remora_server.storage.database.lacks import lack_of
from remora_server.storage.database.tables import CONVERSATIONS, EMBEDDINGS, HEADS, MESSAGES, Columns, columns_of
from remora_server.storage.schema import keys
from remora_server.storage.schema.kinds import Derived, Field, Kind, Kinds

Row: TypeAlias = dict[str, Any]
"""What is known of a row, by column."""
Filling: TypeAlias = Callable[[Row], Any]
"""The value of a column by the others. Raises LookupError where they do not tell it."""

FILLED_ROWS = 256
"""Rows that are filled at once."""

RECOVERED = "recovered-"
"""What the id of a message begins with whose own id is lost; its sequence follows."""
UNKNOWN_ROLE = "unknown"
"""The role of a message of which neither the role nor the body can be read: a message has one."""
OLDEST = 1
"""Stands for a revision that is lost: whatever else is known of the same key is newer."""


class Fillings:
    """What stands for the columns of each table. `connection` has the new database, and the damaged one as `old`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, kinds: Kinds) -> None:
        self._connection = connection
        self._tables: dict[str, tuple[Columns, Mapping[str, Filling]]] = {
            "conversations": (CONVERSATIONS, _CONVERSATIONS),
            "heads": (HEADS, _HEADS),
            "messages": (MESSAGES, {"tenant_id": self._tenant_of, **_MESSAGES}),
            "embeddings": (EMBEDDINGS, {"tenant_id": self._tenant_of, "pieces": lambda _: None}),
            **{kind.name: (columns_of(kind), self._of_kind(kind)) for kind in kinds},
        }
        self._tenants: dict[int, str] | None = None

    def copy(self, table: str, columns: Sequence[str], rows: str) -> tuple[int, list[str]]:
        """Copy what can be read of some rows, and fill the rest: how many rows, and the columns that were filled.

        `columns` are those that both databases have; `rows` is a place in the damaged one, with its condition. Raises
        duckdb.Error where something is lacking.
        """
        types, fillings = self._tables.get(table, ((), {}))
        readable = [column for column in columns if self._is_readable(column, rows)]
        missing = [column for column in fillings if column in columns and column not in readable]
        if len(readable) + len(missing) < len(columns):
            return 0, []
        names = ", ".join(f'"{column}"' for column in readable)
        kept = 0
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {names} FROM {rows}")  # noqa: S608 - ours
            while found := cursor.fetchmany(FILLED_ROWS):
                known = [dict(zip(readable, values, strict=True)) for values in found]
                filled = [row for row in known if _fill(row, missing, fillings)]
                self._insert(table, tuple(one for one in types if one[0] in columns), filled)
                kept += len(filled)
        return kept, missing

    def _insert(self, table: str, types: Columns, rows: Sequence[Row]) -> None:
        if not rows:
            return
        self._connection.register("filled", arrow.table_of(types, [[row[name] for name, _ in types] for row in rows]))
        self._connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM filled")  # noqa: S608 - ours
        self._connection.unregister("filled")

    def _is_readable(self, column: str, rows: str) -> bool:
        try:
            self._connection.execute(f'SELECT bit_xor(hash("{column}")) FROM {rows}').fetchall()  # noqa: S608 - ours
        except duckdb.Error as error:
            if lack_of(error) is not None:
                raise
            return False
        return True

    def _tenant_of(self, row: Row) -> str:
        if self._tenants is None:
            self._tenants = dict(self._connection.execute("SELECT uid, tenant_id FROM conversations").fetchall())
        return self._tenants[row["conversation_uid"]]

    def _of_kind(self, kind: Kind) -> Mapping[str, Filling]:
        fillings: dict[str, Filling] = {"tenant_id": self._tenant_of} if kind.of_conversation else {}
        fillings["place"] = lambda row: _native.place(row["tenant_id"], row["conversation_uid"], row["partition"])
        if kind.user is None and kind.parent is None:
            fillings["user_id"] = lambda _: ""
        elif kind.user is not None and kind.user.path in [field.path for field in kind.partition]:
            fillings["user_id"] = _part_of_key(kind, kind.user.path)
        fillings["revision"] = lambda row: max(OLDEST, row["conversation_uid"])
        fillings["ordinal"] = lambda _: 0
        fillings["expire_time"] = lambda row: kind.expires.of(_message(kind, row)) if kind.expires else None
        for column in kind.columns:
            fillings[column.name] = _column_of(kind, column)
        return fillings


def _fill(row: Row, missing: Sequence[str], fillings: Mapping[str, Filling]) -> bool:
    """Complete a row; False if that is not possible."""
    try:
        for column in missing:
            row[column] = fillings[column](row)
    except LookupError:
        return False
    return True


def _part_of_key(kind: Kind, path: str) -> Filling:
    """A part of a record's partition or key."""
    paths = [field.path for field in (*kind.partition, *kind.key)]
    types = (*kind.partition_types, *kind.key_types)
    return lambda row: keys.decode(types, row["partition"] + row["key"])[paths.index(path)]


def _column_of(kind: Kind, column: Field | Derived) -> Filling:
    """A column of a kind: a part of the key, or else a value in the body."""
    if column.path in [field.path for field in (*kind.partition, *kind.key)]:
        return _part_of_key(kind, column.path)
    return lambda row: column.of(_message(kind, row))


def _message(kind: Kind, row: Row) -> Any:  # noqa: ANN401 - the kind's message
    """A record's body. Raises LookupError if that is elsewhere, in parts."""
    if row["upload_id"]:
        raise LookupError(row["upload_id"])
    return kind.message.FromString(row["body"])


def _conversation(row: Row) -> conversation_pb2.Conversation:
    return conversation_pb2.Conversation.FromString(row["body"])


def _storage_limit(row: Row) -> int | None:
    found = _conversation(row)
    return found.storage_limit if found.HasField("storage_limit") else None


def _conversation_body(row: Row) -> bytes:
    """Without the metadata, the attributes and the policy, which are nowhere else."""
    made = conversation_pb2.Conversation(
        id=row["id"],
        user_id=row["user_id"],
        resource_id=row["resource_id"],
        title=row["title"],
        storage_limit=row["storage_limit"],
    )
    return made.SerializeToString()


def _message_of(row: Row) -> message_pb2.Message:
    return message_pb2.Message.FromString(row.get("body", b""))


def _sent_time(row: Row) -> int | None:
    found = _message_of(row)
    return wire.micros(found.sent_time) if found.HasField("sent_time") else None


def _message_body(row: Row) -> bytes:
    """Without the parts, the metadata and the calls of tools, which are nowhere else."""
    sent = row["sent_time"]
    made = message_pb2.Message(
        role=row["role"],
        name=row["name"],
        session_id=row["session_id"],
        sent_time=None if sent is None else wire.timestamp(sent),
    )
    return made.SerializeToString()


_CONVERSATIONS: Mapping[str, Filling] = {
    "id": lambda row: _conversation(row).id,
    "user_id": lambda row: _conversation(row).user_id,
    "resource_id": lambda row: _conversation(row).resource_id,
    "title": lambda row: _conversation(row).title,
    "storage_limit": _storage_limit,
    "body": _conversation_body,
    "create_time": lambda _: 0,
}
_HEADS: Mapping[str, Filling] = {
    "last_sequence": lambda _: 0,
    "message_count": lambda _: 0,
    "last_time": lambda row: row.get("update_time", 0),
    "update_time": lambda row: row["last_time"],
    "revision": lambda row: row["uid"],
}
"""The counters are set from what is held."""
_MESSAGES: Mapping[str, Filling] = {
    "revision": lambda row: row["conversation_uid"],
    "id": lambda row: f"{RECOVERED}{row['sequence']}",
    "role": lambda row: _message_of(row).role or UNKNOWN_ROLE,
    "name": lambda row: _message_of(row).name,
    "session_id": lambda row: _message_of(row).session_id,
    "sent_time": _sent_time,
    "create_time": lambda row: row.get("update_time", row["sent_time"] or 0),
    "update_time": lambda row: row["create_time"],
    "token_count": lambda row: _native.count_tokens("o200k_base", [row["text"]])[0],
    "body": _message_body,
}
"""In the order in which they are filled: a later one may be made from those before it."""
