"""VoltAgent's calls through its adapters: Remora beside VoltAgent's own memory in the process and LibSQL in files."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from benchmarks.engines.voltagent import Adapters, RemoraAdapters, build
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row
from benchmarks.workloads.comparison import present, ratio

REMORA, IN_MEMORY, LIBSQL = "remora", "inmemory", "libsql"
STORAGE = {
    "add_message": "addMessage",
    "add_messages_100": "addMessages(100)",
    "get_messages_50": "getMessages(50)",
    "create_conversation": "createConversation",
    "update_workflow_state": "updateWorkflowState",
    "vector_store_batch": "storeBatch(1000)",
}
"""What is compared with LibSQL, by the names in figures."""
SEMANTIC_READ, TURN = "semantic read", "turn"
EMPTY = "empty call"
"""An RPC that does nothing, by gRPC's library alone: what a call to another process costs at least."""
SMALL, LARGE = "search of 10000", "search of 100000"
FILLS = ("fill conversations", "fill runs", "fill 10000 vectors", "fill memory")
FILL_LARGE = "fill 100000 vectors"
TURNS = 3
FILL_SECONDS = 600.0
BUDGET = 60.0
"""Seconds, where the machine is not quiet."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    build()
    remora = RemoraAdapters(bench.directory, bench.load)
    in_memory, libsql = (Adapters(name, bench.directory) for name in (IN_MEMORY, LIBSQL))
    with ExitStack() as running:
        for engine in (remora, in_memory, libsql):
            running.callback(engine.stop)
            engine.start()
        filled = [_fill(bench, engine, load) for engine, load in _fills(remora, in_memory, libsql)]
        remora.rest()
        cells = [_cell(engine, load) for load in _loads() for engine in (remora, in_memory, libsql)]
        cells += [_cell(engine, load) for load in _filtered(LARGE) for engine in (remora, in_memory)]
        cells.append(_cell(remora, EMPTY))
        rows = measure(replace(bench, budget=min(bench.budget, BUDGET)), cells, "voltagent")
        rpcs = turn_rpcs(remora)
    show(bench.console, "VoltAgent's adapters, one call after the other", [*filled, *rows])
    return figures(rows) | {"voltagent_turn_rpcs": rpcs}


def _fills(remora: Adapters, in_memory: Adapters, libsql: Adapters) -> list[tuple[Adapters, str]]:
    """What is stored before; LibSQL would take minutes for the large collection, and seconds for a search in it."""
    everywhere = [(engine, load) for load in FILLS for engine in (remora, in_memory, libsql)]
    return [*everywhere, (remora, FILL_LARGE), (in_memory, FILL_LARGE)]


def _fill(bench: Bench, engine: Adapters, load: str) -> Row:
    filled = bench.slice_of(partial(engine.measure, load, FILL_SECONDS))
    bench.console.print(f"[dim]voltagent: {engine.name}, {load}: {filled.measured.seconds:.0f} s[/dim]")
    return Row(engine.name, load, [filled])


def _loads() -> list[str]:
    return [*STORAGE.values(), *_filtered(SMALL), SEMANTIC_READ, TURN]


def _filtered(search: str) -> list[str]:
    return [search, f"{search}, filtered"]


def _cell(engine: Adapters, load: str) -> Cell:
    return Cell(engine.name, load, partial(engine.measure, load))


def turn_rpcs(remora: Adapters) -> Figure:
    """The most RPCs of an agent's turn, until its queues are empty: the first ones of conversations, and later ones."""
    turns = [remora.call(load, 0.0) for load in ("first turn", "later turn") for _ in range(TURNS)]
    return Figure.unprobed(max(turn.rpcs for turn in turns))


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Times over those of the others, and of an empty call over those of LibSQL."""

    def over(other: str, load: str) -> Figure | None:
        return ratio(rows, (REMORA, load), (other, load), seconds_a_call)

    return present(
        {
            **{f"voltagent_{name}_over_libsql": over(LIBSQL, load) for name, load in STORAGE.items()},
            **{
                f"voltagent_empty_call_over_libsql_{name}": ratio(rows, (REMORA, EMPTY), (LIBSQL, load), seconds_a_call)
                for name, load in STORAGE.items()
            },
            "voltagent_vector_search_10k_over_inmemory": over(IN_MEMORY, SMALL),
            "voltagent_vector_search_100k_over_inmemory": over(IN_MEMORY, LARGE),
            "voltagent_semantic_read_over_libsql": over(LIBSQL, SEMANTIC_READ),
        }
    )


def seconds_a_call(measured: Measured) -> float:
    """The time of a slice's calls by their number: slices of slow calls end before they have all."""
    return statistics.fmean(measured.latencies)
