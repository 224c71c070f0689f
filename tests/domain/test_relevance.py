"""The floor of recall: which hits are relevant to a query."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from remora_server.domain.models import BUILTIN_MODEL
from remora_server.domain.relevance import LEAST_COSINE, LEAST_SHARE, LEAST_SIGN, relevant
from remora_server.domain.search import Background, Component, Hit, IndexState, Profile, SearchResult

MODEL = f"{BUILTIN_MODEL}/int8"
BY_CHANCE = Background(messages=1_000, whole=30.0, most=0.0, cosine=0.1)
"""No message has a word of the query."""
NEAR = 0.95
"""A cosine that says enough by itself."""


def hit(sequence: int, score: float, cosine: float | None = None, *, bm25: float = 0.0, date: float = 0.0) -> Hit:
    components = [Component("bm25", bm25, 0.2), Component("date", date, 0.3)]
    if cosine is not None:
        components.append(Component("cosine", cosine, 1.0))
    return Hit(1, "c", sequence, score, tuple(components), b"")


def found(
    *hits: Hit, profile: Profile = Profile.HYBRID, model: str = MODEL, background: Background = BY_CHANCE
) -> list[int]:
    result = SearchResult(hits, IndexState(model, 0, words_only=None), profile, 9, background)
    return [hit.sequence for hit in relevant(result)]


def test_where_no_hit_is_near_the_query_and_words_are_shared_by_chance_nothing_speaks_to_it() -> None:
    assert found(hit(1, 0.6, 0.4), hit(2, 0.5, 0.1)) == []
    assert found() == []


def test_one_hit_near_the_query_is_enough() -> None:
    assert found(hit(1, 0.6, 0.1), hit(2, 0.5, NEAR)) == [1, 2]


def test_a_cosine_counts_by_what_it_exceeds_the_mean_by() -> None:
    words = Background(messages=1_000, whole=30.0, most=6.9, cosine=0.1)
    hits = hit(1, 0.6, LEAST_SIGN + 0.05), hit(2, 0.5, 0.1)

    assert found(*hits, background=words) == [1, 2]
    assert found(*hits, background=Background(1_000, 30.0, 6.9, cosine=0.3)) == []


def test_the_mean_of_few_messages_does_not_hide_a_good_one() -> None:
    two = Background(messages=2, whole=3.0, most=0.0, cosine=(0.3 + 0.1) / 2)

    assert found(hit(1, 0.6, 0.3), hit(2, 0.1, 0.1), background=two) == [1]
    assert found(hit(1, 0.2, 0.1), hit(2, 0.1, 0.0), background=replace(two, cosine=0.05)) == []


def test_the_best_of_few_messages_needs_to_be_less_near() -> None:
    hits = hit(1, 0.6, 0.4), hit(2, 0.1, 0.1)

    assert found(*hits, background=Background(10, whole=10.0, most=0.0, cosine=0.12)) == [1]
    assert found(*hits, background=Background(1_000, whole=10.0, most=0.0, cosine=0.12)) == []


def test_more_words_than_chance_explains_are_enough() -> None:
    hits = hit(1, 0.6, 0.2), hit(2, 0.5, 0.1)

    assert found(*hits, background=Background(1_000, whole=20.0, most=14.0, cosine=0.1)) == [1, 2]
    assert found(*hits, background=Background(1_000_000, whole=20.0, most=8.0, cosine=0.1)) == []


def test_a_date_that_the_query_names_is_enough() -> None:
    words = Background(messages=1_000, whole=20.0, most=6.9, cosine=0.1)

    assert found(hit(1, 0.6, 0.2), background=words) == []
    assert found(hit(1, 0.6, 0.2, date=1.0), background=words) == [1]


def test_a_hit_that_is_far_below_the_best_is_left_out() -> None:
    assert found(hit(1, 1.0, NEAR), hit(2, LEAST_SHARE, 0.1), hit(3, LEAST_SHARE - 0.01, 0.1)) == [1, 2]


def test_a_message_that_is_not_embedded_yet_speaks_by_its_words() -> None:
    assert found(hit(1, 0.6, 0.2), hit(2, 0.5, bm25=0.1), hit(3, 0.4)) == [2]


def test_a_similarity_has_a_floor_of_its_own() -> None:
    scores = [(1 + LEAST_COSINE) / 2, LEAST_COSINE / 2 + 0.49]
    assert found(*(hit(number, score) for number, score in enumerate(scores)), profile=Profile.VECTOR) == [0]


@pytest.mark.parametrize("model", ["", "e5-base"])
def test_of_other_models_and_of_words_alone_everything_passes(model: str) -> None:
    assert found(hit(1, 0.6, 0.2), hit(2, 0.1, 0.0), model=model) == [1, 2]
