"""The model's items: a dict of messages, all of which a search compares."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tests.store.vector_model import compares

from remora.v1 import transfer_service_pb2
from remora.v1.store_item_pb2 import StoreItem
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import RecordConflict
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator
from remora_server.domain.items import (
    FoundItems,
    ItemChange,
    ItemDraft,
    ItemHit,
    ItemPlace,
    ItemQuery,
    ItemSearch,
    LabelMatch,
    ListedNamespaces,
    Namespace,
    NamespaceListing,
    ReadItems,
    Similarity,
)
from remora_server.domain.transfers import ImportedRecord

ITEMS = 17
"""Their place in an export."""
MISSING: Any = object()

Key: TypeAlias = tuple[Namespace, str]


@dataclass
class ItemRows:
    """A tenant's items, with the revisions that wrote them."""

    rows: dict[Key, tuple[StoreItem, int]] = field(default_factory=dict)

    def there(self, now: int) -> dict[Key, tuple[StoreItem, int]]:
        return {key: row for key, row in self.rows.items() if not has_expired(row[0], now)}

    def forget(self, user_id: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row[0].user_id != user_id}

    def exported(self) -> Iterator[tuple[int, bytes, str, bytes]]:
        for key, (item, _) in self.rows.items():
            record = transfer_service_pb2.Record(store_item=item)
            yield ITEMS, repr(key).encode(), item.user_id, record.SerializeToString()

    def take(self, revision: int, records: Sequence[ImportedRecord]) -> int:
        """Import what is not there, and say how much that is. Raises RecordConflict."""
        stored = 0
        for record in records:
            if record.kind == "store_item":
                item = StoreItem.FromString(record.body)
                key = (tuple(item.namespace), item.key)
                if key in self.rows and self.rows[key][0] != item:
                    raise RecordConflict(record.field)
                stored += key not in self.rows
                self.rows.setdefault(key, (item, revision))
        return stored


class TenantWithItems(Protocol):
    """What of a tenant is needed here."""

    items: ItemRows


class Books(Protocol):
    """What of the books is needed here."""

    def write(self, write: Write, change: Any) -> Outcome: ...  # noqa: ANN401 - see tests.store.model

    def repeated(self, write: Write) -> Outcome | None: ...

    def read(self, read: Read) -> tuple[Any, int]: ...

    def now(self) -> int: ...


class Items:
    def __init__(self, books: Books) -> None:
        self._books = books

    def write(self, write: Write, given: Sequence[ItemChange]) -> Outcome:
        def change(tenant: TenantWithItems, revision: int, now: int) -> Outcome | None:
            there, gone, put, removed = tenant.items.there(now), 0, 0, False
            for each in {_place(one): one for one in given}.values():
                place = _place(each)
                key = (place.namespace, place.key)
                if isinstance(each, ItemDraft):
                    before = there[key][0] if key in there else None
                    tenant.items.rows[key] = (_dated(each, before, now), revision)
                    put += 1
                elif key in tenant.items.rows:
                    del tenant.items.rows[key]
                    gone += key in there
                    removed = True
            return Outcome(0, deleted_records=gone) if put or removed else None

        return self._books.write(write, change)

    def repeated(self, write: Write) -> Outcome | None:
        return self._books.repeated(write)

    def get(
        self, read: Read, places: Sequence[ItemPlace], *, refreshes: bool = False, sees_expired: bool = False
    ) -> ReadItems:
        tenant, revision = self._books.read(read)
        there = self._seen(tenant, sees_expired=sees_expired)
        found = [there.get((place.namespace, place.key)) for place in places]
        return ReadItems(tuple(row and self._shown(row, refreshes=refreshes) for row in found), revision)

    def _shown(self, row: tuple[StoreItem, int], *, refreshes: bool) -> bytes:
        item, revision = row
        if refreshes and item.HasField("ttl") and not has_expired(item, self._books.now()):
            item.expire_time.CopyFrom(wire.timestamp(self._books.now() + item.ttl.ToMicroseconds()))
        shown = StoreItem.FromString(item.SerializeToString())
        shown.ClearField("vectors")
        shown.revision = revision
        return shown.SerializeToString()

    def _seen(self, tenant: TenantWithItems, *, sees_expired: bool) -> dict[Key, tuple[StoreItem, int]]:
        return tenant.items.rows if sees_expired else tenant.items.there(self._books.now())

    def search(self, read: Read, search: ItemSearch) -> FoundItems:
        tenant, revision = self._books.read(read)
        there = [
            row
            for (namespace, _), row in self._seen(tenant, sees_expired=search.sees_expired).items()
            if namespace[: len(search.prefix)] == search.prefix
            and (search.filter is None or holds(search.filter, json.loads(row[0].value)))
        ]
        scored = [(row, nearness(search.query, row[0]) if search.query else None) for row in there]
        if search.query:
            scored = [(row, score) for row, score in scored if score is not None]
        chosen = sorted(scored, key=lambda one: _order(one[0][0], one[1]))[search.skip : search.skip + search.limit]
        hits = (ItemHit(self._shown(row, refreshes=search.refreshes), score) for row, score in chosen)
        return FoundItems(tuple(hits), revision)

    def namespaces(self, read: Read, listing: NamespaceListing) -> ListedNamespaces:
        tenant, revision = self._books.read(read)
        matching = {
            namespace[: listing.max_depth]
            for namespace, _ in self._seen(tenant, sees_expired=listing.sees_expired)
            if all(matches(match, namespace) for match in listing.matches)
        }
        rest = sorted(matching)[listing.skip :]
        return ListedNamespaces(tuple(rest[: listing.limit]), len(rest) > listing.limit, revision)

    def delete_namespaces(self, write: Write, prefix: Namespace) -> Outcome:
        def change(tenant: TenantWithItems, _revision: int, _now: int) -> Outcome:
            kept = {key: row for key, row in tenant.items.rows.items() if key[0][: len(prefix)] != prefix}
            tenant.items.rows = kept
            return Outcome(0)

        return self._books.write(write, change)

    def delete_expired(self, write: Write) -> Outcome:
        def change(tenant: TenantWithItems, _revision: int, now: int) -> Outcome | None:
            there = tenant.items.there(now)
            gone = len(tenant.items.rows) - len(there)
            tenant.items.rows = there
            return Outcome(0, deleted_records=gone) if gone else None

        return self._books.write(write, change)


