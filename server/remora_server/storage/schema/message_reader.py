"""Reads stored messages for contexts: `domain.context_messages.MessageReader` over the wire form."""

from __future__ import annotations

from collections.abc import Iterator

from remora.v1 import message_pb2
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.costs import ToolCall

ENTRY_TAG = 0x0A
"""Of field 1, length-delimited: `ListMessagesResponse.messages`."""


class StoredMessageReader:
    """Parses messages as windows, recall and replies hold them."""

    def message(self, conversation_id: str, encoded: bytes) -> ContextMessage:
        stored = message_pb2.Message.FromString(encoded)
        return ContextMessage(
            conversation_id=conversation_id,
            sequence=stored.sequence,
            role=stored.role,
            text=stored.text,
            encoded=encoded,
            name=stored.name,
            tool_calls=tuple(_tool_call(call) for call in stored.tool_calls),
            tool_result_ids=tuple(stored.tool_result_ids),
            sent_time=_sent_time(stored),
            session_id=stored.session_id,
            token_count=stored.token_count,
            has_parts=bool(stored.parts),
        )

    def page(self, conversation_id: str, encoded: bytes) -> list[ContextMessage]:
        return [self.message(conversation_id, entry) for entry in entries(encoded)]


def entries(page: bytes) -> Iterator[bytes]:
    """The messages of a page, each as it stands there. Raises ValueError where the page is not made of entries."""
    at = 0
    while at < len(page):
        if page[at] != ENTRY_TAG:
            raise ValueError(f"a page of messages has tag {page[at]} at {at}")
        size, at = _varint(page, at + 1)
        if at + size > len(page):
            raise ValueError(f"a page of messages ends within the message at {at}")
        yield page[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a place, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return value, at


def _tool_call(call: message_pb2.ToolCall) -> ToolCall:
    return ToolCall(call.id, call.name, call.arguments.decode("utf-8", "replace"))


def _sent_time(stored: message_pb2.Message) -> int:
    time = stored.sent_time if stored.HasField("sent_time") else stored.create_time
    return time.seconds * 1_000_000 + time.nanos // 1000
