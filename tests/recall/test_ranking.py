"""What every ranking promises, whatever was said: scores that are explained, and the same ones each time."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.patience import PATIENCE, eventually

from remora import Message, Remora
from remora.search import Hit, Profile, SearchResult
from remora.testing import serve

BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
NUMBERS = itertools.count()
SAID = (
    "Where did you go last week?",
    "We went to the harbour in Lisbon.",
    "Somebody sold the red boat yesterday.",
    "Did they paint the boat?",
    "No, he never paints.",
    "The boat, the boat, and again the boat!",
    "Nothing.",
    "",
    "昨天我们去了海边。",
    "It rained. " * 120,
)
ASKED = (
    "When did Anna sell the boat?",
    "What did I say about the harbour in May 2024?",
    "Who paints?",
    "海边",
    "xyzzy",
)

PROFILES: tuple[Profile, ...] = get_args(Profile)

MESSAGE = st.builds(
    Message,
    st.sampled_from(["user", "assistant"]),
    st.sampled_from(SAID),
    name=st.sampled_from(["", "Anna", "Ben"]),
    session_id=st.sampled_from(["", "", "morning", "evening"]),
    sent_time=st.integers(0, 3_000).map(lambda minutes: BEGIN + timedelta(minutes=minutes)),
)
TALKS = st.lists(st.lists(MESSAGE, min_size=1, max_size=8), min_size=1, max_size=3)
"""Conversations of a user."""


@pytest.fixture(scope="module")
def memory() -> Iterator[Remora]:
    with (
        serve("--model-dir", os.environ["REMORA_MODEL_DIR"]) as endpoint,
        Remora(endpoint, timeout=PATIENCE) as client,
    ):
        yield client


def stored(memory: Remora, talks: Sequence[Sequence[Message]], batch: int) -> str:
    """The conversations of a new user, so many messages a request."""
    user = f"user-{next(NUMBERS)}"
    for number, talk in enumerate(talks):
        chat = memory.conversation(f"{user}-{number}", user_id=user)
        for at in range(0, len(talk), batch):
            chat.append(talk[at : at + batch])
    eventually(lambda: memory.user(user).search("?", index_wait=60.0).index.pending == 0)
    return user


def ranked(memory: Remora, user: str, question: str, profile: Profile) -> SearchResult:
    return memory.user(user).search(question, profile=profile, k=100, explain=True)


def place(hit: Hit) -> tuple[int, int]:
    """The conversation, in the order in which they were made, and the message's place in it."""
    return int(hit.conversation_id.rpartition("-")[2]), hit.message.sequence


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(talks=TALKS, question=st.sampled_from(ASKED))
@pytest.mark.parametrize("profile", PROFILES)
def test_the_components_add_up_to_the_score_by_which_hits_are_ordered(
    memory: Remora, profile: Profile, talks: list[list[Message]], question: str
) -> None:
    hits = ranked(memory, stored(memory, talks, 3), question, profile).hits
    for hit in hits:
        assert hit.score == sum(part.value * part.weight for part in hit.components)
    assert list(hits) == sorted(hits, key=lambda hit: (-hit.score, *place(hit)))


@settings(max_examples=examples(6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(talks=TALKS, question=st.sampled_from(ASKED), batches=st.permutations([1, 3, 8]))
@pytest.mark.parametrize("profile", PROFILES)
def test_the_same_messages_have_the_same_scores_however_they_arrived(
    memory: Remora, profile: Profile, talks: list[list[Message]], question: str, batches: list[int]
) -> None:
    users = [stored(memory, talks, batch) for batch in batches[:2]]
    results = [ranked(memory, user, question, profile) for user in (*users, users[0])]
    first, *others = ([(place(hit), hit.score, hit.components) for hit in result] for result in results)
    assert all(other == first for other in others)
