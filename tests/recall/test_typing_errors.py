"""Questions with typing errors, of a server with its model."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.patience import PATIENCE

from remora import Remora
from remora.search import Profile
from remora.testing import serve

SAID = (
    "I break out in hives from shellfish.",
    "My landlord wants the keys back.",
    "We saw a tapestry in Bayeux.",
    "The bakery sells rye bread.",
    "Tomorrow I fly home.",
    "My sister plays the cello.",
)


@pytest.fixture(scope="module")
def memory() -> Iterator[Remora]:
    with (
        serve("--model-dir", os.environ["REMORA_MODEL_DIR"]) as endpoint,
        Remora(endpoint, timeout=PATIENCE) as memory,
    ):
        memory.conversation("c", user_id="sarah").append([{"role": "user", "content": text} for text in SAID])
        yield memory


@pytest.mark.parametrize("profile", ["hybrid", "hybrid_late"])
@pytest.mark.parametrize(
    ("asked", "found"),
    [("any shelfish", 0), ("the ladnlord", 1), ("a tapesstry", 2), ("Bayeuxx?", 2), ("the cellp", 5)],
)
def test_a_word_with_an_error_is_found_by_words(memory: Remora, profile: Profile, asked: str, found: int) -> None:
    hit = memory.conversation("c", user_id="sarah").search(asked, profile=profile, explain=True)[0]

    assert hit.message.text == SAID[found]
    assert next(each.value for each in hit.components if each.name == "bm25") > 0


def test_a_search_by_words_alone_takes_them_as_they_are(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="sarah")

    assert not chat.search("shelfish", profile="lexical")
    assert chat.search("shellfish", profile="lexical")


def test_the_errors_of_a_message_that_is_the_query_are_corrected(memory: Remora) -> None:
    chat = memory.conversation("today", user_id="sarah")
    chat.append({"role": "user", "content": "Could I eat the shelfish?"})

    context = chat.context(300, recall_scope="user", recent_messages=1)

    assert SAID[0] in str(context.messages)
