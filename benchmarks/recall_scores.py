"""How good a ranking is, and how much evidence a budget holds: means over questions that have evidence, in percent.

Recall at k is the share of a question's evidence among its first k messages; nDCG at 10 has binary gains, and at best
all evidence on top (Jaervelin and Kekaelaeinen, "Cumulated gain-based evaluation of IR techniques", 2002); MRR is the
inverse rank of the first evidence among 50.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.recall_sets import Question

DEPTHS = (5, 10, 20, 50)
MRR_DEPTH = 50
OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a question: message ids, best first, and by budget the ids in the context.

    `truncated`: whether the last ones are not there because the reply would have been too large.
    """

    question: Question
    ranked: Sequence[str]
    contexts: Mapping[int, frozenset[str]]
    truncated: bool = False


def recall(ranked: Sequence[str], evidence: Iterable[str], depth: int) -> float:
    """The share of the evidence among the first `depth`."""
    wanted = set(evidence)
    return len(wanted.intersection(ranked[:depth])) / len(wanted)


def ndcg(ranked: Sequence[str], evidence: Iterable[str], depth: int = 10) -> float:
    """Discounted cumulated gain over the best there is."""
    wanted = set(evidence)
    gained = sum(_discount(place) for place, one in enumerate(ranked[:depth]) if one in wanted)
    return gained / sum(map(_discount, range(min(len(wanted), depth))))


def reciprocal_rank(ranked: Sequence[str], evidence: Iterable[str]) -> float:
    """One over the rank of the first evidence, 0 where none is near the top."""
    wanted = set(evidence)
    return next((1 / rank for rank, one in enumerate(ranked[:MRR_DEPTH], 1) if one in wanted), 0.0)


def _discount(place: int) -> float:
    return 1 / math.log2(place + 2)


def rows(answers: Sequence[Answer], left_out: Collection[str]) -> dict[str, list[Answer]]:
    """The answers by category, and last those of all categories but those left out; no row is empty."""
    scored = [answer for answer in answers if answer.question.evidence]
    found = {name: [one for one in scored if one.question.category == name] for name in _categories(scored)}
    whole = [answer for answer in scored if answer.question.category not in left_out]
    return found | ({OVERALL: whole} if whole else {})


def _categories(answers: Iterable[Answer]) -> list[str]:
    return sorted({answer.question.category for answer in answers})


def ranking_figures(answers: Sequence[Answer]) -> dict[str, float]:
    """Recall at all depths, nDCG and MRR."""

    def mean(measure: Callable[[Sequence[str], Iterable[str]], float]) -> float:
        return _percent(measure(one.ranked, one.question.evidence) for one in answers)

    depths = {f"r@{depth}": _recall_at(answers, depth) for depth in DEPTHS}
    return depths | {"nDCG@10": mean(ndcg), "MRR": mean(reciprocal_rank)}


def _recall_at(answers: Sequence[Answer], depth: int) -> float:
    return _percent(recall(one.ranked, one.question.evidence, depth) for one in answers)


def curve(answers: Sequence[Answer], budgets: Iterable[int]) -> dict[int, float]:
    """The share of the evidence that is in the context, by budget."""
    return {
        budget: _percent(_share(one.contexts[budget], one.question.evidence) for one in answers) for budget in budgets
    }


def _share(held: frozenset[str], evidence: Sequence[str]) -> float:
    return len(held.intersection(evidence)) / len(evidence)


def _percent(values: Iterable[float]) -> float:
    listed = list(values)
    return 100 * math.fsum(listed) / len(listed)
