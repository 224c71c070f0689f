"""The model's memory items: dicts of messages, all of which a search compares, by whole words."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tests.store.vector_model import compares, score

from remora.v1 import transfer_service_pb2
from remora.v1.memory_item_pb2 import MemoryItem
from remora_server import wire
from remora_server.domain import json_paths
from remora_server.domain.calls import Outcome, Placed, Read, Write
from remora_server.domain.conversations import AttributeValue
from remora_server.domain.errors import MemoryItemNotFound, RecordConflict
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated
from remora_server.domain.memory_items import ItemDraft, ItemFilter, ItemHit, ItemPage, ItemQuery, RankedItems
from remora_server.domain.transfers import ImportedRecord
from remora_server.domain.workflows import PartPosition

ITEMS = 17
"""Their place in an export."""

Key: TypeAlias = tuple[str, str]
"""An item's user and id."""


@dataclass
class MemoryItemRows:
    """A tenant's items, each with when it was first written, by revision and place in the write."""

    rows: dict[Key, tuple[MemoryItem, int, int]] = field(default_factory=dict)

    def of(self, user_id: str, now: int) -> dict[str, MemoryItem]:
        """Those of a user that have not expired."""
        return {
            item.id: item
            for (owner, _), (item, *_) in self.rows.items()
            if owner == user_id and not (item.HasField("expire_time") and wire.micros(item.expire_time) <= now)
        }

    def forget(self, user_id: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key[0] != user_id}

    def exported(self) -> Iterator[tuple[int, bytes, str, bytes]]:
        for key, (item, *_) in self.rows.items():
            record = transfer_service_pb2.Record(memory_item=item)
            yield ITEMS, "\0".join(key).encode(), key[0], record.SerializeToString()

    def take(self, revision: int, records: Sequence[ImportedRecord]) -> int:
        """Import what is not there, and say how much that is. Raises RecordConflict."""
        stored = 0
        for ordinal, record in enumerate(records):
            if record.kind == "memory_item":
                item = MemoryItem.FromString(record.body)
                found = self.rows.get((item.user_id, item.id))
                if found is not None and found[0] != item:
                    raise RecordConflict(record.field)
                if found is None:
                    self.rows[item.user_id, item.id] = (item, revision, ordinal)
                    stored += 1
        return stored


class TenantWithItems(Protocol):
    """What of a tenant is needed here."""

    memory_items: MemoryItemRows


class Books(Protocol):
    """What of the books is needed here."""

    def write(self, write: Write, change: Any) -> Outcome: ...  # noqa: ANN401 - see tests.store.model

    def read(self, read: Read) -> tuple[Any, int]: ...

    def new_id(self) -> str: ...

    def now(self) -> int: ...


