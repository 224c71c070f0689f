"""Rows of the tables as the wire form that windows, search and replies hold."""

from __future__ import annotations

from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message
from remora_server import wire
from remora_server.domain.conversations import ConversationDraft

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
    rest = Message(
        id=message_id,
        user_id=user_id,
        text=text,
        sequence=sequence,
        revision=revision,
        create_time=wire.timestamp(create_time),
        update_time=wire.timestamp(update_time),
        token_count=token_count,
    )
    return body + rest.SerializeToString()


def conversation_draft(body: bytes) -> ConversationDraft:
    """The stored row of a conversation."""
    row = Conversation.FromString(body)
    return wire.conversation_draft(row, row.id, row.user_id)
