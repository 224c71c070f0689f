"""The floor of recall: which messages that a search found speak to its query at all.

A search returns the best messages there are, also where none is good. A context should hold nothing of a query about
what nobody ever said, so it takes only the hits that pass here. The numbers hold for vectors of the built-in model; of
others nothing is known, and words and the other rules find only messages that share something with the query. So
everything else passes.

They were chosen on LoCoMo's development half, where they keep the evidence that a context of 1,024 tokens holds
(`python -m benchmarks.recall`), and on questions about other things, of which one in eight still recalls something.
"""

from __future__ import annotations

from collections.abc import Sequence

from remora_server.domain.models import BUILTIN_MODEL
from remora_server.domain.search import Hit, Profile, SearchResult

LEAST_COSINE = 0.3
"""Where the best cosine among the hits is below this, the query and the hits are about different things..."""
SURE_SCORE = 1.0
"""...unless words, names, times or the session speak for a hit: of its hybrid score so much is not due to chance."""
LEAST_SHARE = 0.4
"""A hit with less than this share of the best hybrid score is only the best of the rest."""


def speaking(result: SearchResult) -> tuple[Hit, ...]:
    """The hits that speak to the query, in their order."""
    if not result.hits or not result.index.model.startswith(f"{BUILTIN_MODEL}/"):
        return result.hits
    if result.profile is Profile.VECTOR:
        return tuple(hit for hit in result.hits if hit.score >= (1 + LEAST_COSINE) / 2)
    return _speaking_hybrid(result.hits)


def _speaking_hybrid(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    cosines = [cosine for hit in hits if (cosine := _value(hit, "cosine")) is not None]
    best = hits[0].score
    if cosines and max(cosines) < LEAST_COSINE and best < SURE_SCORE:
        return tuple(hit for hit in hits if _value(hit, "cosine") is None and _value(hit, "bm25"))
    return tuple(hit for hit in hits if hit.score >= LEAST_SHARE * best)


def _value(hit: Hit, name: str) -> float | None:
    """The value of a component; None where the hit has none, as one that is not embedded has no cosine."""
    return next((component.value for component in hit.components if component.name == name), None)
