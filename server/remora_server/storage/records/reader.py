"""Reads records of one partition: from memory, into which the database's rows are loaded where it has not all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from remora_server import _native, wire
from remora_server._native import ColdRecords, Core, StoredRecord
from remora_server.domain.calls import Access
from remora_server.domain.errors import MemoryExhausted, StoreDamaged, StoreFailed
from remora_server.domain.replies import REPLY_BYTES, read_fitting
from remora_server.storage.commit.applier import Applier
from remora_server.storage.commit.clock import Clock
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.database.database import Database
from remora_server.storage.records.pages import Selection, each_page
from remora_server.storage.schema.kinds import Kind, Position, Value, parts_of
from remora_server.storage.v1 import record_pb2

NEWEST_ROWS = 256
"""How many rows are loaded of a partition of which only the newest are asked for, before all are."""
ROWS_WITH_BODIES = 16
"""Rows that are loaded with their bodies, unread: of more, only the bodies are read that are asked for."""
NO_BODY = "NULL"
RELOAD_SECONDS = 0.1
LONG_AGO = 0
"""A time by which nothing has expired."""

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
_Version: TypeAlias = tuple[bytes, int, int]
"""A record's key, its revision and its ordinal."""

logger = logging.getLogger(__name__)


class Partition(Struct, frozen=True):
    """Where records stand that are in memory together. `uid` is their conversation's, 0 where they belong to none."""

    kind: Kind
    uid: int
    partition: bytes


class Record(Struct, frozen=True):
    """A record as readers see it. `columns` are in the order of the kind's declaration."""

    key: bytes
    revision: int
    ordinal: int
    user_id: str
    expire_time: int | None
    columns: tuple[Value, ...]
    body: bytes

    def position(self, kind: Kind, order: int) -> Position:
        """Its position in an order of its kind: 0 is that of the keys."""
        return _position_of(kind, order, self)


class _MovedOn(Exception):
    """A record was replaced or removed, and its body with it, after its key was read."""

    def __init__(self, version: _Version) -> None:
        super().__init__()
        self.version = version


class PartitionQuery(Struct, frozen=True):
    """Which records of a partition to list, and in which order: they come ascending.

    `newest`: of those that pass, the ones at the end. `after` and `before` are positions, both exclusive. `where` are
    columns, by their index, and their values. `last` keeps only the last so many of all that pass, before `skip`.
    """

    order: int = 0
    newest: bool = False
    after: Position | None = None
    before: Position | None = None
    where: tuple[tuple[int, Value], ...] = ()
    last: int | None = None
    skip: int = 0
    limit: int = 100


class RecordPage(Struct, frozen=True):
    """Records, ascending; whether more follow on the far side; the revision that they show."""

    records: tuple[Record, ...]
    more: bool
    revision: int


class EncodedPage(Struct, frozen=True):
    """Bodies as elements of a list's reply, how many, and the position of the last where more follow."""

    encoded: bytes
    count: int
    following: Position | None
    revision: int


