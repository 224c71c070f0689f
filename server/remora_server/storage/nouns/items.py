"""Items of the local store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from remora.v1.store_item_pb2 import StoreItem
from remora_server import wire
from remora_server._native import StoredRecord
from remora_server.domain.calls import Access, Outcome, Read, Write
from remora_server.domain.errors import ItemsTooLarge
from remora_server.domain.items import (
    FoundItems,
    ItemChange,
    ItemDraft,
    ItemHit,
    ItemPlace,
    ItemSearch,
    ListedNamespaces,
    Namespace,
    NamespaceListing,
    ReadItems,
)
from remora_server.domain.replies import REPLY_BYTES
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.item_index import ItemIndex
from remora_server.storage.records.reader import LONG_AGO, Partition, Record
from remora_server.storage.records.records import Move, Put, Remove, RemovePartitions
from remora_server.storage.schema.kinds import STORE_ITEMS

_CREATE_TIME = 0
"""The column."""

Spot: TypeAlias = tuple[Partition, bytes]
"""Where the record of an item stands: its partition and its key."""


class Items:
    """Writes, reads, finds and deletes items."""

    def __init__(self, context: StoreContext, index: ItemIndex) -> None:
        self._core = context.core
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._clock = context.clock
        self._index = index

    def write(self, write: Write, given: Sequence[ItemChange]) -> Outcome:
        chosen = {_place_of(each): each for each in given}
        spots = {place: _spot(place) for place in chosen}
        drafts = [each for each in chosen.values() if isinstance(each, ItemDraft)]
        gone = [each for each in chosen.values() if isinstance(each, ItemPlace)]

        def plan(_: None, now: int) -> Planned | None:
            created = self._created(write, spots, now)
            expired = self._created(write, {each: spots[each] for each in gone if each not in created}, LONG_AGO)
            puts = [Put(STORE_ITEMS, 0, _dated(draft, created.get(draft.place, now), now)) for draft in drafts]
            removals = [_removal(*spots[each]) for each in gone if each in created or each in expired]
            if not puts and not removals:
                return None
            outcome = Outcome(revision=0, time=now, deleted_records=len(removals) - len(expired))
            return Planned(self._records.changes(write, [*puts, *removals]), outcome)

        return self._commands.run(write, self._records.held_places(write, [at for at, _ in spots.values()]), plan)

    def repeated(self, write: Write) -> Outcome | None:
        return self._commits.repeated(write)

    def _created(self, write: Write, spots: Mapping[ItemPlace, Spot], now: int) -> dict[ItemPlace, int]:
        """When those of some items were created that are there by a time, under the locks.

        What is not among the records in memory has no change that the search would not show: it says the rest, unless
        the items are too large for it.
        """
        created, cold = {}, {}
        for place, (at, key) in spots.items():
            known = self._records.is_there(write, at, key)
            if known is None:
                cold[place] = (at, key)
            elif known and (found := self._stored(write, at, key, now)) is not None:
                created[place] = int(found.columns[_CREATE_TIME] or 0)
        return {**created, **self._created_before(write, cold, now)} if cold else created

    def _created_before(self, write: Write, cold: Mapping[ItemPlace, Spot], now: int) -> dict[ItemPlace, int]:
        try:
            times = self._index.created(write, [(at.partition, key) for at, key in cold.values()], now)
        except ItemsTooLarge:
            rows = [self._stored(write, at, key, now) for at, key in cold.values()]
            times = [None if row is None else int(row.columns[_CREATE_TIME] or 0) for row in rows]
        return {place: time for place, time in zip(cold, times, strict=True) if time is not None}

    def _stored(self, write: Write, at: Partition, key: bytes, now: int) -> StoredRecord | None:
        return self._records.stored(write, at, key, sees_expired=now == LONG_AGO)

    def get(
        self, read: Read, places: Sequence[ItemPlace], *, refreshes: bool = False, sees_expired: bool = False
    ) -> ReadItems:
        self._commits.begin(read)
        found: dict[ItemPlace, bytes] = {}
        room, revisions = REPLY_BYTES, [self._core.published()]
        unread: set[ItemPlace] = set()
        for namespace, own in _by_namespace(places).items():
            if room <= 0:
                unread.update(own)
                continue
            at = _partition(namespace)
            by_key = {STORE_ITEMS.encode_key(place.key): place for place in own}
            records, more, revision = self._records.several(read, at, list(by_key), sees_expired=sees_expired)
            for record in records:
                found[by_key[record.key]] = encoded = self._read(read, at, record, refreshes=refreshes)
                room -= len(encoded)
            if more:
                behind = list(by_key).index(records[-1].key) + 1
                unread.update(list(by_key.values())[behind:])
            revisions.append(revision)
        end = next((index for index, place in enumerate(places) if place in unread), len(places))
        return ReadItems(tuple(found.get(place) for place in places[:end]), min(revisions))

    def _read(self, read: Read, at: Partition, record: Record, *, refreshes: bool) -> bytes:
        """An item as replies have it; refreshed, if it lives for a time."""
        item = StoreItem.FromString(record.body)
        item.ClearField("vectors")
        item.revision = record.revision
        if record.expire_time is not None:
            item.expire_time.CopyFrom(wire.timestamp(record.expire_time))
        if refreshes:
            self._refresh(read, at, record.key, item)
        return item.SerializeToString()

    def _refresh(self, read: Read, at: Partition, key: bytes, item: StoreItem) -> None:
        """Have an item live for its ttl from now, if it has one and has not expired."""
        now = self._clock()
        if item.HasField("ttl") and wire.micros(item.expire_time) > now:
            expire_time = now + item.ttl.ToMicroseconds()
            self._records.refresh(read, at, key, expire_time)
            item.expire_time.CopyFrom(wire.timestamp(expire_time))

    def search(self, read: Read, search: ItemSearch) -> FoundItems:
        self._commits.begin(read)
        hits, revision = self._index.search(read, search, self._clock())
        for _, _, (namespace, key), _, expire_time in hits:
            if expire_time is not None:
                self._records.refresh(read, Partition(STORE_ITEMS, 0, namespace), key, expire_time)
        found = (ItemHit(encoded, score) for score, encoded, *_ in hits)
        if search.refreshes and search.sees_expired:
            found = (self._refreshed(read, hit) for hit in found)
        return FoundItems(tuple(found), revision)

    def _refreshed(self, read: Read, hit: ItemHit) -> ItemHit:
        item = StoreItem.FromString(hit.encoded)
        self._refresh(read, _partition(tuple(item.namespace)), STORE_ITEMS.encode_key(item.key), item)
        return ItemHit(item.SerializeToString(), hit.score)

    def namespaces(self, read: Read, listing: NamespaceListing) -> ListedNamespaces:
        self._commits.begin(read)
        found, more, revision = self._index.namespaces(read, listing, self._clock())
        return ListedNamespaces(tuple(map(tuple, found)), more, revision)

    def delete_namespaces(self, write: Write, prefix: Namespace) -> Outcome:
        gone = RemovePartitions(STORE_ITEMS, 0, STORE_ITEMS.encode_leading(*prefix), is_prefix=True)
        return self._records.write(write, [gone])

    def delete_expired(self, write: Write) -> Outcome:
        expired = self._index.expired(write, self._clock())
        moves = [Remove(STORE_ITEMS, 0, namespace, key) for namespace, key in expired]

        def plan(_: None, now: int) -> Planned | None:
            gone = [move for move in moves if self._has_expired(write, move)]
            if not gone:
                return None
            outcome = Outcome(revision=0, time=now, deleted_records=len(gone))
            return Planned(self._records.changes(write, gone), outcome)

        return self._commands.run(write, self._records.held(write, moves), plan)

    def _has_expired(self, access: Access, move: Remove) -> bool:
        """Whether an item has expired by what was accepted since."""
        return self._records.has_expired(access, Partition(STORE_ITEMS, 0, move.partition), move.key)


def _dated(draft: ItemDraft, created: int, now: int) -> StoreItem:
    item = StoreItem.FromString(draft.body)
    item.create_time.CopyFrom(wire.timestamp(created))
    item.update_time.CopyFrom(wire.timestamp(now))
    if draft.ttl is not None:
        item.expire_time.CopyFrom(wire.timestamp(now + draft.ttl))
    return item


def _place_of(change: ItemChange) -> ItemPlace:
    return change.place if isinstance(change, ItemDraft) else change


def _partition(namespace: Namespace) -> Partition:
    return Partition(STORE_ITEMS, 0, STORE_ITEMS.encode_partition(namespace))


def _spot(place: ItemPlace) -> Spot:
    return _partition(place.namespace), STORE_ITEMS.encode_key(place.key)


def _removal(at: Partition, key: bytes) -> Move:
    return Remove(STORE_ITEMS, 0, at.partition, key)


def _by_namespace(places: Iterable[ItemPlace]) -> dict[Namespace, list[ItemPlace]]:
    found: dict[Namespace, list[ItemPlace]] = {}
    for place in dict.fromkeys(places):
        found.setdefault(place.namespace, []).append(place)
    return found
