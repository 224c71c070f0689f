"""Reads across partitions of 100,000 records: those below a prefix, cold and hot, and those of a status."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.engines.record_store import RecordStore
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, latency

RECORDS, LEADING, NESTED, SELDOM = 100_000, 100, 10, 100
PAGE = 20
COLD, HOT, STATUS = "prefix, cold", "prefix, hot", "status across partitions"
BUDGET = 30.0
"""Seconds, where the machine is not quiet."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    store = RecordStore(bench.directory / "scanned", count=RECORDS, leading=LEADING, nested=NESTED, seldom=SELDOM)
    store.fill()

    def cold(_seconds: float) -> Measured:
        store.forget()
        return store.scans(0, PAGE)

    cells = [
        Cell(store.name, COLD, cold),
        Cell(store.name, HOT, lambda seconds: store.scans(seconds, PAGE)),
        Cell(store.name, STATUS, lambda seconds: store.queries(seconds, PAGE)),
    ]
    try:
        rows = measure(replace(bench, budget=min(bench.budget, BUDGET)), cells, "reads across partitions")
    finally:
        store.close()
    show(bench.console, f"{PAGE} of {RECORDS:,} records in {LEADING * NESTED:,} partitions", rows)
    return figures(rows)


def figures(rows: list[Row]) -> dict[str, Figure]:
    """The medians of a page."""
    millis = {row.load: row.figure(latency(0.5)).times(1e3) for row in rows}
    return {
        "record_prefix_scan_cold_ms_at_100k": millis[COLD],
        "record_prefix_scan_hot_p50_ms_at_100k": millis[HOT],
        "record_across_partitions_ms_at_100k": millis[STATUS],
    }