class MemoryItems:
    def __init__(self, books: Books) -> None:
        self._books = books

    def add(self, write: Write, user_id: str, drafts: Sequence[ItemDraft]) -> Outcome:
        def change(tenant: TenantWithItems, revision: int, now: int) -> Outcome:
            there = tenant.memory_items.of(user_id, now)
            placed = []
            for ordinal, draft in enumerate(drafts):
                item = _item(user_id, draft.id or self._books.new_id(), draft, now)
                if item.id in there:
                    item.create_time.CopyFrom(there[item.id].create_time)
                tenant.memory_items.rows[user_id, item.id] = (item, revision, ordinal)
                placed.append(Placed(item.id, 0, now, item.id in there))
            return Outcome(0, messages=tuple(placed))

        return self._books.write(write, change)

    def search(self, read: Read, user_id: str, query: ItemQuery) -> RankedItems:
        tenant, revision = self._books.read(read)
        items = tenant.memory_items.of(user_id, self._books.now())
        shares = word_shares(query.text, {name: item.text for name, item in items.items()})
        scored = []
        for name, item in items.items():
            words, found = shares[name], passes(query.filter, item)
            value = words if query.vector is None else (_cosine(query, item) + 0.5 * words) / 1.5
            if found and (query.vector is not None or value > 0):
                scored.append((-value, name, item))
        least = -math.inf if query.threshold is None else query.threshold
        best = [ItemHit(-value, _stored(item)) for value, _, item in sorted(scored, key=lambda one: one[:2])]
        lacking = [item for item in items.values() if item.text.strip() and item.model != query.model]
        pending = len(lacking) if query.model else 0
        return RankedItems(tuple([hit for hit in best if hit.score >= least][: query.k]), pending, revision)

    def get(self, read: Read, user_id: str, item_id: str) -> tuple[bytes, int]:
        tenant, revision = self._books.read(read)
        found = tenant.memory_items.of(user_id, self._books.now()).get(item_id)
        if found is None:
            raise MemoryItemNotFound(item_id)
        return _stored(found), revision

    def list(self, read: Read, user_id: str, passing: ItemFilter, after: PartPosition | None, limit: int) -> ItemPage:
        tenant, revision = self._books.read(read)
        shown = tenant.memory_items.of(user_id, self._books.now())
        rows = [
            (wire.micros(item.create_time), written, ordinal, item)
            for name in shown
            for item, written, ordinal in [tenant.memory_items.rows[user_id, name]]
            if passes(passing, item)
        ]
        rows.sort(key=lambda row: row[:3], reverse=True)
        if after is not None:
            rows = [row for row in rows if row[:3] < (*after.order, after.revision, after.ordinal)]
        page = rows[:limit]
        following = PartPosition((page[-1][0],), page[-1][1], page[-1][2]) if len(rows) > limit else None
        return ItemPage(tuple(_stored(row[3]) for row in page), following, revision)

    def delete(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        return self._delete(write, lambda item: item.id in ids and user_id in {"", item.user_id})

    def delete_where(self, write: Write, user_id: str, passing: ItemFilter) -> Outcome:
        return self._delete(write, lambda item: item.user_id == user_id and passes(passing, item))

    def _delete(self, write: Write, goes: Callable[[MemoryItem], bool]) -> Outcome:
        def change(tenant: TenantWithItems, _revision: int, now: int) -> Outcome | None:
            owners = {owner for owner, _ in tenant.memory_items.rows}
            gone = [item for owner in owners for item in tenant.memory_items.of(owner, now).values() if goes(item)]
            for item in gone:
                del tenant.memory_items.rows[item.user_id, item.id]
            return Outcome(0, deleted_records=len(gone)) if gone else None

        return self._books.write(write, change)


def _item(user_id: str, item_id: str, draft: ItemDraft, now: int) -> MemoryItem:
    item = MemoryItem.FromString(draft.body)
    item.id, item.user_id = item_id, user_id
    for name in ("create_time", "update_time"):
        getattr(item, name).CopyFrom(wire.timestamp(now))
    if draft.lifetime is not None:
        item.expire_time.CopyFrom(wire.timestamp(now + draft.lifetime))
    if draft.vector is not None:
        item.model, item.values = draft.vector.model, draft.vector.values
    return item


def _stored(item: MemoryItem) -> bytes:
    return item.SerializeToString()


def _cosine(query: ItemQuery, item: MemoryItem) -> float:
    if query.vector is None or item.model != query.model or len(item.values) != len(query.vector):
        return 0.0
    return max(0.0, 2 * score(query.vector, item.values) - 1)


def word_shares(query: str, texts: dict[str, str]) -> dict[str, float]:
    """BM25 (k1 0.9, b 0.75) by whole words, divided by what a text of average length gets that has each once."""
    documents = {name: Counter(text.lower().split()) for name, text in texts.items()}
    average = sum(words.total() for words in documents.values()) / max(1, len(documents))
    weights = {}
    for word in set(query.lower().split()):
        having = sum(word in words for words in documents.values())
        weights[word] = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
    ideal = sum(weights.values())

    def share(words: Counter[str]) -> float:
        norm = 0.9 * (0.25 + 0.75 * words.total() / average) if average else 0.0
        found = sum(
            weight * words[word] * 1.9 / (words[word] + norm) for word, weight in weights.items() if words[word]
        )
        return min(1.0, found / ideal) if ideal else 0.0

    return {name: share(words) for name, words in documents.items()}


def passes(passing: ItemFilter, item: MemoryItem) -> bool:
    """Whether an item has the tags, and its metadata passes."""
    metadata = json.loads(item.metadata or b"{}")
    return set(passing.tags) <= set(item.tags) and (passing.where is None or holds(passing.where, metadata))


def holds(passing: Filter, metadata: object) -> bool:
    match passing:
        case AllOf(filters):
            return all(holds(each, metadata) for each in filters)
        case AnyOf(filters):
            return any(holds(each, metadata) for each in filters)
        case Negated(negated):
            return not holds(negated, metadata)
        case Condition(key, operator, values):
            return compares(operator, list(map(wire.scalar, _at(key, metadata))), values)


def _at(key: str, metadata: object) -> Iterator[AttributeValue]:
    """The value to which the path of a key leads, if there is one; objects and arrays equal nothing."""
    found: Any = metadata
    for step in json.loads(key):
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return
    yield json_paths.OF_ANOTHER_TYPE if isinstance(found, dict | list) else found
