"""The working memories that are candidates of a context, as messages of the user."""

from __future__ import annotations

from typing import Protocol

from remora_server.domain.calls import Read
from remora_server.domain.context_messages import ContextMessage, MessageReader
from remora_server.domain.tokens import O200K_BASE, TokenCounter
from remora_server.domain.working_memory import (
    ConversationMemory,
    UserMemory,
    WorkingMemory,
    WorkingMemoryOwner,
)

PREFIX = "WORKING MEMORY: "
"""What the text of such a message begins with."""
OF_CONVERSATION, OF_USER = -1, -(1 << 62)
"""The sequences of these messages, which are no messages of a conversation, and are apart from those of facts."""


class MemorySource(Protocol):
    """What a context asks of working memories: see `domain.working_memory.WorkingMemoryStore`."""

    def get(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory: ...


def working_memories(
    source: MemorySource,
    reader: MessageReader,
    tokens: TokenCounter,
    read: Read,
    conversation_id: str,
    *,
    user_id: str,
    is_owner: bool,
) -> list[ContextMessage]:
    """That of a user, and that of a conversation if it is the user's own; only those that are texts."""
    owners: list[tuple[WorkingMemoryOwner, str, int]] = []
    if user_id:
        owners.append((UserMemory(user_id), "", OF_USER))
    if is_owner:
        owners.append((ConversationMemory(conversation_id), conversation_id, OF_CONVERSATION))
    found = [(source.get(read, owner), of, sequence) for owner, of, sequence in owners]
    shown = [(memory, _text(memory.content), of, sequence) for memory, of, sequence in found]
    texts = [PREFIX + text for _, text, _, _ in shown if text]
    counts = iter(zip(texts, tokens.count(O200K_BASE, texts) if texts else (), strict=True))
    return [
        reader.working_memory(of, user_id, *next(counts), update_time=memory.update_time, sequence=sequence)
        for memory, text, of, sequence in shown
        if text
    ]


def _text(content: bytes | None) -> str:
    """A content as text; empty where there is none, or it is no UTF-8."""
    try:
        return (content or b"").decode()
    except UnicodeDecodeError:
        return ""
