"""Working memory: one opaque value for a conversation or a user."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write


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


class WorkingMemoryStore(Protocol):
    """Keeps working memories: see `domain.store`."""

    def get(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory:
        """The content. Raises ConversationNotFound."""

    def set(self, write: Write, owner: WorkingMemoryOwner, content: bytes) -> Outcome:
        """Set; `time`. Raises ConversationNotFound."""

    def delete(self, write: Write, owner: WorkingMemoryOwner) -> Outcome:
        """Delete; `deleted`. Raises ConversationNotFound."""
