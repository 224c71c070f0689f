"""LangChain's messages, with the fields that its trim_messages uses (langchain-core 1.7).

They are read from JSON: a message as LangChain's message_to_dict writes it, or an OpenAI chat message as its
convert_to_messages reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from msgspec import Struct

from remora_server.domain.costs import ToolCall
from remora_server.domain.errors import InvalidField

Block: TypeAlias = "str | dict[str, Any]"
Content: TypeAlias = "str | list[Block]"

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
"""The role of each type in OpenAI's messages, which is counted."""
_TYPES = {
    **{role: kind for kind, role in _ROLES.items()},
    **{kind: kind for kind in _ROLES},
    "developer": "system",
}
"""The type that convert_to_messages gives to each role."""
_CHUNKS = {
    "HumanMessageChunk": "human",
    "AIMessageChunk": "ai",
    "SystemMessageChunk": "system",
    "ToolMessageChunk": "tool",
    "FunctionMessageChunk": "function",
    "ChatMessageChunk": "chat",
}
"""The type of message of each type of chunk in a stream."""
_IMAGES = ("image", "image_url")
MOST_TOTAL_TOKENS = 1 << 62
"""A greater number of tokens is read as this one, so that a float can hold it. LangChain scales no count by more."""


class LangChainMessage(Struct, frozen=True):
    """One message.

    `kind` is its `type`. `calls` is the length of its tool calls as Python prints them, in characters; `call_id` is
    that of a tool message. `provider` and `total_tokens` are what an answer's metadata says: its model's provider, and
    the tokens of its call, prompt and answer together; None: nothing.
    """

    kind: str
    role: str
    content: Content
    name: str = ""
    calls: int = 0
    call_id: str = ""
    provider: object = None
    total_tokens: int | None = None

    @property
    def is_system(self) -> bool:
        return _CHUNKS.get(self.kind, self.kind) == "system"

    @property
    def is_answer(self) -> bool:
        return _CHUNKS.get(self.kind, self.kind) == "ai"

    def characters(self, content: Content, *, count_name: bool) -> int:
        """The characters that count with another content, without images. Calls count only beside a text: if the
        content is a list, Anthropic's messages have the calls in it.
        """
        said = len(content) + self.calls if isinstance(content, str) else sum(map(_characters, content))
        return said + len(self.role) + len(self.call_id) + (len(self.name) if count_name else 0)


def images(content: Content) -> int:
    """How many images a content holds."""
    return 0 if isinstance(content, str) else sum(map(_is_image, content))


def text_of(block: Block) -> str:
    """The text of a block, empty for one of another type."""
    if isinstance(block, str):
        return block
    return block.get("text") or "" if block.get("type") == "text" else ""


def _is_image(block: Block) -> bool:
    return isinstance(block, dict) and block.get("type", "") in _IMAGES


def _characters(block: Block) -> int:
    if isinstance(block, str):
        return len(block)
    if _is_image(block):
        return 0
    return len(block.get("text", "")) if block.get("type") == "text" else len(repr(block))


def read_parts(parts: bytes, field: str) -> LangChainMessage:
    """A message from its parts. Raises InvalidField."""
    try:
        stored = json.loads(parts)
    except (ValueError, RecursionError):
        stored = None
    try:
        match stored:
            case {"type": str(kind), "data": dict(data)} if len(stored) == 2:
                return _of_langchain(kind, data)
            case {"role": str(role)}:
                return _of_openai(role, stored)
    except _UnreadableError as error:
        raise InvalidField(field, f"cannot be read as LangChain reads it: {error}") from None
    raise InvalidField(field, "must be a message of LangChain as message_to_dict writes it, or an OpenAI chat message")


def read_fields(
    role: str, name: str, text: str, calls: Sequence[ToolCall], result_ids: Sequence[str]
) -> LangChainMessage:
    """A message without parts. A role that LangChain does not know is that of a chat message.

    Raises InvalidField for arguments that are not JSON.
    """
    kind = _TYPES.get(role, "chat")
    call_id = result_ids[0] if kind == "tool" and result_ids else ""
    written = _written([_call(call, number) for number, call in enumerate(calls)]) if kind == "ai" else 0
    return LangChainMessage(kind, _role(kind, role), text, name, written, call_id)


class _UnreadableError(Exception):
    """Why a message cannot be read."""


def _of_langchain(kind: str, data: Mapping[str, Any]) -> LangChainMessage:
    whole = _CHUNKS.get(kind, kind)
    match whole:
        case "chat":
            role = _text(data, "role")
        case "system":
            role = _text(data.get("additional_kwargs") or {}, "__openai_role__") or "system"
        case _ if whole in _ROLES:
            role = _ROLES[whole]
        case _:
            raise _UnreadableError(f"a message of the type {kind!r} is not counted")
    is_answer = whole == "ai"
    return LangChainMessage(
        kind,
        role,
        _content(data.get("content")),
        _text(data, "name"),
        _written(data.get("tool_calls")) if is_answer else 0,
        _text(data, "tool_call_id") if whole == "tool" else "",
        _provider(data) if is_answer else None,
        _total_tokens(data) if is_answer else None,
    )


def _of_openai(role: str, message: Mapping[str, Any]) -> LangChainMessage:
    kind = _TYPES.get(role)
    if kind is None:
        raise _UnreadableError(f"the role {role!r} is not one of {', '.join(_TYPES)}")
    calls = message.get("tool_calls") if kind == "ai" else None
    call_id = _text(message, "tool_call_id") if kind == "tool" else ""
    written = _written([_openai_call(call) for call in calls] if isinstance(calls, list) else None)
    content, provider = _content(message.get("content") or ""), _provider(message) if kind == "ai" else None
    return LangChainMessage(kind, _role(kind, role), content, _text(message, "name"), written, call_id, provider)


def _provider(message: Mapping[str, Any]) -> object:
    metadata = message.get("response_metadata")
    return metadata.get("model_provider") if isinstance(metadata, dict) else None


def _total_tokens(message: Mapping[str, Any]) -> int | None:
    usage = message.get("usage_metadata")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return max(0, min(total, MOST_TOTAL_TOKENS)) if isinstance(total, int) else None


def _role(kind: str, role: str) -> str:
    return role if role == "developer" else _ROLES.get(kind, role)


def _content(content: object) -> Content:
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(map(_is_block, content)):
        return cast("list[Block]", content)
    raise _UnreadableError("its content is neither a text nor a list of blocks")


def _is_block(block: object) -> bool:
    if isinstance(block, dict):
        return block.get("type") != "text" or isinstance(block.get("text", ""), str)
    return isinstance(block, str)


def _openai_call(call: object) -> object:
    match call:
        case {"id": call_id, "function": {"name": name, "arguments": arguments}}:
            return _tool_call(call_id, name, _parsed(arguments) if isinstance(arguments, str) else arguments)
        case _:
            return call


def _call(call: ToolCall, number: int) -> dict[str, object]:
    try:
        return _tool_call(call.id, call.name, _parsed(call.arguments))
    except _UnreadableError as error:
        raise InvalidField(f"tool_calls[{number}].arguments", str(error)) from None


def _tool_call(call_id: object, name: object, arguments: object) -> dict[str, object]:
    return {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        raise _UnreadableError("the arguments of a tool call are not JSON") from None


def _written(calls: object) -> int:
    """The length of tool calls as Python prints them, in characters."""
    return len(repr(calls)) if isinstance(calls, list) and calls else 0


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
