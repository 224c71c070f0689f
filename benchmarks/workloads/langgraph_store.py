"""LangGraph's long-term memory: RemoraStore beside SqliteStore, called as an agent's step calls them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from benchmarks.engines.langgraph import RemoraStores, Stores
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Row, latency
from benchmarks.workloads.comparison import present, ratio

REMORA, SQLITE = "remora", "sqlite"
PUT, BY_VECTOR, FILTERED = "put", "search by vector", "filtered search"
FILLS = ("fill 10000", "fill 100000")
FILL_SECONDS = 600.0
BUDGET = 60.0
"""Seconds, where the machine is not quiet."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    remora, sqlite = RemoraStores(bench.directory, bench.load), Stores(SQLITE, bench.directory)
    with ExitStack() as running:
        for engine in (remora, sqlite):
            running.callback(engine.stop)
            engine.start()
        filled = [
            Row(engine.name, load, [bench.slice_of(partial(engine.measure, load, FILL_SECONDS))])
            for load in FILLS
            for engine in (remora, sqlite)
        ]
        remora.rest()
        cells = [
            Cell(engine.name, load, partial(engine.measure, load))
            for load in (PUT, BY_VECTOR, FILTERED)
            for engine in (remora, sqlite)
        ]
        rows = measure(replace(bench, budget=min(bench.budget, BUDGET)), cells, "langgraph")
    show(bench.console, "LangGraph's stores, one call after the other", [*filled, *rows])
    return figures(rows)


def figures(rows: list[Row]) -> dict[str, Figure]:
    """How the medians compare."""

    def over_sqlite(load: str) -> Figure | None:
        return ratio(rows, (REMORA, load), (SQLITE, load), latency(0.5))

    return present(
        {
            "store_put_p50_over_sqlite": over_sqlite(PUT),
            "store_vector_search_10k_prefix_over_sqlite": over_sqlite(BY_VECTOR),
            "store_filtered_search_100k_over_sqlite": over_sqlite(FILTERED),
        }
    )
