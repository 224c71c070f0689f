"""Messages and what they carry survive the wire."""

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora import Condition, Embedding, Message, Step
from remora.attributes import Scalar
from remora.errors import InvalidFieldError, WrongTypeError
from remora.v1 import message_pb2, step_pb2

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.booleans() | st.integers() | NUMBERS | TEXT,
    lambda inner: st.lists(inner | st.none(), max_size=3) | st.dictionaries(TEXT, inner | st.none(), max_size=3),
    max_leaves=8,
)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive


def over_the_wire(message: Message) -> Message:
    return Message.from_proto(message_pb2.Message.FromString(message.to_proto().SerializeToString()))


@given(JSON)
def test_metadata_that_json_can_hold_comes_back(metadata: Any) -> None:  # noqa: ANN401 - JSON of any shape
    received = over_the_wire(Message("user", metadata=metadata)).metadata

    assert received == metadata
    assert type(received) is type(metadata)


@given(st.binary(max_size=64))
def test_metadata_in_bytes_reaches_the_wire_byte_for_byte_however_often_it_goes_round(metadata: bytes) -> None:
    once = Message("user", metadata=metadata)
    twice = over_the_wire(once)

    assert once.to_proto().metadata == metadata
    assert twice.to_proto().metadata == metadata


@pytest.mark.parametrize("metadata", [b"\xff\x00", b'{"a": 1}', b"null", b"[1,2", b'"\\ud800"', b"1e999", b"NaN"])
def test_bytes_that_are_not_compact_json_come_back_as_bytes(metadata: bytes) -> None:
    assert over_the_wire(Message("user", metadata=metadata)).metadata == metadata


@given(st.dictionaries(TEXT.filter(bool), st.none() | st.booleans() | INTEGERS | NUMBERS | TEXT, max_size=5))
def test_attributes_keep_their_types(attributes: dict[str, Scalar]) -> None:
    received = over_the_wire(Message("user", attributes=attributes)).attributes

    assert received == attributes
    assert {key: type(value) for key, value in received.items()} == {k: type(v) for k, v in attributes.items()}


@given(TIMES)
def test_sent_time_keeps_its_microseconds(time: datetime) -> None:
    assert over_the_wire(Message("user", sent_time=time)).sent_time == time


def test_a_time_of_another_zone_is_the_same_moment() -> None:
    time = datetime(2026, 11, 21, 12, 0, tzinfo=timezone(timedelta(hours=9)))

    assert over_the_wire(Message("user", sent_time=time)).sent_time == time


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Message("user", sent_time=datetime(2026, 11, 21)).to_proto()  # noqa: DTZ001 - what is refused


@pytest.mark.parametrize(
    "time",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=9))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-9))),
    ],
)
def test_a_time_that_utc_does_not_have_is_refused(time: datetime) -> None:
    with pytest.raises(InvalidFieldError, match=r"^sent_time is .*; in UTC it must be of the years 1 to 9999$"):
        Message("user", sent_time=time)


@pytest.mark.parametrize(
    ("value", "same"), [(np.int64(-7), -7), (np.uint8(7), 7), (np.float32(0.5), 0.5), (Fraction(1, 4), 0.25)]
)
def test_an_attribute_may_be_a_number_of_another_package(value: int | float, same: float) -> None:
    received = over_the_wire(Message("user", attributes={"a": value})).attributes["a"]

    assert (received, type(received)) == (same, type(same))
    assert Condition("a", "==", value).to_proto() == Condition("a", "==", same).to_proto()


def test_an_attribute_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        Message("user", attributes={"tags": ["a"]}).to_proto()  # type: ignore[dict-item] # what is refused


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=8))
def test_an_embedding_keeps_its_values(values: list[float]) -> None:
    embedding = Embedding.of("mini", values)

    assert list(Embedding.from_proto(embedding.to_proto()).values) == values
    assert embedding.dimension == len(values)


@pytest.mark.parametrize("value", [1e300, 10**400, -(10**400)])
def test_an_embedding_refuses_a_number_that_32_bits_cannot_hold(value: float) -> None:
    with pytest.raises(InvalidFieldError, match=r"^values\[1\] is -?1.*; it must be a finite number that 32 bits can"):
        Embedding.of("mini", [1.0, value])


def test_an_embedding_of_numbers_that_come_one_by_one_refuses_what_is_none() -> None:
    with pytest.raises(WrongTypeError, match=r"^values\[1\] is 'a' \(a str\); it must be a number$"):
        Embedding.of("mini", iter([1.0, "a"]))  # type: ignore[arg-type] # what is refused


def test_an_embedding_is_little_endian_f32() -> None:
    assert Embedding.of("mini", [1.0, -2.0]).data == b"\x00\x00\x80\x3f\x00\x00\x00\xc0"


def test_a_comparison_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="~="):
        Condition("age", "~=", 7)  # type: ignore[arg-type] # what is refused


def test_a_step_comes_back_as_it_went_in() -> None:
    step = Step(
        "s1",
        "tool_call",
        role="assistant",
        content="weather",
        arguments={"city": "Rome"},
        result="sunny",
        usage=b"\x01\x02",
        step_index=3,
        operation_id="op",
        agent_id="a",
        agent_name="Anna",
        sub_agent_id="b",
        sub_agent_name="Ben",
        create_time=datetime(2026, 11, 21, tzinfo=UTC),
    )

    wire = step.to_proto("c", "u").SerializeToString()

    assert Step.from_proto(step_pb2.Step.FromString(wire)) == step
