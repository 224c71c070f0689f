"""Rows of the tables as the wire form that windows, search and replies hold."""

from __future__ import annotations

from google.protobuf import struct_pb2, timestamp_pb2

from remora.v1 import conversation_pb2, message_pb2
from remora_server.domain.conversations import AttributeValue, ConversationDraft

STORED_COLUMNS = "sequence, revision, user_id, id, text, body, create_time, update_time, token_count"


def stored_message(  # noqa: PLR0917 - a row of STORED_COLUMNS
    sequence: int,
    revision: int,
    user_id: str,
    message_id: str,
    text: str,
    body: bytes,
    create_time: int,
    update_time: int,
    token_count: int,
) -> bytes:
    """A message as it is served. Encoded messages may be joined end to end: later fields add to earlier ones."""
    rest = message_pb2.Message(
        id=message_id,
        user_id=user_id,
        text=text,
        sequence=sequence,
        revision=revision,
        create_time=timestamp(create_time),
        update_time=timestamp(update_time),
        token_count=token_count,
    )
    return body + rest.SerializeToString()


def timestamp(micros: int) -> timestamp_pb2.Timestamp:
    """A time in microseconds since 1970 as a Timestamp."""
    seconds, rest = divmod(micros, 1_000_000)
    return timestamp_pb2.Timestamp(seconds=seconds, nanos=rest * 1000)


def conversation_row(draft: ConversationDraft) -> conversation_pb2.Conversation:
    """The fields of a conversation that a caller sets, as they are stored."""
    row = conversation_pb2.Conversation(
        id=draft.id,
        user_id=draft.user_id,
        resource_id=draft.resource_id,
        title=draft.title,
        metadata=draft.metadata,
        storage_limit=draft.storage_limit,
    )
    for key, value in draft.attributes.items():
        _set_scalar(row, key, value)
    return row


def _set_scalar(row: conversation_pb2.Conversation, key: str, value: AttributeValue) -> None:
    scalar = row.attributes[key]
    match value:
        case None:
            scalar.null_value = struct_pb2.NULL_VALUE
        case bool():
            scalar.boolean = value
        case int():
            scalar.integer = value
        case float():
            scalar.number = value
        case str():
            scalar.text = value


def conversation_draft(body: bytes) -> ConversationDraft:
    """The stored row of a conversation."""
    row = conversation_pb2.Conversation.FromString(body)
    attributes: dict[str, AttributeValue] = {}
    for key, scalar in row.attributes.items():
        kind = scalar.WhichOneof("kind")
        attributes[key] = None if kind in (None, "null_value") else getattr(scalar, kind)
    return ConversationDraft(
        id=row.id,
        user_id=row.user_id,
        resource_id=row.resource_id,
        title=row.title,
        metadata=row.metadata,
        attributes=attributes,
        storage_limit=row.storage_limit if row.HasField("storage_limit") else None,
    )


def list_entry(encoded: bytes) -> bytes:
    """An encoded message as field 1 of a reply: tag, length, bytes (protobuf's wire format)."""
    length, head = len(encoded), bytearray(b"\x0a")
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + encoded
