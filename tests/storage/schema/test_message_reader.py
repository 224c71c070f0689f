"""Stored messages as contexts read them."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from remora.v1 import conversation_service_pb2, message_pb2
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
