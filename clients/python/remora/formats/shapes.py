"""What a dict must have to be a message, so that none is stored that every model refuses.

Only what all models of a format refuse is refused here: unknown types of parts and of items may be new ones, and are
kept as they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from remora import _refusals

EXAMPLE = '{"role": "user", "content": "hello"}'
PART = '{"type": "text", "text": "hello"}'

SILENT_ROLES = frozenset({"assistant", "function"})
"""Roles whose messages may have no content: the one calls tools, the other says that a function returned nothing."""

NEEDED: Mapping[str, Sequence[str]] = {
    "text": ("text",),
    "input_text": ("text",),
    "output_text": ("text",),
    "image_url": ("image_url",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
}
"""What a part of a content, or an item of the Responses API, must have besides its type."""


def require_message(message: Mapping[str, Any]) -> None:
    """Raises an InvalidFieldError for a chat message with a role that has no content, or a wrong one."""
    content = message.get("content")
    may_be_silent = message["role"] in SILENT_ROLES
    if not isinstance(content, str | list | tuple) and not (content is None and may_be_silent):
        raise _refusals.wrong_type("content", content, "a str or a list of parts")
    if isinstance(content, list | tuple):
        if not content and not may_be_silent:
            raise _refusals.invalid("content", "has no parts; it must be a str or a list of parts")
        for position, part in enumerate(content):
            _require_part(part, f"content[{position}]")
    if not isinstance(message.get("name"), str | None):
        raise _refusals.wrong_type("name", message["name"], "a str")
    _require_calls(message.get("tool_calls"))


def require_item(item: Mapping[str, Any]) -> None:
    """Raises an InvalidFieldError for an item without what one of its type needs."""
    if isinstance(item.get("role"), str):
        require_message(item)
    elif isinstance(item["type"], str):
        _require_keys(item, item["type"], f"a {item['type']}")


def _require_part(part: object, field: str) -> None:
    if not isinstance(part, Mapping):
        if not hasattr(part, "model_dump"):
            raise _refusals.wrong_type(field, part, f"a dict such as {PART}")
        return
    kind = part.get("type")
    if kind is None:
        raise _refusals.missing(field, "type", f"write {PART}")
    if not isinstance(kind, str):
        raise _refusals.wrong_type(f"{field}['type']", kind, "a str")
    _require_keys(part, kind, f"{field}, a {kind},")
    if "text" in NEEDED.get(kind, ()) and not isinstance(part["text"], str):
        raise _refusals.wrong_type(f"{field}['text']", part["text"], "a str")


def _require_calls(calls: object) -> None:
    if not isinstance(calls, list | tuple | None):
        raise _refusals.wrong_type("tool_calls", calls, "calls in a list")
    for position, call in enumerate(calls or ()):
        field = f"tool_calls[{position}]"
        if not isinstance(call, Mapping):
            if not hasattr(call, "model_dump"):
                raise _refusals.wrong_type(field, call, "a dict with id and function")
            continue
        if "id" not in call:
            raise _refusals.missing(field, "id", "the result names it")
        _require_function(call, field)


def _require_function(call: Mapping[str, Any], field: str) -> None:
    key = "custom" if "custom" in call else "function"
    if key not in call:
        raise _refusals.missing(field, key, 'write {"name": "search", "arguments": "{}"}')
    if not isinstance(call[key], Mapping):
        if not hasattr(call[key], "model_dump"):
            raise _refusals.wrong_type(f"{field}[{key!r}]", call[key], "a dict with name and arguments")
    elif "name" not in call[key]:
        raise _refusals.missing(f"{field}[{key!r}]", "name")


def _require_keys(mapping: Mapping[str, Any], kind: str, owner: str) -> None:
    for key in NEEDED.get(kind, ()):
        if key not in mapping:
            raise _refusals.missing(owner, key)
