"""Metrics: what they count, and that their page describes all of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.rpc.running_server import PROCESS

from remora_server.domain.status import Done, EmbeddingStatus, EngineStatus, JournalStatus, OverflowStatus, StoreStatus
from remora_server.rpc.metrics import METHOD, UNKNOWN, Metrics, Sources
from remora_server.rpc.server import SERVICES
from remora_server.rpc.transport.transports import MethodCalls

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
STORE = StoreStatus(
    store_id="5",
    format_version=1,
    in_memory=False,
    failure="",
    revision=12,
    applied_revision=10,
    database_bytes=4096,
    conversations=3,
    messages=9,
    embeddings={"m": EmbeddingStatus(pending=7, refused=2)},
    journal=JournalStatus(bytes=100, segments=1, records=20, batches=5, sync_micros=1_500, waiting=3),
    engine=EngineStatus("avx2", 1, 10, 2, 20, 3, 30, 4, 40),
    checkpoints=Done(2, 0.5),
    searches=Done(9, 2.25),
    recall_hits=5,
    recall_loads=Done(6, 1.25),
)
APPEND = "/remora.v1.ConversationService/AppendMessages"
WATCH = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
CALLS = [
    MethodCalls(APPEND, {0: 3, 8: 1}, [(0.001, 2), (math.inf, 4)], seconds=2.5, under_way=5, waiting=3),
    MethodCalls(WATCH, {0: 1}, [(0.001, 1), (math.inf, 1)], seconds=0.0, under_way=0),
    MethodCalls("", {12: 2}, [(0.001, 2), (math.inf, 2)], seconds=0.0, under_way=0),
]
OF_APPEND = dict(zip(METHOD, ("unary", "remora.v1.ConversationService", "AppendMessages"), strict=True))


def families(calls: list[MethodCalls], store: StoreStatus = STORE, *, ready: bool = True) -> dict[str, Metric]:
    overflow = OverflowStatus(8, "the model is down")
    sources = Sources(lambda: calls, lambda: store, lambda: PROCESS, lambda: ready, lambda: 4, lambda: overflow)
    _, page = Metrics(SERVICES, sources).page()
    return {family.name: family for family in text_string_to_metric_families(page.decode())}


def value(found: dict[str, Metric], family: str, sample: str, **labels: str) -> float:
    [only] = [each.value for each in found[family].samples if each.name == sample and each.labels == labels]
    return float(only)


def test_calls_are_counted_by_method_and_code() -> None:
    found = families(CALLS)
    count = "grpc_server_handled", "grpc_server_handled_total"

    assert value(found, *count, **OF_APPEND, grpc_code="OK") == 3
    assert value(found, *count, **OF_APPEND, grpc_code="RESOURCE_EXHAUSTED") == 1
    assert value(found, *count, **dict(zip(METHOD, UNKNOWN, strict=True)), grpc_code="UNIMPLEMENTED") == 2
    assert value(found, "remora_calls_in_flight", "remora_calls_in_flight", **OF_APPEND) == 5
    assert value(found, "remora_calls_waiting", "remora_calls_waiting", **OF_APPEND) == 3


def test_durations_are_a_histogram() -> None:
    found, name = families(CALLS), "grpc_server_handling_seconds"

    assert value(found, name, f"{name}_bucket", **OF_APPEND, le="0.001") == 2
    assert value(found, name, f"{name}_bucket", **OF_APPEND, le="+Inf") == 4
    assert value(found, name, f"{name}_count", **OF_APPEND) == 4
    assert value(found, name, f"{name}_sum", **OF_APPEND) == 2.5


def test_the_store_is_measured_in_base_units() -> None:
    found = families([])

    assert value(found, "remora_applied_revision", "remora_applied_revision") == 10
    assert value(found, "remora_journal_sync_seconds", "remora_journal_sync_seconds") == 0.0015
    assert value(found, "remora_applied_lag", "remora_applied_lag") == 2
    assert value(found, "remora_journal_waiting_records", "remora_journal_waiting_records") == 3
    assert value(found, "remora_recall_seconds", "remora_recall_seconds_count") == 9
    assert value(found, "remora_recall_seconds", "remora_recall_seconds_sum") == 2.25
    assert value(found, "remora_recall_hits", "remora_recall_hits_total") == 5
    assert value(found, "remora_recall_loads", "remora_recall_loads_total") == 6
    assert value(found, "remora_database_checkpoint_seconds", "remora_database_checkpoint_seconds_total") == 0.5
    assert value(found, "remora_embedding_pending", "remora_embedding_pending", model="m") == 7
    assert value(found, "remora_memory_bytes", "remora_memory_bytes", of="vectors") == 40
    assert value(found, "remora_thread_failures", "remora_thread_failures_total") == 4
    assert value(found, "remora_overflow_failing", "remora_overflow_failing") == 8


def test_whether_writes_are_taken_and_whether_the_server_is_ready_are_told_by_their_sources() -> None:
    full = families(
        [], StoreStatus(**{name: getattr(STORE, name) for name in STORE.__struct_fields__} | {"failure": "full"})
    )

    assert value(full, "remora_writable", "remora_writable") == 0
    assert value(full, "remora_ready", "remora_ready") == 1
    assert value(families([], ready=False), "remora_ready", "remora_ready") == 0


def test_the_document_lists_every_metric_and_no_other() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text("utf-8"), re.MULTILINE))

    assert documented == set(_names(families(CALLS).values()))


def test_the_document_lists_the_labels_of_each_metric() -> None:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    found = families(CALLS)

    labels = {
        name: {label for sample in family.samples for label in sample.labels if label != "le"}
        for name, family in zip(_names(found.values()), _own(found.values()), strict=True)
    }

    assert any(labels.values())
    assert documented == labels


def _own(found: Iterable[Metric]) -> Iterable[Metric]:
    """Those of the process are not the server's own."""
    return (family for family in found if not family.name.startswith("process_"))


def _names(found: Iterable[Metric]) -> Iterable[str]:
    """As they are asked for."""
    for family in _own(found):
        yield f"{family.name}_total" if family.type == "counter" else family.name
