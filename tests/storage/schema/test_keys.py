"""Keys of records: their order is that of their parts, and nothing is lost in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.storage.schema import keys
from remora_server.storage.schema.keys import KeyPart, KeyType

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\x00\x01\xff"), max_size=5)
VALUES: dict[KeyType, st.SearchStrategy[KeyPart]] = {
    KeyType.TEXT: TEXTS,
    KeyType.TEXTS: st.lists(TEXTS, max_size=4).map(tuple),
    KeyType.UNSIGNED: st.integers(0, 2**64 - 1),
    KeyType.SIGNED: st.integers(-(2**63), 2**63 - 1),
}
TYPES = st.lists(st.sampled_from(KeyType), max_size=4)


def parts(types: list[KeyType]) -> st.SearchStrategy[tuple[KeyPart, ...]]:
    return st.tuples(*(VALUES[kind] for kind in types))


@st.composite
def two_keys(draw: st.DrawFn) -> tuple[list[KeyType], tuple[KeyPart, ...], tuple[KeyPart, ...]]:
    types = draw(TYPES)
    return types, draw(parts(types)), draw(parts(types))


def comparable(given: tuple[KeyPart, ...]) -> list[object]:
    """Texts in the order of UTF-8, which is that of code points."""
    return [tuple(each) if isinstance(each, tuple) else each for each in given]


@given(two_keys())
def test_encoded_keys_have_the_order_of_their_parts(
    drawn: tuple[list[KeyType], tuple[KeyPart, ...], tuple[KeyPart, ...]],
) -> None:
    types, first, second = drawn
    encoded = keys.encode(types, first), keys.encode(types, second)

    assert (encoded[0] < encoded[1]) == (comparable(first) < comparable(second))
    assert (encoded[0] == encoded[1]) == (first == second)


@given(two_keys())
def test_an_encoded_key_gives_its_parts_back(
    drawn: tuple[list[KeyType], tuple[KeyPart, ...], tuple[KeyPart, ...]],
) -> None:
    types, given_parts, _ = drawn

    assert keys.decode(types, keys.encode(types, given_parts)) == given_parts


@given(two_keys(), st.integers(0, 4))
def test_leading_parts_are_a_prefix_of_those_that_begin_with_them_alone(
    drawn: tuple[list[KeyType], tuple[KeyPart, ...], tuple[KeyPart, ...]], count: int
) -> None:
    types, first, second = drawn
    prefix = keys.encode(types[:count], first[:count])

    assert keys.encode(types, first).startswith(prefix)
    assert keys.encode(types, second).startswith(prefix) == (first[:count] == second[:count])


@given(st.lists(TEXTS, max_size=3), st.lists(TEXTS, max_size=3))
def test_leading_texts_are_a_prefix_of_the_lists_that_begin_with_them_alone(lead: list[str], texts: list[str]) -> None:
    encoded = keys.encode([KeyType.TEXTS], [tuple(texts)])

    assert encoded.startswith(keys.encode_leading_texts(lead)) == (texts[: len(lead)] == lead)


@pytest.mark.parametrize("data", [b"", b"a", b"a\x00", b"a\x00\x00", b"a\x00\xff", b"a\x00\x01b"])
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="key"):
        keys.decode([KeyType.TEXT], data)


@pytest.mark.parametrize("kind", KeyType)
def test_a_key_that_is_cut_short_is_refused(kind: KeyType) -> None:
    encoded = keys.encode([kind], ["a" if kind is KeyType.TEXT else ("a",) if kind is KeyType.TEXTS else 1])

    for length in range(len(encoded)):
        with pytest.raises(ValueError, match="key"):
            keys.decode([kind], encoded[:length])
