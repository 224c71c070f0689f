"""Extractive summaries: central sentences as they were said, within a bound, in their order."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.domain.conversing import CONVERSATION

from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.extraction import Vectors, extract


def message(text: str, role: str = "user", results: tuple[str, ...] = ()) -> ContextMessage:
    return ContextMessage(CONVERSATION, 1, role, text, b"", tool_result_ids=results)


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def without(_texts: Sequence[str]) -> None:
    """There is no model."""


def about_trains(texts: Sequence[str]) -> Vectors:
    """Vectors that say how much of a text is about trains."""
    vectors = []
    for text in texts:
        angle = 0.1 if "train" in text.lower() else 1.4
        vectors.append(struct.pack("<2f", math.cos(angle), math.sin(angle)))
    return vectors


TALK = [
    message("Hello! The train to Lisbon leaves at nine. I like cats."),
    message("The train to Porto leaves at ten. Take the train from platform two.", "assistant"),
    message("A bird sings."),
]


def test_what_is_central_by_vectors_is_kept_in_its_order_with_its_speaker() -> None:
    found = extract("", TALK, 27, words, about_trains)

    assert found.splitlines() == [
        "user: The train to Lisbon leaves at nine.",
        "assistant: The train to Porto leaves at ten.",
        "assistant: Take the train from platform two.",
    ]


def test_without_a_model_words_decide() -> None:
    found = extract("", TALK, 18, words, without)

    assert set(found.splitlines()) == {
        "user: The train to Lisbon leaves at nine.",
        "assistant: The train to Porto leaves at ten.",
    }


def test_an_earlier_summary_is_folded_in() -> None:
    earlier = "user: The train to Faro leaves at six.\nassistant: Dogs bark."

    first = extract(earlier, TALK, 40, words, about_trains).splitlines()

    assert first[0] == "user: The train to Faro leaves at six."
    assert first[-1] == "assistant: Take the train from platform two."


def test_what_was_said_twice_is_said_once() -> None:
    talk = [message("The train leaves at nine."), message("the train leaves at nine!")]
    found = extract("", talk, 100, words, without)

    assert len(found.splitlines()) == 1


def test_what_tools_say_counts_where_nobody_else_speaks() -> None:
    result = message("It rains.", "tool", ("t",))

    assert extract("", [result, message("What weather is it?")], 100, words, without) == "user: What weather is it?"
    assert extract("", [result], 100, words, without) == "tool: It rains."


def test_nothing_comes_of_nothing_and_one_sentence_of_too_many_tokens() -> None:
    assert extract("", [message(" \n ")], 10, words, without) == ""
    assert extract("", [message("one two three four")], 2, words, without) == "user: one two three four"


TEXTS = st.lists(st.text("ab .!\n\u3002é", max_size=40), max_size=8)


@given(st.text("ab \n.", max_size=40), TEXTS, st.integers(1, 30), st.booleans())
def test_a_summary_is_of_what_was_said_within_its_bound_and_always_the_same(
    earlier: str, texts: list[str], most: int, with_model: bool
) -> None:
    messages = [message(text) for text in texts]
    embed = about_trains if with_model else without

    found = extract(earlier, messages, most, words, embed)

    assert found == extract(earlier, messages, most, words, embed)
    lines = found.splitlines()
    assert len(lines) <= 1 or sum(words(lines)) <= most
    said = [*(line.strip() for line in earlier.splitlines()), *texts]
    assert all(any(line.removeprefix("user: ") in each for each in said) for line in lines)
