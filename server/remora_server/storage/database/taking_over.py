"""Migrates steps and working memories of schema 2 into the tables of their kinds, in chunks of bounded size.

Its progress is stored in the database: an interrupted migration continues at the next start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import duckdb
from msgspec import Struct

from remora.v1 import working_memory_pb2
from remora_server import _native, wire
from remora_server.storage.database import arrow
from remora_server.storage.database.tables import columns_of
from remora_server.storage.schema.kinds import CONVERSATION_MEMORIES, STEPS, USER_MEMORIES, Kind

SCHEMA_VERSION = 3
"""The first that keeps them as records."""
LEAST_ROWS, MOST_ROWS = 8, 2048
PIECE_BYTES = 4 << 20
"""What is taken over at once, unless that is fewer than LEAST_ROWS."""

Row: TypeAlias = tuple[Any, ...]


class OldTable(Struct, frozen=True):
    """A table of schema 2: what it was called, what is read of it, which of that is long, and what becomes of rows."""

    name: str
    columns: str
    body: str
    convert: Callable[[Sequence[Row]], Iterator[tuple[Kind, Row]]]

    @property
    def set_aside(self) -> str:
        """What it is called since schema 3, until it is taken over."""
        return f"old_{self.name}"

    @property
    def progress(self) -> str:
        """The fact of the database that says from which rowid on it is not taken over yet."""
        return f"taken_over:{self.name}"


def _steps(rows: Sequence[Row]) -> Iterator[tuple[Kind, Row]]:
    for tenant_id, uid, user_id, step_id, revision, ordinal, operation_id, index, body in rows:
        partition, key = STEPS.encode_partition(user_id), STEPS.encode_key(step_id)
        place = _native.place(tenant_id, uid, partition)
        head = (tenant_id, uid, place, partition, key, user_id, revision, ordinal, None, "")
        yield STEPS, (*head, operation_id, index, body)


def _memories(rows: Sequence[Row]) -> Iterator[tuple[Kind, Row]]:
    for tenant_id, uid, user_id, content, update_time, revision in rows:
        kind = CONVERSATION_MEMORIES if uid else USER_MEMORIES
        partition = b"" if uid else USER_MEMORIES.encode_partition(user_id)
        place = _native.place(tenant_id, uid, partition)
        memory = working_memory_pb2.WorkingMemoryRecord(content=content, update_time=wire.timestamp(update_time))
        body = memory.SerializeToString()
        yield kind, (tenant_id, uid, place, partition, b"", user_id, revision, 0, None, "", body)


OLD_TABLES = (
    OldTable(
        "steps",
        "tenant_id, conversation_uid, user_id, id, revision, ordinal, operation_id, step_index, body",
        "body",
        _steps,
    ),
    OldTable(
        "working_memories",
        "tenant_id, conversation_uid, user_id, content, update_time, revision",
        "content",
        _memories,
    ),
)


def insert(cursor: duckdb.DuckDBPyConnection, converted: Iterable[tuple[Kind, Row]]) -> None:
    """Write converted rows into the tables of their kinds."""
    by_kind: dict[str, tuple[Kind, list[Row]]] = {}
    for kind, row in converted:
        by_kind.setdefault(kind.name, (kind, []))[1].append(row)
    for kind, rows in by_kind.values():
        cursor.register("converted", arrow.table_of(columns_of(kind), rows))
        cursor.execute(f"INSERT INTO {kind.name} BY NAME SELECT * FROM converted")  # noqa: S608 - a table of ours
        cursor.unregister("converted")


def copy_piece(cursor: duckdb.DuckDBPyConnection, old: OldTable, source: str, begin: int, end: int) -> None:
    """Copy the rows of a piece of a table, by rowid, into the tables of their kinds."""
    rows = cursor.execute(
        f"SELECT {old.columns} FROM {source} WHERE rowid >= {begin} AND rowid < {end}"  # noqa: S608 - tables of ours
    ).fetchall()
    insert(cursor, old.convert(rows))


def end_of(cursor: duckdb.DuckDBPyConnection, source: str) -> int:
    """The rowid behind a table's last row."""
    [(last,)] = cursor.execute(f"SELECT max(rowid) FROM {source}").fetchall()  # noqa: S608 - a table of ours
    return 0 if last is None else int(last) + 1


def next_end(cursor: duckdb.DuckDBPyConnection, old: OldTable, source: str, begin: int) -> int:
    """Where a piece ends that begins at a rowid: it has some bytes at most, but some rows in any case."""
    length = MOST_ROWS
    while length > LEAST_ROWS and _bytes(cursor, old, source, begin, begin + length) > PIECE_BYTES:
        length //= 4
    return begin + length


def _bytes(cursor: duckdb.DuckDBPyConnection, old: OldTable, source: str, begin: int, end: int) -> int:
    [(size,)] = cursor.execute(
        f"SELECT coalesce(sum(octet_length({old.body})), 0) FROM {source} "  # noqa: S608 - tables of ours
        f"WHERE rowid >= {begin} AND rowid < {end}"
    ).fetchall()
    return int(size)
