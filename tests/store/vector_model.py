"""The model's vectors and collections: dicts of messages, all of which a search compares."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from remora.v1 import transfer_service_pb2
from remora.v1.message_pb2 import Message
from remora.v1.vector_pb2 import Vector, VectorCollection
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import CollectionExists, CollectionNotFound, DimensionMismatch, RecordConflict
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.transfers import ImportedRecord
from remora_server.domain.vectors import (
    FLOAT_BYTES,
    CollectionDraft,
    CollectionPage,
    FoundVectors,
    NearestVectors,
    StoredCollection,
    VectorDraft,
    VectorHit,
    VectorQuery,
    VectorScope,
)

COLLECTIONS, VECTORS = 13, 14
"""Their places in an export."""

Key: TypeAlias = tuple[str, str, str]
"""A vector's collection, user and id."""


@dataclass
class VectorRows:
    """A tenant's collections, and its vectors with the revisions that wrote them."""

    collections: dict[str, VectorCollection] = field(default_factory=dict)
    rows: dict[Key, tuple[Vector, int]] = field(default_factory=dict)

    def of(self, scope: VectorScope) -> dict[str, tuple[Vector, int]]:
        where = (scope.collection_id, scope.user_id)
        return {key[2]: row for key, row in sorted(self.rows.items()) if key[:2] == where}

    def drop(self, collection_id: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key[0] != collection_id}

    def forget(self, user_id: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key[1] != user_id}

    def join(self, given: Sequence[tuple[str, Vector]], revision: int, now: int) -> None:
        """Put vectors into their collections, each with where the request has it."""
        for place, vector in given:
            found = self.collections.get(vector.collection_id) or VectorCollection(
                id=vector.collection_id, create_time=wire.timestamp(now)
            )
            dimension = len(vector.values) // FLOAT_BYTES
            expected = found.current_dimension or found.dimension or dimension
            if dimension != expected:
                raise DimensionMismatch(place, expected, dimension)
            found.current_dimension = expected
            self.collections[found.id] = found
            self.rows[vector.collection_id, vector.user_id, vector.id] = (vector, revision)

    def exported(self) -> Iterator[tuple[int, bytes, str, bytes]]:
        for name, collection in self.collections.items():
            record = transfer_service_pb2.Record(vector_collection=collection)
            yield COLLECTIONS, name.encode(), "", record.SerializeToString()
        for key, (vector, _) in self.rows.items():
            record = transfer_service_pb2.Record(vector=vector)
            yield VECTORS, "\0".join(key).encode(), key[1], record.SerializeToString()

    def take(self, revision: int, records: Sequence[ImportedRecord], now: int) -> int:
        """Import what is not there, and say how much that is. Raises RecordConflict."""
        stored, joining = 0, []
        for record in records:
            if record.kind == "vector_collection":
                collection = VectorCollection.FromString(record.body)
                before = self.collections.get(collection.id)
                _require_same(before, collection, record.field)
                self.collections[collection.id] = collection
                stored += before is None
            elif record.kind == "vector":
                vector = Vector.FromString(record.body)
                found = self.rows.get((vector.collection_id, vector.user_id, vector.id))
                _require_same(found and found[0], vector, record.field)
                joining += [(f"{record.field}.values", vector)] if found is None else []
        self.join(joining, revision, now)
        return stored + len(joining)


def _require_same(before: Any, given: Any, place: str) -> None:  # noqa: ANN401 - messages of any kind
    if before is not None and before != given:
        raise RecordConflict(place)


class TenantWithVectors(Protocol):
    """What of a tenant is needed here."""

    vectors: VectorRows


class Books(Protocol):
    """What of the books is needed here."""

    def write(self, write: Write, change: Any) -> Outcome: ...  # noqa: ANN401 - see tests.store.model

    def read(self, read: Read) -> tuple[Any, int]: ...


