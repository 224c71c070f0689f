"""Reads stored messages for contexts: `domain.context_messages.MessageReader` over the wire form."""

from __future__ import annotations

from typing import TypeAlias

from msgspec.structs import replace

from remora.v1 import message_pb2
from remora_server import _native, wire
from remora_server.domain.context_messages import SYSTEM, USER, ContextMessage
from remora_server.domain.costs import ToolCall
from remora_server.domain.facts import StaticFact

_Plain: TypeAlias = tuple[int, str, str, bytes, str, int, str, int, str]
"""A message as `_native.plain_message` gives it."""


class StoredMessageReader:
    """Parses messages as windows, recall and replies hold them: those that are nothing but text in the engine, because
    most are.
    """

    def message(self, conversation_id: str, encoded: bytes) -> ContextMessage:
        plain = _native.plain_message(encoded)
        return _whole(conversation_id, encoded) if plain is None else _plain(conversation_id, plain)

    def system(self, text: str, token_count: int) -> ContextMessage:
        made = message_pb2.Message(role=SYSTEM, text=text, token_count=token_count)
        return self.message("", made.SerializeToString())

    def summary(
        self, conversation_id: str, user_id: str, text: str, token_count: int, *, revision: int
    ) -> ContextMessage:
        made = message_pb2.Message(role=USER, text=text, token_count=token_count, user_id=user_id, revision=revision)
        return self.message(conversation_id, made.SerializeToString())

    def working_memory(
        self, conversation_id: str, user_id: str, text: str, token_count: int, *, update_time: int, sequence: int
    ) -> ContextMessage:
        made = message_pb2.Message(
            role=USER, text=text, token_count=token_count, user_id=user_id, create_time=wire.timestamp(update_time)
        )
        return replace(self.message(conversation_id, made.SerializeToString()), sequence=sequence)

    def static_fact(self, fact: StaticFact, sequence: int) -> ContextMessage:
        made = message_pb2.Message(id=fact.id, role=USER, text=fact.content)
        return replace(self.message("", made.SerializeToString()), sequence=sequence)

    def fact(self, encoded: bytes, sequence: int) -> ContextMessage:
        fact = wire.shown_fact(encoded)
        fact.ClearField("sources")  # a conversation that is forgotten goes from the fact, and would stay in receipts
        # The time tells a fact from the same one that was forgotten and is recorded again.
        made = message_pb2.Message(
            id=fact.id, role=USER, text=fact.text, user_id=fact.user_id, create_time=fact.record_time
        )
        return replace(self.message("", made.SerializeToString()), sequence=sequence, fact=fact.SerializeToString())

    def with_text(self, message: ContextMessage, text: str, token_count: int) -> ContextMessage:
        stored = message_pb2.Message.FromString(message.encoded)
        stored.text, stored.token_count = text, token_count
        stored.ClearField("parts")
        stored.ClearField("media")
        return self.message(message.conversation_id, stored.SerializeToString())

    def page(self, conversation_id: str, encoded: bytes) -> list[ContextMessage]:
        return [
            _whole(conversation_id, entry) if isinstance(entry, bytes) else _plain(conversation_id, entry)
            for entry in _native.plain_messages(encoded)
        ]


def _plain(conversation_id: str, plain: _Plain) -> ContextMessage:
    """A message that is nothing but text. The arguments are in the order of the fields, which takes half the time."""
    sequence, role, text, encoded, name, sent_time, session_id, token_count, id = plain  # noqa: A001 - a field
    return ContextMessage(
        conversation_id, sequence, role, text, encoded, name, (), (), sent_time, session_id, token_count, (), (), id
    )


def _whole(conversation_id: str, encoded: bytes) -> ContextMessage:
    """Any message."""
    stored = message_pb2.Message.FromString(encoded)
    is_described = stored.HasField("media") or stored.parts
    return ContextMessage(
        conversation_id=conversation_id,
        sequence=stored.sequence,
        role=stored.role,
        text=stored.text,
        encoded=encoded,
        name=stored.name,
        tool_calls=tuple([_tool_call(call) for call in stored.tool_calls]) if stored.tool_calls else (),
        tool_result_ids=tuple(stored.tool_result_ids) if stored.tool_result_ids else (),
        sent_time=_sent_time(stored),
        session_id=stored.session_id,
        token_count=stored.token_count,
        images=wire.images(stored) if is_described else (),
        uncounted=wire.uncounted(stored) if is_described else (),
        id=stored.id,
    )


def _tool_call(call: message_pb2.ToolCall) -> ToolCall:
    return ToolCall(call.id, call.name, call.arguments.decode("utf-8", "replace"))


def _sent_time(stored: message_pb2.Message) -> int:
    return wire.micros(stored.sent_time if stored.HasField("sent_time") else stored.create_time)
