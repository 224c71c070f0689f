"""One message: as a caller appends it, and as the server returns it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Self, TypeAlias, TypedDict, Unpack

from remora import _json
from remora._times import from_timestamp, optional_time, to_timestamp
from remora._views import Decoders, View, unchanged, view
from remora.attributes import Attributes, attributes_from_proto, attributes_to_proto
from remora.chat_format import ChatFields, ChatMessage, ToolCall
from remora.embeddings import Embedding
from remora.formats import parse, to_openai
from remora.media import Media
from remora.v1 import conversation_service_pb2, message_pb2


class MessageExtras(TypedDict, total=False):
    """What a message has besides its chat form; see the fields of `Message`."""

    id: str
    sent_time: datetime
    session_id: str
    attributes: Attributes
    metadata: Any
    embedding: Embedding


@view
@dataclass(frozen=True)
class Message(View):
    """One message of a conversation: `Message("user", "Can I work abroad?")`.

    One from the server decodes a field when it is read, and keeps the whole reply in memory.
    """

    role: str
    """`user`, `assistant`, `system`, `tool` or any other, 1 to 64 bytes."""
    text: str = ""
    """What is indexed, embedded and counted, up to 1 MiB in UTF-8."""
    name: str = field(default="", kw_only=True)
    """Who speaks, up to 256 bytes; empty: the role speaks."""
    id: str = field(default="", kw_only=True)
    """Unique for its user in its conversation, up to 512 bytes; empty: the server makes a UUIDv7."""
    tool_calls: tuple[ToolCall, ...] = field(default=(), kw_only=True)
    """The tools that it calls."""
    tool_result_ids: tuple[str, ...] = field(default=(), kw_only=True)
    """Ids of the tool calls that it answers."""
    parts: bytes = field(default=b"", kw_only=True, repr=False)
    """The framework's own form of the message, opaque, up to 2 MiB."""
    media: Media | None = field(default=None, kw_only=True)
    """What the parts hold besides text and tools, all of it, so that it can be counted; None: that is not known."""
    metadata: Any = field(default=None, kw_only=True)
    """The caller's metadata, up to 256 KiB: bytes, or what JSON can hold. Bytes of compact JSON are returned parsed."""
    attributes: Attributes = field(default_factory=dict, kw_only=True)
    """Typed values that searches filter by."""
    sent_time: datetime | None = field(default=None, kw_only=True)
    """When it was said, by the caller's clock; None: when the server stored it."""
    session_id: str = field(default="", kw_only=True)
    """The session it belongs to; empty: sessions are split at gaps in time."""
    embedding: Embedding | None = field(default=None, kw_only=True)
    """The caller's embedding of the text, if any. The server does not return it."""
    user_id: str = field(default="", kw_only=True)
    """Whose message it is. Set by the server."""
    sequence: int = field(default=0, kw_only=True)
    """Its position in the conversation: from 1, only grows, may have gaps. Set by the server."""
    revision: int = field(default=0, kw_only=True)
    """The revision that last wrote it. Set by the server."""
    create_time: datetime | None = field(default=None, kw_only=True)
    """When it was first stored. Set by the server."""
    update_time: datetime | None = field(default=None, kw_only=True)
    """When it was last stored. Set by the server."""
    token_count: int = field(default=0, kw_only=True)
    """The text's tokens in o200k_base. Set by the server."""

    @classmethod
    def of(cls, message: ChatMessage, **extras: Unpack[MessageExtras]) -> Self:
        """The message for one of OpenAI's (chat or Responses), Anthropic's or LangChain's: a mapping or an object.

        Raises TypeError for what is no message, ValueError for what JSON cannot hold.
        """
        fields, parts, media = parse(message)
        return cls(**fields._asdict(), parts=parts, media=media, **extras)

    @classmethod
    def from_openai(cls, message: ChatMessage, **extras: Unpack[MessageExtras]) -> Self:
        """The same as `of`."""
        return cls.of(message, **extras)

    @property
    def fields(self) -> ChatFields:
        """What the server reads of it."""
        return ChatFields(self.role, self.text, self.name, self.tool_calls, self.tool_result_ids)

    def to_openai(self) -> dict[str, Any]:
        """The OpenAI chat message that it was made from, or that its fields make.

        Raises ValueError for a message of another format that is several of OpenAI's: `remora.formats.to_openai` makes
        them.
        """
        messages = to_openai([self])
        if len(messages) > 1:
            raise ValueError(f"the message is {len(messages)} chat messages: remora.formats.to_openai([message])")
        return messages[0]

    def to_proto(self) -> message_pb2.Message:
        """The message on the wire, without the fields that the server sets."""
        return message_pb2.Message(
            id=self.id,
            role=self.role,
            name=self.name,
            text=self.text,
            parts=self.parts,
            media=None if self.media is None else self.media.to_proto(),
            metadata=_json.to_opaque(self.metadata),
            attributes=attributes_to_proto(self.attributes),
            tool_calls=[_call_to_proto(call) for call in self.tool_calls],
            tool_result_ids=self.tool_result_ids,
            sent_time=to_timestamp(self.sent_time) if self.sent_time else None,
            session_id=self.session_id,
            embedding=self.embedding.to_proto() if self.embedding else None,
        )

    @classmethod
    def from_proto(cls, message: message_pb2.Message) -> Self:
        """The message from the wire, which must not change from then on."""
        return cls._of(message)

    _decoders: ClassVar[Decoders] = {
        **unchanged(
            "id", "role", "name", "text", "parts", "session_id", "user_id", "sequence", "revision", "token_count"
        ),
        "tool_calls": lambda wire: tuple(ToolCall(call.id, call.name, call.arguments) for call in wire.tool_calls),
        "tool_result_ids": lambda wire: tuple(wire.tool_result_ids),
        "media": lambda wire: Media.from_proto(wire.media) if wire.HasField("media") else None,
        "metadata": lambda wire: _json.from_opaque(wire.metadata),
        "attributes": lambda wire: attributes_from_proto(wire.attributes),
        "sent_time": lambda wire: optional_time(wire, "sent_time"),
        "embedding": lambda _wire: None,
        "create_time": lambda wire: optional_time(wire, "create_time"),
        "update_time": lambda wire: optional_time(wire, "update_time"),
    }


