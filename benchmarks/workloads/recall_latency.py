"""What recall costs over a user's 1,000, 10,000 and 50,000 messages, and beside VoltAgent's way at 10,000.

Through the Python client, over the Unix socket of a server whose memory holds the indexes of all three users: hybrid,
10 hits, all of a user's conversations. Encoding is left out: every question was asked before, so that its vector is at
hand in the server, as in VoltAgent's way it is given. Messages come with vectors of their own.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from benchmarks.engines.remora import RemoraWithModel
from benchmarks.engines.voltagent_shape import Item, Vector, VoltagentShape
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.processes import cpu_seconds
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, cpu, latency
from benchmarks.talks import DIMENSION, Talks, questions
from rich.progress import Progress

from remora import Remora

QUESTIONS = 64
K = 10
TAIL = 0.95
TIMEOUT = 120.0
TALKS = {
    name: Talks(f"user-{name}", 1_000 * count, 10 * count) for name, count in (("1k", 1), ("10k", 10), ("50k", 50))
}
COMPARED = "10k"
VOLTAGENT = "voltagent's way"


def run(bench: Bench) -> dict[str, Figure]:
    """Fill, measure and show; the figures by name."""
    server = RemoraWithModel(bench.directory / "recall", bench.load)
    server.start()
    try:
        with Remora(f"unix:{server.socket}", timeout=TIMEOUT) as memory, _voltagent_shape(bench) as shape:
            _fill(bench, memory, server.status().model.name)
            server.checkpointed()
            cells = [_recall(memory, server, name) for name in TALKS]
            rows = measure(bench, [*cells, _voltagent(shape)], "recall")
    finally:
        server.stop()
    show(bench.console, f"recall: the {K} best of a user's messages, 500 bytes each; encoding left out", rows, TAIL)
    return figures({(row.engine, row.load): row for row in rows})


def figures(rows: dict[tuple[str, str], Row]) -> dict[str, Figure]:
    """The 95th percentiles, which count all that the client waits for, and the server's CPU time of a call."""
    ours = {name: rows[RemoraWithModel.name, name] for name in TALKS}
    voltagent, tail = rows[VOLTAGENT, COMPARED], latency(TAIL)
    return {
        **{f"recall_p95_ms_{name}": row.figure(tail).times(1e3) for name, row in ours.items()},
        **{f"recall_server_cpu_ms_{name}": row.figure(cpu).times(1e3) for name, row in ours.items()},
        f"voltagent_shape_p95_ms_{COMPARED}": voltagent.figure(tail).times(1e3),
        "recall_p95_over_voltagent_shape": ours[COMPARED].over(voltagent, tail),
    }


@contextmanager
def _voltagent_shape(bench: Bench) -> Iterator[VoltagentShape]:
    """A user's messages, stored as VoltAgent's memory does it."""
    talks = TALKS[COMPARED]
    shape = VoltagentShape(bench.directory / "voltagent.db")
    shape.store(_item(talks, number) for number in range(talks.messages))
    try:
        yield shape
    finally:
        shape.close()


def _item(talks: Talks, number: int) -> Item:
    conversation, message = talks.conversation_id(number), f"m{number}"
    metadata = {
        "messageId": message,
        "conversationId": conversation,
        "userId": talks.user_id,
        "role": talks.role(number),
        "createdAt": "2024-01-01T09:00:00.000Z",
    }
    return Item(f"msg_{conversation}_{message}", talks.vectors[number], metadata, talks.texts[number])


def _fill(bench: Bench, memory: Remora, model: str) -> None:
    """Store all messages, and ask each question once: then the messages are in memory, and the questions' vectors."""
    with Progress(console=bench.console, transient=True) as progress:
        for name, talks in TALKS.items():
            conversations = progress.track(talks.each(model), talks.conversations, description=f"storing {name}")
            for identifier, messages in conversations:
                memory.conversation(identifier, user_id=talks.user_id).append(messages)
            for question in questions(QUESTIONS):
                _ask(memory, talks, question)


def _ask(memory: Remora, talks: Talks, question: str) -> None:
    found = memory.user(talks.user_id).search(question, k=K)
    if len(found) != K or found.index.pending:
        raise RuntimeError(f"{len(found)} hits of {talks.user_id}, {found.index.pending} messages without a vector")


def _recall(memory: Remora, server: RemoraWithModel, name: str) -> Cell:
    asked = itertools.cycle(questions(QUESTIONS))

    def operation(seconds: float) -> Measured:
        before = cpu_seconds(server.pid)
        spans = _repeated(lambda: _ask(memory, TALKS[name], next(asked)), seconds)
        return Measured(spans, cpu_seconds(server.pid) - before)

    return Cell(server.name, name, operation)


def _voltagent(shape: VoltagentShape) -> Cell:
    asked = itertools.cycle(_query_vectors())
    wanted = {"userId": TALKS[COMPARED].user_id}

    def operation(seconds: float) -> Measured:
        before = time.process_time()
        spans = _repeated(lambda: shape.search(next(asked), limit=K, wanted=wanted), seconds)
        return Measured(spans, time.process_time() - before)

    return Cell(VOLTAGENT, COMPARED, operation)


def _query_vectors() -> Sequence[Vector]:
    return list(np.random.default_rng(5).standard_normal((QUESTIONS, DIMENSION), np.float32))


def _repeated(call: Callable[[], object], seconds: float) -> list[tuple[float, float]]:
    """When each call of one client began and ended."""
    spans: list[tuple[float, float]] = []
    deadline = time.monotonic() + seconds
    while (began := time.monotonic()) < deadline:
        call()
        spans.append((began, time.monotonic()))
    return spans
