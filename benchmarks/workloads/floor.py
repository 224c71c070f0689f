"""What the floor of recall keeps out, and what it costs. For each threshold: how many contexts recall something for a
question about what nobody said, and how much evidence contexts hold for questions that have an answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unittest.mock import patch

from benchmarks import recall, recall_scores, recall_sets
from benchmarks.in_process import Engine, each, opened
from benchmarks.interleaving import Bench
from benchmarks.queries import scoring
from benchmarks.queries.asking import BUDGET, SIZES, Asking
from benchmarks.queries.stores import NOTHING, Query, make
from benchmarks.queries.vectors import KeptVectors
from benchmarks.recall_scores import OVERALL, Answer
from benchmarks.recall_sets import Question, RecallSet, Talk
from benchmarks.slices import Figure
from benchmarks.workloads.queries import DEVELOPMENT, KEPT, MODEL
from rich.console import Console
from rich.table import Table

from remora_server.domain import relevance
from remora_server.domain.context import ContextRequest
from remora_server.domain.search import SearchOptions
from remora_server.domain.tokens import O200K_BASE
from remora_server.rpc.handlers import decode

THRESHOLDS = (-9.0, 0.0, 0.1, 0.2, 0.26, 0.3, 0.35, 0.4, 0.5, 0.6)
"""Of the sum of signs (`domain.relevance`); the first leaves nothing out."""
TENANT = "default"


@dataclass(frozen=True, slots=True)
class Point:
    """What one threshold gives: shares of the questions about nothing that recall something, and the evidence, in %."""

    development: float
    unseen: float
    evidence: float | None


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; without evidence where the set is not there."""
    embedder = KeptVectors(MODEL, KEPT)
    with opened(embedder) as engine:
        asking = Asking(engine, make())
        found = recall_sets.load(recall.DATA) if recall.DATA.is_file() else None
        if found is None:
            bench.console.print(f"[dim]without evidence: {recall.DATA} is missing, where LoCoMo's JSON belongs[/dim]")
        else:
            _append(engine, found)
        points = {threshold: _point(threshold, asking, engine, found) for threshold in THRESHOLDS}
    embedder.save()
    _show(bench.console, points)
    return dict(_figures(points))


def _append(engine: Engine, found: RecallSet) -> None:
    for talk in found.talks:
        engine.append(TENANT, talk.id, talk.id, [decode.message(message.to_proto()) for message in talk.messages])
    engine.embed_all()


def _point(threshold: float, asking: Asking, engine: Engine, found: RecallSet | None) -> Point:
    with patch.object(relevance, "LEAST_SIGN", threshold):
        return Point(
            development=_false_hits(asking, DEVELOPMENT),
            unseen=_false_hits(asking, "unseen"),
            evidence=None if found is None else _evidence(engine, found),
        )


def _false_hits(asking: Asking, half: scoring.Half) -> float:
    queries: Sequence[Query] = [one for one in asking.queries if one.slice == NOTHING and scoring.half_of(one) == half]
    counts = [count for size in SIZES for count in asking.recalled(queries, size, SearchOptions())]
    return statistics.fmean(count > 0 for count in counts)


def _evidence(engine: Engine, found: RecallSet) -> float:
    """The share of the evidence that contexts hold, as `recall` measures it."""

    def asked(both: tuple[Talk, Question]) -> Answer:
        talk, question = both
        request = ContextRequest(
            talk.id,
            BUDGET,
            talk.id,
            question.text,
            encoding=O200K_BASE,
            recent_messages=0,
            search=SearchOptions(recall.DEPTH),
        )
        items = engine.context(TENANT, request).items
        return Answer(question, [], {BUDGET: frozenset(talk.messages[item.sequence - 1].id for item in items)})

    questions = [(talk, question) for talk in found.talks for question in talk.questions if question.text]
    whole = recall_scores.rows(each(asked, questions), found.left_out)[OVERALL]
    return recall_scores.curve(whole, [BUDGET])[BUDGET]


def _show(console: Console, points: dict[float, Point]) -> None:
    table = Table(title=f"contexts of {BUDGET:,} tokens, %; the server's threshold is {relevance.LEAST_SIGN}")
    for heading in ("threshold", "about nothing: development", "unseen", "evidence"):
        table.add_column(heading, justify="right")
    for threshold, point in points.items():
        table.add_row(
            f"{threshold:.2f}" if threshold >= 0 else "none",
            f"{100 * point.development:.1f}",
            f"{100 * point.unseen:.1f}",
            "" if point.evidence is None else f"{point.evidence:.1f}",
        )
    console.print(table)


def _figures(points: dict[float, Point]) -> Iterator[tuple[str, Figure]]:
    for threshold, point in points.items():
        name = f"floor_{threshold:.2f}" if threshold >= 0 else "floor_none"
        yield f"{name}_false_hits_development", Figure.unprobed(point.development)
        yield f"{name}_false_hits_unseen", Figure.unprobed(point.unseen)
        if point.evidence is not None:
            yield f"{name}_evidence_{BUDGET}", Figure.unprobed(point.evidence)