class RecordReader:
    """Reads partitions. What asks DuckDB raises DeadlineExceeded instead where the deadline has passed."""

    def __init__(self, core: Core, database: Database, applier: Applier, clock: Clock) -> None:
        self._core = core
        self._database = database
        self._applier = applier
        self._clock = clock

    def get(self, access: Access, place: Partition, key: bytes) -> tuple[Record | None, int]:
        """The record as readers see it, or None if it does not exist, and the revision of this read."""
        return self._get(access, place, key, accepted=False)

    def _get(self, access: Access, place: Partition, key: bytes, *, accepted: bool) -> tuple[Record | None, int]:
        found, revision = self.stored(access, place, key, accepted=accepted)
        if found is None:
            return None, revision
        body = found.body
        if body is not None and not found.upload_id:
            return _record(found, body), revision

        def read() -> tuple[Record | None, int]:
            found, revision = self.stored(access, place, key, accepted=accepted)
            complete = [] if found is None else self._completed(access, place, [found], accepted=accepted)
            return next(iter(complete), None), revision

        return self._until_whole(access, place.kind, read)

    def _until_whole(self, access: Access, kind: Kind, read: Callable[[], T]) -> T:
        """Read, again where a record has moved on meanwhile. Raises DeadlineExceeded; StoreDamaged where a body is not
        there though its record has not moved on.
        """
        missing: _Version | None = None
        while True:
            try:
                return read()
            except _MovedOn as moved:
                require_time(access.deadline)
                _require_another(kind, moved.version, missing)
                missing = moved.version

    def accepted(self, access: Access, place: Partition, keys: Sequence[bytes]) -> list[Record]:
        """Those of some records that are there, as writers build on them. Call it under the partition's lock."""
        self._load_cold(access, place, keys)

        def read() -> list[Record]:
            looked = [self.stored(access, place, key)[0] for key in keys]
            return self._with_bodies(access, place, [each for each in looked if each is not None], accepted=True)

        return self._until_whole(access, place.kind, read)

    def several(
        self, access: Access, place: Partition, keys: Sequence[bytes], *, sees_expired: bool = False
    ) -> tuple[list[Record], bool, int]:
        """Those of some records that are there as readers see them, as many as a reply holds, in the order of the keys;
        whether others are there; and the revision that they show at least.
        """
        self._load_cold(access, place, keys)

        def read() -> tuple[list[Record], bool, int]:
            looked = [self.stored(access, place, key, accepted=False, sees_expired=sees_expired) for key in keys]
            found = [each for each, _ in looked if each is not None]
            records = self._completed(access, place, found)
            return records, len(records) < len(found), min(revision for _, revision in looked)

        return self._until_whole(access, place.kind, read)

    def stored(
        self,
        access: Access,
        place: Partition,
        key: bytes,
        *,
        accepted: bool = True,
        sees_expired: bool = False,
        with_partition: bool = False,
    ) -> tuple[StoredRecord | None, int]:
        """The record with or without its body, and the revision that this shows. One that has expired is not there,
        unless that is asked for too. `with_partition`: if memory does not know of it, all keys of the partition are
        loaded.
        """
        now = LONG_AGO if sees_expired else self._clock()
        found, revision = self._look(access, place, key, now, accepted=accepted, with_partition=with_partition)
        return None if found is None or _is_expired(found, now) else found, revision

    def has_expired(self, access: Access, place: Partition, key: bytes) -> bool:
        """Whether an accepted record is there and has expired."""
        now = self._clock()
        found, _ = self._look(access, place, key, now, accepted=True)
        return found is not None and _is_expired(found, now)

    def _look(
        self, access: Access, place: Partition, key: bytes, now: int, *, accepted: bool, with_partition: bool = False
    ) -> tuple[StoredRecord | None, int]:
        while True:
            try:
                return self._core.get_record(
                    place.kind.number, access.tenant_id, place.uid, place.partition, key, accepted=accepted, now=now
                )
            except ColdRecords:
                if with_partition:
                    self._load(access, place, 0, None)
                else:
                    self._load_keys(access, place, [key])

    def may_be_there(self, access: Access, place: Partition, key: bytes) -> bool:
        """Whether an accepted record may stand there, by what is in memory."""
        return self.knows(access, place, key) is not False

    def knows(self, access: Access, place: Partition, key: bytes) -> bool | None:
        """Whether an accepted record stands there, by what is in memory; None where that does not say."""
        return self._core.knows_record(place.kind.number, access.tenant_id, place.uid, place.partition, key)

    def page(self, access: Access, place: Partition, query: PartitionQuery) -> RecordPage:
        """A page of a partition as readers see it: as many as a reply holds, but one at least if there is any."""

        def read() -> RecordPage:
            found = self._resident_page(access, place, query)
            records = self._completed(access, place, found.records, newest=query.newest)
            more = found.more or len(records) < len(found.records)
            return RecordPage(tuple(records), more, found.revision)

        return self._until_whole(access, place.kind, read)

    def bodiless(self, access: Access, place: Partition, query: PartitionQuery) -> list[StoredRecord]:
        """All records that a query selects, ascending, perhaps without their bodies."""
        found: list[StoredRecord] = []
        while True:
            page = self._resident_page(access, place, query)
            records = page.records
            found += records
            if not page.more:
                return found
            query = replace(query, after=_position_of(place.kind, query.order, records[-1]))

    def encoded_page(self, access: Access, place: Partition, query: PartitionQuery) -> EncodedPage:
        """The same page as elements of a list's reply."""
        found = self._resident_page(access, place, query)
        if found.encoded is not None:
            last = _position_of(place.kind, query.order, found.records[-1]) if found.more else None
            return EncodedPage(found.encoded, len(found.records), last, found.revision)
        page = self.page(access, place, query)
        last = page.records[-1].position(place.kind, query.order) if page.more else None
        encoded = wire.elements(wire.LIST_FIELD, (record.body for record in page.records))
        return EncodedPage(encoded, len(page.records), last, page.revision)

    def count(self, access: Access, place: Partition, where: Sequence[tuple[int, Value]] = ()) -> tuple[int, int]:
        """How many records of a partition readers see, and the revision that this shows."""
        now = self._clock()
        while True:
            try:
                return self._core.count_records(
                    place.kind.number, access.tenant_id, place.uid, place.partition, where=where, now=now
                )
            except ColdRecords:
                self._load(access, place, 0, None)

    def _resident_page(self, access: Access, place: Partition, query: PartitionQuery) -> _native.RecordPage:
        while True:
            try:
                return self._core.list_records(
                    place.kind.number,
                    access.tenant_id,
                    place.uid,
                    place.partition,
                    order=query.order,
                    newest=query.newest,
                    after=query.after,
                    before=query.before,
                    where=query.where,
                    last=query.last,
                    skip=query.skip,
                    limit=query.limit,
                    max_bytes=REPLY_BYTES,
                    now=self._clock(),
                )
            except ColdRecords as cold:
                self._load(access, place, query.order, _newest_rows(query, cold.after))

    def there(self, access: Access, place: Partition, keys: Sequence[bytes]) -> list[bytes]:
        """Those of some keys at which writers find a record. Call it under the partition's lock."""
        self._load_cold(access, place, keys)
        return [key for key in keys if self.stored(access, place, key)[0] is not None]

    def _load_cold(self, access: Access, place: Partition, keys: Sequence[bytes]) -> None:
        """Have in memory what of some keys is not: all of it with one query. A lookup of a single key loads it."""
        if len(keys) == 1:
            return
        cold = [key for key in keys if self.knows(access, place, key) is None]
        if cold:
            self._load_keys(access, place, cold)

    def _load_keys(self, access: Access, place: Partition, keys: Sequence[bytes]) -> None:
        def load() -> bool:
            as_of = self._applier.applied
            rows = self._rows(access, place, keys=keys, body="body")
            absent = set(keys) - {row[0] for row in rows}
            return self._give(access, place, rows, absent=sorted(absent), as_of=as_of)

        self._until_fresh(access, load)

    def _load(self, access: Access, place: Partition, order: int, limit: int | None) -> None:
        """Load the last `limit` rows in an order, or all if it is None."""
        names = _order_columns(place.kind, order)
        ending = f"ORDER BY {', '.join(f'{name} DESC' for name in names)} LIMIT {limit}" if limit else ""
        body = "body" if limit and limit <= ROWS_WITH_BODIES else NO_BODY

        def load() -> bool:
            as_of = self._applier.applied
            rows = self._rows(access, place, ending, body=body)
            if limit is None or len(rows) < limit:
                return self._give(access, place, rows, whole=True, as_of=as_of)
            known = _position(place.kind, order, rows[-1])
            return self._give(access, place, rows, order=order, complete_from=known, as_of=as_of)

        self._until_fresh(access, load)

    def _until_fresh(self, access: Access, load: Callable[[], bool]) -> None:
        """Load, again where what was read is older than what memory has let go of. Raises StoreFailed where that is
        never applied.
        """
        require_time(access.deadline)
        while not load():
            if self._core.failure() is not None:
                raise StoreFailed
            require_time(access.deadline)
            self._applier.wait(self._core.published(), RELOAD_SECONDS)

    def _rows(
        self, access: Access, place: Partition, rest: str = "", *, keys: Sequence[bytes] | None = None, body: str
    ) -> list[Row]:
        """The database's rows of a partition as the engine takes them: all, or those of some keys. Where their bodies
        take more memory than there is, those of some keys are read in pages, and others come without.
        """
        columns = ", ".join(
            ["key", "revision", "ordinal", "user_id", "expire_time", "upload_id", body, *place.kind.column_names]
        )
        try:
            return self._read(access, place, columns, rest, keys)
        except MemoryExhausted:
            if body == NO_BODY:
                raise
        if keys is None:
            return self._rows(access, place, rest, body=NO_BODY)
        at = _native.place(access.tenant_id, place.uid, place.partition)
        where = (
            "place = ? AND (tenant_id, conversation_uid, partition) = (?, ?, ?) AND key IN (SELECT unnest(?::BLOB[]))"
        )
        parameters = [at, access.tenant_id, place.uid, place.partition, list(keys)]
        selection = Selection(place.kind.name, columns, where, parameters)
        pages = each_page(self._database, selection, rows=len(keys))
        return [row for page in pages for row in page]

    def _read(
        self, access: Access, place: Partition, columns: str, rest: str, keys: Sequence[bytes] | None
    ) -> list[Row]:
        # DuckDB would look at each of these in all rows: together they are looked at where the place is right.
        names, values = ["tenant_id", "conversation_uid", "partition"], [access.tenant_id, place.uid, place.partition]
        if keys is not None and len(keys) == 1:
            names, values = [*names, "key"], [*values, keys[0]]
        elif keys is not None:
            rest, values = f"AND key IN (SELECT unnest(?::BLOB[])) {rest}", [*values, list(keys)]
        if keys is not None:  # Each key is there once: where all are found, the scan ends.
            rest = f"{rest} LIMIT {len(keys)}"
        within, bounds = "", []
        if keys and place.kind.has_long_bodies:
            # Without bounds that the scan knows, DuckDB reads the bodies of the whole partition.
            within, bounds = "AND key BETWEEN ? AND ?", [min(keys), max(keys)]
        marks = ", ".join("?" * len(names))
        return self._database.rows(
            f"""SELECT {columns} FROM {place.kind.name}
                WHERE place = ? {within} AND ({", ".join(names)}) = ({marks}) {rest}""",  # noqa: S608 - ours
            [_native.place(access.tenant_id, place.uid, place.partition), *bounds, *values],
        )

    def _give(
        self,
        access: Access,
        place: Partition,
        rows: list[Row],
        *,
        as_of: int,
        absent: Sequence[bytes] = (),
        order: int = 0,
        complete_from: Position | None = None,
        whole: bool = False,
    ) -> bool:
        return self._core.load_records(
            place.kind.number,
            access.tenant_id,
            place.uid,
            place.partition,
            rows,
            absent=absent,
            order=order,
            complete_from=complete_from,
            whole=whole,
            as_of=as_of,
        )

    def _completed(
        self,
        access: Access,
        place: Partition,
        found: Sequence[StoredRecord],
        *,
        newest: bool = False,
        accepted: bool = False,
    ) -> list[Record]:
        """The records with their bodies, as many as a reply holds, from the end where that is the newest. Raises
        _MovedOn.
        """
        if len(found) <= 1:
            return self._with_bodies(access, place, found, accepted=accepted)
        way = -1 if newest else 1
        read = partial(self._with_bodies, access, place, accepted=accepted)
        return read_fitting(found[::way], read, lambda record: len(record.body))[::way]

    def _with_bodies(
        self, access: Access, place: Partition, chosen: Sequence[StoredRecord], *, accepted: bool
    ) -> list[Record]:
        """Raises _MovedOn."""
        held = [(stored, stored.body) for stored in chosen if not stored.upload_id]
        records = [_record(stored, body) for stored, body in held if body is not None]
        if len(records) == len(chosen):
            return records
        bodies = self._bodies(access, place, chosen, accepted=accepted)
        return [_record(stored, _body(bodies, stored)) for stored in chosen]

    def _bodies(
        self, access: Access, place: Partition, records: Sequence[StoredRecord], *, accepted: bool
    ) -> dict[_Version, bytes]:
        """The bodies that are there: those in memory, those that the database has, and uploaded ones."""
        bodies = {_version(each): each.body for each in records if each.body is not None and not each.upload_id}
        dropped = [each.key for each in records if each.body is None and not each.upload_id]
        if dropped:
            require_time(access.deadline)
            as_of = self._applier.applied
            rows = self._rows(access, place, keys=dropped, body="body")
            bodies |= {(row[0], row[1], row[2]): row[6] for row in rows}
            self._give(access, place, rows, as_of=as_of)
        for each in records:
            if each.upload_id:
                body = self.uploaded(access, place, each.upload_id, accepted=accepted)
                if body is not None:
                    bodies[_version(each)] = body
        return bodies

    def uploaded(self, access: Access, place: Partition, upload_id: str, *, accepted: bool = False) -> bytes | None:
        """A body put together of its parts; None where these are gone, as the record then is."""
        name, _, count = upload_id.partition("/")
        kind = parts_of(place.kind)
        parts = Partition(kind, place.uid, kind.encode_partition(name))
        found = [self._get(access, parts, kind.encode_key(index), accepted=accepted)[0] for index in range(int(count))]
        if any(part is None for part in found):
            return None
        return b"".join(record_pb2.BodyPart.FromString(part.body).data for part in found if part is not None)


