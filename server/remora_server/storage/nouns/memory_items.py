"""Memory items of the local store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from remora.v1.memory_item_pb2 import MemoryItem
from remora_server import wire
from remora_server.domain import json_paths
from remora_server.domain.calls import Outcome, Placed, Read, Write
from remora_server.domain.conversations import AttributeValue
from remora_server.domain.errors import MemoryItemNotFound
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator
from remora_server.domain.memory_items import ItemDraft, ItemFilter, ItemHit, ItemPage, ItemQuery, RankedItems
from remora_server.domain.workflows import PartPosition
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.newest_first import NewestFirst
from remora_server.storage.nouns.run_parts import answered
from remora_server.storage.nouns.vector_index import VectorIndex
from remora_server.storage.records.reader import Partition, Record
from remora_server.storage.records.records import Put, Remove, RemovePartitions
from remora_server.storage.schema.kinds import BY_ITEM_CREATE_TIME, MEMORY_ITEMS

_EXPIRES, _MODEL, _SAYS = "expires", "model", "says"
"""Keys of what filters see besides metadata. Those of paths begin with a bracket."""

_OWNERS = f"SELECT DISTINCT user_id FROM {MEMORY_ITEMS.name} WHERE tenant_id = ? AND id IN (SELECT unnest(?))"  # noqa: S608 - a table of ours


class MemoryItems:
    """Adds, finds and deletes items."""

    def __init__(self, context: StoreContext, index: VectorIndex) -> None:
        self._core = context.core
        self._database = context.database
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._clock = context.clock
        self._new_id = context.new_id
        self._index = index

    def add(self, write: Write, user_id: str, drafts: Sequence[ItemDraft]) -> Outcome:
        place = _place(user_id)
        ids = [draft.id or self._new_id() for draft in drafts]
        known = [MEMORY_ITEMS.encode_key(one) for one in {draft.id for draft in drafts} if one]

        def plan(_: None, now: int) -> Planned:
            before = {record.key: _create_time(record) for record in self._records.accepted(write, place, known)}
            items: dict[str, MemoryItem] = {}
            for item_id, draft in zip(ids, drafts, strict=True):
                items.pop(item_id, None)
                items[item_id] = _item(user_id, item_id, draft, now, before)
            puts = [Put(MEMORY_ITEMS, 0, item) for item in items.values()]
            placed = tuple(Placed(each, 0, now, MEMORY_ITEMS.encode_key(each) in before) for each in ids)
            return Planned(self._records.changes(write, puts), Outcome(revision=0, messages=placed), user_id)

        with answered():
            return self._commands.run(write, self._records.held_place(write, place), plan)

    def search(self, read: Read, user_id: str, query: ItemQuery) -> RankedItems:
        self._commits.begin(read)
        comparable = Condition(_MODEL, Operator.EQ, (query.model,))
        hits, revision = self._index.search_text(
            read,
            _place(user_id),
            user_id,
            query.text,
            query.vector,
            k=query.k,
            threshold=query.threshold,
            passing=self._passing(query.filter),
            comparable=comparable,
        )
        pending = self._pending(read, user_id, comparable) if query.model else 0
        return RankedItems(tuple(ItemHit(score, body) for score, body in hits), pending, revision)

    def _pending(self, read: Read, user_id: str, comparable: Filter) -> int:
        lacking = AllOf((Condition(_SAYS, Operator.PRESENT, ()), Negated(comparable), self._live()))
        return self._index.count(read, _place(user_id), user_id, lacking)[0]

    def get(self, read: Read, user_id: str, item_id: str) -> tuple[bytes, int]:
        found, revision = self._records.get(read, _place(user_id), MEMORY_ITEMS.encode_key(item_id))
        if found is None:
            raise MemoryItemNotFound(item_id)
        return found.body, revision

    def list(self, read: Read, user_id: str, passing: ItemFilter, after: PartPosition | None, limit: int) -> ItemPage:
        self._commits.begin(read)
        place = _place(user_id)
        keys = set(self._index.keys(read, place, user_id, self._passing(passing))) if passing else None
        return NewestFirst(self._records, place, BY_ITEM_CREATE_TIME).page(read, keys, after, limit)

    def delete(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        keys = [MEMORY_ITEMS.encode_key(one) for one in dict.fromkeys(ids)]
        places = list(map(_place, [user_id] if user_id else self._owners(write, ids)))
        moves = [Remove(MEMORY_ITEMS, 0, place.partition, key) for place in places for key in keys]

        def plan(_: None, _now: int) -> Planned | None:
            there = {(place.partition, key) for place in places for key in self._records.there(write, place, keys)}
            return self._removal(write, user_id, [move for move in moves if (move.partition, move.key) in there])

        return self._commands.run(write, self._records.held(write, moves), plan)

    def _owners(self, write: Write, ids: Sequence[str]) -> Sequence[str]:
        """The users who have an item with one of these ids."""
        self._commits.begin_query_of(Read(write.tenant_id, deadline=write.deadline), MEMORY_ITEMS.number)
        return [user_id for (user_id,) in self._database.rows(_OWNERS, [write.tenant_id, list(ids)])]

    def delete_where(self, write: Write, user_id: str, passing: ItemFilter) -> Outcome:
        place = _place(user_id)

        def plan(_: None, _now: int) -> Planned | None:
            # Under their lock no more of the user's items are accepted, so that the published ones are all.
            self._commits.wait_published(self._core.kind_touched(MEMORY_ITEMS.number), write.deadline)
            if not passing:
                return self._all_removed(write, user_id)
            keys = self._index.keys(write, place, user_id, self._passing(passing))
            return self._removal(write, user_id, [Remove(MEMORY_ITEMS, 0, place.partition, key) for key in keys])

        return self._commands.run(write, self._records.held_place(write, place), plan)

    def _all_removed(self, write: Write, user_id: str) -> Planned | None:
        place = _place(user_id)
        count, _ = self._records.count(Read(write.tenant_id, deadline=write.deadline), place)
        if not count:
            return None
        gone = self._records.changes(write, [RemovePartitions(MEMORY_ITEMS, 0, place.partition)])
        return Planned(gone, Outcome(revision=0, deleted_records=count), user_id)

    def _removal(self, write: Write, user_id: str, moves: Sequence[Remove]) -> Planned | None:
        if not moves:
            return None
        return Planned(self._records.changes(write, moves), Outcome(revision=0, deleted_records=len(moves)), user_id)

    def _passing(self, given: ItemFilter) -> Filter:
        """What is asked of the values that filters see: a filter's conditions, and that the item has not expired."""
        tags = (Condition(_tag(tag), Operator.PRESENT, ()) for tag in given.tags)
        where = () if given.where is None else (given.where,)
        return AllOf((self._live(), *tags, *where))

    def _live(self) -> Filter:
        never, later = Operator.ABSENT, Operator.GT
        return AnyOf((Condition(_EXPIRES, never, ()), Condition(_EXPIRES, later, (self._clock(),))))


