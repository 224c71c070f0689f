"""The domain's decisions as the changes of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from remora_server import wire
from remora_server.domain.conversations import ConversationDraft, Head
from remora_server.domain.messages import Plan, Put, Removal
from remora_server.storage.schema.kinds import ColumnType, Kind, RecordDraft
from remora_server.storage.v1 import record_pb2

Change: TypeAlias = Callable[[record_pb2.Change], object]
"""Fills a change of a record in place. A separately made message would be copied into the record, with its body."""

_VALUES: dict[ColumnType, str] = {
    "bool": "boolean",
    "int64": "integer",
    "double": "number",
    "text": "text",
    "bytes": "data",
}


def put_conversation(uid: int, draft: ConversationDraft, create_time: int) -> Change:
    """A conversation's row; uid 0 creates it."""
    put = record_pb2.PutConversation(
        conversation_uid=uid, conversation=wire.conversation(draft), create_time=create_time
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


def put_embedding(embedding: record_pb2.PutEmbedding) -> Change:
    """A finished vector."""
    return lambda change: change.put_embedding.CopyFrom(embedding)


def put_record(
    kind: Kind, uid: int, draft: RecordDraft, *, user_id: str | None = None, replaces: bool, upload_id: str = ""
) -> Change:
    """A record in its place; uid 0 is that of the conversation that the write creates, or none. `user_id` where it is
    not the draft's own; the body of an upload stands in its place.
    """

    def fill(change: record_pb2.Change) -> None:
        put = change.put_record
        put.kind = kind.number
        put.conversation_uid = uid
        put.partition = draft.partition
        put.key = draft.key
        put.user_id = draft.user_id if user_id is None else user_id
        for field, value in zip(kind.columns, draft.columns, strict=True):
            column = put.columns.add()
            if value is not None:
                setattr(column, _VALUES[field.column_type], value)
        if draft.expire_time is not None:
            put.expire_time = draft.expire_time
        if upload_id:
            put.upload_id = upload_id
        else:
            put.body = draft.body
        put.replaces = replaces

    return fill


def remove_record(kind: Kind, uid: int, partition: bytes, key: bytes) -> Change:
    """Removes one record."""
    return _remove_records(kind, uid, record_pb2.RemoveRecords.EXTENT_RECORD, partition, key)


def remove_partition(kind: Kind, uid: int, partition: bytes) -> Change:
    """Removes all records of a partition."""
    return _remove_records(kind, uid, record_pb2.RemoveRecords.EXTENT_PARTITION, partition)


def remove_prefix(kind: Kind, uid: int, prefix: bytes) -> Change:
    """Removes all records of the partitions with a prefix."""
    return _remove_records(kind, uid, record_pb2.RemoveRecords.EXTENT_PREFIX, prefix)


def _remove_records(
    kind: Kind, uid: int, extent: record_pb2.RemoveRecords.Extent.ValueType, partition: bytes, key: bytes = b""
) -> Change:
    gone = record_pb2.RemoveRecords(kind=kind.number, conversation_uid=uid, extent=extent, partition=partition, key=key)
    return lambda change: change.remove_records.CopyFrom(gone)


def remove_user_records(user_id: str, kinds: Iterable[Kind]) -> Change:
    """The records of a user that are of some kinds go."""
    gone = record_pb2.RemoveUserRecords(user_id=user_id, kinds=[kind.number for kind in kinds])
    return lambda change: change.remove_user_records.CopyFrom(gone)


def set_expiry(  # noqa: PLR0917 - where a record stands, as the engine says it
    kind: int, uid: int, partition: bytes, key: bytes, revision: int, expire_time: int | None
) -> Change:
    """A record that has not moved on since a revision expires at another time."""
    moved = record_pb2.SetExpiry(
        kind=kind,
        conversation_uid=uid,
        partition=partition,
        key=key,
        record_revision=revision,
        expire_time=expire_time,
    )
    return lambda change: change.set_expiry.CopyFrom(moved)
