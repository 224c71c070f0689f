"""The domain's decisions as the changes of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from remora_server.domain.conversations import ConversationDraft, Head
from remora_server.domain.messages import Plan, Put, Removal
from remora_server.storage.encoding import conversation_row
from remora_server.storage.v1 import record_pb2

Change: TypeAlias = Callable[[record_pb2.Change], object]
"""Fills a change of a record: a message that is made apart would be copied into the record, its body included."""


def put_conversation(uid: int, draft: ConversationDraft, create_time: int) -> Change:
    """A conversation's row; uid 0 creates it."""
    put = record_pb2.PutConversation(
        conversation_uid=uid, conversation=conversation_row(draft), create_time=create_time
    )
    return lambda change: change.put_conversation.CopyFrom(put)


def put_head(conversation_id: str, head: Head) -> Change:
    """A conversation's counters."""

    def fill(change: record_pb2.Change) -> None:
        put = change.put_head
        put.conversation_uid = head.uid
        put.conversation_id = conversation_id
        put.last_sequence = head.last_sequence
        put.message_count = head.message_count
        put.last_time = head.last_time
        put.update_time = head.update_time

    return fill


def delete_conversation(uid: int, conversation_id: str) -> Change:
    """The end of a conversation."""
    gone = record_pb2.DeleteConversation(conversation_uid=uid, conversation_id=conversation_id)
    return lambda change: change.delete_conversation.CopyFrom(gone)


def message_changes(conversation_id: str, plan: Plan, token_counts: dict[int, int]) -> Iterator[Change]:
    """A plan's changes, the head last. `token_counts` by the identity of the draft."""
    for removal in plan.removals:
        yield _remove_messages(plan.head.uid, conversation_id, removal)
    for put in plan.puts:
        yield _put_message(plan.head.uid, conversation_id, put, token_counts[id(put.draft)])
    yield put_head(conversation_id, plan.head)


def _remove_messages(uid: int, conversation_id: str, removal: Removal) -> Change:
    gone = record_pb2.RemoveMessages(
        conversation_uid=uid,
        conversation_id=conversation_id,
        user_id=removal.user_id,
        sequences=removal.sequences or (),
        all=removal.sequences is None,
    )
    return lambda change: change.remove_messages.CopyFrom(gone)


def _put_message(uid: int, conversation_id: str, put: Put, token_count: int) -> Change:
    def fill(change: record_pb2.Change) -> None:
        row, draft = change.put_message, put.draft
        row.conversation_uid = uid
        row.conversation_id = conversation_id
        row.user_id = put.user_id
        row.id = put.id
        row.sequence = put.sequence
        row.create_time = put.create_time
        row.update_time = put.update_time
        row.token_count = token_count
        row.body = draft.body
        row.replaces = put.replaces
        if draft.embedding:
            row.embedding_model = draft.embedding.model
            row.embedding = draft.embedding.values

    return fill


def put_step(step: record_pb2.PutStep) -> Change:
    """A step."""
    return lambda change: change.put_step.CopyFrom(step)


def put_embedding(embedding: record_pb2.PutEmbedding) -> Change:
    """A finished vector."""
    return lambda change: change.put_embedding.CopyFrom(embedding)


def remove_steps(uid: int, user_id: str) -> Change:
    """All steps of one user in a conversation."""
    gone = record_pb2.RemoveSteps(conversation_uid=uid, user_id=user_id)
    return lambda change: change.remove_steps.CopyFrom(gone)


def put_working_memory(uid: int, user_id: str, content: bytes, now: int) -> Change:
    """A content, of a conversation (uid) or a user."""
    put = record_pb2.PutWorkingMemory(conversation_uid=uid, user_id=user_id, content=content, update_time=now)
    return lambda change: change.put_working_memory.CopyFrom(put)


def delete_working_memory(uid: int, user_id: str) -> Change:
    """The end of a content."""
    gone = record_pb2.DeleteWorkingMemory(conversation_uid=uid, user_id=user_id)
    return lambda change: change.delete_working_memory.CopyFrom(gone)
