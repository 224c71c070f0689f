"""The counts of the engine as the domain asks for them, and the costs of chat messages in real encodings."""

from __future__ import annotations

import pytest
from tests.domain.conversing import message

from remora_server.domain.costs import REPLY_PRIMING, Counting
from remora_server.domain.errors import InvalidField
from remora_server.domain.tokens import APPROXIMATE, CL100K_BASE, O200K_BASE, TokenEncoding, encoding_named
from remora_server.engine.tokens import NativeTokenCounter


@pytest.mark.parametrize(
    ("model", "expected"),
    [("gpt-4o", O200K_BASE), ("gpt-4o-2024-05-13", O200K_BASE), ("gpt-4-0613", CL100K_BASE), ("claude", APPROXIMATE)],
)
def test_a_model_has_its_encoding(model: str, expected: TokenEncoding) -> None:
    assert NativeTokenCounter().encoding_for_model(model) == expected


def test_an_encoding_that_is_not_known_is_refused() -> None:
    assert encoding_named("") == O200K_BASE
    with pytest.raises(InvalidField, match=r"encoding\.name"):
        encoding_named("p50k_base")


@pytest.mark.parametrize(("encoding", "counts"), [(O200K_BASE, [2, 0]), (CL100K_BASE, [2, 0]), (APPROXIMATE, [3, 0])])
def test_texts_are_counted(encoding: TokenEncoding, counts: list[int]) -> None:
    assert NativeTokenCounter().count(encoding, ["hello world", ""]) == counts


def test_chat_messages_cost_what_the_cookbook_of_openai_says() -> None:
    """The six messages of "How to count tokens with tiktoken", section 6, and its result for gpt-4: 129."""
    texts = [
        (
            "system",
            "",
            "You are a helpful, pattern-following assistant that translates corporate jargon into plain English.",
        ),
        ("system", "example_user", "New synergies will help drive top-line growth."),
        ("system", "example_assistant", "Things working well together will increase revenue."),
        (
            "system",
            "example_user",
            "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
        ),
        ("system", "example_assistant", "Let's talk later when we're less busy about how to do better."),
        (
            "user",
            "",
            "This late pivot means we don't have time to boil the ocean for the client deliverable.",
        ),
    ]
    messages = [message(number, text, role=role, name=name) for number, (role, name, text) in enumerate(texts)]
    assert sum(Counting(NativeTokenCounter(), CL100K_BASE).messages(messages)) + REPLY_PRIMING == 129
