"""Parts of remora.v1 in wire form: protobuf itself is the oracle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.v1.conversation_service_pb2 import ListMessagesResponse
from remora.v1.message_pb2 import Message
from remora.v1.scalar_pb2 import Scalar
from remora_server import wire

TEXTS = st.lists(st.one_of(st.text(max_size=3), st.sampled_from([127, 128, 16_383, 16_384, 70_000]).map("x".__mul__)))


@given(TEXTS)
def test_elements_are_written_and_read_as_protobuf_does(texts: list[str]) -> None:
    messages = [Message(text=text) for text in texts]
    encoded = [message.SerializeToString() for message in messages]

    page = wire.elements(wire.LIST_FIELD, encoded)

    assert page == ListMessagesResponse(messages=messages).SerializeToString()
    assert list(wire.split_elements(wire.LIST_FIELD, page)) == encoded


def test_a_field_of_a_large_number_has_a_long_tag() -> None:
    encoded = wire.elements(2047, [b"abc"])

    assert encoded == b"\xfa\x7f\x03abc"
    assert list(wire.split_elements(2047, encoded)) == [b"abc"]


@pytest.mark.parametrize("page", [b"\x12\x00", b"\x0a\x05abc"], ids=["another field", "cut"])
def test_what_is_no_page_is_refused(page: bytes) -> None:
    with pytest.raises(ValueError, match="element"):
        list(wire.split_elements(wire.LIST_FIELD, page))


@given(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))
def test_a_time_comes_back_to_the_microsecond(micros: int) -> None:
    assert wire.timestamp(micros).ToMicroseconds() == micros
    assert wire.micros(wire.timestamp(micros)) == micros


@given(st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text()))
def test_a_scalar_comes_back_with_its_type(value: bool | float | str | None) -> None:
    found = wire.scalar_value(Scalar.FromString(wire.scalar(value).SerializeToString()))

    assert found == value
    assert type(found) is type(value)
