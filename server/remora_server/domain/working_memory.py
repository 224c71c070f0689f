"""Working memory: one opaque content for a conversation or a user."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class ConversationMemory(Struct, frozen=True):
    """The working memory of a conversation. Where `user_id` is given, the conversation must be that user's."""

    conversation_id: str
    user_id: str = ""


class UserMemory(Struct, frozen=True):
    """The working memory of a user."""

    user_id: str


WorkingMemoryOwner: TypeAlias = ConversationMemory | UserMemory


class WorkingMemory(Struct, frozen=True):
    """A content and when it was set; `content` is None where there is none."""

    content: bytes | None
    update_time: int
    revision: int
