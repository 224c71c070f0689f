"""Kinds of records that searches find in the engine's parts, each with a model of what must be found."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Sequence
from typing import Protocol

from tests.faults.served_store import ServedStore
from tests.patience import PATIENCE

from remora.v1 import filter_pb2, memory_service_pb2, scalar_pb2, store_service_pb2, vector_service_pb2
from remora.v1.fact_pb2 import Fact
from remora.v1.memory_item_pb2 import MemoryItem
from remora.v1.store_item_pb2 import ItemKey, ItemVector, StoreItem
from remora.v1.vector_pb2 import Vector

DIMENSION = 8
QUERY = [1.0] * DIMENSION
AT_ONCE = 4
ALL = 1_000
"""Hits, more than there are."""

Found = list[tuple[str, float]]
"""What was found, the best first, with its score in five digits."""


class SearchedKind(Protocol):
    """Records of a kind in a store."""

    def write(self) -> None:
        """Add some records, and replace one, in one request."""

    def search(self) -> Found:
        """All that is found."""

    def expected(self) -> Found:
        """What must be found: all that was acknowledged."""


class Vectors:
    """A collection, searched by a vector."""

    def __init__(self, store: ServedStore, collection_id: str = "notes") -> None:
        """Nothing is written yet."""
        self._collection_id = collection_id
        self._stub = store.memory.stubs.vectors
        self._model: dict[str, list[float]] = {}
        self._numbers = Numbers()

    def write(self) -> None:
        drafts = {name: self._numbers.vector() for name in self._numbers.names()}
        vectors = [Vector(id=name, values=encoded(values)) for name, values in drafts.items()]
        request = vector_service_pb2.UpsertVectorsRequest(collection_id=self._collection_id, vectors=vectors)
        self._stub.UpsertVectors(request, timeout=PATIENCE)
        self._model |= drafts

    def search(self) -> Found:
        request = vector_service_pb2.SearchVectorsRequest(
            collection_id=self._collection_id, vector=encoded(QUERY), k=ALL
        )
        hits = self._stub.SearchVectors(request, timeout=PATIENCE).hits
        return [(hit.vector.id, round(hit.score, 5)) for hit in hits]

    def expected(self) -> Found:
        return best_first({name: (1 + cosine(values)) / 2 for name, values in self._model.items()})


class StoreItems:
    """Items, searched by a filter of their values and a vector."""

    def __init__(self, store: ServedStore) -> None:
        """Nothing is written yet."""
        self._stub = store.memory.stubs.store
        self._model: dict[str, tuple[bool, list[float]]] = {}
        self._numbers = Numbers()

    def write(self) -> None:
        names = self._numbers.names()
        drafts = {name: (number % 2 == 0, self._numbers.vector()) for number, name in enumerate(names)}
        items = [
            StoreItem(
                namespace=["notes"],
                key=name,
                value=json.dumps({"even": True} if is_even else {}).encode(),
                vectors=[ItemVector(values=encoded(values))],
            )
            for name, (is_even, values) in drafts.items()
        ]
        self._stub.PutItems(store_service_pb2.PutItemsRequest(items=items), timeout=PATIENCE)
        self._model |= drafts

    def remove_even(self) -> None:
        """Delete what the filter passes, so that others move into the places of these in memory."""
        names = [name for name, (is_even, _) in self._model.items() if is_even]
        keys = [ItemKey(namespace=["notes"], key=name) for name in names]
        self._stub.DeleteItems(store_service_pb2.DeleteItemsRequest(keys=keys), timeout=PATIENCE)
        for name in names:
            del self._model[name]

    def search(self) -> Found:
        condition = filter_pb2.Condition(
            path=filter_pb2.Path(steps=["even"]),
            operator=filter_pb2.OPERATOR_EQ,
            values=[scalar_pb2.Scalar(boolean=True)],
        )
        search = store_service_pb2.ItemSearch(
            filter=filter_pb2.Filter(condition=condition), vector=encoded(QUERY), limit=ALL
        )
        hits = self._stub.SearchItems(store_service_pb2.SearchItemsRequest(search=search), timeout=PATIENCE).hits
        return [(hit.item.key, round(hit.score, 5)) for hit in hits]

    def expected(self) -> Found:
        return best_first({name: cosine(values) for name, (is_even, values) in self._model.items() if is_even})


class MemoryItems:
    """Items of a user, searched by a word that all have."""

    def __init__(self, store: ServedStore) -> None:
        """Nothing is written yet."""
        self._stub = store.memory.stubs.memory
        self._model: set[str] = set()
        self._numbers = Numbers()

    def write(self) -> None:
        names = self._numbers.names()
        items = [MemoryItem(id=name, text="a note") for name in names]
        request = memory_service_pb2.AddMemoryItemsRequest(user_id="sarah", items=items)
        self._stub.AddMemoryItems(request, timeout=PATIENCE)
        self._model |= set(names)

    def search(self) -> Found:
        request = memory_service_pb2.SearchMemoryItemsRequest(user_id="sarah", query="note", k=ALL)
        hits = self._stub.SearchMemoryItems(request, timeout=PATIENCE).hits
        return [(hit.item.id, round(hit.score, 5)) for hit in hits]

    def expected(self) -> Found:
        return best_first(dict.fromkeys(self._model, 1.0))


class Facts:
    """Facts of a user, searched by a word that all have."""

    def __init__(self, store: ServedStore) -> None:
        """Nothing is written yet."""
        self._stub = store.memory.stubs.memory
        self._model: set[str] = set()
        self._numbers = Numbers()

    def write(self) -> None:
        names = self._numbers.names()
        facts = [Fact(subject="sarah", predicate="has the note", object=name) for name in names]
        request = memory_service_pb2.AddFactsRequest(user_id="sarah", facts=facts)
        self._stub.AddFacts(request, timeout=PATIENCE)
        self._model |= set(names)

    def search(self) -> Found:
        request = memory_service_pb2.SearchFactsRequest(user_id="sarah", query="note", k=ALL)
        hits = self._stub.SearchFacts(request, timeout=PATIENCE).hits
        return sorted((hit.fact.object, round(hit.score, 5)) for hit in hits)

    def expected(self) -> Found:
        return best_first(dict.fromkeys(self._model, 1.0))


class Numbers:
    """Names and values of the records that are written next."""

    def __init__(self) -> None:
        """The same ones in each run."""
        self._chance = random.Random(7)
        self._written = 0

    def names(self) -> list[str]:
        """That of a record that each request writes, then new ones."""
        fresh = [f"{number:04}" for number in range(self._written, self._written + AT_ONCE)]
        self._written += AT_ONCE
        return ["again", *fresh]

    def vector(self) -> list[float]:
        """A direction."""
        return [self._chance.uniform(-1, 1) for _ in range(DIMENSION)]


def encoded(values: Sequence[float]) -> bytes:
    """The vector as requests have it."""
    return struct.pack(f"<{len(values)}f", *values)


def cosine(values: Sequence[float]) -> float:
    """That of a vector and the query."""
    return sum(one * other for one, other in zip(values, QUERY, strict=True)) / (
        math.hypot(*values) * math.hypot(*QUERY)
    )


def best_first(scores: dict[str, float]) -> Found:
    """By score, then by name."""
    return [(name, round(score, 5)) for name, score in sorted(scores.items(), key=lambda one: (-one[1], one[0]))]
