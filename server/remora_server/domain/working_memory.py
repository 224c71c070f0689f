"""Working memory: one value for a conversation or a user, opaque where it is set, text where it is edited."""

from __future__ import annotations

import json
from enum import Enum
from typing import Protocol, TypeAlias

from msgspec import Struct

from remora_server.domain import json_members
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import InvalidField
from remora_server.domain.json_schemas import JsonSchema

LONGEST = 1 << 20
"""The greatest size of a content in bytes."""


class ConversationMemory(Struct, frozen=True):
    """The working memory of a conversation. Where `user_id` is given, the conversation must be that user's."""

    conversation_id: str
    user_id: str = ""


class UserMemory(Struct, frozen=True):
    """The working memory of a user."""

    user_id: str


WorkingMemoryOwner: TypeAlias = ConversationMemory | UserMemory


class WorkingMemory(Struct, frozen=True):
    """A content and when it was set; `content` is None if there is none."""

    content: bytes | None
    update_time: int
    revision: int


class Mode(Enum):
    """How an edit changes the content."""

    REPLACE = "replace"
    APPEND = "append"


class MarkdownEdit(Struct, frozen=True):
    """An edit of a content that is text."""

    content: str
    mode: Mode

    def applied_to(self, before: bytes | None) -> bytes:
        """The content after it. Raises InvalidField."""
        added = self.content.encode()
        if self.mode is not Mode.APPEND or not before:
            return _bounded(added)
        if _is_json_structure(before):
            raise InvalidField("content", "is text, and the working memory holds JSON: append JSON, or replace it")
        return _bounded(b"\n\n".join([before, added]))


class JsonEdit(Struct, frozen=True):
    """An edit of a content that is JSON. `value` is what `json_value` made of the text."""

    value: object
    mode: Mode
    schema: JsonSchema | None = None

    def applied_to(self, before: bytes | None) -> bytes:
        """The content after it, indented by two spaces. Raises InvalidField."""
        value = self.value
        if self.mode is Mode.APPEND and before is not None:
            value = _appended(before, value)
        if self.schema is not None:
            self.schema.require("content", value)
        return _bounded(json.dumps(value, ensure_ascii=False, indent=2).encode())


WorkingMemoryEdit: TypeAlias = MarkdownEdit | JsonEdit


def json_value(content: str) -> object:
    """The value of JSON. Raises InvalidField."""
    data = content.encode()
    try:
        json_members.require_json(data)
    except ValueError as error:
        raise InvalidField("content", f"must be JSON: {error}") from None
    return json.loads(data)


def merged(before: object, added: object) -> object:
    """JSON with other JSON added: objects by their members, arrays joined, everything else replaced.

    Equal strings, numbers, booleans and nulls in an array are kept once; 1 and 1.0 are the same number. Arrays and
    objects in it are not compared, and all are kept.
    """
    if isinstance(before, dict) and isinstance(added, dict):
        both = {name: merged(before[name], value) for name, value in added.items() if name in before}
        return {**before, **added, **both}
    if isinstance(before, list) and isinstance(added, list):
        return _distinct([*before, *added])
    return added


def _distinct(elements: list[object]) -> list[object]:
    kept: dict[object, object] = {}
    for place, element in enumerate(elements):
        kept.setdefault(("place", place) if isinstance(element, list | dict) else _key(element), element)
    return list(kept.values())


def _key(element: object) -> tuple[object, object]:
    """The same for equal elements. Numbers are written out: anybody can choose many of which Python's hash is one."""
    if isinstance(element, bool) or not isinstance(element, int | float):
        return type(element), element
    return float, repr(element) if isinstance(element, float) and not element.is_integer() else repr(int(element))


def _appended(before: bytes, added: object) -> object:
    try:
        json_members.require_json(before)
    except ValueError:
        return added
    return merged(json.loads(before), added)


def _is_json_structure(content: bytes) -> bool:
    """Whether a content is an object or an array of JSON, which text behind it would end."""
    if not content.lstrip().startswith((b"{", b"[")):
        return False
    try:
        json_members.require_json(content)
    except ValueError:
        return False
    return True


def _bounded(content: bytes) -> bytes:
    if len(content) > LONGEST:
        raise InvalidField("content", f"makes the working memory {len(content)} bytes long; it may have {LONGEST}")
    return content


class WorkingMemoryStore(Protocol):
    """Keeps working memories: see `domain.store`."""

    def get(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory:
        """The content. Raises ConversationNotFound."""

    def set(self, write: Write, owner: WorkingMemoryOwner, content: bytes) -> Outcome:
        """Set; `time`. Raises ConversationNotFound."""

    def edit(self, write: Write, owner: WorkingMemoryOwner, edit: WorkingMemoryEdit) -> Outcome:
        """Edit what has been accepted; `time`. Raises ConversationNotFound, InvalidField."""

    def delete(self, write: Write, owner: WorkingMemoryOwner) -> Outcome:
        """Delete; `deleted`. Raises ConversationNotFound."""
