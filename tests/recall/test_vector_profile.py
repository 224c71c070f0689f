"""The profile `vector` against semantic search as VoltAgent defines it, computed in f64.

A score is (1 + cosine) / 2; a threshold is inclusive; results come by descending score, those of equal score in the
order in which they were stored, and as many as asked for; recalled messages follow recent ones, or stand before or
between them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.examples import examples
from tests.patience import PATIENCE, eventually

from remora import Conversation, Embedding, Message, Remora
from remora.context import Merge
from remora.errors import InvalidFieldError
from remora.search import SearchResult
from remora.testing import serve

MODEL = "a-callers-model"
TOLERANCE = 1e-6
"""How far a score in f32 is from one in f64, for the dimensions tested here."""
ROLES = ("user", "assistant")
NUMBERS = itertools.count()

Vector = NDArray[np.float32]
Values = tuple[float, ...]


@dataclass(frozen=True)
class Stored:
    """A message by its place, role and vector."""

    place: int
    role: str
    values: Values


def cosine(one: Values, other: Values) -> float:
    left, right = np.array(one, np.float64), np.array(other, np.float64)
    return float(left @ right / (np.sqrt(left @ left) * np.sqrt(right @ right)))


def expected(stored: Sequence[Stored], query: Values, threshold: float) -> list[tuple[int, float]]:
    """All results by place and score."""
    scored = [(one.place, (1 + cosine(query, one.values)) / 2) for one in stored]
    return sorted((one for one in scored if one[1] >= threshold), key=lambda one: -one[1])


@pytest.fixture(scope="module")
def memory() -> Iterator[Remora]:
    with serve("--model", "none") as endpoint, Remora(endpoint, timeout=PATIENCE) as client:
        yield client


def filled(memory: Remora, stored: Sequence[Stored]) -> Conversation:
    chat = memory.conversation(f"c{next(NUMBERS)}", user_id=f"u{next(NUMBERS)}")
    chat.append([Message(one.role, id=str(one.place), embedding=Embedding.of(MODEL, one.values)) for one in stored])
    return chat


def places(result: SearchResult) -> list[int]:
    return [int(hit.message.id) for hit in result]


def of_one_dimension(dimension: int) -> st.SearchStrategy[list[Values]]:
    """Vectors that have a direction."""
    number = st.floats(-8, 8, width=32).filter(lambda number: number == 0 or abs(number) > 1e-3)
    return st.lists(st.tuples(*[number] * dimension).filter(any), min_size=2, max_size=20)


def along_axes(dimension: int) -> st.SearchStrategy[list[Values]]:
    """Vectors of which any two are parallel, opposite or orthogonal: their cosines are exact."""
    axes = st.integers(0, dimension - 1)
    vector = st.builds(
        lambda axis, length: tuple(length if at == axis else 0.0 for at in range(dimension)),
        axes,
        st.sampled_from([-3.0, -1.0, 1.0, 7.0]),
    )
    return st.lists(vector, min_size=2, max_size=20)


DIMENSIONS = st.integers(1, 12)


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=DIMENSIONS.flatmap(of_one_dimension), limit=st.integers(1, 25), threshold=st.none() | st.floats(0, 1))
def test_the_best_come_first_as_many_as_asked_for(
    memory: Remora, found: list[Values], limit: int, threshold: float | None
) -> None:
    query, *others = found
    stored = [Stored(place, ROLES[place % 2], values) for place, values in enumerate(others)]
    scores = dict(expected(stored, query, 0.0))
    if threshold is not None and any(abs(score - threshold) <= TOLERANCE for score in scores.values()):
        threshold = None  # on the edge, rounding decides
    wanted = expected(stored, query, threshold or 0.0)[:limit]

    options = {} if threshold is None else {"threshold": threshold}
    result = filled(memory, stored).search(Embedding.of(MODEL, query), k=limit, **options)  # type: ignore[arg-type]

    assert result.profile == "vector"
    assert len(result) == len(wanted)
    for hit, (_, score) in zip(result, wanted, strict=True):
        assert 0 <= hit.score <= 1
        assert abs(hit.score - score) <= TOLERANCE
        assert abs(hit.score - scores[int(hit.message.id)]) <= TOLERANCE


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=DIMENSIONS.flatmap(along_axes), threshold=st.sampled_from([0.0, 0.5, 1.0]))
def test_a_threshold_is_inclusive_and_equal_scores_keep_their_order(
    memory: Remora, found: list[Values], threshold: float
) -> None:
    query, *others = found
    stored = [Stored(place, "user", values) for place, values in enumerate(others)]
    result = filled(memory, stored).search(Embedding.of(MODEL, query), k=1000, threshold=threshold)
    assert [(int(hit.message.id), hit.score) for hit in result] == expected(stored, query, threshold)


def test_the_opposite_scores_zero_which_a_threshold_of_zero_lets_through(memory: Remora) -> None:
    values = tuple(np.random.default_rng(1).standard_normal(384).astype(np.float32).tolist())
    chat = filled(memory, [Stored(0, "user", values), Stored(1, "user", tuple(-value for value in values))])
    assert places(chat.search(Embedding.of(MODEL, values), threshold=0.0)) == [0, 1]


def test_only_messages_that_the_filter_lets_through_are_found(memory: Remora) -> None:
    stored = [Stored(place, ROLES[place % 2], (1.0, float(place))) for place in range(6)]
    chat = filled(memory, stored)
    query = Embedding.of(MODEL, (0.0, 1.0))
    assert places(chat.search(query, roles=["assistant"], k=2)) == [5, 3]


def test_ten_are_found_unless_asked_otherwise(memory: Remora) -> None:
    chat = filled(memory, [Stored(place, "user", (1.0, float(place))) for place in range(12)])
    assert len(chat.search(Embedding.of(MODEL, (0.0, 1.0)))) == 10


def test_a_vector_without_direction_is_refused(memory: Remora) -> None:
    nowhere = Embedding.of(MODEL, (0.0, 0.0))
    with pytest.raises(InvalidFieldError, match="zero"):
        memory.conversation("c").append(Message("user", "x", embedding=nowhere))
    with pytest.raises(InvalidFieldError, match="zero"):
        filled(memory, [Stored(0, "user", (1.0, 0.0))]).search(nowhere)


def test_a_context_recalls_what_resembles_a_vector(memory: Remora) -> None:
    axes = [tuple(float(at == axis) for at in range(4)) for axis in range(4)]
    chat = filled(memory, [Stored(place, ROLES[place % 2], axes[place]) for place in range(4)])

    context = chat.context(query=Embedding.of(MODEL, axes[1]), recall={"k": 1}, recent_messages=1)
    none = chat.context(query=Embedding.of("another-model", axes[1]), recall={"k": 1}, recent_messages=1)

    assert [(item.message.id, item.section, item.score) for item in context.items] == [
        ("0", "recalled", None),
        ("1", "recalled", 1.0),
        ("2", "recent", None),
        ("3", "recent", None),
    ]
    assert [item.message.id for item in none.items] == ["2", "3"]


def test_a_vector_of_other_dimensions_is_refused_where_the_request_has_it(memory: Remora) -> None:
    chat = filled(memory, [Stored(0, "user", (1.0, 0.0))])
    long = Embedding.of(MODEL, (1.0, 0.0, 0.0))

    with pytest.raises(InvalidFieldError, match="2 dimensions") as searched:
        chat.search(long)
    with pytest.raises(InvalidFieldError, match="2 dimensions") as assembled:
        chat.context(query=long, recent_messages=0)

    fields = [raised.value.field_violations[0].field for raised in (searched, assembled)]
    assert fields == ["embedding.values", "query_embedding.values"]


SAID = (
    "The cat sleeps on the sofa.",
    "Trains to Oslo leave at nine.",
    "My cat likes fish.",
    "It rains.",
    "Good night.",
)
RECENT, RECALLED = 2, 2


@pytest.fixture(scope="module")
def chat() -> Iterator[Conversation]:
    """A conversation that the server embeds."""
    with serve("--model-dir", os.environ["REMORA_MODEL_DIR"]) as endpoint, Remora(endpoint, timeout=PATIENCE) as client:
        made = client.conversation("c", user_id="u")
        made.append([Message("user", text, id=str(place)) for place, text in enumerate(SAID)])
        eventually(lambda: made.search("?", index_wait=60.0).index.pending == 0)
        yield made


@pytest.mark.parametrize("merge", ["append", "prepend", "interleave"])
def test_recalled_messages_are_merged_with_recent_ones(chat: Conversation, merge: Merge) -> None:
    recent = [str(place) for place in range(len(SAID) - RECENT, len(SAID))]
    ranked = [hit.message.id for hit in chat.search("a pet cat", profile="vector")]
    hits = [one for one in ranked if one not in recent][:RECALLED]
    merged = {
        "append": [*recent, *hits],
        "prepend": [*hits, *recent],
        "interleave": [one for pair in zip(hits, recent, strict=True) for one in pair],
    }
    context = chat.context(
        query="a pet cat", recall={"profile": "vector", "k": RECALLED}, recent_messages=RECENT, merge=merge
    )
    assert sorted(hits) == ["0", "2"]
    assert [item.message.id for item in context.items] == merged[merge]
