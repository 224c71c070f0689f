"""Memory items between the toolkit and Remora."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from nat.memory.models import MemoryItem
from pydantic import Field

from remora import _refusals
from remora import memory_items as remora

USER_CONTEXT = "user_context"
"""The member of the metadata that says whose request an item comes from."""


class RemoraMemoryItem(MemoryItem):
    """An item as a search finds it: the toolkit's, with what Remora knows besides."""

    id: str | None = Field(default=None, description="The item's id: `remove_items(memory_id=...)` takes it.")
    create_time: datetime | None = Field(default=None, description="When it was first written.")
    expire_time: datetime | None = Field(default=None, description="From when on it is gone.")


def says_something(item: MemoryItem) -> bool:
    """Whether an item has a memory, or a conversation with content: more than white space."""
    said = [message.get("content", "") for message in item.conversation or ()]
    return any(text.strip() for text in (item.memory or "", *said))


def to_remora(item: MemoryItem, context: Mapping[str, Any], ttl: float | None) -> remora.MemoryItem:
    """An item to be added. Values that JSON cannot hold in its metadata, NaN too, become text."""
    metadata = {**item.metadata, **({USER_CONTEXT: context} if context and USER_CONTEXT not in item.metadata else {})}
    return remora.MemoryItem(
        item.memory if item.memory and item.memory.strip() else "",  # then the conversation makes it
        conversation=item.conversation or (),
        tags=item.tags,
        metadata=_plain(metadata),
        ttl=ttl,
    )


def _plain(metadata: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """The metadata as JSON has it. Raises InvalidFieldError for what has no end, too many levels for Python, or a key
    that is no text.
    """
    try:
        return json.loads(json.dumps(metadata, default=str), parse_constant=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusals.invalid("metadata", f"cannot be stored as JSON: {error}; give what JSON can hold") from error


def from_remora(hit: remora.MemoryItemHit) -> RemoraMemoryItem:
    """An item that was found. `memory` is never empty where something was said."""
    item = hit.item
    return RemoraMemoryItem(
        id=item.id,
        user_id=item.user_id,
        conversation=[dict(message) for message in item.conversation] or None,
        tags=list(item.tags),
        metadata=dict(item.metadata),
        memory=item.text,
        similarity_score=hit.score,
        create_time=item.create_time,
        expire_time=item.expire_time,
    )


def as_text(items: Sequence[MemoryItem], *, include_scores: bool) -> str:
    """Items for a model, as the toolkit's own providers give them: numbered, the best first; "" if there are none."""
    if not items:
        return ""
    lines = ["Relevant memories (sorted by relevance):"]
    for number, item in enumerate(items, 1):
        lines.append(f"\n{number}. {item.memory}")
        if item.tags:
            lines.append(f"   (Tags: {', '.join(item.tags)})")
        if include_scores and item.similarity_score is not None:
            lines.append(f"   (Similarity: {item.similarity_score:.3f})")
    return "\n".join(lines)
