"""One message: as a caller appends it, and as the server returns it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypedDict, TypeGuard, Unpack, cast

from remora import _json, _refusals
from remora._arguments import checked_fields
from remora._bounds import AtLeast, Id, Items, Name, OptionalId, Size, Time
from remora._printable import printable
from remora._times import from_timestamp, optional_time, to_timestamp
from remora._views import Decoders, View, unchanged, view
from remora.attributes import Attributes, attributes_from_proto, attributes_to_proto
from remora.chat_format import ChatFields, ChatMessage, ToolCall, as_form
from remora.embeddings import Embedding
from remora.errors import InvalidArgumentError
from remora.formats import is_item, langchain, parse, to_chat
from remora.formats.shapes import EXAMPLE, require_item, require_message
from remora.media import Media, media_names
from remora.roles import RoleName
from remora.v1 import conversation_service_pb2, message_pb2

PREVIEW = 60
"""How many characters of a message `print` shows."""


class MessageExtras(TypedDict, total=False):
    """What a message can have besides its chat form, also as keys of a dict. None of it is sent to a model.

    Attributes:
        id: Unique for its user in its conversation: appending the same id again replaces the message.
        sent_time: When it was said, by the caller's clock, with a time zone.
        session_id: The session it belongs to.
        attributes: Typed values that searches filter by.
        metadata: The caller's metadata, up to 256 KiB: bytes, or what JSON can hold.
        embedding: The caller's embedding of the text.
    """

    id: Id
    sent_time: Time
    session_id: Id
    attributes: Attributes
    metadata: Any
    embedding: Embedding


@checked_fields
@view
@dataclass(frozen=True)
class Message(View):
    """One message of a conversation: `Message("user", "Can I work abroad?")`. `print` shows it as a line.

    One from the server decodes a field when it is read, and keeps the whole reply in memory.

    Attributes:
        role: `user`, `assistant`, `system`, `tool`, `developer` or `function`, or a `Role` of your own.
        text: What is indexed, embedded and counted, up to 1 MiB in UTF-8.
        name: Who speaks, up to 256 bytes; empty: the role speaks.
        id: Unique for its user in its conversation, up to 512 bytes; empty: the server makes a UUIDv7.
        tool_calls: The tools that it calls, at most 128.
        tool_result_ids: Ids of the tool calls that it answers, at most 128.
        parts: The framework's own form of the message, opaque, up to 2 MiB.
        media: What the parts hold besides text and tools, all of it, so that it can be counted; None: not known.
        metadata: The caller's metadata, up to 256 KiB: bytes, or what JSON can hold. Bytes of compact JSON are returned
            parsed.
        attributes: Typed values that searches filter by.
        sent_time: When it was said, by the caller's clock, which `sent_after` compares; None: when the server received
            it.
        session_id: The session it belongs to; empty: sessions are split at gaps in time.
        embedding: The caller's embedding of the text, if any. The server does not return it.
        user_id: Whose message it is. Set by the server.
        sequence: Its position in the conversation: from 1, only grows, may have gaps. Set by the server.
        revision: The revision that last wrote it. Set by the server.
        create_time: When the server received it first, which `received_after` compares. Set by the server.
        update_time: When it was last stored. Set by the server.
        token_count: The text's tokens in o200k_base. Set by the server.
    """

    role: RoleName
    text: Annotated[str, Size(1 << 20)] = ""
    name: Annotated[str, Name(256, optional=True)] = field(default="", kw_only=True)
    id: OptionalId = field(default="", kw_only=True)
    tool_calls: Annotated[tuple[ToolCall, ...], Items(128)] = field(default=(), kw_only=True)
    tool_result_ids: Annotated[tuple[Id, ...], Items(128)] = field(default=(), kw_only=True)
    parts: Annotated[bytes, Size(2 << 20)] = field(default=b"", kw_only=True, repr=False)
    media: Media | None = field(default=None, kw_only=True)
    metadata: Any = field(default=None, kw_only=True)
    attributes: Attributes = field(default_factory=dict, kw_only=True)
    sent_time: Time | None = field(default=None, kw_only=True)
    session_id: OptionalId = field(default="", kw_only=True)
    embedding: Embedding | None = field(default=None, kw_only=True)
    user_id: str = field(default="", kw_only=True)
    sequence: int = field(default=0, kw_only=True)
    revision: int = field(default=0, kw_only=True)
    create_time: datetime | None = field(default=None, kw_only=True)
    update_time: datetime | None = field(default=None, kw_only=True)
    token_count: int = field(default=0, kw_only=True)

    @classmethod
    def of(cls, message: ChatMessage, **extras: Unpack[MessageExtras]) -> Self:
        """The message for one of OpenAI's (chat or Responses), Anthropic's or LangChain's: a mapping or an object.

        A mapping may also have the keys of `MessageExtras`; no others than these and those of its format.
        """
        if isinstance(message, Message):
            return cast("Self", replace(message, **extras))
        given, own = _split(message)
        fields, parts, media = _parsed(given)
        every: MessageExtras = {**own, **extras}
        return cls(**fields._asdict(), parts=parts, media=media, **every)

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

        Raises ValueError for a message of another format that is several of OpenAI's, or none:
        `remora.formats.to_openai` makes them.
        """
        messages = to_chat(self)
        if len(messages) != 1:
            raise ValueError(f"the message is {len(messages)} chat messages: remora.formats.to_openai([message])")
        return messages[0]

    def __str__(self) -> str:
        when = self.sent_time or self.create_time
        line = shortened(f"{self.name or self.role}: {said(self)}")
        return printable(f"{when:%Y-%m-%d %H:%M}  {line}" if when else line)

    def to_proto(self) -> message_pb2.Message:
        """The message on the wire, without the fields that the server sets."""
        return message_pb2.Message(
            id=self.id,
            role=self.role,
            name=self.name,
            text=self.text,
            parts=self.parts,
            media=None if self.media is None else self.media.to_proto(),
            metadata=_json.to_opaque(self.metadata, "metadata", MOST_METADATA),
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
        made = cls._of(message)
        # Nearly every reader wants these, and each takes three times as long when it is decoded later.
        decoded = made.__dict__
        decoded["role"] = message.role
        decoded["id"] = message.id
        decoded["text"] = message.text
        return made

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


class Messages(list[Message]):
    """Messages of a conversation, in order. `print` shows a line of each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no messages"


def said(message: Message) -> str:
    """What a message says, on one line: its text, the tools that it calls, and its media."""
    calls = [f"[calls {call.name}]" for call in message.tool_calls]
    media = [f"[{name}]" for name in media_names(message.media)]
    return " ".join(" ".join([message.text, *calls, *media]).split())


def shortened(text: str) -> str:
    """The beginning of a text, of PREVIEW characters at most."""
    return text if len(text) <= PREVIEW else f"{text[: PREVIEW - 1]}…"


def _call_to_proto(call: ToolCall) -> message_pb2.ToolCall:
    return message_pb2.ToolCall(id=call.id, name=call.name, arguments=call.arguments)


MessageLike: TypeAlias = Message | ChatMessage
"""A message: a `Message`, a dict such as `{"role": "user", "content": "hello"}`, or a chat object."""

MOST_METADATA = 256 << 10
MOST_MESSAGES = 1000

CHAT_KEYS = frozenset({
    "role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call", "annotations",
    "reasoning", "reasoning_content", "reasoning_details",
})  # fmt: skip
"""The keys of chat messages that models' endpoints take and give."""
SPEAKING_KEYS = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
"""A chat message has at least one of these."""


def _split(message: ChatMessage) -> tuple[ChatMessage, MessageExtras]:
    """The chat message, and what a mapping says besides. Raises an InvalidFieldError for what is no chat message."""
    if not isinstance(message, Mapping):
        if isinstance(message, type) or not (hasattr(message, "model_dump") or hasattr(message, "role")):
            raise _refusals.wrong_type("the message", message, MESSAGE)
        return _object_form(message), {}
    if is_item(message):
        require_item(message)
        return message, {}
    extras: MessageExtras = {}
    if not message.keys() <= CHAT_KEYS:
        extras = cast("MessageExtras", {key: message[key] for key in message if key in _EXTRA_KEYS})
        message = {key: message[key] for key in message if key not in _EXTRA_KEYS}
    _require_chat(message)
    return message, extras


_EXTRA_KEYS = MessageExtras.__annotations__.keys()
MESSAGE = f"a dict such as {EXAMPLE}, a Message or a chat object"


def _object_form(message: ChatMessage) -> ChatMessage:
    """A chat object as a dict, which may have any keys: providers add their own. LangChain's objects stay.

    Raises an InvalidFieldError for what is no message.
    """
    if langchain.is_object(message):
        return message
    form = as_form(message)
    if is_item(form):
        require_item(form)
        return form
    _require_no_reply(form, type(message).__name__)
    _require_said(form)
    return form


def _require_no_reply(mapping: Mapping[str, Any], name: str) -> None:
    for key, messages in _REPLIES.items():
        if "role" not in mapping and not isinstance(mapping.get(key, ""), str):
            raise _refusals.invalid("the message", f"is a whole {name}; append {messages}")


_REPLIES = {"choices": "its choices[0].message", "message": "its message", "output": "its output"}
"""What holds a message but is none, by a key, and where the message is."""


def _require_chat(message: Mapping[str, Any]) -> None:
    _require_no_reply(message, "reply")
    for key in message:
        if key not in CHAT_KEYS:
            known = CHAT_KEYS | _EXTRA_KEYS
            raise _refusals.unknown("a message", key, known, noun="key", otherwise="put what is yours into 'metadata'")
    _require_said(message)


def _require_said(message: Mapping[str, Any]) -> None:
    if "role" not in message:
        raise _refusals.missing("a message", "role", f"write {EXAMPLE}")
    if SPEAKING_KEYS.isdisjoint(message):
        raise _refusals.missing("a message", "content", f"write {EXAMPLE}")
    if not isinstance(message["role"], str):
        raise _refusals.wrong_type("role", message["role"], "a str")
    require_message(message)
    if message["role"] == "tool" and "tool_call_id" not in message:
        raise _refusals.missing("a tool message", "tool_call_id", "give the id of the call that it answers")


def _parsed(message: ChatMessage) -> tuple[ChatFields, bytes, Media | None]:
    try:
        return parse(message)
    except UnicodeEncodeError as error:
        raise _refusals.half_of_pair("the message", error) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusals.invalid("the message", f"cannot be stored as JSON: {error}") from error


def to_message(message: MessageLike) -> Message:
    """The message itself, or the one for a message of another format."""
    return message if isinstance(message, Message) else Message.of(message)


def to_messages(messages: MessageLike | Sequence[MessageLike]) -> list[message_pb2.Message]:
    """One message or several, on the wire. Raises an InvalidFieldError that says which message it is about."""
    if not _are_several(messages):
        message = cast("MessageLike", messages)
        return [_plain_to_proto(message) or to_message(message).to_proto()]
    if not 0 < len(messages) <= MOST_MESSAGES:
        raise _refusals.invalid("messages", f"has {len(messages):,} messages; give 1 to {MOST_MESSAGES:,} at once")
    return [_to_proto(message, position) for position, message in enumerate(messages)]


def _plain_to_proto(message: MessageLike) -> message_pb2.Message | None:
    """A dict of a role and a text, which most messages are, on the wire at once; None for any other message.

    The way through the formats gives the same and takes 20 us.
    """
    if type(message) is not dict or message.keys() != _PLAIN_KEYS:
        return None
    role, text = message["role"], message["content"]
    if type(text) is not str or role not in _PLAIN_ROLES:
        return None
    _TEXT.require(text, "text")
    return message_pb2.Message(role=role, text=text)


_PLAIN_KEYS = {"role", "content"}
_PLAIN_ROLES = ("user", "assistant", "system")
_TEXT = Size(1 << 20)


def _are_several(messages: object) -> TypeGuard[Sequence[MessageLike]]:
    return isinstance(messages, Sequence) and not isinstance(messages, str | bytes)


def _to_proto(message: MessageLike, position: int) -> message_pb2.Message:
    try:
        return _plain_to_proto(message) or to_message(message).to_proto()
    except InvalidArgumentError as error:
        raise _refusals.located(error, f"messages[{position}]") from error.__cause__


Bound: TypeAlias = Annotated[int, AtLeast(0)] | Message
"""A position among the messages: a sequence, or a message."""


def bound_sequence(bound: Bound | None) -> int | None:
    """The sequence of a bound."""
    return bound.sequence if isinstance(bound, Message) else bound


@view
@dataclass(frozen=True)
class AppendedMessage(View):
    """The result for one appended message.

    Attributes:
        id: Its id.
        sequence: Its sequence in the conversation.
        create_time: When it was first stored.
        replaced: Whether it replaced a message.
    """

    id: str
    sequence: int
    create_time: datetime
    replaced: bool

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
    """The result of an append, or of a list of edits.

    Attributes:
        messages: One for each message, in the order given.
        revision: The revision of the write.
        conversation_created: Whether the append created the conversation.
        deleted_messages: How many messages the edits removed, or the storage limit pruned.
    """

    messages: tuple[AppendedMessage, ...]
    revision: int
    conversation_created: bool = False
    deleted_messages: int = 0

    @property
    def ids(self) -> list[str]:
        """The messages' ids."""
        return [message.id for message in self.messages]

    @property
    def sequences(self) -> list[int]:
        """The messages' sequences in the conversation."""
        return [message.sequence for message in self.messages]
