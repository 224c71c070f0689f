"""Records of the kinds: read by key, listed within a partition or across, written together as one journal record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from google.protobuf.message import Message
from msgspec import Struct

from remora_server._native import Core, StoredRecord
from remora_server.domain.calls import Access, Outcome, Read, Write
from remora_server.domain.uploads import PART_BYTES
from remora_server.locking import Level
from remora_server.storage.commit import changes
from remora_server.storage.commit.changes import Change
from remora_server.storage.commit.clock import Clock
from remora_server.storage.commit.commands import Commands, Planned
from remora_server.storage.commit.commits import Commits
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.commit.locks import Locks
from remora_server.storage.database.database import Database
from remora_server.storage.records.queries import FoundRecords, RecordQueries, RecordsQuery
from remora_server.storage.records.reader import (
    EncodedPage,
    Partition,
    PartitionQuery,
    Record,
    RecordPage,
    RecordReader,
)
from remora_server.storage.records.refusals import BodyTooLong, RecordNotFound, RevisionMismatch
from remora_server.storage.records.uploads import Upload, Uploaded, Uploads
from remora_server.storage.schema import keys
from remora_server.storage.schema.kinds import Kind, Kinds, RecordDraft, Value

ABSENT = 0
"""The revision that is expected of a record that is not to be there."""


class Put(Struct, frozen=True):
    """A record to write. Its body is the message, or what was uploaded for it.

    `expected`: the revision that the one in its place must have, ABSENT where none may be there; None: any.
    `expire_time`, in microseconds, where the kind has no field for it.
    """

    kind: Kind
    uid: int
    message: Message
    expected: int | None = None
    expire_time: int | None = None
    uploaded: Uploaded | None = None

    @property
    def partition(self) -> bytes:
        """Of the message."""
        return self.kind.place(self.message)[0]


class PutDraft(Struct, frozen=True):
    """A record to write that is drafted already, whatever stands in its place."""

    kind: Kind
    uid: int
    draft: RecordDraft

    @property
    def partition(self) -> bytes:
        """Of the draft."""
        return self.draft.partition


class Remove(Struct, frozen=True):
    """A record to remove, with all that goes with it. `expected` is as for Put."""

    kind: Kind
    uid: int
    partition: bytes
    key: bytes
    expected: int | None = None


class RemovePartitions(Struct, frozen=True):
    """Records to remove, with all that goes with them: of one partition or, with `is_prefix`, of all that begin so."""

    kind: Kind
    uid: int
    partition: bytes
    is_prefix: bool = False

    def takes(self, place: Partition) -> bool:
        """Whether the records of a partition are among them."""
        if (self.kind, self.uid) != (place.kind, place.uid):
            return False
        return place.partition.startswith(self.partition) if self.is_prefix else place.partition == self.partition


Move: TypeAlias = Put | PutDraft | Remove | RemovePartitions


class _Written:
    """What the moves of a write before have done: whose the records are that they put, and what they removed."""

    def __init__(self) -> None:
        self._owners: dict[tuple[Partition, bytes], str | None] = {}
        self._removed: list[RemovePartitions] = []

    def put(self, place: Partition, key: bytes, user_id: str) -> None:
        self._owners[place, key] = user_id

    def remove(self, place: Partition, key: bytes) -> None:
        self._owners[place, key] = None

    def remove_partitions(self, move: RemovePartitions) -> None:
        for place, key in self._owners:
            if move.takes(place):
                self._owners[place, key] = None
        self._removed.append(move)

    def has_touched(self, place: Partition, key: bytes) -> bool:
        return (place, key) in self._owners or any(move.takes(place) for move in self._removed)

    def owner(self, place: Partition, key: bytes) -> str | None:
        """The user of a record that was touched; None where it was removed."""
        return self._owners.get((place, key))


class Records:
    """Reads and writes records of any kinds.

    Every write of a record holds the lock of its conversation, where it belongs to one, else of its partition, so that
    what it expects is so when it is accepted. `write` takes these locks; who calls `changes` holds them.
    """

    def __init__(
        self,
        core: Core,
        database: Database,
        commits: Commits,
        *,
        commands: Commands,
        reader: RecordReader,
        clock: Clock,
        conversation_locks: Locks,
    ) -> None:
        """`conversation_locks` are by the conversations' ids."""
        self._core = core
        self._commits = commits
        self._commands = commands
        self._reader = reader
        self._clock = clock
        self._locks = Locks(Level.RECORDS)
        self._conversation_locks = conversation_locks
        self._queries = RecordQueries(core, database, commits, reader, clock)
        self._uploads = Uploads(reader, clock)
        self.kinds: Kinds = database.kinds

    def write(self, write: Write, moves: Sequence[Move]) -> Outcome:
        """Write all or none of some records that belong to no conversation.

        Raises RevisionMismatch where another write came first, RecordNotFound where what a record belongs to is gone.
        """

        def plan(_: None, now: int) -> Planned:
            return Planned(self.changes(write, moves), Outcome(revision=0, time=now))

        return self._commands.run(write, self.held(write, moves), plan)

    def get(self, read: Read, place: Partition, key: bytes) -> tuple[Record | None, int]:
        """A record, or None if it does not exist, and the revision of this read."""
        self._commits.begin(read)
        return self._reader.get(read, place, key)

    def page(self, read: Read, place: Partition, query: PartitionQuery) -> RecordPage:
        """Records of one partition."""
        self._commits.begin(read)
        return self._reader.page(read, place, query)

    def encoded_page(self, read: Read, place: Partition, query: PartitionQuery) -> EncodedPage:
        """The same as entries of field 1 of a reply."""
        self._commits.begin(read)
        return self._reader.encoded_page(read, place, query)

    def several(
        self, read: Read, place: Partition, keys: Sequence[bytes], *, sees_expired: bool = False
    ) -> tuple[list[Record], bool, int]:
        """Those of some records that are there, as many as a reply holds, whether others are there, and the revision
        that they show at least. `sees_expired`: one that has expired is there until it is removed.
        """
        self._commits.begin(read)
        return self._reader.several(read, place, keys, sees_expired=sees_expired)

    def there(self, access: Access, place: Partition, keys: Sequence[bytes]) -> list[bytes]:
        """Those of some keys at which writers find a record, under the partition's lock."""
        return self._reader.there(access, place, keys)

    def stored_count(self, read: Read, place: Partition) -> tuple[int, int]:
        """How many records a partition has of a kind that does not expire, without having it in memory."""
        return self._queries.total(read, place)

    def count(self, read: Read, place: Partition, where: Sequence[tuple[int, Value]] = ()) -> tuple[int, int]:
        """How many records of a partition have some values, by their columns, and the revision that this shows."""
        self._commits.begin(read)
        return self._reader.count(read, place, where)

    def query(self, read: Read, query: RecordsQuery) -> FoundRecords:
        """Records of any partitions of a kind."""
        return self._queries.find(read, query)

    def count_all(self, read: Read, query: RecordsQuery) -> int:
        """How many records of any partitions of a kind pass, on whichever page they are."""
        return self._queries.count(read, query)

    def shown(self, read: Read, place: Partition, key: bytes, *, with_partition: bool = False) -> StoredRecord | None:
        """A record as readers see it, perhaps without its body. `with_partition` is as for `stored`."""
        return self._reader.stored(read, place, key, accepted=False, with_partition=with_partition)[0]

    def bodiless(self, access: Access, place: Partition, query: PartitionQuery) -> list[StoredRecord]:
        """All records that a query selects of one partition, as readers see them, perhaps without their bodies."""
        return self._reader.bodiless(access, place, query)

    def accepted(self, access: Access, place: Partition, keys: Sequence[bytes]) -> list[Record]:
        """Those of some records that are there, as writers build on them, under the partition's lock."""
        return self._reader.accepted(access, place, keys)

    def may_be_there(self, access: Access, place: Partition, key: bytes) -> bool:
        """Whether a write may replace a record, by what is in memory. A conversation that it creates has none."""
        is_new = place.kind.of_conversation and place.uid == 0
        return not is_new and self._reader.may_be_there(access, place, key)

    def is_there(self, access: Access, place: Partition, key: bytes) -> bool | None:
        """Whether writers find a record there, by what is in memory; None where only the database knows. What has
        expired counts as there.
        """
        return self._reader.knows(access, place, key)

    def stored(
        self,
        access: Access,
        place: Partition,
        key: bytes,
        *,
        sees_expired: bool = False,
        with_partition: bool = False,
    ) -> StoredRecord | None:
        """A record as writers see it, perhaps without its body.

        `sees_expired`: one that has expired is there until it is removed. `with_partition`: if memory does not know of
        it, all keys of the partition are loaded, so that the database is asked for no other alone.
        """
        return self._reader.stored(access, place, key, sees_expired=sees_expired, with_partition=with_partition)[0]

    def has_expired(self, access: Access, place: Partition, key: bytes) -> bool:
        """Whether a record is there and has expired, as writers see it."""
        return self._reader.has_expired(access, place, key)

    def refresh(
        self, access: Access, place: Partition, key: bytes, expire_time: int | None, conversation_id: str = ""
    ) -> bool:
        """Have a record live until another time, which is seen at once and journaled later; False where there is none.

        After a crash within a minute, it may have the time from before. Takes the lock of the partition, or of its
        conversation: what lives on is not removed as expired at the same time.
        """
        with self.held_place(access, place, conversation_id):
            while (found := self.stored(access, place, key)) is not None:
                if self._core.refresh_record(
                    place.kind.number,
                    access.tenant_id,
                    place.uid,
                    place.partition,
                    key,
                    revision=found.revision,
                    expire_time=expire_time,
                    now=self._clock(),
                ):
                    return True
                require_time(access.deadline)
        return False

    def upload_part(self, write: Write, upload: Upload, index: int, data: bytes) -> Outcome:
        """Store a part of a body that a later write names, within an hour. Raises UploadNamed where one has."""

        def plan(_: None, now: int) -> Planned:
            part = self._uploads.part(write, upload, index, data)
            return Planned([part], Outcome(revision=0, time=now), upload.user_id)

        return self._commands.run(write, self.held_place(write, upload.place, upload.conversation_id), plan)

    def held(self, access: Access, moves: Sequence[Move]) -> AbstractContextManager[None]:
        """The locks of what moves, to be held while its changes are made and accepted."""
        if any(isinstance(move, RemovePartitions) and move.is_prefix for move in moves):
            return self._locks.all(access)
        return self._locks.all_of(access, self._lock_keys(moves))

    def held_place(self, access: Access, place: Partition, conversation_id: str = "") -> AbstractContextManager[None]:
        """The lock of one partition: that of its conversation, where it belongs to one."""
        if conversation_id:
            return self._conversation_locks.of(access, conversation_id)
        return self._locks.of(access, (place.kind.number, place.uid, place.partition))

    def held_places(self, access: Access, places: Iterable[Partition]) -> AbstractContextManager[None]:
        """The locks of several partitions of kinds that belong to no conversation."""
        return self._locks.all_of(access, [(place.kind.number, place.uid, place.partition) for place in places])

    def held_of_users(self, access: Access) -> AbstractContextManager[None]:
        """The locks of all that may belong to a user."""
        return self._locks.all(access)

    def _lock_keys(self, moves: Iterable[Move]) -> Iterator[tuple[int, int, bytes]]:
        """Of the partitions, of those above (a child is not written while one of them goes), and of uploads."""
        for move in moves:
            yield move.kind.number, move.uid, move.partition
            if isinstance(move, Put | PutDraft):
                for place, _ in _above(Partition(move.kind, move.uid, move.partition)):
                    yield place.kind.number, place.uid, place.partition
            if isinstance(move, Put) and move.uploaded is not None:
                parts = move.uploaded.place(move.kind, move.uid)
                yield parts.kind.number, parts.uid, parts.partition

    def changes(self, access: Access, moves: Iterable[Move]) -> list[Change]:
        """The changes of a write, under the locks. Raises RevisionMismatch, RecordNotFound, BodyTooLong."""
        written = _Written()
        return [change for move in moves for change in self._changes(access, move, written)]

    def cleared(self, uid: int, user_id: str) -> list[RemovePartitions]:
        """What goes with a user's messages in a conversation."""
        return [
            RemovePartitions(kind, uid, kind.encode_partition(user_id), is_prefix=len(kind.partition) > 1)
            for kind in self.kinds
            if kind.is_cleared
        ]

    def erased(self, user_id: str) -> Change:
        """The end of everything that belongs to a user."""
        return changes.remove_user_records(user_id, [kind for kind in self.kinds if kind.of_user])

    def _changes(self, access: Access, move: Move, written: _Written) -> Iterator[Change]:
        match move:
            case Put():
                draft = move.kind.draft(move.message, move.expire_time)
                place = Partition(move.kind, move.uid, draft.partition)
                yield from self._put(access, place, draft, written, expected=move.expected, uploaded=move.uploaded)
            case PutDraft():
                place = Partition(move.kind, move.uid, move.partition)
                yield from self._put(access, place, move.draft, written)
            case Remove():
                place = Partition(move.kind, move.uid, move.partition)
                self._require_expected(access, place, move.key, move.expected)
                written.remove(place, move.key)
                yield changes.remove_record(move.kind, move.uid, move.partition, move.key)
                yield from self._remove_children(place, move.key, written)
            case RemovePartitions():
                yield from self._remove_partitions(move, written)

    def _remove_partitions(self, move: RemovePartitions, written: _Written) -> Iterator[Change]:
        written.remove_partitions(move)
        remove = changes.remove_prefix if move.is_prefix else changes.remove_partition
        yield remove(move.kind, move.uid, move.partition)
        for child in self.kinds.children(move.kind):
            yield from self._remove_partitions(
                RemovePartitions(child, move.uid, move.partition, is_prefix=True), written
            )

    def _remove_children(self, place: Partition, key: bytes, written: _Written) -> Iterator[Change]:
        """What goes with a record: its children's partition is where it stands."""
        for child in self.kinds.children(place.kind):
            gone = RemovePartitions(child, place.uid, place.partition + key)
            yield from self._remove_partitions(gone, written)

    def _put(
        self,
        access: Access,
        place: Partition,
        draft: RecordDraft,
        written: _Written,
        *,
        expected: int | None = None,
        uploaded: Uploaded | None = None,
    ) -> Iterator[Change]:
        _require_room(place.kind, draft, uploaded)
        is_there = self._require_expected(access, place, draft.key, expected)
        user_id = self._owner(access, place, draft, written)
        written.put(place, draft.key, user_id)
        if uploaded:
            yield from self._uploads.confirm(access, place, uploaded, user_id)
        upload_id = uploaded.reference if uploaded else ""
        yield changes.put_record(place.kind, place.uid, draft, user_id=user_id, replaces=is_there, upload_id=upload_id)

    def _require_expected(self, access: Access, place: Partition, key: bytes, expected: int | None) -> bool:
        """Whether a record may be there. Raises RevisionMismatch where another revision is than is expected."""
        if expected is not None:
            found, _ = self._reader.stored(access, place, key)
            revision = ABSENT if found is None else found.revision
            if revision != expected:
                raise RevisionMismatch(expected, revision)
        return self.may_be_there(access, place, key)

    def _owner(self, access: Access, place: Partition, draft: RecordDraft, written: _Written) -> str:
        """The user that a record belongs to: its own, or its parent's. Raises RecordNotFound where that is gone."""
        if place.kind.parent is None:
            return draft.user_id
        above, key = next(_above(place))
        owner = self._parent_owner(access, above, key, written)
        if owner is None:
            raise RecordNotFound(above.kind.name, place.partition)
        return owner

    def _parent_owner(self, access: Access, place: Partition, key: bytes, written: _Written) -> str | None:
        if written.has_touched(place, key):
            return written.owner(place, key)
        found = self.stored(access, place, key)
        return None if found is None else found.user_id


def _require_room(kind: Kind, draft: RecordDraft, uploaded: Uploaded | None) -> None:
    """Raise BodyTooLong where a body is, or may be once its parts are together."""
    limit = kind.longest_body
    size = uploaded.parts * PART_BYTES if uploaded else len(draft.body)
    if limit is not None and size > limit:
        raise BodyTooLong(kind.name, limit)


def _above(place: Partition) -> Iterator[tuple[Partition, bytes]]:
    """Where the parent's record of a partition stands, then that one's parent's, and so on: partition and key."""
    while place.kind.parent is not None:
        parent = place.kind.parent
        parts = keys.decode(place.kind.partition_types, place.partition)
        leading = len(parent.partition)
        key = parent.encode_key(*parts[leading:])
        place = Partition(parent, place.uid, parent.encode_partition(*parts[:leading]))
        yield place, key
