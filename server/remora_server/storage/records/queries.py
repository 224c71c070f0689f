"""Queries of a kind's records across partitions, which the database answers once it has what touches the kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from remora_server import _native
from remora_server._native import Core
from remora_server.domain.calls import Read
from remora_server.domain.replies import read_fitting
from remora_server.storage.commit.clock import Clock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import Database
from remora_server.storage.records.expiries import UnappliedExpiries
from remora_server.storage.records.reader import Partition, Record, RecordReader
from remora_server.storage.schema.kinds import Kind, Position, Value

Row: TypeAlias = tuple[Any, ...]

CONTAINS = "contains"
"""Whether a text has another within it."""
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", CONTAINS)


class Condition(Struct, frozen=True):
    """What a column must be like: `operator` is one of OPERATORS."""

    column: str
    operator: str
    value: Value


class RecordsQuery(Struct, frozen=True):
    """Which records of a kind to find, and in which order.

    `uid`: of this conversation; None: of any. `prefix`: of the partitions that begin so. `user_id`: of this user.
    `since`: written after this revision. `order` is one of the kind's; 0 is that of conversations, partitions and keys.
    `after` is the position of a record; the first `skip` behind it are left out.
    """

    kind: Kind
    uid: int | None = None
    prefix: bytes = b""
    user_id: str | None = None
    since: int = 0
    where: tuple[Condition, ...] = ()
    order: int = 0
    descending: bool = False
    after: Position | None = None
    skip: int = 0
    limit: int = 100


class FoundRecord(Struct, frozen=True):
    """A record, where it stands, and its position in the order of the query."""

    place: Partition
    record: Record
    position: Position


class FoundRecords(Struct, frozen=True):
    """Records in the order of the query, whether there are more, and the revision that they show."""

    records: tuple[FoundRecord, ...]
    more: bool
    revision: int


class RecordQueries:
    """Asks the database."""

    def __init__(self, core: Core, database: Database, commits: Commits, reader: RecordReader, clock: Clock) -> None:
        self._core = core
        self._database = database
        self._commits = commits
        self._reader = reader
        self._clock = clock

    def find(self, read: Read, query: RecordsQuery) -> FoundRecords:
        """The records of one page: as many as asked for and as a reply holds, but one at least if there is any."""
        revision = self._commits.begin_query_of(read, query.kind.number)
        expiries = UnappliedExpiries(self._core, query.kind, read.tenant_id)
        rows, bodies = self._database.snapshot(lambda cursor: self._read(cursor, read, query, expiries))
        found = [self._found(read, query, *each) for each in zip(rows, bodies, strict=False)]
        return FoundRecords(tuple(each for each in found if each is not None), len(rows) > len(bodies), revision)

    def count(self, read: Read, query: RecordsQuery) -> int:
        """How many records pass, on whichever page they are."""
        self._commits.begin_query_of(read, query.kind.number)
        expiries = UnappliedExpiries(self._core, query.kind, read.tenant_id)
        conditions, values = zip(*self._conditions(read, replace(query, after=None), ()), strict=True)

        def ask(cursor: duckdb.DuckDBPyConnection) -> int:
            with expiries.source(cursor) as source:
                sql = f"SELECT count(*) FROM {source} WHERE {' AND '.join(conditions)}"  # noqa: S608 - ours
                [(found,)] = cursor.execute(sql, [value for given in values for value in given]).fetchall()
            return int(found)

        return self._database.snapshot(ask)

    def total(self, read: Read, place: Partition) -> tuple[int, int]:
        """How many records a partition has, expired ones included, and the revision that this shows."""
        revision = self._commits.begin_query_of(read, place.kind.number)
        [(count,)] = self._database.rows(
            f"""SELECT count(*) FROM {place.kind.name}
                WHERE place = ? AND (tenant_id, conversation_uid, partition) = (?, ?, ?)""",  # noqa: S608 - a table of ours
            [_native.place(read.tenant_id, place.uid, place.partition), read.tenant_id, place.uid, place.partition],
        )
        return count, revision

    def _read(
        self, cursor: duckdb.DuckDBPyConnection, read: Read, query: RecordsQuery, expiries: UnappliedExpiries
    ) -> tuple[list[Row], list[bytes]]:
        """The rows without their bodies, one more than asked for where there is one; the bodies of those that fit."""
        order = _order(query)
        conditions, values = zip(*self._conditions(read, query, order), strict=True)
        way = "DESC" if query.descending else "ASC"
        own = "".join(f", {name}" for name in query.kind.column_names)
        # No bodies: they would be read of all that pass.
        with expiries.source(cursor) as source:
            sql = f"""
                SELECT conversation_uid, partition, key, revision, ordinal, user_id, expire_time, upload_id{own}
                FROM {source} WHERE {" AND ".join(conditions)}
                ORDER BY {", ".join(f"{name} {way}" for name in order)} LIMIT {query.limit + 1} OFFSET {query.skip}"""  # noqa: S608 - ours
            rows = cursor.execute(sql, [value for given in values for value in given]).fetchall()
        bodies = partial(_bodies, cursor, read.tenant_id, query.kind)
        return rows, read_fitting(rows[: query.limit], bodies, len)

    def _conditions(self, read: Read, query: RecordsQuery, order: Sequence[str]) -> Iterator[tuple[str, list[object]]]:
        yield "tenant_id = ?", [read.tenant_id]
        if query.uid is not None:
            yield "conversation_uid = ?", [query.uid]
        if query.prefix:
            yield "partition >= ?", [query.prefix]
            if (end := behind(query.prefix)) is not None:
                yield "partition < ?", [end]
        if query.user_id is not None:
            yield "user_id = ?", [query.user_id]
        if query.since:
            yield "revision > ?", [query.since]
        for condition in query.where:
            yield _compared(query.kind, condition)
        if query.after is not None:
            operator = "<" if query.descending else ">"
            yield f"({', '.join(order)}) {operator} ({', '.join('?' * len(order))})", list(query.after)
        yield "(expire_time IS NULL OR expire_time > ?)", [self._clock()]

    def _found(self, read: Read, query: RecordsQuery, row: Row, body: bytes) -> FoundRecord | None:
        """A record; None if its body was uploaded and has gone meanwhile, as the record then has."""
        uid, partition, key, revision, ordinal, user_id, expire_time, upload_id, *columns = row
        place = Partition(query.kind, uid, partition)
        whole = self._reader.uploaded(read, place, upload_id) if upload_id else body
        if whole is None:
            return None
        record = Record(key, revision, ordinal, user_id, expire_time, tuple(columns), whole)
        position = (uid, partition, key) if query.order == 0 else record.position(query.kind, query.order)
        return FoundRecord(place, record, position)


def _bodies(cursor: duckdb.DuckDBPyConnection, tenant_id: str, kind: Kind, rows: Sequence[Row]) -> list[bytes]:
    places = [_native.place(tenant_id, uid, partition) for uid, partition, *_ in rows]
    found = cursor.execute(
        f"""SELECT conversation_uid, partition, key, body FROM {kind.name}
            WHERE place IN (SELECT unnest(?::UBIGINT[])) AND tenant_id = ?
            AND key IN (SELECT unnest(?::BLOB[]))""",  # noqa: S608 - a table of ours
        [places, tenant_id, [row[2] for row in rows]],
    ).fetchall()
    bodies = {(uid, partition, key): body for uid, partition, key, body in found}
    return [bodies[row[0], row[1], row[2]] for row in rows]


def _order(query: RecordsQuery) -> list[str]:
    if query.order == 0:
        return ["conversation_uid", "partition", "key"]
    columns = query.kind.orders[query.order - 1]
    return [*(query.kind.columns[column].name for column in columns), "revision", "ordinal"]


def _compared(kind: Kind, condition: Condition) -> tuple[str, list[object]]:
    if condition.column not in kind.column_names or condition.operator not in OPERATORS:
        raise ValueError(f"{kind.name} cannot be asked for {condition.column} {condition.operator}")
    if condition.value is None:
        return f"{condition.column} IS {'' if condition.operator == '=' else 'NOT '}NULL", []
    if condition.operator == CONTAINS:
        return f"contains({condition.column}, ?)", [condition.value]
    return f"{condition.column} {condition.operator} ?", [condition.value]


def behind(prefix: bytes) -> bytes | None:
    """What comes after everything that begins so; None if nothing does."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
