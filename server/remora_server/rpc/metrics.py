"""Metrics, in the text format of Prometheus. No label names a tenant, a user or a conversation.

Metrics of calls have the names of other gRPC servers (go-grpc-prometheus), so that their dashboards fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from grpc import StatusCode
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from remora_server.domain.status import EngineStatus, JournalStatus, OverflowStatus, ProcessStatus, StoreStatus
from remora_server.rpc.transport.transports import MethodCalls

METHOD = ("grpc_type", "grpc_service", "grpc_method")
CODES: Mapping[int, str] = {code.value[0]: code.name for code in StatusCode}
UNKNOWN = ("unknown", "unknown", "unknown")
"""The label of calls of unknown methods, because the caller may have named anything."""


class Sources(Struct, frozen=True):
    """The sources of the metrics. Each is asked once for every page."""

    calls: Callable[[], Sequence[MethodCalls]]
    store: Callable[[], StoreStatus]
    process: Callable[[], ProcessStatus]
    ready: Callable[[], bool]
    threads_failed: Callable[[], int]
    overflow: Callable[[], OverflowStatus]


class Metrics:
    """Makes the page of metrics."""

    def __init__(self, services: Iterable[ServiceDescriptor], sources: Sources) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collected(_labels(services), sources))
        ProcessCollector(registry=self._registry)

    def page(self) -> tuple[str, bytes]:
        """The content type and the page."""
        return CONTENT_TYPE_LATEST, generate_latest(self._registry)


def _labels(services: Iterable[ServiceDescriptor]) -> dict[str, tuple[str, str, str]]:
    """The values of `METHOD` by the methods' paths."""
    return {
        f"/{service.full_name}/{method.name}": (_type_of(method), service.full_name, method.name)
        for service in services
        for method in service.methods
    }


def _type_of(method: MethodDescriptor) -> str:
    return "server_stream" if method.server_streaming else "unary"


class _Collected(Collector):
    def __init__(self, labels: Mapping[str, tuple[str, str, str]], sources: Sources) -> None:
        self._labels = labels
        self._sources = sources

    def collect(self) -> Iterable[Metric]:
        store, process = self._sources.store(), self._sources.process()
        yield from self._of_calls(self._sources.calls())
        yield _info(process, store)
        yield GaugeMetricFamily("remora_ready", "1 while the server is ready, else 0.", self._sources.ready())
        yield GaugeMetricFamily(
            "remora_failures", "Parts of the server that do not work now; the log says which.", len(process.failures)
        )
        yield CounterMetricFamily(
            "remora_thread_failures",
            "How often the work of a thread failed and was restarted.",
            self._sources.threads_failed(),
        )
        yield GaugeMetricFamily(
            "remora_overflow_failing",
            "Conversations whose window could not be moved, or summarised, when it was last tried.",
            self._sources.overflow().failing,
        )
        yield from _of_store(store)
        yield from _of_journal(store.journal)
        yield from _of_engine(store.engine)

    def _of_calls(self, calls: Sequence[MethodCalls]) -> Iterable[Metric]:
        handled = CounterMetricFamily(
            "grpc_server_handled", "Calls that ended, by method and code.", labels=[*METHOD, "grpc_code"]
        )
        took = HistogramMetricFamily(
            "grpc_server_handling_seconds", "How long calls took until their reply was written.", labels=METHOD
        )
        under_way = GaugeMetricFamily(
            "remora_calls_in_flight", "Calls that have begun and not ended; some of them wait.", labels=METHOD
        )
        waiting = GaugeMetricFamily(
            "remora_calls_waiting", "Those of them that wait for a thread: the depth of the queue.", labels=METHOD
        )
        for each in calls:
            labels = self._labels.get(each.path) or _of_others(each.path)
            for code, count in each.ended.items():
                handled.add_metric([*labels, CODES[code]], count)
            took.add_metric(labels, [(_bound(bound), count) for bound, count in each.within], each.seconds)
            under_way.add_metric(labels, each.under_way)
            waiting.add_metric(labels, each.waiting)
        return handled, took, under_way, waiting


def _of_others(path: str) -> tuple[str, str, str]:
    """Besides the services' own methods, only those of reflection are counted by their paths."""
    if not path:
        return UNKNOWN
    _, service, method = path.split("/")
    return "bidi_stream", service, method


