"""Working memory of the local store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct

from remora.v1.working_memory_pb2 import WorkingMemoryRecord, WorkingMemoryScope
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.context_items import MEMORY_ID
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
from remora_server.storage.nouns.receipts import Receipts, deleted_memory, forgotten_facts
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Move, Put, Remove
from remora_server.storage.schema.kinds import CONVERSATION_MEMORIES, FACTS, USER_MEMORIES

_ONLY = b""
"""The key of the one record of a partition."""


class _Found(Struct, frozen=True):
    """Where a working memory stands, and whose it is."""

    place: Partition
    user_id: str


class WorkingMemories:
    """Sets, edits, gets and deletes working memory."""

    def __init__(self, context: StoreContext, conversations: Conversations, receipts: Receipts) -> None:
        """`receipts` are told, under the locks that they take, what is deleted."""
        self._receipts = receipts
        self._commits = context.commits
        self._commands = context.commands
        self._locks = context.locks
        self._records = context.records
        self._conversations = conversations

    def get(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory:
        found, revision = self._records.get(read, self._published_place(read, owner), _ONLY)
        if found is None:
            return WorkingMemory(None, 0, revision)
        memory = WorkingMemoryRecord.FromString(found.body)
        return WorkingMemory(memory.content, wire.micros(memory.update_time), revision)

    def set(self, write: Write, owner: WorkingMemoryOwner, content: bytes) -> Outcome:
        def plan(found: _Found, now: int) -> Planned:
            return self._planned(write, owner, found.place, content, now)

        return self._commands.run(write, self._locked(write, owner), plan)

    def edit(self, write: Write, owner: WorkingMemoryOwner, edit: WorkingMemoryEdit) -> Outcome:
        def plan(found: _Found, now: int) -> Planned:
            place = found.place
            there = self._records.accepted(write, place, [_ONLY])
            before = WorkingMemoryRecord.FromString(there[0].body).content if there else None
            return self._planned(write, owner, place, edit.applied_to(before), now)

        return self._commands.run(write, self._locked(write, owner), plan)

    def _planned(self, write: Write, owner: WorkingMemoryOwner, place: Partition, content: bytes, now: int) -> Planned:
        memory = WorkingMemoryRecord(scope=_scope(owner), content=content, update_time=wire.timestamp(now))
        puts = self._records.changes(write, [Put(place.kind, place.uid, memory)])
        return Planned(puts, Outcome(revision=0, time=now), _user(owner))

    def delete(self, write: Write, owner: WorkingMemoryOwner) -> Outcome:
        def plan(found: _Found, _now: int) -> Planned | None:
            place = found.place
            if self._records.stored(write, place, _ONLY) is None:
                return None
            shown, tell = self._shown(write, found)
            gone = self._records.changes(write, [Remove(place.kind, place.uid, place.partition, _ONLY), *shown])
            return Planned(gone, Outcome(revision=0, deleted=True), _user(owner), tell=tell)

        return self._commands.run(write, self._locked(write, owner), plan)

    def _shown(self, write: Write, found: _Found) -> tuple[Sequence[Move], Callable[[int], None]]:
        """What contexts had of it goes too, and the receipts that are still to be written are told."""
        uid, user_id = found.place.uid, found.user_id
        if uid:
            return [deleted_memory(uid, user_id)], partial(self._receipts.memory_deleted, uid)
        told = partial(self._receipts.forgotten, write.tenant_id, user_id, [MEMORY_ID])
        return list(forgotten_facts(user_id, [MEMORY_ID])), told

    @contextmanager
    def _locked(self, write: Write, owner: WorkingMemoryOwner) -> Iterator[_Found]:
        """Where a working memory stands, under the lock of its conversation, or under its own and that of the user's
        facts, which receipts take.
        """
        if isinstance(owner, ConversationMemory):
            with self._locks.of(write, owner.conversation_id):
                head = self._conversations.accepted(write, owner.conversation_id).head
                yield _Found(_of_conversation(owner, head.uid, head.user_id), head.user_id)
        else:
            place = _of_user(owner)
            facts = Partition(FACTS, 0, FACTS.encode_partition(owner.user_id))
            with self._records.held_places(write, [place, facts]):
                yield _Found(place, owner.user_id)

    def _published_place(self, read: Read, owner: WorkingMemoryOwner) -> Partition:
        if not isinstance(owner, ConversationMemory):
            return _of_user(owner)
        self._commits.begin(read)
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
