"""Messages in the formats of OpenAI (chat and Responses), Anthropic and LangChain: which one a message is in, what the
server reads of it, and how it is returned, unchanged in its own format and translated into others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from remora import _json
from remora.chat_format import ChatFields, ChatMessage, as_mapping, plain, render
from remora.formats import anthropic, langchain, openai_chat, openai_responses
from remora.formats.openai_chat import SYSTEM_ROLES
from remora.formats.pieces import Said
from remora.media import Media


class Spoken(Protocol):
    """What of a `Message` a format needs."""

    @property
    def fields(self) -> ChatFields: ...

    @property
    def parts(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Format:
    """One format: whether a message may be sent in it as it is, and how others are written."""

    accepts: Callable[[Mapping[str, Any]], bool]
    write: Callable[[Said], Iterator[dict[str, Any]]]


def _is_chat(message: Mapping[str, Any]) -> bool:
    return "role" in message and _reader(message) is openai_chat.read


def _is_accepted_chat(message: Mapping[str, Any]) -> bool:
    return _is_chat(message) and openai_chat.accepts(message)


CHAT = Format(_is_accepted_chat, openai_chat.write)
RESPONSES = Format(openai_responses.accepts, openai_responses.write)
ANTHROPIC = Format(anthropic.accepts, anthropic.write)
LANGCHAIN = Format(langchain.is_own, langchain.write)


def _reader(message: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Said]:
    if langchain.is_own(message):
        return langchain.read
    if openai_responses.is_own(message):
        return openai_responses.read
    return anthropic.read if anthropic.is_own(message) else openai_chat.read


def is_item(message: Mapping[str, Any]) -> bool:
    """Whether a mapping says by its `type` what it is: an item of the Responses API, a reply of Anthropic's, a stored
    message of LangChain's. All of its keys are its format's.
    """
    return "type" in message and (message["type"] == "message" or _reader(message) is not openai_chat.read)


def parse(message: ChatMessage) -> tuple[ChatFields, bytes, Media | None]:
    """The fields of a message; its parts, the whole as JSON, or nothing if the fields are complete; what the parts
    hold.

    Raises TypeError for what is no message in any format, ValueError for what JSON cannot hold.
    """
    stored = _stored(message)
    said = _reader(stored)(stored)
    if render(said.fields) == stored:
        return said.fields, b"", None
    return said.fields, _json.dumps(stored), said.media


def _stored(message: ChatMessage) -> dict[str, Any]:
    """The message as plain dicts, lists and scalars, in its own format."""
    if langchain.is_object(message):
        return langchain.stored(message)
    mapping = plain(message)
    if isinstance(mapping, dict) and (openai_responses.is_own(mapping) or langchain.is_own(mapping)):
        return mapping
    mapping = as_mapping(message)
    return anthropic.as_sent(mapping) if anthropic.is_own(mapping) else mapping


def restore(fields: ChatFields, parts: bytes) -> dict[str, Any] | None:
    """The message that was parsed; None where the parts do not match the fields, so that others wrote them."""
    stored = _json.loads_or_none(parts)
    if not isinstance(stored, dict) or not _is_message(stored):
        return None
    return stored if _reader(stored)(stored).fields == fields else None


def _is_message(stored: Mapping[str, Any]) -> bool:
    if "role" in stored:
        return isinstance(stored["role"], str)
    return isinstance(stored.get("type"), str) and (openai_responses.is_own(stored) or langchain.is_own(stored))


def to_openai(messages: Iterable[Spoken]) -> list[dict[str, Any]]:
    """OpenAI chat messages."""
    return _joined(_converted(messages, CHAT), openai_chat.joined)


def to_chat(message: Spoken) -> list[dict[str, Any]]:
    """A message as chat messages; one that came in so unchanged, also if OpenAI refuses it."""
    return [written for written, _ in _converted([message], Format(_is_chat, openai_chat.write))]


def to_responses(messages: Iterable[Spoken]) -> list[dict[str, Any]]:
    """Input items of OpenAI's Responses API."""
    return openai_responses.without_lone_reasoning([message for message, _ in _converted(messages, RESPONSES)])


def to_anthropic(messages: Iterable[Spoken]) -> dict[str, Any]:
    """The arguments `messages` and, if there is a system text, `system` of Anthropic's `messages.create`."""
    listed = list(messages)
    system = "\n\n".join(message.fields.text for message in listed if message.fields.role in SYSTEM_ROLES)
    spoken = [message for message in listed if message.fields.role not in SYSTEM_ROLES]
    converted = map(anthropic.without_blanks, _joined(_converted(spoken, ANTHROPIC), anthropic.joined))
    written = [message for message in converted if message["content"]]
    return {**({"system": system} if system else {}), "messages": written}


def to_langchain(messages: Iterable[Spoken]) -> list[Any]:
    """LangChain's message objects. Raises ImportError where langchain-core is not installed."""
    return langchain.objects(_joined(_converted(messages, LANGCHAIN), langchain.joined))


def _converted(messages: Iterable[Spoken], target: Format) -> Iterator[tuple[dict[str, Any], bool]]:
    """Each message in a format, and whether it was written anew."""
    for message in messages:
        stored = restore(message.fields, message.parts)
        said = _reader(stored)(stored) if stored else Said.of_fields(message.fields)
        sent = stored or (render(message.fields) if _is_chat_shaped(message.fields) else None)
        if sent is not None and target.accepts(sent):
            yield sent, False
        else:
            yield from ((written, True) for written in target.write(said))


def _is_chat_shaped(fields: ChatFields) -> bool:
    """Whether the fields make one chat message."""
    return not fields.tool_result_ids or (fields.role == "tool" and len(fields.tool_result_ids) == 1)


def _joined(
    messages: Iterable[tuple[dict[str, Any], bool]],
    join: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any] | None],
) -> list[dict[str, Any]]:
    """The messages, those that were written anew as one with their neighbour where `join` makes one of both."""
    done: list[tuple[dict[str, Any], bool]] = []
    for message, is_new in messages:
        last, last_is_new = done[-1] if done else ({}, False)
        both = join(last, message) if is_new and last_is_new else None
        if both is None:
            done.append((message, is_new))
        else:
            done[-1] = both, True
    return [message for message, _ in done]