def _place(change: ItemChange) -> ItemPlace:
    return change.place if isinstance(change, ItemDraft) else change


def _dated(draft: ItemDraft, before: StoreItem | None, now: int) -> StoreItem:
    item = StoreItem.FromString(draft.body)
    item.create_time.CopyFrom(wire.timestamp(now) if before is None else before.create_time)
    item.update_time.CopyFrom(wire.timestamp(now))
    if draft.ttl is not None:
        item.expire_time.CopyFrom(wire.timestamp(now + draft.ttl))
    return item


def has_expired(item: StoreItem, now: int) -> bool:
    return item.HasField("expire_time") and wire.micros(item.expire_time) <= now


def _order(item: StoreItem, score: float | None) -> Any:  # noqa: ANN401 - what sorts
    rank = -wire.micros(item.update_time) if score is None else -score
    return rank, tuple(item.namespace), item.key


def nearness(query: ItemQuery, item: StoreItem) -> float | None:
    """The score of the nearest vector of the model and dimension; None where there is none."""
    wanted = struct.unpack(f"<{len(query.values) // 4}f", query.values)
    scores = [
        similarity(query.similarity, wanted, struct.unpack(f"<{len(vector.values) // 4}f", vector.values))
        for vector in item.vectors
        if vector.model == query.model and len(vector.values) == len(query.values)
    ]
    return max(scores, default=None)


def similarity(kind: Similarity, left: Sequence[float], right: Sequence[float]) -> float:
    dot = sum(one * other for one, other in zip(left, right, strict=True))
    if kind is Similarity.INNER_PRODUCT:
        return dot
    if kind is Similarity.L2:
        return -math.dist(left, right)
    norms = math.hypot(*left) * math.hypot(*right)
    return max(-1.0, min(1.0, dot / norms)) if norms else 0.0


def matches(match: LabelMatch, namespace: Namespace) -> bool:
    count = len(match.labels)
    if count > len(namespace):
        return False
    own = namespace[len(namespace) - count :] if match.at_end else namespace[:count]
    return all(wanted in ("*", label) for wanted, label in zip(match.labels, own, strict=True))


def holds(passing: Filter, value: object) -> bool:
    """Whether a JSON value passes a filter of paths."""
    match passing:
        case AllOf(filters):
            return all(holds(each, value) for each in filters)
        case AnyOf(filters):
            return any(holds(each, value) for each in filters)
        case Negated(negated):
            return not holds(negated, value)
        case Condition(key, operator, values):
            found = at(value, json.loads(key))
            return _compares(operator, found, values)


def at(value: object, steps: Sequence[str]) -> object:
    """What a path leads to; MISSING where that is nothing."""
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def _compares(operator: Operator, found: object, values: Sequence[Any]) -> bool:
    if isinstance(found, dict | list):
        return operator in (Operator.PRESENT, Operator.NE)
    there = [] if found is MISSING else [wire.scalar(found)]  # type: ignore[arg-type]
    return compares(operator, there, values)
