"""Stored messages as contexts read them."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from remora.v1 import conversation_service_pb2, message_pb2
from remora_server import wire
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.costs import UNKNOWN_PARTS, ToolCall
from remora_server.domain.images import Detail, Image
from remora_server.storage.schema.message_reader import StoredMessageReader

MESSAGE = message_pb2.Message(
    id="m1",
    role="assistant",
    name="Ann",
    text="a text",
    parts=b"opaque",
    tool_calls=[message_pb2.ToolCall(id="x", name="look_up", arguments=b'{"a": 1}\xff')],
    tool_result_ids=["y"],
    sent_time=Timestamp(seconds=-1, nanos=999_999_000),
    session_id="s",
    sequence=3,
    create_time=Timestamp(seconds=5),
    token_count=2,
)
TEXTS = st.text(max_size=20)
TIMES = st.none() | st.builds(Timestamp, seconds=st.integers(-(1 << 35), 1 << 37), nanos=st.integers(0, 999_999_999))
PLAIN = st.builds(
    message_pb2.Message,
    id=TEXTS,
    user_id=TEXTS,
    role=st.sampled_from(["user", "assistant", "system", ""]),
    name=TEXTS,
    text=TEXTS,
    metadata=st.binary(max_size=5),
    session_id=TEXTS,
    sequence=st.integers(0, (1 << 63) - 1),
    revision=st.integers(0, 9),
    sent_time=TIMES,
    create_time=TIMES,
    token_count=st.integers(0, 1 << 20),
)
MORE = st.sampled_from(
    [
        message_pb2.Message(parts=b"p"),
        message_pb2.Message(media=message_pb2.Media()),
        message_pb2.Message(media=message_pb2.Media(uncounted=["audio"], images=[message_pb2.Image(width=9)])),
        message_pb2.Message(tool_calls=[message_pb2.ToolCall(id="a", name="search", arguments=b"\xff")]),
        message_pb2.Message(tool_result_ids=["a", "b"]),
    ]
)


@st.composite
def messages(draw: st.DrawFn) -> message_pb2.Message:
    message = draw(PLAIN)
    if draw(st.booleans()):
        message.MergeFrom(draw(MORE))
    return message


def as_protobuf_reads_it(message: message_pb2.Message, encoded: bytes) -> ContextMessage:
    is_described = message.HasField("media") or message.parts
    calls = [ToolCall(call.id, call.name, call.arguments.decode("utf-8", "replace")) for call in message.tool_calls]
    return ContextMessage(
        conversation_id="c",
        sequence=message.sequence,
        role=message.role,
        text=message.text,
        encoded=encoded,
        name=message.name,
        tool_calls=tuple(calls),
        tool_result_ids=tuple(message.tool_result_ids),
        sent_time=wire.micros(message.sent_time if message.HasField("sent_time") else message.create_time),
        session_id=message.session_id,
        token_count=message.token_count,
        images=wire.images(message) if is_described else (),
        uncounted=wire.uncounted(message) if is_described else (),
        id=message.id,
    )


def test_a_message_is_read_with_all_that_a_context_needs() -> None:
    encoded = MESSAGE.SerializeToString()
    assert StoredMessageReader().message("c1", encoded) == ContextMessage(
        id="m1",
        conversation_id="c1",
        sequence=3,
        role="assistant",
        text="a text",
        encoded=encoded,
        name="Ann",
        tool_calls=(ToolCall("x", "look_up", '{"a": 1}\N{REPLACEMENT CHARACTER}'),),
        tool_result_ids=("y",),
        sent_time=-1,
        session_id="s",
        token_count=2,
        uncounted=(UNKNOWN_PARTS,),
    )


def test_a_message_that_has_no_sent_time_was_sent_when_it_was_created() -> None:
    message = message_pb2.Message(role="user", create_time=Timestamp(seconds=5, nanos=7_000))
    assert StoredMessageReader().message("c1", message.SerializeToString()).sent_time == 5_000_007


def test_media_say_what_the_parts_hold() -> None:
    images = [message_pb2.Image(width=8, height=9), message_pb2.Image(detail=message_pb2.IMAGE_DETAIL_LOW)]
    media = message_pb2.Media(images=images, uncounted=["audio"])
    described = message_pb2.Message(parts=b"opaque", media=media).SerializeToString()
    plain = message_pb2.Message(parts=b"opaque", media=message_pb2.Media()).SerializeToString()

    read = StoredMessageReader().message("c1", described)

    assert read.images == (Image(8, 9), Image(0, 0, Detail.LOW))
    assert read.uncounted == ("audio",)
    assert StoredMessageReader().message("c1", plain).uncounted == ()


def test_a_message_with_another_text_has_nothing_left_of_its_parts() -> None:
    message = message_pb2.Message.FromString(MESSAGE.SerializeToString())
    message.media.SetInParent()
    reader = StoredMessageReader()

    shorter = reader.with_text(reader.message("c1", message.SerializeToString()), "a", 1)

    expected = message_pb2.Message.FromString(MESSAGE.SerializeToString())
    expected.ClearField("parts")
    expected.text, expected.token_count = "a", 1
    assert shorter == reader.message("c1", expected.SerializeToString())


def test_a_system_text_is_a_message_of_no_conversation() -> None:
    made = StoredMessageReader().system("be brief", 2)
    assert (made.place, made.role, made.text, made.token_count) == (("", 0), "system", "be brief", 2)
    assert message_pb2.Message.FromString(made.encoded) == message_pb2.Message(
        role="system", text="be brief", token_count=2
    )


def test_a_page_is_read_message_by_message() -> None:
    messages = [message_pb2.Message(id=str(number), text="x" * size) for number, size in enumerate([0, 1, 200, 70_000])]
    page = conversation_service_pb2.ListMessagesResponse(messages=messages).SerializeToString()
    assert [len(message.text) for message in StoredMessageReader().page("c1", page)] == [0, 1, 200, 70_000]
    assert StoredMessageReader().page("c1", b"") == []


@given(st.lists(messages(), max_size=5))
def test_a_page_is_read_as_protobuf_reads_it(given_messages: list[message_pb2.Message]) -> None:
    encoded = conversation_service_pb2.ListMessagesResponse(messages=given_messages, revision=3).SerializeToString()

    read = StoredMessageReader().page("c", encoded)

    assert read == [as_protobuf_reads_it(each, each.SerializeToString()) for each in given_messages]


@given(messages())
def test_a_message_is_read_as_protobuf_reads_it(message: message_pb2.Message) -> None:
    encoded = message.SerializeToString()

    assert StoredMessageReader().message("c", encoded) == as_protobuf_reads_it(message, encoded)


def test_bytes_that_are_no_page_are_refused() -> None:
    with pytest.raises(ValueError, match="not an encoded message"):
        StoredMessageReader().page("c", b"\x0a\x09")
