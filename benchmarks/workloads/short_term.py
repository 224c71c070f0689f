"""How fast histories are trimmed, beside langchain-core."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.engines.remora import Remora
from benchmarks.engines.trimming import MESSAGES, Calls, Engine, LangChain, Trimmer, history
from benchmarks.interleaving import Bench, Cell, measure, started
from benchmarks.report import show
from benchmarks.slices import Figure, Row, rate
from benchmarks.workloads.comparison import present, ratio

CHAT, LONG = 120, 500
"""Characters of a text: what people say in chats (LoCoMo has 80 to 200), and results of tools."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    server = Remora(bench.directory, bench.load)
    with ExitStack() as running:
        for engine in started([server], bench.console):
            running.callback(engine.stop)
        rows = measure(bench, _cells(f"unix:{server.socket}", running), "short_term")
    show(bench.console, f"short_term: {MESSAGES:,} messages trimmed to 10, 50 and 90 % of their tokens", rows)
    return figures(rows)


def _cells(endpoint: str, running: ExitStack) -> list[Cell]:
    cells = []
    for size in (CHAT, LONG):
        messages = history(size)
        calls = Calls(messages, endpoint)
        running.callback(calls.close)
        trimmers: list[Trimmer] = [LangChain(messages), Engine(messages), calls]
        cells += [Cell(trimmer.name, _load(size), trimmer.trim) for trimmer in trimmers]
    return cells


def _load(size: int) -> str:
    return f"{size} characters"


def figures(rows: list[Row]) -> dict[str, Figure]:
    """How many messages a second are trimmed, over LangChain's; the engine counts them exactly."""

    def over_langchain(name: str, size: int) -> Figure | None:
        return ratio(rows, (name, _load(size)), (LangChain.name, _load(size)), rate)

    return present(
        {
            "trim_rate_over_langchain": over_langchain(Engine.name, CHAT),
            "trim_rate_over_langchain_long": over_langchain(Engine.name, LONG),
            "trim_call_rate_over_langchain": over_langchain(Calls.name, CHAT),
            "trim_call_rate_over_langchain_long": over_langchain(Calls.name, LONG),
        }
    )
