"""Anthropic's messages, in pieces: https://docs.anthropic.com/en/api/messages."""

from collections.abc import Iterator, Mapping
from typing import Any

from remora.chat_format import ToolCall
from remora.formats.pieces import (
    Other,
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

OWN_BLOCKS = frozenset({
    "tool_use", "tool_result", "image", "document", "thinking", "redacted_thinking", "server_tool_use",
    "web_search_tool_result", "code_execution_tool_result", "container_upload", "search_result",
})  # fmt: skip
"""Types of content blocks that OpenAI's chat messages do not have."""
BLOCKS = OWN_BLOCKS | {"text"}
PRIVATE_BLOCKS = frozenset({"thinking", "redacted_thinking"})
ROLES = {"user": "user", "assistant": "assistant", "tool": "user"}
"""Anthropic's roles; any other role is a user's."""


def is_own(message: Mapping[str, Any]) -> bool:
    """Whether only Anthropic has such a message."""
    return message.get("role") in {"user", "assistant"} and (
        (message.get("type") == "message" and "stop_reason" in message) or bool(_types(message) & OWN_BLOCKS)
    )


def _types(message: Mapping[str, Any]) -> set[str]:
    content = message.get("content")
    return {text_in(block, "type") for block in content} if isinstance(content, list) else set()


def as_sent(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message as a request takes it: of a reply, without what is no part of the message."""
    return {"role": message["role"], "content": message.get("content")}


def read(message: Mapping[str, Any]) -> Said:
    """The pieces of a message."""
    content = message.get("content")
    return Said(message["role"], tuple(_pieces(content)))


def _pieces(content: object) -> Iterator[Piece]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    for block in content if isinstance(content, list) else []:
        match block:
            case {"type": "text", "text": str(text)}:
                yield Text(text)
            case {"type": "tool_use", "id": str(id_), "name": str(name), "input": arguments}:
                yield ToolCall(id_, name, encoded_arguments(arguments))
            case {"type": "tool_result", "tool_use_id": str(id_)}:
                yield Result(id_, shown(_pieces(block.get("content"))))
            case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
                yield Picture(f"data:{kind};base64,{data}")
            case {"type": "image", "source": {"type": "url", "url": str(url)}}:
                yield Picture(url)
            case _:
                kind = text_in(block, "type") or "content of unknown type"
                yield Other(kind, kind in PRIVATE_BLOCKS)


def write(said: Said) -> Iterator[dict[str, Any]]:
    """The message that says the same; none where there is nothing to say, which Anthropic refuses."""
    blocks = [block for piece in said.pieces if (block := _block(piece))]
    blocks.sort(key=_is_no_result)  # results come first
    if blocks:
        yield {"role": ROLES.get(said.role, "user"), "content": blocks}


def _block(piece: Piece) -> dict[str, Any]:
    match piece:
        case ToolCall():
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": arguments_object(piece)}
        case Result():
            content = [block for inner in piece.pieces if (block := _block(inner))]
            return {"type": "tool_result", "tool_use_id": piece.call_id, **({"content": content} if content else {})}
        case Picture():
            return {"type": "image", "source": _source(piece.url)}
        case _:
            text = told(piece)
            return {"type": "text", "text": text} if text.strip() else {}


def _source(url: str) -> dict[str, Any]:
    head, separator, data = url.partition(";base64,")
    if head.startswith("data:") and separator:
        return {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    return {"type": "url", "url": url}


THINKING = frozenset({"thinking", "redacted_thinking"})


def accepts(message: Mapping[str, Any]) -> bool:
    """Whether Anthropic takes the message as it is."""
    if message.get("role") not in {"user", "assistant"} or set(message) != {"role", "content"}:
        return False
    content = message["content"]
    return bool(content.strip()) if isinstance(content, str) else bool(content) and _types(message) <= BLOCKS


def without_blanks(message: dict[str, Any]) -> dict[str, Any]:
    """The message without the blank texts among its blocks, which models write and Anthropic refuses, and without the
    thinking that nothing follows then, with which no message of an assistant may end.
    """
    content = message["content"]
    if not isinstance(content, list):
        return message
    blocks = [_without_blanks_inside(block) for block in content if not _is_blank(block)]
    while message["role"] == "assistant" and blocks and blocks[-1]["type"] in THINKING:
        blocks.pop()
    return message if blocks == content else {**message, "content": blocks}


def _without_blanks_inside(block: dict[str, Any]) -> dict[str, Any]:
    content = block.get("content")
    if block["type"] != "tool_result" or not isinstance(content, list) or not any(map(_is_blank, content)):
        return block
    blocks = [inner for inner in content if not _is_blank(inner)]
    return {**{key: block[key] for key in block if key != "content"}, **({"content": blocks} if blocks else {})}


def _is_blank(block: Mapping[str, Any]) -> bool:
    match block:
        case {"type": "text", "text": str(text)}:
            return not text.strip()
    return False


def joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any] | None:
    """Two messages of one role as one, because all results of a message's calls must be in the next; else None."""
    if not first or first["role"] != second["role"]:
        return None
    blocks = [*first["content"], *second["content"]]
    return {"role": first["role"], "content": sorted(blocks, key=_is_no_result)}


def _is_no_result(block: Mapping[str, Any]) -> bool:
    return bool(block["type"] != "tool_result")
