"""Values of channels and of writes: where their bytes are, and how a new one is stored.

The value of a channel is stored whole or as its difference from a base: from the value that the parent checkpoint has
or, one in STRIDE values, from the last such value before it. The depth of a value counts the values since the last
whole one. A base belongs to the same user and has a smaller depth, so that chains end.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from remora.v1.checkpoint_pb2 import ChannelBlob, CheckpointPart, CheckpointWrite
from remora_server import wire
from remora_server._native import StoredRecord
from remora_server.domain.calls import Access, Read, Write
from remora_server.domain.checkpoints import PartDraft, UploadName, ValueDraft
from remora_server.domain.differences import (
    GREATEST_DEPTH,
    STRIDE,
    Difference,
    Piece,
    applied,
    difference,
    flat,
    of_flat,
)
from remora_server.domain.errors import StoreDamaged, UploadIncomplete, UploadNamed
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.uploads import PART_BYTES, UNNAMED_SECONDS
from remora_server.locking import Level, new_lock
from remora_server.storage.commit import changes
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.records.reader import Partition, PartitionQuery, Record
from remora_server.storage.records.records import Move, Put, Remove
from remora_server.storage.schema import keys
from remora_server.storage.schema.keys import KeyType, encode
from remora_server.storage.schema.kinds import CHANNEL_BLOBS, CHECKPOINT_PARTS, CHECKPOINT_WRITES, CHECKPOINTS

Stored: TypeAlias = ChannelBlob | CheckpointWrite
"""A record that holds a value, or names the upload that holds it."""

CACHED_BYTES = 32 << 20
LONGEST_CACHED = CACHED_BYTES // 8
LONGEST_COMPARED = 16 << 20
"""Longer values are stored as they came."""
LONGEST_DIFFERENCE = 1 << 20
_BRIEF = 64 << 10
"""Longer values are not compared between other calls."""
_PIECE_BYTES = 12
"""The approximate size of a piece in a record."""

_SIZE, _DEPTH, _BASE_VERSION, _BASE_FORK = (
    CHANNEL_BLOBS.column_names.index(name) for name in ("size", "depth", "base_version", "base_fork")
)
_PIECE_SIZE = CHECKPOINT_PARTS.column_names.index("part_bytes")
_STORED_BYTES = 16 << 10
"""The length of all pieces of a stored upload but the last one. DuckDB holds 2,048 of them at a time."""
_PIECES_OF_PART = PART_BYTES // _STORED_BYTES
_PIECES_AT_ONCE = REPLY_BYTES // _STORED_BYTES


class Scope(Struct, frozen=True):
    """A namespace of a thread: where its checkpoints stand, their values and their writes."""

    thread_id: str
    checkpoint_ns: str
    partition: bytes

    @property
    def checkpoints(self) -> Partition:
        return Partition(CHECKPOINTS, 0, self.partition)

    @property
    def blobs(self) -> Partition:
        return Partition(CHANNEL_BLOBS, 0, self.partition)

    @property
    def writes(self) -> Partition:
        return Partition(CHECKPOINT_WRITES, 0, self.partition)

    def parts(self, upload_id: str) -> Partition:
        """Those of an upload."""
        encoded = CHECKPOINT_PARTS.encode_partition(self.thread_id, self.checkpoint_ns, upload_id)
        return Partition(CHECKPOINT_PARTS, 0, encoded)


def scope_of(thread_id: str, checkpoint_ns: str) -> Scope:
    return Scope(thread_id, checkpoint_ns, CHECKPOINTS.encode_partition(thread_id, checkpoint_ns))


def scope_at(partition: bytes) -> Scope:
    """The scope whose records have this partition."""
    thread_id, checkpoint_ns = map(str, keys.decode(CHECKPOINTS.partition_types, partition))
    return Scope(thread_id, checkpoint_ns, partition)


class ChannelValue(Struct, frozen=True):
    """A value of a channel that is not read yet: where it is stored, its user, and its length."""

    scope: Scope
    key: bytes
    revision: int
    user_id: str
    size: int
    depth: int

    @property
    def version(self) -> str:
        return str(keys.decode(CHANNEL_BLOBS.key_types, self.key)[1])

    @property
    def fork(self) -> int:
        """Which of the values of its version it is."""
        return int(str(keys.decode(CHANNEL_BLOBS.key_types, self.key)[-1]))


class _Cache:
    """Values that were read or written last, by the record that holds them; they never change."""

    def __init__(self) -> None:
        self._lock = new_lock(Level.LEAF)
        self._values: OrderedDict[tuple[str, bytes, bytes, int], tuple[str, bytes]] = OrderedDict()
        self._bytes = 0

    def get(self, tenant_id: str, value: ChannelValue) -> tuple[str, bytes] | None:
        place = (tenant_id, value.scope.partition, value.key, value.revision)
        with self._lock:
            found = self._values.get(place)
            if found is not None:
                self._values.move_to_end(place)
        return found

    def put(self, tenant_id: str, scope: Scope, key: bytes, revision: int, value: tuple[str, bytes]) -> None:
        if len(value[1]) > LONGEST_CACHED:
            return
        place = (tenant_id, scope.partition, key, revision)
        with self._lock:
            if place not in self._values:
                self._values[place] = value
                self._bytes += len(value[1])
            while self._bytes > CACHED_BYTES:
                _, (_, gone) = self._values.popitem(last=False)
                self._bytes -= len(gone)


class Base(Struct, frozen=True):
    """A value from which another one of its channel may differ. `read` gives its type and its bytes; `stored` is None
    for one of the same write.
    """

    user_id: str
    size: int
    depth: int
    version: str
    fork: int
    read: Callable[[], tuple[str, bytes]]
    stored: ChannelValue | None = None


class PlannedValue(Struct, frozen=True):
    """A value that is to be stored: the key of its record, the record, its bytes where they are at hand, and the upload
    that it keeps.
    """

    key: bytes
    blob: ChannelBlob
    data: bytes | None
    upload: UploadName | None = None


class ChannelValues:
    """Reads and plans values. Plans are made under the locks of their scopes, on what is accepted."""

    def __init__(self, context: StoreContext) -> None:
        self._core = context.core
        self._commits = context.commits
        self._records = context.records
        self._clock = context.clock
        self._cache = _Cache()

    def look(self, access: Access, scope: Scope, key: bytes) -> ChannelValue | None:
        """The value that is stored at a key: for a write what is accepted, for a read what is published."""
        found = self._stored(access, scope.blobs, key)
        return None if found is None else _value(scope, found)

    def named(self, read: Read, scope: Scope, channel: str, version: str, fork: int) -> ChannelValue | None:
        """A value of a version; without a fork, the one that was stored last."""
        found = self.look(read, scope, CHANNEL_BLOBS.encode_key(channel, version, fork))
        if found is None and not fork:
            return next(reversed(self.of_version(read, scope, channel, version)), None)
        return found

    def last(self, write: Write, scope: Scope, channel: str, version: str) -> ChannelValue | None:
        """The value of a version that was accepted last, under the scope's lock. Raises DeadlineExceeded."""
        self._commits.wait_published(self._core.kind_touched(CHANNEL_BLOBS.number), write.deadline)
        return next(reversed(self.of_version(write, scope, channel, version)), None)

    def of_version(self, access: Access, scope: Scope, channel: str, version: str) -> list[ChannelValue]:
        """The values of a channel that have a version, as they were stored. Those that are not published yet are not
        among them.
        """
        begin = encode([KeyType.TEXT, KeyType.TEXT], [channel, version])
        query = PartitionQuery(after=(begin,), before=(behind(begin),))
        found = self._records.bodiless(access, scope.blobs, query)
        looked = (self.look(access, scope, each.key) for each in sorted(found, key=_stored_at))
        return [each for each in looked if each is not None]

    def whole(self, access: Access, value: ChannelValue) -> tuple[str, bytes]:
        """The type and the bytes of a value. Raises StoreDamaged."""
        cached = self._cache.get(access.tenant_id, value)
        if cached is not None:
            return cached
        if value.size > _BRIEF or value.depth:
            require_time(access.deadline)
        chain, base = self._chain(access, value)
        data = base
        for blob in reversed(chain):
            data = self._bytes(access, value.scope, blob, data)
        whole = (chain[0].type, data or b"")
        self._require_size(whole[1], value.size)
        self._cache.put(access.tenant_id, value.scope, value.key, value.revision, whole)
        return whole

    def part(self, access: Access, value: ChannelValue, begin: int, end: int) -> tuple[str, bytes]:
        """The type and some bytes of a value. Only those parts of an upload are read that have them."""
        if value.size <= LONGEST_CACHED:
            value_type, data = self.whole(access, value)
            return value_type, data[begin:end]
        chain, base = self._chain(access, value)
        wanted: list[bytes | tuple[int, int]] = [(begin, min(end, value.size))]
        for blob in chain if base is not None else chain[:-1]:
            wanted = [each for one in wanted for each in _through(blob, one)]
        parts: list[bytes] = []
        for one in wanted:
            if isinstance(one, bytes):
                parts.append(one)
            elif base is not None:
                parts.append(base[one[0] : one[1]])
            else:
                parts.append(self.slice(access, value.scope, chain[-1], *one))
        return chain[0].type, b"".join(parts)

    def slice(self, access: Access, scope: Scope, stored: Stored, begin: int, end: int) -> bytes:
        """Some bytes of a value that is stored whole; none behind its end. Raises StoreDamaged."""
        if begin >= end:
            return b""
        if not stored.upload_id:
            self._require_size(stored.data, stored.size)
            return stored.data[begin:end]
        first, last = begin // _STORED_BYTES, -(-end // _STORED_BYTES)
        # A few at a time, because the database has no memory for many.
        place = scope.parts(stored.upload_id)
        found = [
            each
            for at in range(first, last, _PIECES_AT_ONCE)
            for each in self._read_all(access, place, _piece_keys(at, min(at + _PIECES_AT_ONCE, last)))
        ]
        whole = b"".join(CheckpointPart.FromString(record.body).data for record in found)
        begins_at = first * _STORED_BYTES
        self._require_size(whole, min(last * _STORED_BYTES, stored.size) - begins_at)
        return whole[begin - begins_at : end - begins_at]

    def base(self, write: Write, value: ChannelValue) -> Base:
        """A stored value as the base of another one."""
        return Base(
            value.user_id,
            value.size,
            value.depth,
            value.version,
            value.fork,
            lambda: self.whole(write, value),
            value,
        )

    def plan(
        self, write: Write, scope: Scope, key: bytes, blob: ChannelBlob, *, draft: ValueDraft, parent: Base | None
    ) -> PlannedValue:
        """How a new value is stored. `blob` has its names and its user, `parent` is what the parent checkpoint has.
        Raises UploadIncomplete.
        """
        depth = 0 if parent is None else parent.depth + 1
        base = self._before(write, parent) if parent and depth % STRIDE == 0 else parent
        blob.type = draft.type
        data: bytes | None = draft.data
        if draft.upload is not None:
            blob.size = self.uploaded_size(write, scope, draft.upload, blob.user_id)
            blob.upload_id, blob.upload_parts = draft.upload.id, draft.upload.parts
            data = self.slice(write, scope, blob, 0, blob.size) if blob.size <= LONGEST_COMPARED and base else None
        else:
            blob.size = len(draft.data)
        if data is not None and base is not None and _shorten(write, blob, data, base, depth):
            return PlannedValue(key, blob, data)
        if draft.upload is None:
            blob.data = draft.data
        return PlannedValue(key, blob, data, draft.upload)

    def _before(self, write: Write, parent: Base) -> Base | None:
        """The last base of a value that is at a multiple of STRIDE; none for one of the same write."""
        bases = () if parent.stored is None else self.bases(write, parent.stored)
        return next((self.base(write, each) for each in bases if each.depth % STRIDE == 0), None)

    def is_same(self, access: Access, value: ChannelValue, draft: ValueDraft, user_id: str) -> bool:
        """Whether a value that is there is a draft of a user's, which is not uploaded."""
        if value.user_id != user_id or value.size != len(draft.data):
            return False
        return self.whole(access, value) == (draft.type, draft.data)

    def stored(self, write: Write, scope: Scope, planned: Sequence[PlannedValue], revision: int) -> None:
        """Remember what a write has stored: the next one is compared with it."""
        for each in planned:
            if each.data is not None:
                self._cache.put(write.tenant_id, scope, each.key, revision, (each.blob.type, each.data))

    def upload(self, write: Write, part: PartDraft) -> Sequence[Move]:
        """How a part is stored, under its partition's lock: in pieces, which take the place of those of another part
        with its index. Raises UploadNamed.
        """
        scope = scope_of(part.thread_id, part.checkpoint_ns)
        place, first = scope.parts(part.upload_id), part.index * _PIECES_OF_PART
        present = self._records.there(write, place, _piece_keys(first, first + _PIECES_OF_PART))
        for key in present:
            found = self._records.stored(write, place, key)
            if found is not None and found.expire_time is None:
                raise UploadNamed(part.upload_id)
        puts = [Put(CHECKPOINT_PARTS, 0, each) for each in self._pieces_of(part)]
        replaced = _piece_keys(first, first + len(puts))
        return [*puts, *(Remove(CHECKPOINT_PARTS, 0, place.partition, key) for key in present if key not in replaced)]

    def _pieces_of(self, part: PartDraft) -> Iterator[CheckpointPart]:
        """A part as it is stored: one piece at least."""
        expire_time = wire.timestamp(self._clock() + UNNAMED_SECONDS * 1_000_000)
        for place, begin in enumerate(range(0, max(len(part.data), 1), _STORED_BYTES)):
            yield CheckpointPart(
                thread_id=part.thread_id,
                checkpoint_ns=part.checkpoint_ns,
                upload_id=part.upload_id,
                index=part.index * _PIECES_OF_PART + place,
                user_id=part.user_id,
                data=part.data[begin : begin + _STORED_BYTES],
                expire_time=expire_time,
            )

    def uploaded_size(self, write: Write, scope: Scope, upload: UploadName, user_id: str) -> int:
        """How many bytes an upload has. Raises UploadIncomplete."""
        return sum(size for _, size in self._uploaded(write, scope, upload, user_id))

    def kept(self, write: Write, scope: Scope, upload: UploadName, user_id: str) -> Iterator[changes.Change]:
        """An upload that has been named does not expire any more. Raises UploadIncomplete."""
        place = scope.parts(upload.id)
        for found, _ in self._uploaded(write, scope, upload, user_id):
            yield changes.set_expiry(place.kind.number, 0, place.partition, found.key, found.revision, None)

    def _uploaded(
        self, write: Write, scope: Scope, upload: UploadName, user_id: str
    ) -> Iterator[tuple[StoredRecord, int]]:
        """The pieces of an upload that no write has named, each with its size. Raises UploadIncomplete."""
        place = scope.parts(upload.id)
        for index in range(upload.parts):
            pieces = list(self._uploaded_part(write, place, index, user_id))
            # All pieces of a part expire at once: the first one is there still, and so were the others.
            is_there = self._records.stored(write, place, CHECKPOINT_PARTS.encode_key(index * _PIECES_OF_PART))
            is_short = sum(size for _, size in pieces) < PART_BYTES and index < upload.parts - 1
            if not pieces or is_there is None or is_short:
                raise UploadIncomplete(upload.id, index)
            yield from pieces

    def _uploaded_part(
        self, write: Write, place: Partition, index: int, user_id: str
    ) -> Iterator[tuple[StoredRecord, int]]:
        """The pieces of a part that no write has named, up to the first one that is short."""
        for key in _piece_keys(index * _PIECES_OF_PART, (index + 1) * _PIECES_OF_PART):
            found = self._records.stored(write, place, key, with_partition=True)
            if found is None or found.expire_time is None or found.user_id != user_id:
                return
            size = int(str(found.columns[_PIECE_SIZE]))
            yield found, size
            if size < _STORED_BYTES:
                return

    def bases(self, access: Access, value: ChannelValue) -> Iterator[ChannelValue]:
        """The base of a value, that one's, and so on. Raises StoreDamaged."""
        while value.depth:
            found = self._stored(access, value.scope.blobs, value.key)
            base = None if found is None else self.look(access, value.scope, _base_key(value, found.columns))
            if base is None or base.depth >= value.depth:
                raise StoreDamaged
            yield base
            value = base

    def _chain(self, access: Access, value: ChannelValue) -> tuple[list[ChannelBlob], bytes | None]:
        """A value's record and those of its bases, as far as the first whose bytes are at hand."""
        chain, base = [value.key], None
        for each in self.bases(access, value):
            cached = self._cache.get(access.tenant_id, each)
            if cached is not None:
                base = cached[1]
                break
            chain.append(each.key)
        found = self._read_all(access, value.scope.blobs, chain)
        return [ChannelBlob.FromString(record.body) for record in found], base

    def _bytes(self, access: Access, scope: Scope, blob: ChannelBlob, base: bytes | None) -> bytes:
        """The bytes of a value; `base` is None for one that is stored whole."""
        if base is None:
            return self.slice(access, scope, blob, 0, blob.size)
        return applied(base, Difference(blob.data, _pieces(blob)))

    def _read_all(self, access: Access, place: Partition, wanted: Sequence[bytes]) -> list[Record]:
        """All of some records, in their order. Raises StoreDamaged if one is missing."""
        records: list[Record] = []
        while len(records) < len(wanted):
            rest = wanted[len(records) :]
            if isinstance(access, Read):
                found, _, _ = self._records.several(access, place, rest)
            else:
                found = self._records.accepted(access, place, rest)
            if [each.key for each in found] != list(rest[: len(found)]) or not found:
                raise StoreDamaged
            records += found
        return records

    def _stored(self, access: Access, place: Partition, key: bytes) -> StoredRecord | None:
        if isinstance(access, Read):
            return self._records.shown(access, place, key, with_partition=True)
        return self._records.stored(access, place, key, with_partition=True)

    def _require_size(self, data: bytes, size: int) -> None:
        """Raise StoreDamaged if a value has not as many bytes as its record says."""
        if len(data) != size:
            raise StoreDamaged


