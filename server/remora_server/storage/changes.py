"""The domain's decisions as the changes of a record."""

from __future__ import annotations

from collections.abc import Iterator

from remora_server.domain.conversations import ConversationDraft, Head
from remora_server.domain.messages import Plan, Put, Removal
from remora_server.storage.encoding import conversation_row
from remora_server.storage.v1 import record_pb2

Change = record_pb2.Change


def put_conversation(uid: int, draft: ConversationDraft, create_time: int) -> Change:
    """A conversation's row; uid 0 creates it."""
    return Change(
        put_conversation=record_pb2.PutConversation(
            conversation_uid=uid, conversation=conversation_row(draft), create_time=create_time
        )
    )


def put_head(conversation_id: str, head: Head) -> Change:
    """A conversation's counters."""
    return Change(
        put_head=record_pb2.PutHead(
            conversation_uid=head.uid,
            conversation_id=conversation_id,
            last_sequence=head.last_sequence,
            message_count=head.message_count,
            last_time=head.last_time,
            update_time=head.update_time,
        )
    )


def delete_conversation(uid: int, conversation_id: str) -> Change:
    """The end of a conversation."""
    return Change(
        delete_conversation=record_pb2.DeleteConversation(conversation_uid=uid, conversation_id=conversation_id)
    )


def message_changes(conversation_id: str, plan: Plan, token_counts: dict[int, int]) -> Iterator[Change]:
    """A plan's changes, the head last. `token_counts` by the identity of the draft."""
    for removal in plan.removals:
        yield _remove_messages(plan.head.uid, conversation_id, removal)
    for put in plan.puts:
        yield _put_message(plan.head.uid, conversation_id, put, token_counts[id(put.draft)])
    yield put_head(conversation_id, plan.head)


def _remove_messages(uid: int, conversation_id: str, removal: Removal) -> Change:
    return Change(
        remove_messages=record_pb2.RemoveMessages(
            conversation_uid=uid,
            conversation_id=conversation_id,
            user_id=removal.user_id,
            sequences=removal.sequences or (),
            all=removal.sequences is None,
        )
    )


def _put_message(uid: int, conversation_id: str, put: Put, token_count: int) -> Change:
    embedding = put.draft.embedding
    return Change(
        put_message=record_pb2.PutMessage(
            conversation_uid=uid,
            conversation_id=conversation_id,
            user_id=put.user_id,
            id=put.id,
            sequence=put.sequence,
            create_time=put.create_time,
            update_time=put.update_time,
            token_count=token_count,
            body=put.draft.body,
            embedding_model=embedding.model if embedding else "",
            embedding=embedding.values if embedding else b"",
            replaces=put.replaces,
        )
    )


def remove_steps(uid: int, user_id: str) -> Change:
    """All steps of one user in a conversation."""
    return Change(remove_steps=record_pb2.RemoveSteps(conversation_uid=uid, user_id=user_id))


def put_working_memory(uid: int, user_id: str, content: bytes, now: int) -> Change:
    """A content, of a conversation (uid) or a user."""
    return Change(
        put_working_memory=record_pb2.PutWorkingMemory(
            conversation_uid=uid, user_id=user_id, content=content, update_time=now
        )
    )


def delete_working_memory(uid: int, user_id: str) -> Change:
    """The end of a content."""
    return Change(delete_working_memory=record_pb2.DeleteWorkingMemory(conversation_uid=uid, user_id=user_id))
