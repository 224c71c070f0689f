"""LangChain's message objects, in pieces. They are stored as `message_to_dict` writes them; langchain-core is needed
only to make objects of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from remora.chat_format import ToolCall
from remora.formats import anthropic, openai_chat, openai_responses
from remora.formats.pieces import (
    Picture,
    Piece,
    Result,
    Said,
    Text,
    arguments_object,
    encoded_arguments,
    shown,
    text_in,
    told,
)

ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system", "tool": "tool"}
TYPES = {"user": "human", "assistant": "ai", "system": "system"}
PACKAGE = "langchain_core.messages"


def is_object(message: object) -> bool:
    """Whether it is one of LangChain's messages."""
    return any(base.__module__.startswith(PACKAGE) for base in type(message).__mro__)


def is_own(stored: Mapping[str, Any]) -> bool:
    """Whether it is a message as `message_to_dict` writes it."""
    return set(stored) == {"type", "data"} and isinstance(stored["data"], dict)


def stored(message: Any) -> dict[str, Any]:  # noqa: ANN401 - an object of a package that may be missing
    """A message object as `message_to_dict` writes it."""
    return {"type": message.type, "data": message.model_dump()}


def counted(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored message with what is counted of it alone: a model is not shown the rest, such as an artifact, which JSON
    may be unable to hold.
    """
    return {"type": stored["type"], "data": counted_data(stored["data"])}


def counted_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same of what a message holds, or of a chat message."""
    metadata = {
        name: {key: held[key]}
        for name, key in _COUNTED_METADATA.items()
        if isinstance(held := data.get(name), Mapping) and key in held
    }
    return {**{key: data[key] for key in _COUNTED if key in data}, **metadata}


_COUNTED = ("role", "content", "name", "tool_calls", "tool_call_id", "usage_metadata")
_COUNTED_METADATA = {"additional_kwargs": "__openai_role__", "response_metadata": "model_provider"}


def read(message: Mapping[str, Any]) -> Said:
    """The pieces of a stored message."""
    data, kind = message["data"], message["type"]
    role = ROLES.get(kind) or text_in(data, "role") or kind
    content = list(_pieces(data.get("content")))
    if kind == "tool":
        content = [Result(text_in(data, "tool_call_id"), shown(content))]
    spoken = [piece for piece in content if not isinstance(piece, ToolCall)]
    return Said(role, (*spoken, *_calls(data.get("tool_calls"))), text_in(data, "name"))


def _calls(calls: object) -> Iterator[ToolCall]:
    for call in calls if isinstance(calls, list) else []:
        match call:
            case {"id": str(id_), "name": str(name), "args": arguments} if id_ and name:
                yield ToolCall(id_, name, encoded_arguments(arguments))


def _pieces(content: object) -> Iterator[Piece]:
    """The pieces of a content, which may be a provider's own."""
    parts = [content] if isinstance(content, str) else content
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, str):
            if part:
                yield Text(part)
            continue
        yield from _part(part)


def _part(part: Mapping[str, Any]) -> Iterator[Piece]:
    match part:
        case {"type": "image", "base64": str(data), "mime_type": str(kind)}:
            yield Picture(f"data:{kind};base64,{data}")
        case {"type": "image", "source_type": "base64", "data": str(data), "mime_type": str(kind)}:
            yield Picture(f"data:{kind};base64,{data}")
        case {"type": "image", "url": str(url)}:
            yield Picture(url)
        case {"type": "text" | "image_url"}:
            yield from openai_chat.read({"role": "user", "content": [part]}).pieces
        case {"type": "input_text" | "output_text" | "input_image"}:
            yield from openai_responses.read({"role": "user", "content": [part]}).pieces
        case {"type": "function_call" | "tool_call"}:
            return  # also among the message's calls
        case _:
            yield from anthropic.read({"role": "user", "content": [part]}).pieces


def write(said: Said) -> Iterator[dict[str, Any]]:
    """The stored messages that say the same: one for each result, and one for the rest."""
    for result in said.results:
        yield _stored("tool", _content(result.pieces), tool_call_id=result.call_id)
    rest = tuple(piece for piece in said.pieces if not isinstance(piece, Result | ToolCall))
    calls = [{"id": call.id, "name": call.name, "args": arguments_object(call)} for call in said.calls]
    if said.is_private or (said.results and not rest and not calls):
        return
    names = {"name": said.name} if said.name else {}
    kind = TYPES.get(said.role)
    if kind is None:
        yield _stored("chat", _content(rest), role=said.role, **names)
    else:
        yield _stored(kind, _content(rest), **({"tool_calls": calls} if calls else {}), **names)


def joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any] | None:
    """Two messages of the model that call tools as one, because the results must follow right after; else None."""
    if not (first and "tool_calls" in first["data"] and "tool_calls" in second["data"]):
        return None
    parts = [message["data"]["content"] for message in (first, second)]
    if not all(isinstance(part, str) for part in parts):
        return None
    calls = [*first["data"]["tool_calls"], *second["data"]["tool_calls"]]
    return _stored("ai", "\n".join(filter(None, parts)), tool_calls=calls)


def _stored(kind: str, content: str | list[dict[str, Any]], **data: object) -> dict[str, Any]:
    return {"type": kind, "data": {"content": content, **data}}


def _content(pieces: tuple[Piece, ...]) -> str | list[dict[str, Any]]:
    if any(isinstance(piece, Picture) for piece in pieces):
        [message] = openai_chat.write(Said("user", pieces))
        parts: list[dict[str, Any]] = message["content"]
        return parts
    return "\n".join(text for piece in pieces if (text := told(piece)))


def objects(messages: list[dict[str, Any]]) -> list[Any]:
    """Stored messages as LangChain's objects. Raises ImportError where langchain-core is not installed."""
    try:
        from langchain_core.messages import messages_from_dict  # noqa: PLC0415 - only who asks for objects needs it
    except ModuleNotFoundError as error:
        raise ImportError("LangChain's messages need langchain-core: pip install langchain-core") from error
    return list(messages_from_dict(messages))
