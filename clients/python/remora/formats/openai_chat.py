"""OpenAI's chat messages, in pieces."""

from collections.abc import Iterator, Mapping
from typing import Any

from remora.chat_format import ToolCall, render
from remora.formats.pieces import Other, Picture, Piece, Result, Said, Text, encoded_arguments, shown, text_in, told

WITHOUT_TOKENS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "annotations", "refusal"})
"""Keys that are read, or that a model does not see."""
REASONING = frozenset({"reasoning", "reasoning_content", "reasoning_details"})
"""Keys of what only the model that made it reads."""
SYSTEM_ROLES = frozenset({"system", "developer"})


def accepts(message: Mapping[str, Any]) -> bool:
    """Whether OpenAI takes a chat message as it is: without content, the assistant has to say or call something."""
    is_empty = message.get("role") == "assistant" and not any(map(message.get, message.keys() - {"role", "name"}))
    return not (is_empty and message.get("content") is None)


def read(message: Mapping[str, Any]) -> Said:
    """The pieces of a chat message."""
    role = "system" if message["role"] in SYSTEM_ROLES else message["role"]
    content = tuple(_content(message.get("content")))
    if role == "tool" and (call_id := text_in(message, "tool_call_id")):
        content = (Result(call_id, shown(content)),)
    refusal = (Text(text),) if (text := text_in(message, "refusal")) else ()
    others = [
        Other(key, key in REASONING)
        for key, value in message.items()
        if key not in WITHOUT_TOKENS and value is not None
    ]
    return Said(role, (*content, *refusal, *_calls(message.get("tool_calls")), *others), text_in(message, "name"))


def _content(content: object) -> Iterator[Piece]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    for part in content if isinstance(content, list) else []:
        match part:
            case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
                yield Text(text)
            case {"type": "image_url", "image_url": {"url": str(url), **rest}}:
                yield Picture(url, text_in(rest, "detail"))
            case _:
                yield Other(text_in(part, "type") or "content of unknown type")


def _calls(calls: object) -> Iterator[Piece]:
    """The calls; one without an id or a name is only what its own format knows."""
    for call in calls if isinstance(calls, list) else []:
        match call:
            case {"id": str(id_), "function": {"name": str(name), **rest}} if id_ and name:
                yield ToolCall(id_, name, encoded_arguments(rest.get("arguments", "")))
            case {"id": str(id_), "custom": {"name": str(name), **rest}} if id_ and name:
                yield ToolCall(id_, name, encoded_arguments(rest.get("input", "")))
            case _:
                yield Other("tool call")


def write(said: Said) -> Iterator[dict[str, Any]]:
    """The chat messages that say the same: one for each result, and one for the rest."""
    for result in said.results:
        yield {"role": "tool", "tool_call_id": result.call_id, "content": _written(list(result.pieces))}
    rest = [piece for piece in said.pieces if not isinstance(piece, Result | ToolCall)]
    if not said.is_private and (rest or said.calls or not said.results):
        fields = said.fields._replace(tool_result_ids=(), text="")
        content = _written(rest)
        yield {**render(fields), **({"content": content} if content or not said.calls else {})}


def _written(pieces: list[Any]) -> str | list[dict[str, Any]]:
    if not any(isinstance(piece, Picture) for piece in pieces):
        return "\n".join(text for piece in pieces if (text := told(piece)))
    return [part for piece in pieces if (part := _part(piece))]


def _part(piece: Piece) -> dict[str, Any]:
    if isinstance(piece, Picture):
        detail = {"detail": piece.detail} if piece.detail else {}
        return {"type": "image_url", "image_url": {"url": piece.url, **detail}}
    return {"type": "text", "text": text} if (text := told(piece)) else {}


def joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any] | None:
    """Two messages of the assistant that call tools as one, because the results must follow right after; else None."""
    if not ("tool_calls" in first and "tool_calls" in second):
        return None
    content = "\n".join(text for message in (first, second) if isinstance(text := message.get("content"), str) and text)
    calls = [*first["tool_calls"], *second["tool_calls"]]
    return {**first, "content": content or None, "tool_calls": calls}
