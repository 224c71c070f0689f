"""Stores records as they were in another store. What is there already is compared, never overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from remora.v1 import message_pb2, step_pb2
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.errors import ConversationNotFound, RecordConflict
from remora_server.domain.messages import ConversationView, Plan
from remora_server.domain.transfers import (
    Import,
    ImportedConversation,
    ImportedMemory,
    ImportedMessage,
    ImportedStep,
    plan_import,
    require_distinct,
)
from remora_server.domain.working_memory import ConversationMemory
from remora_server.storage import changes
from remora_server.storage.commands import Planned
from remora_server.storage.context import StoreContext
from remora_server.storage.encoding import STORED_COLUMNS, conversation_row, stored_message, timestamp
from remora_server.storage.exports import caller_embeddings
from remora_server.storage.loading import AcceptedConversation, NewConversation
from remora_server.storage.messages import CountTokens, OnPuts
from remora_server.storage.v1 import record_pb2

_MESSAGES = f"""
SELECT {STORED_COLUMNS} FROM messages WHERE conversation_uid = $uid
    AND sequence IN (SELECT unnest($sequences::UBIGINT[]))
"""  # noqa: S608 - a constant
_STEPS = "SELECT user_id, id, body FROM steps WHERE conversation_uid = $uid AND id IN (SELECT unnest($ids))"
_MEMORY = """
SELECT content, update_time FROM working_memories WHERE tenant_id = ? AND conversation_uid = ? AND user_id = ?
"""


class Imports:
    """Stores imported records. `on_puts` is told of every accepted plan."""

    def __init__(self, context: StoreContext, *, count_tokens: CountTokens, on_puts: OnPuts) -> None:
        self._database = context.database
        self._commits = context.commits
        self._commands = context.commands
        self._loader = context.loader
        self._count_tokens = count_tokens
        self._on_puts = on_puts

    def store(self, write: Write, given: Import) -> Outcome:
        _require_distinct(given)
        if not given.conversation_id:
            return self._commands.run(write, nullcontext(), lambda _, __: self._of_users(write, given))
        held = self._loader.locked(write, given.conversation_id)
        return self._commands.run(write, held, lambda found, _: self._into_conversation(write, given, found))

    def _of_users(self, write: Write, given: Import) -> Planned | None:
        """Users' working memories; None where all are there."""
        self._commits.settle(write.deadline)
        puts = self._new_memories(write.tenant_id, 0, given.memories)
        return Planned(puts, Outcome(revision=0, imported_records=len(puts))) if puts else None

    def _into_conversation(self, write: Write, given: Import, found: AcceptedConversation | None) -> Planned | None:
        """Records of a conversation; None where all are there."""
        view, created = _view(found, given)
        uid = view.head.uid
        planned = plan_import(view, given.conversation, given.messages)
        if found is not None and (planned.taken or given.steps or given.memories):
            self._commits.settle(write.deadline)
        self._require_same_messages(uid, planned.taken)
        others = [*self._new_steps(uid, given.steps), *self._new_memories(write.tenant_id, uid, given.memories)]
        stored = len(created) + len(planned.plan.puts) + len(others)
        if not stored and planned.plan.head == view.head:
            return None
        outcome = Outcome(revision=0, conversation_id=given.conversation_id, imported_records=stored)
        return self._planned(write, planned.plan, [*created, *others], outcome)

    def _planned(self, write: Write, plan: Plan, before: Sequence[changes.Change], outcome: Outcome) -> Planned:
        counts = self._count_tokens([put.draft.text for put in plan.puts]) if plan.puts else []
        by_draft = {id(put.draft): count for put, count in zip(plan.puts, counts, strict=True)}
        moves = changes.message_changes(outcome.conversation_id, plan, by_draft)
        return Planned(
            [*before, *moves],
            outcome,
            plan.head.user_id,
            tell=lambda revision: self._on_puts(write.tenant_id, outcome.conversation_id, plan, revision),
        )

    def _require_same_messages(self, uid: int, messages: Sequence[ImportedMessage]) -> None:
        if not messages:
            return
        sequences = [message.sequence for message in messages]
        rows, embeddings = self._database.snapshot(
            lambda cursor: (
                cursor.execute(_MESSAGES, {"uid": uid, "sequences": sequences}).fetchall(),
                caller_embeddings(cursor, [uid] * len(sequences), sequences),
            )
        )
        stored: dict[int, message_pb2.Message] = {}
        for row in rows:
            sequence, revision = row[:2]
            stored[sequence] = message_pb2.Message.FromString(stored_message(*row))
            if (uid, sequence, revision) in embeddings:
                stored[sequence].embedding.CopyFrom(embeddings[uid, sequence, revision])
        for message in messages:
            if _without_server_fields(stored[message.sequence]) != _message(message):
                raise RecordConflict(message.field)

    def _new_steps(self, uid: int, steps: Sequence[ImportedStep]) -> list[changes.Change]:
        stored = self._steps(uid, steps)
        for step in steps:
            body = stored.get(_owned(step))
            if body is not None and step_pb2.Step.FromString(body) != step_pb2.Step.FromString(step.draft.body):
                raise RecordConflict(step.field)
        return [_put_step(uid, step) for step in steps if _owned(step) not in stored]

    def _steps(self, uid: int, steps: Sequence[ImportedStep]) -> dict[tuple[str, str], bytes]:
        """What is stored under the steps' ids, by user and id."""
        ids = [step.draft.id for step in steps]
        rows = self._database.rows(_STEPS, {"uid": uid, "ids": ids}) if uid and ids else []
        return {(user_id, step_id): body for user_id, step_id, body in rows}

    def _new_memories(self, tenant_id: str, uid: int, memories: Sequence[ImportedMemory]) -> list[changes.Change]:
        return [
            changes.put_working_memory(uid, _user(memory), memory.content, memory.update_time)
            for memory in memories
            if not self._has_memory(tenant_id, uid, memory)
        ]

    def _has_memory(self, tenant_id: str, uid: int, memory: ImportedMemory) -> bool:
        is_new = isinstance(memory.owner, ConversationMemory) and not uid
        rows = [] if is_new else self._database.rows(_MEMORY, [tenant_id, uid, _user(memory)])
        if rows and rows[0] != (memory.content, memory.update_time):
            raise RecordConflict(memory.field)
        return bool(rows)


