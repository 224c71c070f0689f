"""Working memory of the embedded store."""

from __future__ import annotations

from contextlib import nullcontext

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.conversations import require_owner
from remora_server.domain.working_memory import ConversationMemory, WorkingMemory, WorkingMemoryOwner
from remora_server.storage import changes
from remora_server.storage.commands import Planned
from remora_server.storage.context import StoreContext
from remora_server.storage.conversations import Conversations
from remora_server.storage.locks import Locked

_FIND = """
SELECT content, update_time FROM working_memories WHERE tenant_id = ? AND conversation_uid = ? AND user_id = ?
"""


class WorkingMemories:
    """Sets, gets and deletes working memory."""

    def __init__(self, context: StoreContext, conversations: Conversations) -> None:
        self._database = context.database
        self._commits = context.commits
        self._commands = context.commands
        self._locks = context.locks
        self._conversations = conversations

    def get(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory:
        revision = self._commits.begin_query(read)
        content, update_time = self._find(read.tenant_id, self._published_key(read, owner))
        return WorkingMemory(content, update_time, revision)

    def _find(self, tenant_id: str, key: tuple[int, str]) -> tuple[bytes | None, int]:
        """The content that has been applied, None where there is none, and when it was written."""
        rows = self._database.rows(_FIND, [tenant_id, *key])
        return rows[0] if rows else (None, 0)

    def set(self, write: Write, owner: WorkingMemoryOwner, content: bytes) -> Outcome:
        def plan(key: tuple[int, str], now: int) -> Planned:
            uid, user_id = key
            change = changes.put_working_memory(uid, user_id, content, now)
            return Planned([change], Outcome(revision=0, time=now), user_id)

        return self._commands.run(write, self._locked(write, owner), plan)

    def delete(self, write: Write, owner: WorkingMemoryOwner) -> Outcome:
        def plan(key: tuple[int, str], _now: int) -> Planned | None:
            uid, user_id = key
            self._commits.begin_query(Read(write.tenant_id, deadline=write.deadline))
            if self._find(write.tenant_id, key)[0] is None:
                return None
            change = changes.delete_working_memory(uid, user_id)
            return Planned([change], Outcome(revision=0, deleted=True), user_id)

        return self._commands.run(write, self._locked(write, owner), plan)

    def _locked(self, write: Write, owner: WorkingMemoryOwner) -> Locked[tuple[int, str]]:
        """The key of a working memory, under the lock of its conversation."""
        lock = self._locks.of(write, owner.conversation_id) if isinstance(owner, ConversationMemory) else nullcontext()
        return Locked(lock, lambda: self._accepted_key(write, owner))

    def _accepted_key(self, write: Write, owner: WorkingMemoryOwner) -> tuple[int, str]:
        if not isinstance(owner, ConversationMemory):
            return 0, owner.user_id
        head = self._conversations.accepted(write, owner.conversation_id).head
        require_owner(head.user_id, owner.user_id, owner.conversation_id)
        return head.uid, ""

    def _published_key(self, read: Read, owner: WorkingMemoryOwner) -> tuple[int, str]:
        if not isinstance(owner, ConversationMemory):
            return 0, owner.user_id
        head = self._conversations.published(read, owner.conversation_id)
        require_owner(head.user_id, owner.user_id, owner.conversation_id)
        return head.uid, ""
