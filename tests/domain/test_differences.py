"""Differences of serialised values."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.differences import Difference, applied, difference

ROUGH = st.lists(st.sampled_from([b"name", b"text of a message", b"\x00", b"0123456789abcdef" * 4]), max_size=30)
LETTERS = string.ascii_letters + string.digits


def stored_bytes(found: Difference) -> int:
    return len(found.data) + 12 * len(found.pieces)


def serialised(texts: list[str]) -> bytes:
    """A list as MessagePack has it: its length, then records whose names they have in common."""
    records = [
        f'langchain_core.messages.human HumanMessage content "{text}" additional_kwargs response_metadata type human'
        for text in texts
    ]
    return b"\xdc" + len(texts).to_bytes(2, "big") + b"".join(record.encode() for record in records)


@given(ROUGH, ROUGH)
def test_a_difference_makes_the_value_of_its_base(base: list[bytes], value: list[bytes]) -> None:
    one, other = b"".join(base), b"".join(value)

    assert applied(one, difference(one, other)) == other


@pytest.mark.parametrize("dropped", [0, 1, 7])
def test_what_a_list_of_similar_records_keeps_is_not_stored_again(dropped: int) -> None:
    # The length of a list may be the byte that ends each record, so that another record's end looks like its begin.
    chance = random.Random(dropped)
    texts: list[str] = []
    for _ in range(300):
        base = serialised(texts)
        texts = [*texts[dropped if len(texts) > 20 else 0 :], "".join(chance.choices(LETTERS, k=100))]
        value = serialised(texts)

        found = difference(base, value)

        assert applied(base, found) == value
        assert stored_bytes(found) < 400