def _view(found: AcceptedConversation | None, given: Import) -> tuple[ConversationView, list[changes.Change]]:
    """The conversation, and the change that creates it where it is not there."""
    own = given.conversation
    if found is None:
        if own is None:
            raise ConversationNotFound(given.conversation_id)
        new = NewConversation(own.draft.user_id, own.draft.storage_limit)
        return new, [changes.put_conversation(0, own.draft, own.create_time)]
    if own is not None and not _is_same(found, own):
        raise RecordConflict(own.field)
    return found, []


def _is_same(found: AcceptedConversation, own: ImportedConversation) -> bool:
    rows = conversation_row(found.draft), conversation_row(own.draft)
    return found.row.create_time == own.create_time and rows[0] == rows[1]


def _require_distinct(given: Import) -> None:
    require_distinct((step.field, _owned(step)) for step in given.steps)
    require_distinct((memory.field, memory.owner) for memory in given.memories)


def _owned(step: ImportedStep) -> tuple[str, str]:
    return step.draft.user_id, step.draft.id


def _user(memory: ImportedMemory) -> str:
    return "" if isinstance(memory.owner, ConversationMemory) else memory.owner.user_id


def _message(given: ImportedMessage) -> message_pb2.Message:
    """The message as it would be stored."""
    message = message_pb2.Message.FromString(given.draft.body)
    message.id, message.user_id, message.sequence = given.draft.id, given.user_id, given.sequence
    message.create_time.CopyFrom(timestamp(given.create_time))
    message.update_time.CopyFrom(timestamp(given.update_time))
    if given.draft.embedding is not None:
        message.embedding.model, message.embedding.values = given.draft.embedding.model, given.draft.embedding.values
    return message


def _without_server_fields(message: message_pb2.Message) -> message_pb2.Message:
    message.ClearField("revision")
    message.ClearField("token_count")
    return message


def _put_step(uid: int, step: ImportedStep) -> changes.Change:
    return changes.put_step(record_pb2.PutStep(conversation_uid=uid, step=step_pb2.Step.FromString(step.draft.body)))
