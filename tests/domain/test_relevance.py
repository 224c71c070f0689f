"""The floor of recall: which hits speak to a query."""

from __future__ import annotations

import pytest

from remora_server.domain.models import BUILTIN_MODEL
from remora_server.domain.relevance import LEAST_COSINE, LEAST_SHARE, SURE_SCORE, speaking
from remora_server.domain.search import Component, Hit, IndexState, Profile, SearchResult

MODEL = f"{BUILTIN_MODEL}/int8"
LOW = LEAST_COSINE - 0.01


def hit(sequence: int, score: float, cosine: float | None = None, *, bm25: float = 0.0) -> Hit:
    components = [Component("bm25", bm25, 0.2)]
    if cosine is not None:
        components.append(Component("cosine", cosine, 1.0))
    return Hit(1, "c", sequence, score, tuple(components), b"")


def found(*hits: Hit, profile: Profile = Profile.HYBRID, model: str = MODEL) -> list[int]:
    result = SearchResult(hits, IndexState(model, 0, words_only=None), profile, 9)
    return [hit.sequence for hit in speaking(result)]


def test_where_no_hit_is_near_the_query_nothing_speaks_to_it() -> None:
    assert found(hit(1, 0.6, LOW), hit(2, 0.5, 0.1)) == []
    assert found() == []


def test_one_hit_near_the_query_is_enough() -> None:
    assert found(hit(1, 0.6, 0.1), hit(2, 0.5, LEAST_COSINE)) == [1, 2]


def test_a_high_score_is_enough_without_a_near_hit() -> None:
    assert found(hit(1, SURE_SCORE, LOW), hit(2, 0.5, 0.1)) == [1, 2]


def test_a_hit_that_is_far_below_the_best_is_left_out() -> None:
    assert found(hit(1, 1.0, 0.5), hit(2, LEAST_SHARE, 0.1), hit(3, LEAST_SHARE - 0.01, 0.1)) == [1, 2]


def test_a_message_that_is_not_embedded_yet_speaks_by_its_words() -> None:
    assert found(hit(1, 0.6, LOW), hit(2, 0.5, bm25=0.1), hit(3, 0.4)) == [2]


def test_a_similarity_has_the_same_floor() -> None:
    scores = [(1 + LEAST_COSINE) / 2, (1 + LOW) / 2]
    assert found(*(hit(number, score) for number, score in enumerate(scores)), profile=Profile.VECTOR) == [0]


@pytest.mark.parametrize("model", ["", "e5-base"])
def test_of_other_models_and_of_words_alone_everything_passes(model: str) -> None:
    assert found(hit(1, 0.6, LOW), hit(2, 0.1, 0.0), model=model) == [1, 2]
