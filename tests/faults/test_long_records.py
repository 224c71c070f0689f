"""Records that take more memory together than the database may use are reached after a restart, too."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from functools import cache, partial

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.faults.sidecar import Sidecar, is_applied
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora.errors import MemoryExhaustedError
from remora.v1 import history_service_pb2, memory_service_pb2, store_service_pb2, vector_service_pb2
from remora.v1.memory_item_pb2 import MemoryItem, SpokenMessage
from remora.v1.span_pb2 import SpanRecord
from remora.v1.store_item_pb2 import ItemKey, StoreItem
from remora.v1.store_service_pb2 import ItemSearch
from remora.v1.vector_pb2 import Vector

pytestmark = pytest.mark.slow

RECORDS, LONG = 150, 250_000
"""Those of each kind, 37 MB, are more than the database may hold; DuckDB reads up to 2,048 at a time."""
PLENTY, LITTLE = "--database-bytes=256MiB", "--database-bytes=32MiB"


@cache
def body(number: int) -> bytes:
    """JSON that does not compress; the same for the same number."""
    return json.dumps({"number": number, "noise": random.Random(number).randbytes(LONG // 2).hex()}).encode()


def record_id(number: int) -> str:
    """Not in the order of writing."""
    return f"r{number * 37 % RECORDS:04}"


def write(memory: Remora, number: int) -> bool:
    """One record of each kind. False if it must be written again."""
    key, stubs = record_id(number), memory.stubs
    item = StoreItem(namespace=["a"], key=key, value=body(number))
    span = SpanRecord(trace_id="t", span_id=key, name="n", start_time=Timestamp(seconds=1), attributes=body(number))
    vector = Vector(id=key, values=struct.pack("<4f", 1, number, 2, 3), content=body(number).decode())
    spoken = SpokenMessage(role="user", content=body(number).decode())
    try:
        stubs.store.PutItems(store_service_pb2.PutItemsRequest(items=[item]), timeout=PATIENCE)
        stubs.history.SaveSpans(history_service_pb2.SaveSpansRequest(spans=[span]), timeout=PATIENCE)
        stubs.vectors.UpsertVectors(
            vector_service_pb2.UpsertVectorsRequest(collection_id="c", vectors=[vector]), timeout=PATIENCE
        )
        stubs.memory.AddMemoryItems(
            memory_service_pb2.AddMemoryItemsRequest(
                user_id="sarah", items=[MemoryItem(id=key, conversation=[spoken])]
            ),
            timeout=PATIENCE,
        )
    except MemoryExhaustedError:
        return False
    return True


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remora]:
    """A server that has just been started, with little memory, on what one with more has written."""
    directory = tmp_path_factory.mktemp("long")
    filled = Sidecar(directory, "--model=none", PLENTY)
    filled.start()
    with Remora(filled.endpoint, timeout=PATIENCE) as memory:
        for number in range(RECORDS):
            eventually(partial(write, memory, number))
        eventually(lambda: is_applied(memory))
    assert filled.stop() == 0
    sidecar = Sidecar(directory, "--model=none", LITTLE)
    sidecar.start()
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        yield memory
    sidecar.kill()


def test_a_span_is_read(cold: Remora) -> None:
    request = history_service_pb2.GetSpanRequest(trace_id="t", span_id=record_id(7))

    assert cold.stubs.history.GetSpan(request, timeout=PATIENCE).span.attributes == body(7)


def test_an_item_is_read_and_written(cold: Remora) -> None:
    request = store_service_pb2.GetItemsRequest(keys=[ItemKey(namespace=["a"], key=record_id(7))])
    item = StoreItem(namespace=["a"], key=record_id(8), value=b"{}")

    found = cold.stubs.store.GetItems(request, timeout=PATIENCE).items
    assert [one.value for one in found] == [body(7)]
    cold.stubs.store.PutItems(store_service_pb2.PutItemsRequest(items=[item]), timeout=PATIENCE)


def test_items_are_searched(cold: Remora) -> None:
    request = store_service_pb2.SearchItemsRequest(search=ItemSearch(namespace_prefix=["a"], skip=20, limit=5))

    assert len(cold.stubs.store.SearchItems(request, timeout=PATIENCE).hits) == 5


def test_vectors_are_searched(cold: Remora) -> None:
    request = vector_service_pb2.SearchVectorsRequest(collection_id="c", vector=struct.pack("<4f", 1, 0, 2, 3), k=1)

    hits = cold.stubs.vectors.SearchVectors(request, timeout=PATIENCE).hits
    assert [(hit.vector.id, hit.vector.content.encode()) for hit in hits] == [(record_id(0), body(0))]


def test_memory_items_are_searched(cold: Remora) -> None:
    request = memory_service_pb2.SearchMemoryItemsRequest(user_id="sarah", query="noise", k=3)

    assert len(cold.stubs.memory.SearchMemoryItems(request, timeout=PATIENCE).hits) == 3
