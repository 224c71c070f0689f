"""What a chat model is asked for a summary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.summary_prompts import shortened


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(0, 200))
def test_what_a_model_is_shown_is_shortened_to_one_length_if_it_is_too_long(lengths: list[int], most: int) -> None:
    """A token is a character."""
    messages = [ContextMessage("c", at, "user", "x" * length, b"") for at, length in enumerate(lengths)]

    shown = shortened(messages, lengths, most, lambda texts: [len(text) for text in texts])

    kept = [each.text.count("x") for each in shown]
    if sum(lengths) <= most:
        assert kept == lengths
    else:
        level = max(kept)
        assert kept == [min(length, level) for length in lengths]
        assert sum(kept) <= most < sum(min(length, level + 1) for length in lengths)
    for message, each in zip(messages, shown, strict=True):
        is_whole = each.text == message.text
        assert is_whole or each.text.endswith(f" [{each.text.count('x')} of {len(message.text)} characters]")
