"""Values of the domain as parts of replies. What is encoded already is put in as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from google.protobuf.struct_pb2 import NULL_VALUE
from google.protobuf.timestamp_pb2 import Timestamp

from remora.v1.conversation_pb2 import Conversation as ConversationMessage
from remora.v1.conversation_service_pb2 import AppendedMessage
from remora.v1.scalar_pb2 import Scalar
from remora_server.domain.calls import Placed
from remora_server.domain.conversations import AttributeValue, Conversation

T = TypeVar("T")

REPLY_BYTES = 3 << 20
"""What repeated fields of a reply may hold: gRPC's clients take 4 MiB unless told otherwise."""

_LENGTH_DELIMITED = 2  # https://protobuf.dev/programming-guides/encoding/#structure


def timestamp(micros: int) -> Timestamp:
    """A time given in microseconds since 1970, UTC."""
    seconds, rest = divmod(micros, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000)


def scalar(value: AttributeValue) -> Scalar:
    """An attribute's value."""
    match value:
        case None:
            return Scalar(null_value=NULL_VALUE)
        case bool():
            return Scalar(boolean=value)
        case int():
            return Scalar(integer=value)
        case float():
            return Scalar(number=value)
        case str():
            return Scalar(text=value)


def conversation(value: Conversation) -> ConversationMessage:
    """A conversation as it is read."""
    draft = value.draft
    return ConversationMessage(
        id=draft.id,
        user_id=draft.user_id,
        resource_id=draft.resource_id,
        title=draft.title,
        metadata=draft.metadata,
        attributes={key: scalar(attribute) for key, attribute in draft.attributes.items()},
        storage_limit=draft.storage_limit,
        uid=value.uid,
        revision=value.revision,
        last_sequence=value.last_sequence,
        message_count=value.message_count,
        create_time=timestamp(value.create_time),
        update_time=timestamp(value.update_time),
    )


def place(messages: Iterable[Placed], add: Callable[[], AppendedMessage]) -> None:
    """Put what became of each message of a write into its reply: a list that is made apart would be copied."""
    for message in messages:
        appended = add()
        appended.id = message.id
        appended.sequence = message.sequence
        appended.replaced = message.replaced
        create_time, (seconds, micros) = appended.create_time, divmod(message.create_time, 1_000_000)
        create_time.seconds = seconds
        create_time.nanos = micros * 1_000


def fitting(elements: Iterable[T], size: Callable[[T], int]) -> list[T]:
    """As many from the start as a reply of REPLY_BYTES holds, at least one; `size` in bytes."""
    held: list[T] = []
    room = REPLY_BYTES
    for element in elements:
        room -= size(element)
        if held and room < 0:
            break
        held.append(element)
    return held


def embedded(field_number: int, encoded: Iterable[bytes]) -> bytes:
    """Encoded messages as elements of a repeated field: to be joined with the rest of the message that holds them."""
    tag = varint(field_number << 3 | _LENGTH_DELIMITED)
    return b"".join(part for message in encoded for part in (tag, varint(len(message)), message))


def varint(value: int) -> bytes:
    """A number in base 128, the least significant group first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
