"""Items of OpenAI's Responses API, in pieces: https://platform.openai.com/docs/api-reference/responses."""

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
    arguments_text,
    encoded_arguments,
    shown,
    text_in,
    told,
)

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that call a tool of the caller's, and where they have the arguments."""
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
CONTENT = frozenset({"input_text", "output_text", "input_image", "input_file", "input_audio"})
"""Types of content that chat messages do not have, but for `input_audio`, which both have."""
MESSAGE_ROLES = frozenset({"user", "assistant", "system", "developer"})
"""The roles of a message; any other role is a user's."""
SYSTEM_ROLES = frozenset({"system", "developer"})


def is_own(item: Mapping[str, Any]) -> bool:
    """Whether only the Responses API has such an item."""
    content = item.get("content")
    types = {text_in(part, "type") for part in content} if isinstance(content, list) else set()
    is_no_message = "type" in item and item["type"] != "message" and not {"role", "data"} & set(item)
    return is_no_message or bool(types & CONTENT - {"input_audio"})


def accepts(item: Mapping[str, Any]) -> bool:
    """Whether the Responses API takes the item as it is."""
    if is_own(item):
        return True
    return (
        set(item) <= {"role", "content"} and item.get("role") in MESSAGE_ROLES and isinstance(item.get("content"), str)
    )


def read(item: Mapping[str, Any]) -> Said:
    """The pieces of an item. One that is neither a message nor a tool's is the assistant's own."""
    kind = text_in(item, "type")
    if kind in CALLS and text_in(item, "call_id") and text_in(item, "name"):
        arguments = encoded_arguments(item.get(CALLS[kind], ""))
        return Said("assistant", (ToolCall(item["call_id"], item["name"], arguments),))
    if kind in OUTPUTS and text_in(item, "call_id"):
        return Said("tool", (Result(item["call_id"], shown(_pieces(item.get("output")))),))
    if "role" in item:
        role = "system" if item["role"] in SYSTEM_ROLES else item["role"]
        return Said(role, tuple(_pieces(item.get("content"))))
    return Said("assistant", (Other(kind or "item of unknown type", is_private=True),))


def _pieces(content: object) -> Iterator[Piece]:
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}] if content else []
    for part in content if isinstance(content, list) else []:
        match part:
            case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
                yield Text(text)
            case {"type": "refusal", "refusal": str(text)}:
                yield Text(text)
            case {"type": "input_image", "image_url": str(url)}:
                yield Picture(url, text_in(part, "detail"))
            case _:
                yield Other(text_in(part, "type") or "content of unknown type")


def write(said: Said) -> Iterator[dict[str, Any]]:
    """The items that say the same: results, the message, calls."""
    for result in said.results:
        yield {"type": "function_call_output", "call_id": result.call_id, "output": _output(result)}
    rest = [piece for piece in said.pieces if not isinstance(piece, ToolCall | Result)]
    role = said.role if said.role in MESSAGE_ROLES else "user"
    if any(isinstance(piece, Picture) for piece in rest):
        yield {"role": role, "content": [part for piece in rest if (part := _part(piece))]}
    elif text := "\n".join(text for piece in rest if (text := told(piece))):
        yield {"role": role, "content": text}
    for call in said.calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_text(call)}


def without_lone_reasoning(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items without the reasoning that no other item of the model's follows: the API refuses it.

    It led to a call that is left out because nobody has answered it, or to nothing.
    """
    kept: list[dict[str, Any]] = []
    for item in reversed(items):
        if item.get("type") != "reasoning" or (kept and _is_the_models(kept[-1])):
            kept.append(item)
    return kept[::-1]


def _is_the_models(item: Mapping[str, Any]) -> bool:
    return bool(item.get("role", "assistant") == "assistant" and not text_in(item, "type").endswith("_output"))


def _output(result: Result) -> str | list[dict[str, Any]]:
    if any(isinstance(piece, Picture) for piece in result.pieces):
        return [part for piece in result.pieces if (part := _part(piece))]
    return "\n".join(text for piece in result.pieces if (text := told(piece)))


def _part(piece: Piece) -> dict[str, Any]:
    if isinstance(piece, Picture):
        return {"type": "input_image", "image_url": piece.url, "detail": piece.detail or "auto"}
    return {"type": "input_text", "text": text} if (text := told(piece)) else {}
