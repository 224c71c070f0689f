"""What it takes to assemble a context: beside a list of 50 messages, in longer conversations, without a receipt, and
with facts.
"""

from __future__ import annotations

from benchmarks.engines.remora import Remora
from benchmarks.engines.server import TEXTS
from benchmarks.interleaving import Bench, Cell, measure, started
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, cpu, latency
from benchmarks.texts import texts
from benchmarks.workloads.comparison import present, ratio

from remora.v1.conversation_service_pb2 import ListMessagesRequest
from remora.v1.memory_service_pb2 import AssembleContextRequest, ContextFacts, SearchOptions

SERVICE = "/remora.v1.MemoryService"
SHORT, USUAL, LONG = 100, 1_000, 10_000
"""Messages of a conversation."""
BUDGET = 4_000
"""Tokens of a context: about 30 messages of 500 bytes."""
FACTS, SHOWN = 20_000, 20
"""Facts of the user, and how many a context shows."""
CONTEXT, BARE, LIST = "context", "context without a receipt", "list of 50"
KNOWING = f"context with {SHOWN} of {FACTS:,} facts"


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    server = Remora(bench.directory, bench.load)
    for engine in started([server], bench.console):
        try:
            for messages in (SHORT, USUAL, LONG):
                server.fill_conversation(messages)
            server.fill_facts(f"searcher-{USUAL}", FACTS)
            rows = measure(bench, _cells(server), "context")
        finally:
            engine.stop()
    show(bench.console, f"context: {BUDGET:,} tokens, 10 messages recalled by words, one client", rows)
    return figures(rows)


def _cells(server: Remora) -> list[Cell]:
    def assembling(name: str, messages: int) -> Cell:
        requests = [_context_request(name, messages, text) for text in texts(0, TEXTS)]

        def assemble(seconds: float) -> Measured:
            return server.drive(f"{SERVICE}/AssembleContext", [requests], seconds)

        return Cell(name, _load(messages), assemble)

    def listing(seconds: float) -> Measured:
        return server.drive(server.list_path, [[_list_request(USUAL)]], seconds)

    return [
        Cell(LIST, _load(USUAL), listing),
        *(assembling(CONTEXT, messages) for messages in (SHORT, USUAL, LONG)),
        assembling(BARE, USUAL),
        assembling(KNOWING, USUAL),
    ]


def _context_request(name: str, messages: int, text: str) -> bytes:
    return AssembleContextRequest(
        conversation_id=f"searched-{messages}",
        max_tokens=BUDGET,
        query=" ".join(text.split()[:4]),
        search=SearchOptions(k=10),
        without_receipt=name == BARE,
        facts=ContextFacts(k=SHOWN) if name == KNOWING else None,
    ).SerializeToString()


def _list_request(messages: int) -> bytes:
    return ListMessagesRequest(conversation_id=f"searched-{messages}", page_size=50).SerializeToString()


def _load(messages: int) -> str:
    return f"{messages:,} messages"


def figures(rows: list[Row]) -> dict[str, Figure]:
    """A context over a list, a shorter conversation and one without a receipt, and one with facts over one without."""
    usual = (CONTEXT, _load(USUAL))
    return present(
        {
            "context_p50_over_list50_p50": ratio(rows, usual, (LIST, _load(USUAL)), latency(0.5)),
            "context_slope": ratio(rows, (CONTEXT, _load(LONG)), (CONTEXT, _load(SHORT)), latency(0.5)),
            "context_with_facts_over_without": ratio(rows, (KNOWING, _load(USUAL)), usual, latency(0.5)),
            "receipt_overhead": ratio(rows, usual, (BARE, _load(USUAL)), cpu),
        }
    )
