"""Working memory of the local store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from remora.v1.working_memory_pb2 import WorkingMemoryRecord, WorkingMemoryScope
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.conversations import require_owner
from remora_server.domain.working_memory import (
    ConversationMemory,
    UserMemory,
    WorkingMemory,
    WorkingMemoryEdit,
    WorkingMemoryOwner,
)
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Put, Remove
from remora_server.storage.schema.kinds import CONVERSATION_MEMORIES, USER_MEMORIES

_ONLY = b""
"""The key of the one record of a partition."""


class WorkingMemories:
    """Sets, edits, gets and deletes working memory."""

    def __init__(self, context: StoreContext, conversations: Conversations) -> None:
        self._commits = context.commits
        self._commands = context.commands
        self._locks = context.locks
        self._records = context.records
        self._conversations = conversations

    def get(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory:
        self._commits.begin(read)
        found, revision = self._records.get(read, self._published_place(read, owner), _ONLY)
        if found is None:
            return WorkingMemory(None, 0, revision)
        memory = WorkingMemoryRecord.FromString(found.body)
        return WorkingMemory(memory.content, memory.update_time.ToMicroseconds(), revision)

    def set(self, write: Write, owner: WorkingMemoryOwner, content: bytes) -> Outcome:
        def plan(place: Partition, now: int) -> Planned:
            return self._planned(write, owner, place, content, now)

        return self._commands.run(write, self._locked(write, owner), plan)

    def edit(self, write: Write, owner: WorkingMemoryOwner, edit: WorkingMemoryEdit) -> Outcome:
        def plan(place: Partition, now: int) -> Planned:
            there = self._records.accepted(write, place, [_ONLY])
            before = WorkingMemoryRecord.FromString(there[0].body).content if there else None
            return self._planned(write, owner, place, edit.applied_to(before), now)

        return self._commands.run(write, self._locked(write, owner), plan)

    def _planned(self, write: Write, owner: WorkingMemoryOwner, place: Partition, content: bytes, now: int) -> Planned:
        memory = WorkingMemoryRecord(scope=_scope(owner), content=content, update_time=wire.timestamp(now))
        puts = self._records.changes(write, [Put(place.kind, place.uid, memory)])
        return Planned(puts, Outcome(revision=0, time=now), _user(owner))

    def delete(self, write: Write, owner: WorkingMemoryOwner) -> Outcome:
        def plan(place: Partition, _now: int) -> Planned | None:
            if self._records.stored(write, place, _ONLY) is None:
                return None
            gone = self._records.changes(write, [Remove(place.kind, place.uid, place.partition, _ONLY)])
            return Planned(gone, Outcome(revision=0, deleted=True), _user(owner))

        return self._commands.run(write, self._locked(write, owner), plan)

    @contextmanager
    def _locked(self, write: Write, owner: WorkingMemoryOwner) -> Iterator[Partition]:
        """Where a working memory stands, under the lock of its conversation or of its own."""
        if isinstance(owner, ConversationMemory):
            with self._locks.of(write, owner.conversation_id):
                head = self._conversations.accepted(write, owner.conversation_id).head
                yield _of_conversation(owner, head.uid, head.user_id)
        else:
            place = _of_user(owner)
            with self._records.held_place(write, place):
                yield place

    def _published_place(self, read: Read, owner: WorkingMemoryOwner) -> Partition:
        if not isinstance(owner, ConversationMemory):
            return _of_user(owner)
        head = self._conversations.published(read, owner.conversation_id)
        return _of_conversation(owner, head.uid, head.user_id)


def _of_conversation(owner: ConversationMemory, uid: int, owner_id: str) -> Partition:
    require_owner(owner_id, owner.user_id, owner.conversation_id)
    return Partition(CONVERSATION_MEMORIES, uid, CONVERSATION_MEMORIES.encode_partition())


def _of_user(owner: UserMemory) -> Partition:
    return Partition(USER_MEMORIES, 0, USER_MEMORIES.encode_partition(owner.user_id))


def _scope(owner: WorkingMemoryOwner) -> WorkingMemoryScope:
    if isinstance(owner, ConversationMemory):
        return WorkingMemoryScope(conversation_id=owner.conversation_id)
    return WorkingMemoryScope(user_id=owner.user_id)


def _user(owner: WorkingMemoryOwner) -> str:
    return "" if isinstance(owner, ConversationMemory) else owner.user_id
