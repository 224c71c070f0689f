"""OpenAI's chat messages: which fields the server reads, and how messages are returned exactly as they were given.

A message that role, name, text and tool fields describe completely is stored as these fields. Any other (content parts,
unknown keys, a null content without a tool call) is also stored whole, as JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from remora import _json

ChatMessage: TypeAlias = Mapping[str, Any] | object
"""A chat message as a mapping, or as an object: one with `model_dump()`, or with `role` and `content`."""

ATTRIBUTES = ("role", "content", "name", "tool_calls", "tool_call_id")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    id: str
    """The id that the result names."""
    name: str
    """The tool's name."""
    arguments: bytes
    """The arguments as the model wrote them, usually JSON."""


class ChatFields(NamedTuple):
    """What the server reads of a chat message."""

    role: str
    text: str
    name: str
    tool_calls: tuple[ToolCall, ...]
    tool_result_ids: tuple[str, ...]


def as_mapping(message: ChatMessage) -> dict[str, Any]:
    """The message as plain dicts, lists and scalars; fields of objects that are None are left out.

    Raises TypeError for a missing role, and for keys that are not strings.
    """
    plain = _plain(message)
    if not isinstance(plain, dict):
        plain = {key: _plain(value) for key in ATTRIBUTES if (value := getattr(message, key, None)) is not None}
        plain.setdefault("content", None)
    if not isinstance(plain.get("role"), str):
        raise TypeError(f"a chat message needs a role: {type(message).__name__}")
    return plain


def parse(message: Mapping[str, Any]) -> tuple[ChatFields, bytes]:
    """The fields of a plain message and its parts: the whole as JSON, or empty if the fields are complete."""
    fields = _fields(message)
    return fields, b"" if render(fields) == message else _json.dumps(message)


def restore(fields: ChatFields, parts: bytes) -> dict[str, Any]:
    """The message that was parsed. Parts that do not match the fields are another framework's and are ignored."""
    original = _json.loads_or_none(parts)
    if isinstance(original, dict) and isinstance(original.get("role"), str) and _fields(original) == fields:
        return original
    return render(fields)


def render(fields: ChatFields) -> dict[str, Any]:
    """The chat message that the fields make."""
    silent = fields.tool_calls and not fields.text
    message: dict[str, Any] = {"role": fields.role, "content": None if silent else fields.text}
    if fields.name:
        message["name"] = fields.name
    if fields.tool_calls:
        message["tool_calls"] = [_render_call(call) for call in fields.tool_calls]
    if fields.role == "tool" and len(fields.tool_result_ids) == 1:
        message["tool_call_id"] = fields.tool_result_ids[0]
    return message


def _render_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments.decode(errors="replace")}
    return {"id": call.id, "type": "function", "function": function}


def _fields(message: Mapping[str, Any]) -> ChatFields:
    result_id = _text_of(message, "tool_call_id") if message["role"] == "tool" else ""
    return ChatFields(
        role=message["role"],
        text=content_text(message.get("content")),
        name=_text_of(message, "name"),
        tool_calls=_tool_calls(message.get("tool_calls")),
        tool_result_ids=(result_id,) if result_id else (),
    )


def content_text(content: object) -> str:
    """The text of a content: itself, or its parts of type `text`, joined by line breaks."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [_text_of(part, "text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(texts)


def _text_of(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def _tool_calls(calls: object) -> tuple[ToolCall, ...]:
    """The calls that name a function and have an id; others are only in the parts."""
    found = [_tool_call(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return tuple(call for call in found if call.id and call.name)


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments", "")
    encoded = arguments.encode() if isinstance(arguments, str) else _json.dumps(arguments)
    return ToolCall(_text_of(call, "id"), _text_of(function, "name"), encoded)


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON of any shape
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    if callable(dump := getattr(value, "model_dump", None)):
        return {key: _plain(item) for key, item in dump().items() if item is not None or key == "content"}
    return value


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    raise TypeError(f"keys of a chat message are strings, not {type(key).__name__}")