class Vectors:
    def __init__(self, books: Books) -> None:
        self._books = books

    def upsert(self, write: Write, scope: VectorScope, drafts: Sequence[VectorDraft]) -> Outcome:
        def change(tenant: TenantWithVectors, revision: int, now: int) -> Outcome:
            given = []
            for draft in drafts:
                vector = Vector.FromString(draft.body)
                vector.update_time.CopyFrom(wire.timestamp(now))
                given.append((draft.field, vector))
            _require_one_dimension(tenant.vectors, scope, given)
            tenant.vectors.join(given, revision, now)
            return Outcome(0)

        return self._books.write(write, change)

    def search(self, read: Read, scope: VectorScope, query: VectorQuery) -> NearestVectors:
        tenant, revision = self._books.read(read)
        found, dimension = tenant.vectors.collections.get(scope.collection_id), len(query.values) // FLOAT_BYTES
        expected = 0 if found is None else found.current_dimension or found.dimension
        if expected not in (0, dimension):
            raise DimensionMismatch(query.field, expected, dimension)
        scored = [
            (-score(query.values, vector.values), name, vector)
            for name, (vector, _) in tenant.vectors.of(scope).items()
            if query.filter is None or holds(query.filter, vector)
        ]
        ranked = sorted(scored, key=lambda one: one[:2])
        best = [VectorHit(-each, vector.SerializeToString()) for each, _, vector in ranked]
        least = -math.inf if query.threshold is None else query.threshold
        return NearestVectors(tuple([hit for hit in best if hit.score >= least][: query.k]), revision)

    def get(self, read: Read, scope: VectorScope, ids: Sequence[str]) -> FoundVectors:
        tenant, shown = self._books.read(read)
        there = tenant.vectors.of(scope)
        rows = [there[name] for name in ids if name in there]
        encoded = [
            vector.SerializeToString() + Vector(revision=revision).SerializeToString() for vector, revision in rows
        ]
        fitting: list[bytes] = []
        room = REPLY_BYTES
        for each in encoded:
            room -= len(each)
            if room < 0 and fitting:
                break
            fitting.append(each)
        return FoundVectors(tuple(fitting), len(fitting) < len(encoded), shown)

    def delete(self, write: Write, scope: VectorScope, ids: Sequence[str]) -> Outcome:
        return self._delete(write, scope, lambda vector: vector.id in set(ids))

    def delete_where(self, write: Write, scope: VectorScope, passing: Filter) -> Outcome:
        return self._delete(write, scope, lambda vector: holds(passing, vector))

    def _delete(self, write: Write, scope: VectorScope, goes: Any) -> Outcome:  # noqa: ANN401 - a predicate
        def change(tenant: TenantWithVectors, _revision: int, _now: int) -> Outcome | None:
            gone = [name for name, (vector, _) in tenant.vectors.of(scope).items() if goes(vector)]
            for name in gone:
                del tenant.vectors.rows[scope.collection_id, scope.user_id, name]
            return Outcome(0, deleted_records=len(gone)) if gone else None

        return self._books.write(write, change)

    def count(self, read: Read, scope: VectorScope, passing: Filter | None) -> tuple[int, int]:
        tenant, revision = self._books.read(read)
        found = [vector for vector, _ in tenant.vectors.of(scope).values() if passing is None or holds(passing, vector)]
        return len(found), revision


def _require_one_dimension(rows: VectorRows, scope: VectorScope, given: Sequence[tuple[str, Vector]]) -> None:
    """Refuse all before any is put."""
    found = rows.collections.get(scope.collection_id)
    expected = 0 if found is None else found.current_dimension or found.dimension
    for place, vector in given:
        dimension = len(vector.values) // FLOAT_BYTES
        expected = expected or dimension
        if dimension != expected:
            raise DimensionMismatch(place, expected, dimension)