def _bound(seconds: float) -> str:
    return "+Inf" if seconds == float("inf") else str(seconds)


def _info(process: ProcessStatus, store: StoreStatus) -> Metric:
    info = GaugeMetricFamily(
        "remora_build_info",
        "Always 1. The labels are the versions that run.",
        labels=["version", "python", "duckdb", "kernels"],
    )
    info.add_metric([process.version, process.python_version, process.duckdb_version, store.engine.kernels], 1)
    return info


def _of_store(store: StoreStatus) -> Iterable[Metric]:
    yield GaugeMetricFamily("remora_writable", "1 while the store takes writes, else 0.", not store.failure)
    yield GaugeMetricFamily("remora_revision", "The newest revision that was acknowledged.", store.revision)
    yield GaugeMetricFamily("remora_applied_revision", "The newest revision that DuckDB holds.", store.applied_revision)
    yield GaugeMetricFamily(
        "remora_applied_lag",
        "Revisions that DuckDB does not hold yet.",
        max(0, store.revision - store.applied_revision),
    )
    yield GaugeMetricFamily("remora_database_bytes", "The size of DuckDB's files.", store.database_bytes)
    yield CounterMetricFamily(
        "remora_database_checkpoints", "DuckDB's checkpoints; reads of DuckDB wait meanwhile.", store.checkpoints.count
    )
    yield CounterMetricFamily(
        "remora_database_checkpoint_seconds", "How long all of these took.", store.checkpoints.seconds
    )
    yield GaugeMetricFamily("remora_conversations", "Conversations in the store.", store.conversations)
    yield GaugeMetricFamily("remora_messages", "Messages in the store.", store.messages)
    yield SummaryMetricFamily(
        "remora_recall_seconds",
        "How long searches of messages took, those of contexts included, from the load of what they need on.",
        count_value=store.searches.count,
        sum_value=store.searches.seconds,
    )
    yield CounterMetricFamily(
        "remora_recall_hits", "Searches of messages that found all that they needed in memory.", store.recall_hits
    )
    yield CounterMetricFamily(
        "remora_recall_loads",
        "Loads of messages for searches that did not find them in memory.",
        store.recall_loads.count,
    )
    yield CounterMetricFamily("remora_recall_load_seconds", "How long all of these took.", store.recall_loads.seconds)
    pending = GaugeMetricFamily("remora_embedding_pending", "Texts that wait for a vector.", labels=["model"])
    refused = GaugeMetricFamily("remora_embedding_refused", "Texts that a model makes no vector of.", labels=["model"])
    for model, status in store.embeddings.items():
        pending.add_metric([model], status.pending)
        refused.add_metric([model], status.refused)
    yield from (pending, refused)


def _of_journal(journal: JournalStatus) -> Iterable[Metric]:
    yield GaugeMetricFamily("remora_journal_bytes", "The size of the journal.", journal.bytes)
    yield GaugeMetricFamily("remora_journal_segments", "The journal's files.", journal.segments)
    yield GaugeMetricFamily(
        "remora_journal_waiting_records", "Records that wait to be written to the journal.", journal.waiting
    )
    yield CounterMetricFamily("remora_journal_records", "Records that were written to the journal.", journal.records)
    yield CounterMetricFamily(
        "remora_journal_batches", "Batches that they were written in, each with one fdatasync.", journal.batches
    )
    yield GaugeMetricFamily(
        "remora_journal_sync_seconds", "The mean time of an fdatasync since the start.", journal.sync_micros / 1e6
    )


def _of_engine(engine: EngineStatus) -> Iterable[Metric]:
    yield GaugeMetricFamily(
        "remora_window_conversations", "Conversations whose newest messages are in memory.", engine.conversations
    )
    yield GaugeMetricFamily("remora_index_parts", "Parts of search indexes in memory.", engine.parts)
    memory = GaugeMetricFamily("remora_memory_bytes", "Memory for what is kept at hand, by what it is.", labels=["of"])
    for what, size in (
        ("windows", engine.window_bytes),
        ("indexes", engine.index_bytes),
        ("records", engine.record_bytes),
        ("vectors", engine.vector_bytes),
    ):
        memory.add_metric([what], size)
    yield memory