def _call_to_proto(call: ToolCall) -> message_pb2.ToolCall:
    return message_pb2.ToolCall(id=call.id, name=call.name, arguments=call.arguments)


def to_message(message: ChatMessage) -> Message:
    """The message itself, or the one for a message of another format."""
    return message if isinstance(message, Message) else Message.of(message)


def to_messages(messages: ChatMessage | Sequence[ChatMessage]) -> list[message_pb2.Message]:
    """One message or several, on the wire."""
    several = messages if isinstance(messages, list | tuple) else [messages]
    return [to_message(message).to_proto() for message in several]


Bound: TypeAlias = int | Message
"""A position among the messages: a sequence, or a message."""


def bound_sequence(bound: Bound | None) -> int | None:
    """The sequence of a bound."""
    return bound.sequence if isinstance(bound, Message) else bound


@view
@dataclass(frozen=True)
class AppendedMessage(View):
    """The result for one appended message."""

    id: str
    """Its id."""
    sequence: int
    """Its sequence in the conversation."""
    create_time: datetime
    """When it was first stored."""
    replaced: bool
    """Whether it replaced a message."""

    @classmethod
    def from_proto(cls, message: conversation_service_pb2.AppendedMessage) -> Self:
        """The result from the wire, which must not change from then on."""
        return cls._of(message)

    _decoders: ClassVar[Decoders] = {
        **unchanged("id", "sequence", "replaced"),
        "create_time": lambda wire: from_timestamp(wire.create_time),
    }


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append, or of a list of edits."""

    messages: tuple[AppendedMessage, ...]
    """One for each message, in the order given."""
    revision: int
    """The revision of the write."""
    conversation_created: bool = False
    """Whether the append created the conversation."""
    deleted_messages: int = 0
    """How many messages the edits removed, or the storage limit pruned."""

    @property
    def ids(self) -> list[str]:
        """The messages' ids."""
        return [message.id for message in self.messages]

    @property
    def sequences(self) -> list[int]:
        """The messages' sequences in the conversation."""
        return [message.sequence for message in self.messages]