def _base_key(value: ChannelValue, columns: Sequence[object]) -> bytes:
    """Where the base of a value stands."""
    channel, _, _ = keys.decode(CHANNEL_BLOBS.key_types, value.key)
    return CHANNEL_BLOBS.encode_key(str(channel), str(columns[_BASE_VERSION]), int(str(columns[_BASE_FORK])))


def _piece_keys(begin: int, end: int) -> list[bytes]:
    """The keys of some pieces of an upload."""
    return [CHECKPOINT_PARTS.encode_key(index) for index in range(begin, end)]


def key_of(blob: ChannelBlob) -> bytes:
    """Where the value of a channel stands."""
    return CHANNEL_BLOBS.encode_key(blob.channel, blob.version, blob.fork)


def new_fork() -> int:
    """The fork of a new value: at random, so that no value has one that another had before it. A checkpoint that stays
    when a value goes with its user would show whatever took that one's place. 0 is no value's.
    """
    return 1 + secrets.randbelow((1 << 31) - 1)


def behind(prefix: bytes) -> bytes:
    """A bound after every key with this prefix. The last byte of a prefix ends a text."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _stored_at(found: StoredRecord) -> tuple[int, int]:
    return found.revision, found.ordinal


def _value(scope: Scope, found: StoredRecord) -> ChannelValue:
    size, depth = found.columns[_SIZE], found.columns[_DEPTH]
    return ChannelValue(scope, found.key, found.revision, found.user_id, int(str(size)), int(str(depth)))


def _pieces(blob: ChannelBlob) -> tuple[Piece, ...]:
    """The pieces of a value that is stored as a difference. Raises StoreDamaged."""
    try:
        return of_flat(blob.pieces)
    except ValueError as error:
        raise StoreDamaged from error


def _through(blob: ChannelBlob, wanted: bytes | tuple[int, int]) -> Iterator[bytes | tuple[int, int]]:
    """Some bytes of a difference: those that are at hand, and where the others are in its base."""
    if isinstance(wanted, bytes):
        yield wanted
        return
    begin, end = wanted
    at = data_at = 0
    for piece in _pieces(blob):
        literal_end, run_end = at + piece.literal, at + piece.literal + piece.length
        if begin < literal_end and end > at:
            yield blob.data[data_at + max(begin - at, 0) : data_at + min(end - at, piece.literal)]
        if begin < run_end and end > literal_end:
            first, last = max(begin - literal_end, 0), min(end - literal_end, piece.length)
            yield piece.offset + first, piece.offset + last
        at, data_at = run_end, data_at + piece.literal


def _shorten(write: Write, blob: ChannelBlob, data: bytes, base: Base, depth: int) -> bool:
    """Have a value of a depth stored as its difference from a base, where that is shorter."""
    if base.user_id != blob.user_id or depth >= GREATEST_DEPTH or base.size > LONGEST_COMPARED:
        return False
    if max(len(data), base.size) > _BRIEF:
        require_time(write.deadline)
    base_type, base_data = base.read()
    if base_type != blob.type:
        return False
    found = difference(base_data, data)
    size = len(found.data) + _PIECE_BYTES * len(found.pieces)
    if size + len(base.version) >= len(data) or size > LONGEST_DIFFERENCE:
        return False
    blob.data, blob.depth = found.data, depth
    blob.base_version, blob.base_fork = base.version, base.fork
    blob.pieces.extend(flat(found.pieces))
    blob.upload_id, blob.upload_parts = "", 0
    return True
