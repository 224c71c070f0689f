"""Working memory: one opaque content for a conversation or a user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ConversationMemory:
    """The working memory of a conversation. Where `user_id` is given, the conversation must be that user's."""

    conversation_id: str
    user_id: str = ""


@dataclass(frozen=True, slots=True)
class UserMemory:
    """The working memory of a user."""

    user_id: str


WorkingMemoryOwner: TypeAlias = ConversationMemory | UserMemory


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """A content and when it was set; `content` is None where there is none."""

    content: bytes | None
    update_time: int
    revision: int
