"""The floor of recall: which hits of a search are relevant to its query at all.

A search returns the best messages, even if none is good. If nobody ever spoke of the query's subject, a context should
recall nothing, so it takes only the hits that pass here. The numbers hold for vectors of the built-in model. All hits
of other models pass, because nothing is known of their scores, and so do hits by words, which share words with the
query.

They were chosen on LoCoMo's development half (`python -m benchmarks.recall`), where contexts of 1,024 tokens hold
90.0 % (hybrid) and 90.1 % (hybrid_late) of the evidence with this floor, and 90.2 % without: evidence goes before
silence. Four of ten questions about what nobody said (`make bench W=queries`) still recall something. `make bench
W=floor` draws the curve of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from remora_server.domain.models import BUILTIN_MODEL
from remora_server.domain.search import Background, Hit, Profile, SearchResult

LEAST_COSINE = 0.3
"""The least cosine of a hit of the vector profile."""
LEAST_SIGN = 0.26
"""If the sum of all signs is less than this, the query and the hits are about different things..."""
MANY = 500
"""...in a scope of this many messages or more. In a smaller scope, the best one is less likely to be near by chance."""
SHARE_SIGN = 0.4
"""The sign that one message has all words of the query."""
CHANCE_SIGN = 0.04
"""The sign for each unit of weight by which the words of one message exceed chance..."""
CHANCE_BOUNDS = (-5.0, 8.0)
"""...within these bounds."""
DATE_SIGN = 0.4
"""The sign that a hit is of a date that the query names."""
FEW, UNRELATED_COSINE = 10, 0.1
"""This many messages with this cosine are added to the scope, because few messages say little of the background."""
LEAST_SHARE = 0.4
"""The least share of the best hybrid score that a relevant hit has."""


def relevant(result: SearchResult) -> tuple[Hit, ...]:
    """The hits that are relevant to the query, in their order."""
    if not result.hits or not result.index.model.startswith(f"{BUILTIN_MODEL}/"):
        return result.hits
    if result.profile is Profile.VECTOR:
        return tuple(hit for hit in result.hits if hit.score >= (1 + LEAST_COSINE) / 2)
    if _sign(result.hits, result.background) < _least_sign(result.background.messages):
        return tuple(hit for hit in result.hits if _value(hit, "cosine") is None and _value(hit, "bm25"))
    least = LEAST_SHARE * result.hits[0].score
    return tuple(hit for hit in result.hits if hit.score >= least)


def _least_sign(messages: float) -> float:
    """The threshold grows with the logarithm of the number of messages."""
    return LEAST_SIGN * min(1.0, math.log(max(messages, 1.0)) / math.log(MANY))


def _sign(hits: Sequence[Hit], background: Background) -> float:
    """The sum of the signs that the hits are about the query's subject: how far the best cosine exceeds the mean, words
    that one message shares with the query, and a date.
    """
    cosines = [cosine for hit in hits if (cosine := _value(hit, "cosine")) is not None]
    excess = _excess(max(cosines), background) if cosines else math.inf
    share = background.most / background.whole if background.whole else 0.0
    chance = background.most - math.log(max(background.messages, 1.0))
    low, high = CHANCE_BOUNDS
    date = max(_value(hit, "date") or 0.0 for hit in hits)
    return excess + SHARE_SIGN * share + CHANCE_SIGN * min(max(chance, low), high) + DATE_SIGN * date


def _excess(best: float, background: Background) -> float:
    """How far the best cosine exceeds the mean of the others."""
    others = background.cosine * background.messages - best
    return best - (others + FEW * UNRELATED_COSINE) / (background.messages - 1 + FEW)


def _value(hit: Hit, name: str) -> float | None:
    """The value of a component; None if the hit has none. A hit without a vector has no cosine."""
    return next((component.value for component in hit.components if component.name == name), None)