class Collections:
    def __init__(self, books: Books) -> None:
        self._books = books

    def create(self, write: Write, draft: CollectionDraft) -> Outcome:
        def change(tenant: TenantWithVectors, _revision: int, now: int) -> Outcome:
            if draft.id in tenant.vectors.collections:
                raise CollectionExists(draft.id)
            tenant.vectors.collections[draft.id] = VectorCollection(
                id=draft.id,
                dimension=draft.dimension,
                current_dimension=draft.dimension,
                create_time=wire.timestamp(now),
            )
            return Outcome(0)

        return self._books.write(write, change)

    def get(self, read: Read, collection_id: str) -> StoredCollection:
        tenant, revision = self._books.read(read)
        found = tenant.vectors.collections.get(collection_id)
        if found is None:
            raise CollectionNotFound(collection_id)
        own = [vector for key, (vector, _) in tenant.vectors.rows.items() if key[0] == collection_id]
        return StoredCollection(found.SerializeToString(), len(own), sum(each.ByteSize() for each in own), revision)

    def list(self, read: Read, after: str, limit: int) -> CollectionPage:
        tenant, revision = self._books.read(read)
        names = sorted(name for name in tenant.vectors.collections if name > after)
        page = [tenant.vectors.collections[name].SerializeToString() for name in names[:limit]]
        return CollectionPage(tuple(page), names[limit - 1] if len(names) > limit else None, revision)

    def clear(self, write: Write, collection_id: str) -> Outcome:
        def change(tenant: TenantWithVectors, _revision: int, _now: int) -> Outcome | None:
            found = tenant.vectors.collections.get(collection_id)
            if found is None:
                return None
            found.current_dimension = found.dimension
            tenant.vectors.drop(collection_id)
            return Outcome(0)

        return self._books.write(write, change)

    def delete(self, write: Write, collection_id: str, *, allow_missing: bool) -> Outcome:
        def change(tenant: TenantWithVectors, _revision: int, _now: int) -> Outcome | None:
            if tenant.vectors.collections.pop(collection_id, None) is None:
                if allow_missing:
                    return None
                raise CollectionNotFound(collection_id)
            tenant.vectors.drop(collection_id)
            return Outcome(0, deleted=True)

        return self._books.write(write, change)


def score(query: bytes, stored: bytes) -> float:
    """(1 + cosine) / 2, where a zero vector has the cosine 0."""
    own, other = (struct.unpack(f"<{len(each) // FLOAT_BYTES}f", each) for each in (query, stored))
    norms = math.sqrt(sum(value * value for value in own)) * math.sqrt(sum(value * value for value in other))
    dot = sum(left * right for left, right in zip(own, other, strict=True))
    return (1 + (max(-1.0, min(1.0, dot / norms)) if norms else 0.0)) / 2


def holds(passing: Filter, holder: Vector | Message) -> bool:
    """Whether the attributes of a vector or a message pass."""
    match passing:
        case AllOf(filters):
            return all(holds(each, holder) for each in filters)
        case AnyOf(filters):
            return any(holds(each, holder) for each in filters)
        case Negated(negated):
            return not holds(negated, holder)
        case Condition(key, operator, values):
            return compares(operator, [holder.attributes[key]] if key in holder.attributes else [], values)


def compares(operator: Operator, there: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether a condition holds of the scalar that is there, or of none."""
    if operator in {Operator.PRESENT, Operator.ABSENT}:
        return bool(there) == (operator is Operator.PRESENT)
    own = [wire.scalar_value(each) for each in there]
    equal = any(_type(left) == _type(right) and left == right for left in own for right in values)
    if operator in {Operator.EQ, Operator.IN, Operator.NE}:
        return equal != (operator is Operator.NE)
    comparable = [(left, right) for left in own for right in values if _type(left) == _type(right)]
    orders = {
        Operator.LT: lambda left, right: left < right,
        Operator.LTE: lambda left, right: left <= right,
        Operator.GT: lambda left, right: left > right,
        Operator.GTE: lambda left, right: left >= right,
    }
    return any(_type(left) in {"number", "text"} and orders[operator](left, right) for left, right in comparable)


def _type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "null"
