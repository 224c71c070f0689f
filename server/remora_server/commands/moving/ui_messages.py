"""The parts of the AI SDK's UIMessages as VoltAgent's LibSQL adapter reads them, and their text.

The text is the same as from `messages.ts` in Remora's adapter. It is what is found, embedded and counted.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from remora_server.commands.moving import json_columns
from remora_server.commands.moving.sqlite_file import Row

LARGEST_TEXT_BYTES = 1 << 20


class Parts(Struct, frozen=True):
    """The parts of a message: their value, and their JSON."""

    value: list[Any]
    encoded: bytes


def parts(row: Row) -> Parts:
    """The parts of a message. Raises CommandFailed if they are not a list."""
    if row.values.get("parts") is None:
        return _older(row)
    value = json_columns.value(row, "parts")
    if not isinstance(value, list):
        raise row.fault("parts", "is not a list")
    return Parts(value, json_columns.data(row, "parts"))


def _older(row: Row) -> Parts:
    """The parts of a message of VoltAgent 0.1. Its `content` is a list of parts or a text, in JSON or plain."""
    content = row.optional_text("content")
    try:
        value = json.loads(content) if content else []
    except (ValueError, RecursionError):
        value = content
    if isinstance(value, str):
        value = [{"type": "text", "text": value}]
    own = value if isinstance(value, list) else []
    return Parts(own, json.dumps(own, separators=(",", ":")).encode())


def text_of(given: list[Any]) -> str:
    """The text parts, joined by spaces, up to the greatest length of a message."""
    texts = [part.get("text") for part in given if isinstance(part, dict) and part.get("type") == "text"]
    whole = as_javascript_encodes(" ".join(text for text in texts if isinstance(text, str)))
    return whole.encode()[:LARGEST_TEXT_BYTES].decode("utf-8", "ignore")


def as_javascript_encodes(text: str) -> str:
    """A text in which U+FFFD replaces halves of surrogate pairs, because these have no UTF-8."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