def _is_expired(record: StoredRecord, now: int) -> bool:
    """Whether a record is not to be seen any more."""
    return record.expire_time is not None and record.expire_time <= now


def _require_another(kind: Kind, version: _Version, missing: _Version | None) -> None:
    """Raise StoreDamaged where the body of one version is missing again."""
    if version == missing:
        _, revision, ordinal = version
        told = {"kind": kind.name, "record_revision": revision, "ordinal": ordinal}
        logger.error("the body of a record is not there", extra=told)
        raise StoreDamaged


def _version(record: StoredRecord) -> _Version:
    return record.key, record.revision, record.ordinal


def _body(bodies: Mapping[_Version, bytes], record: StoredRecord) -> bytes:
    """The body of a record. Raises _MovedOn."""
    body = bodies.get(_version(record))
    if body is None:
        raise _MovedOn(_version(record))
    return body


def _position_of(kind: Kind, order: int, record: Record | StoredRecord) -> Position:
    if order == 0:
        return (record.key,)
    return (*(record.columns[column] for column in kind.orders[order - 1]), record.revision, record.ordinal)


def _record(stored: StoredRecord, body: bytes) -> Record:
    return Record(
        key=stored.key,
        revision=stored.revision,
        ordinal=stored.ordinal,
        user_id=stored.user_id,
        expire_time=stored.expire_time,
        columns=tuple(stored.columns),
        body=body,
    )


def _newest_rows(query: PartitionQuery, known: Position | None) -> int | None:
    """How many rows to load for a query; None for all."""
    wanted = query.limit if query.newest else query.last
    if wanted is None or known is not None or query.where:
        return None
    return wanted + 1 if wanted < ROWS_WITH_BODIES else max(wanted + 1, NEWEST_ROWS)


def _order_columns(kind: Kind, order: int) -> list[str]:
    if order == 0:
        return ["key"]
    return [*(kind.columns[column].name for column in kind.orders[order - 1]), "revision", "ordinal"]


def _position(kind: Kind, order: int, row: Row) -> Position:
    """The position of a loaded row in an order."""
    key, revision, ordinal, _, _, _, _, *columns = row
    if order == 0:
        return (key,)
    return (*(columns[column] for column in kind.orders[order - 1]), revision, ordinal)
