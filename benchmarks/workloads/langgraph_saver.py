"""LangGraph's checkpoints: RemoraSaver beside AsyncSqliteSaver and SqliteSaver, called as a graph's steps call them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.engines.langgraph import RemoraSavers, Savers
from benchmarks.engines.raw import Raw
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Row, Slice, beside, latency, over, rate
from benchmarks.workloads.comparison import present, ratio, row

REMORA, ASYNC_SQLITE, SQLITE, DISK = "remora", "async_sqlite", "sqlite", "write+fdatasync"
PUT, GET, PUT_20, GET_20 = "aput", "aget_tuple", "20 aput", "20 aget_tuple"
RPC, SYNC = "empty RPC", "500 bytes"
TURNS = "turns"
BUDGET = 60.0
"""Seconds, where the machine is not quiet."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    disk = Raw(bench.directory)
    engines = _engines(bench, bench.directory / "savers")
    remora = engines[0]
    with ExitStack() as running:
        for engine in (*engines, disk):
            running.callback(engine.stop)
            engine.start()
        cells = [
            Cell(one.name, load, partial(one.measure, load)) for load in (PUT, GET, PUT_20, GET_20) for one in engines
        ]
        cells += [Cell(REMORA, RPC, partial(remora.measure, RPC)), Cell(DISK, SYNC, partial(disk.append, 1))]
        rows = measure(replace(bench, budget=min(bench.budget, BUDGET)), cells, "langgraph")
    show(bench.console, "LangGraph's checkpointers, 12 messages of 3.9 KB", rows)
    return figures(rows) | growth(bench)


def growth(bench: Bench) -> dict[str, Figure]:
    """What a thread of 500 turns adds to the disk, over what it adds with SqliteSaver."""
    remora, _, sqlite = _engines(bench, bench.directory / "growing")
    added = {engine.name: _added_bytes(engine) for engine in (remora, sqlite)}
    bench.console.print(*(f"{name}: 500 turns add {count:,} bytes;" for name, count in added.items()), highlight=False)
    return {"saver_growth_bytes_over_sqlite": Figure.unprobed(added[REMORA] / added[SQLITE])}


def _engines(bench: Bench, directory: Path) -> tuple[Savers, Savers, Savers]:
    return RemoraSavers(directory, bench.load), Savers(ASYNC_SQLITE, directory), Savers(SQLITE, directory)


def _added_bytes(engine: Savers) -> int:
    with ExitStack() as running:
        running.callback(engine.stop)
        engine.start()
        engine.measure(PUT, 0.0)
        before = engine.stored_bytes()
        engine.measure(TURNS, 0.0)
        return engine.stored_bytes() - before


def figures(rows: list[Row]) -> dict[str, Figure]:
    """How the medians and rates compare."""
    p50 = latency(0.5)

    def over_sqlite(load: str) -> Figure | None:
        return ratio(rows, (REMORA, load), (ASYNC_SQLITE, load), rate if load in (PUT_20, GET_20) else p50)

    return present(
        {
            "saver_aput_p50_over_async_sqlite": over_sqlite(PUT),
            "saver_aget_tuple_p50_over_async_sqlite": over_sqlite(GET),
            "saver_aput_p50_over_rpc_and_fdatasync": _over_rpc_and_fdatasync(rows),
            "saver_aget_tuple_p50_over_rpc": ratio(rows, (REMORA, GET), (REMORA, RPC), p50),
            "saver_20_concurrent_aput_rate_over_async_sqlite": over_sqlite(PUT_20),
            "saver_20_concurrent_aget_rate_over_async_sqlite": over_sqlite(GET_20),
        }
    )


def _over_rpc_and_fdatasync(rows: Sequence[Row]) -> Figure | None:
    """The median of a put over the sum of two medians that were measured in turn."""
    put, rpc, sync = row(rows, REMORA, PUT), row(rows, REMORA, RPC), row(rows, DISK, SYNC)
    if put is None or rpc is None or sync is None:
        return None
    p50 = latency(0.5)
    puts = [Slice(p50(one.measured), one.before, one.after) for one in put.slices]
    sums = [Slice(sum(map(p50, one.measured)), one.before, one.after) for one in beside(rpc, sync)]
    return over(puts, sums, float)
