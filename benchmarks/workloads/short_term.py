"""How fast histories are trimmed, beside langchain-core, and what a policy costs those who append."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.engines.remora import Remora
from benchmarks.engines.server import TEXTS
from benchmarks.engines.trimming import MESSAGES, Calls, Engine, LangChain, Trimmer, history
from benchmarks.interleaving import Bench, Cell, measure, started
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, beside, cpu, rate
from benchmarks.texts import texts
from benchmarks.workloads.comparison import present, ratio, row

from remora.v1.short_term_pb2 import ShortTermPolicy, SummarizeOverflow, TrimOverflow

CHAT, LONG = 120, 500
"""Characters of a text: what people say in chats (LoCoMo has 80 to 200), and results of tools."""
APPEND, WITHOUT, TRIM, TRIM_SHORT, SUMMARIZE = "append", "no policy", "trim", "trim, short", "summarize"
POLICIES: Mapping[str, ShortTermPolicy | None] = {
    WITHOUT: None,
    TRIM: ShortTermPolicy(max_tokens=100_000, trim=TrimOverflow()),
    TRIM_SHORT: ShortTermPolicy(max_tokens=8_000, trim=TrimOverflow()),
    SUMMARIZE: ShortTermPolicy(max_tokens=100_000, summarize=SummarizeOverflow(keep_messages=2)),
}
"""By what they are called. Summaries are extracted, without a model. A message has about 110 tokens."""
MORE_ROUNDS = 3
"""Appends are measured in so many times as many rounds: the difference is small, and CPU time has steps of 10 ms."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    server = Remora(bench.directory, bench.load)
    with ExitStack() as running:
        for engine in started([server], bench.console):
            running.callback(engine.stop)
        trims = measure(bench, _cells(f"unix:{server.socket}", running), "short_term")
        longer = replace(bench, rounds=MORE_ROUNDS * bench.rounds)
        appends = measure(longer, [_appending(server, name) for name in POLICIES], "short_term")
    show(bench.console, f"short_term: {MESSAGES:,} messages trimmed to 10, 50 and 90 % of their tokens", trims)
    show(bench.console, "short_term: one message an append, one client, in a conversation with a policy", appends)
    return figures([*trims, *appends])


def _appending(server: Remora, name: str) -> Cell:
    conversation, policy = f"conversation of {name}", POLICIES[name]
    requests = [server.append_request(conversation, name, [text], policy) for text in texts(0, TEXTS)]

    def append(seconds: float) -> Measured:
        return server.drive(server.append_path, [requests], seconds)

    return Cell(APPEND, name, append)


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
    """How many messages a second are trimmed, over LangChain's; the engine counts them exactly. And the server's CPU
    time of an append to a conversation with a policy, the overflow behind it included, over one without.
    """

    def over_langchain(name: str, size: int) -> Figure | None:
        return ratio(rows, (name, _load(size)), (LangChain.name, _load(size)), rate)

    def over_without(name: str) -> Figure | None:
        """The median of the ratios in each round."""
        policy, without = row(rows, APPEND, name), row(rows, APPEND, WITHOUT)
        if policy is None or without is None:
            return None
        return Figure.of(beside(policy, without), lambda both: cpu(both[0]) / cpu(both[1]))

    return present(
        {
            "trim_rate_over_langchain": over_langchain(Engine.name, CHAT),
            "trim_rate_over_langchain_long": over_langchain(Engine.name, LONG),
            "trim_call_rate_over_langchain": over_langchain(Calls.name, CHAT),
            "trim_call_rate_over_langchain_long": over_langchain(Calls.name, LONG),
            "append_cpu_with_policy_over_without": over_without(TRIM),
            "append_cpu_with_short_policy_over_without": over_without(TRIM_SHORT),
            "append_cpu_with_summaries_over_without": over_without(SUMMARIZE),
        }
    )
