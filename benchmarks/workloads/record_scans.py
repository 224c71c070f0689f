"""Reads across partitions of 100,000 records: those below a prefix, cold and hot, and workflow runs with a status."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.engines.record_calls import SELDOM, runs_by_status
from benchmarks.engines.record_store import RecordStore
from benchmarks.engines.remora_records import RemoraRecords
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, latency

RECORDS, LEADING, NESTED = 100_000, 100, 10
PAGE = 20
COLD, HOT, STATUS = "prefix, cold", "prefix, hot", "suspended workflow runs"
BUDGET = 30.0
"""Seconds, where the machine is not quiet."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    bench = replace(bench, budget=min(bench.budget, BUDGET))
    rows = [*_below_prefixes(bench), *_with_a_status(bench)]
    show(bench.console, f"{PAGE} of {RECORDS:,} records across partitions", rows)
    return figures(rows)


def _below_prefixes(bench: Bench) -> list[Row]:
    """In this process."""
    store = RecordStore(bench.directory / "scanned", count=RECORDS, leading=LEADING, nested=NESTED)
    store.fill()

    def cold(_seconds: float) -> Measured:
        store.forget()
        return store.scans(0, PAGE)

    hot = Cell(store.name, HOT, lambda seconds: store.scans(seconds, PAGE))
    try:
        return measure(bench, [Cell(store.name, COLD, cold), hot], "records below a prefix")
    finally:
        store.close()


def _with_a_status(bench: Bench) -> list[Row]:
    """Over the wire."""
    server, suspended = RemoraRecords(bench.directory / "runs", bench.load), runs_by_status(SELDOM, PAGE)
    server.start()
    try:
        server.fill_runs(RECORDS)
        server.applied()
        server.checkpointed()
        server.check_runs(suspended, PAGE)
        cell = Cell(server.name, STATUS, lambda seconds: server.call(seconds, suspended))
        return measure(bench, [cell], "workflow runs with a status")
    finally:
        server.stop()


def figures(rows: list[Row]) -> dict[str, Figure]:
    """The medians of a page."""
    millis = {row.load: row.figure(latency(0.5)).times(1e3) for row in rows}
    return {
        "record_prefix_scan_cold_ms_at_100k": millis[COLD],
        "record_prefix_scan_hot_p50_ms_at_100k": millis[HOT],
        "workflow_runs_by_status_p50_ms_at_100k": millis[STATUS],
    }