def index_item(item: MemoryItem) -> None:
    """Have an item say what filters see of it: of its metadata, its tags, when it expires, and its vector."""
    item.ClearField("indexed")
    for key, value in chain(json_paths.values_of(item.metadata), _own_values(item)):
        item.indexed[key].CopyFrom(wire.scalar(value))


def _own_values(item: MemoryItem) -> Iterator[tuple[str, AttributeValue]]:
    yield from ((_tag(tag), True) for tag in item.tags)
    if item.HasField("expire_time"):
        yield _EXPIRES, wire.micros(item.expire_time)
    if item.model:
        yield _MODEL, item.model
    if item.text.strip():
        yield _SAYS, True


def _tag(tag: str) -> str:
    return f"tag:{tag}"


def _place(user_id: str) -> Partition:
    return Partition(MEMORY_ITEMS, 0, MEMORY_ITEMS.encode_partition(user_id))


def _create_time(record: Record) -> int:
    return wire.micros(MemoryItem.FromString(record.body).create_time)


def _item(user_id: str, item_id: str, draft: ItemDraft, now: int, before: dict[bytes, int]) -> MemoryItem:
    """An item as it is stored."""
    item = MemoryItem.FromString(draft.body)
    item.id, item.user_id = item_id, user_id
    created = before.get(MEMORY_ITEMS.encode_key(item_id), now)
    item.create_time.CopyFrom(wire.timestamp(created))
    item.update_time.CopyFrom(wire.timestamp(now))
    if draft.lifetime is not None:
        item.expire_time.CopyFrom(wire.timestamp(now + draft.lifetime))
    if draft.vector is not None:
        item.model, item.values = draft.vector.model, draft.vector.values
    index_item(item)
    return item
