"""Reads what the store holds, record by record: the places of a page first, then what stands there until it is full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import duckdb

from remora.v1 import message_pb2, transfer_service_pb2
from remora.v1.working_memory_pb2 import WorkingMemoryRecord, WorkingMemoryScope
from remora_server.domain.calls import Read
from remora_server.domain.conversations import require_owner
from remora_server.domain.transfers import ExportPage, ExportPlace, ExportPosition, ExportQuery
from remora_server.storage import arrow
from remora_server.storage.chosen import CHOSEN_MESSAGES, UIDS, between
from remora_server.storage.context import StoreContext
from remora_server.storage.conversations import Conversations
from remora_server.storage.encoding import STORED_COLUMNS, stored_message, timestamp

PAGE_BYTES = 3 << 20

LEAST_AT_ONCE = 16
"""Records that are read at once while it is not known how long they are."""

_CONVERSATION, _MESSAGE, _STEP, _MEMORY, _USER_MEMORY = range(5)
_LAST_UID = 2**64 - 1
"""Where working memories of users stand, behind all conversations."""

CONVERSATIONS_AT_ONCE = 64
"""A page looks at so many: each has its own record, so that a page is never empty before the end."""

_PICKED = """
SELECT uid, id FROM conversations
WHERE tenant_id = $tenant AND uid >= $uid AND uid <= $through
    AND ($user = '' OR user_id = $user) AND ($only = 0 OR uid = $only)
ORDER BY uid LIMIT $conversations
"""
# The parts of each conversation by (part, first, second): its record, its messages by sequence, its steps by revision
# and ordinal, its working memory. No texts and no sizes: they would be read of all conversations for every page.
_PLACES = f"""
WITH places AS (
    SELECT unnest($uids::UBIGINT[]) AS uid, 0 AS part, 0 AS first, 0 AS second, '' AS user_id
    UNION ALL
    SELECT conversation_uid, 1, sequence, 0, '' FROM messages
    WHERE conversation_uid IN {UIDS} AND NOT (conversation_uid = $uid AND sequence > $newest)
    UNION ALL
    SELECT conversation_uid, 2, revision, ordinal, '' FROM steps WHERE conversation_uid IN {UIDS}
    UNION ALL
    SELECT conversation_uid, 3, 0, 0, '' FROM working_memories WHERE conversation_uid IN {UIDS}
    UNION ALL
    SELECT 18446744073709551615, 4, 0, 0, user_id FROM working_memories
    WHERE tenant_id = $tenant AND conversation_uid = 0 AND $only = 0 AND ($user = '' OR user_id = $user)
        AND len($uids) < $conversations
)
SELECT uid, part, first, second, user_id FROM places
WHERE (uid, part, first, second, user_id) > ($uid, $part, $first, $second, $after_user)
ORDER BY uid, part, first, second, user_id LIMIT $limit
"""  # noqa: S608 - a constant
_CONVERSATIONS = f"SELECT uid, body, create_time FROM conversations WHERE uid IN {UIDS}"  # noqa: S608 - a constant
_HEADS = f"SELECT uid, last_sequence, last_time, update_time FROM heads WHERE uid IN {UIDS}"  # noqa: S608 - a constant
_MESSAGES = f"SELECT conversation_uid, {STORED_COLUMNS} FROM messages WHERE {CHOSEN_MESSAGES}"  # noqa: S608 - constants
_EMBEDDINGS = (
    f"FROM embeddings WHERE by_caller AND {CHOSEN_MESSAGES} ORDER BY conversation_uid, sequence, message_revision"
)
_STEPS = f"""
SELECT conversation_uid, revision, ordinal, body FROM steps
WHERE conversation_uid IN {UIDS} AND {between("revision", "$revisions")}
AND (conversation_uid, revision, ordinal) IN (
    SELECT (unnest($uids::UBIGINT[]), unnest($revisions::UBIGINT[]), unnest($ordinals::INTEGER[])))
"""  # noqa: S608 - constants
_MEMORIES = f"""
SELECT conversation_uid, content, update_time FROM working_memories WHERE conversation_uid IN {UIDS}
"""  # noqa: S608 - a constant
_USER_MEMORIES = """
SELECT user_id, content, update_time FROM working_memories
WHERE tenant_id = $tenant AND conversation_uid = 0 AND user_id IN (SELECT unnest($users::TEXT[]))
"""

Record = transfer_service_pb2.Record
Version: TypeAlias = tuple[int, int, int]
"""A message's conversation uid, its sequence and the revision that last wrote it."""
Found: TypeAlias = dict[ExportPlace, bytes]


class Exports:
    """Reads pages of records."""

    def __init__(self, context: StoreContext, conversations: Conversations) -> None:
        self._database = context.database
        self._commits = context.commits
        self._conversations = conversations

    def page(self, read: Read, query: ExportQuery) -> ExportPage:
        """The next records. Raises ConversationNotFound."""
        revision = self._commits.begin_query(read)
        only = self._only(read, query)
        position = query.position or ExportPosition(ExportPlace(), through=revision, newest=0)
        records, following = self._database.snapshot(
            lambda cursor: _page(cursor, read.tenant_id, query, position, only)
        )
        return ExportPage(tuple(records), following, revision)

    def _only(self, read: Read, query: ExportQuery) -> int:
        """The uid of the conversation that is asked for; 0 where none is."""
        if not query.conversation_id:
            return 0
        head = self._conversations.published(read, query.conversation_id)
        require_owner(head.user_id, query.user_id, query.conversation_id)
        return head.uid


def _page(
    cursor: duckdb.DuckDBPyConnection, tenant_id: str, query: ExportQuery, position: ExportPosition, only: int
) -> tuple[list[bytes], ExportPosition | None]:
    """The records of a page, and where the next one begins."""
    parameters = {
        "tenant": tenant_id,
        "user": query.user_id,
        "only": only,
        "uid": position.after.uid,
        "conversations": CONVERSATIONS_AT_ONCE,
    }
    ids: dict[int, str] = dict(cursor.execute(_PICKED, {**parameters, "through": position.through}).fetchall())
    places = _places(cursor, {**parameters, "uids": list(ids)}, query, position)
    records = _fitting(lambda chosen: _read(cursor, tenant_id, ids, chosen), places[: query.limit])
    is_last = len(records) == len(places) and len(ids) < CONVERSATIONS_AT_ONCE
    return records, None if is_last else _following(cursor, position, places[len(records) - 1])


def _places(
    cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object], query: ExportQuery, position: ExportPosition
) -> list[ExportPlace]:
    """The next places, one more than asked for where there is one."""
    after = position.after
    where = {
        "newest": position.newest,
        "part": after.part,
        "first": after.first,
        "second": after.second,
        "after_user": after.user_id,
        "limit": query.limit + 1,
    }
    return [ExportPlace(*row) for row in cursor.execute(_PLACES, {**parameters, **where}).fetchall()]


def _fitting(read: Callable[[Sequence[ExportPlace]], list[bytes]], places: Sequence[ExportPlace]) -> list[bytes]:
    """The first records that a reply holds, at least one where there is any.

    They are read in groups, because nothing says how long they are before: each of about as many as will fill the
    reply if they are like those before, but no sudden leap.
    """
    records: list[bytes] = []
    size, at_once = 0, LEAST_AT_ONCE
    while len(records) < len(places):
        for record in read(places[len(records) : len(records) + at_once]):
            size += len(record)
            if size > PAGE_BYTES and records:
                return records
            records.append(record)
        at_once = max(LEAST_AT_ONCE, min(4 * at_once, (PAGE_BYTES - size) * len(records) // size))
    return records


def _following(cursor: duckdb.DuckDBPyConnection, position: ExportPosition, last: ExportPlace) -> ExportPosition:
    """Where the next page begins: the conversation in which this one ends is bounded where its record was read."""
    if last.uid in (position.after.uid, _LAST_UID):
        return ExportPosition(last, position.through, position.newest)
    newest = cursor.execute("SELECT last_sequence FROM heads WHERE uid = ?", [last.uid]).fetchall()[0][0]
    return ExportPosition(last, position.through, newest)


def _read(
    cursor: duckdb.DuckDBPyConnection, tenant_id: str, ids: dict[int, str], places: Sequence[ExportPlace]
) -> list[bytes]:
    """The records that stand at places of conversations, whose ids are given by uid, and of users."""
    found: Found = {}
    for part, read in enumerate((_conversations, _messages, _steps, _memories)):
        chosen = [place for place in places if place.part == part]
        if chosen:
            found |= read(cursor, ids, chosen)
    users = [place.user_id for place in places if place.part == _USER_MEMORY]
    if users:
        found |= _user_memories(cursor, {"tenant": tenant_id, "users": users})
    return [found[place] for place in places]


def _uids(places: Sequence[ExportPlace]) -> list[int]:
    return [place.uid for place in places]


def _conversations(cursor: duckdb.DuckDBPyConnection, _ids: dict[int, str], places: Sequence[ExportPlace]) -> Found:
    parameters = {"uids": _uids(places)}
    heads = {uid: rest for uid, *rest in cursor.execute(_HEADS, parameters).fetchall()}
    rows = cursor.execute(_CONVERSATIONS, parameters).fetchall()
    return {ExportPlace(uid, _CONVERSATION): _conversation(*rest, *heads[uid]) for uid, *rest in rows}


def _conversation(body: bytes, create_time: int, last_sequence: int, last_time: int, update_time: int) -> bytes:
    record = Record()
    conversation = record.conversation.conversation
    conversation.MergeFromString(body)
    conversation.last_sequence = last_sequence
    conversation.create_time.CopyFrom(timestamp(create_time))
    conversation.update_time.CopyFrom(timestamp(update_time))
    if last_time:
        record.conversation.last_append_time.CopyFrom(timestamp(last_time))
    return record.SerializeToString()


def _messages(cursor: duckdb.DuckDBPyConnection, ids: dict[int, str], places: Sequence[ExportPlace]) -> Found:
    uids, sequences = _uids(places), [place.first for place in places]
    embeddings = caller_embeddings(cursor, uids, sequences)
    found: Found = {}
    for uid, *row in cursor.execute(_MESSAGES, {"uids": uids, "sequences": sequences}).fetchall():
        sequence, revision = row[:2]
        message = message_pb2.Message.FromString(stored_message(*row))
        message.ClearField("revision")
        if (uid, sequence, revision) in embeddings:
            message.embedding.CopyFrom(embeddings[uid, sequence, revision])
        record = Record(message=transfer_service_pb2.MessageRecord(conversation_id=ids[uid], message=message))
        found[ExportPlace(uid, _MESSAGE, sequence)] = record.SerializeToString()
    return found


def caller_embeddings(
    cursor: duckdb.DuckDBPyConnection, uids: Sequence[int], sequences: Sequence[int]
) -> dict[Version, message_pb2.Embedding]:
    """The callers' own vectors of messages, which are given by their conversations' uids and their sequences."""
    parameters = {"uids": uids, "sequences": sequences}
    keys = cursor.execute(
        f"SELECT conversation_uid, sequence, message_revision, model {_EMBEDDINGS}", parameters
    ).fetchall()
    if not keys:
        return {}
    values = arrow.vectors(cursor.sql(f"SELECT values {_EMBEDDINGS}", params=parameters))
    return {
        (uid, sequence, revision): message_pb2.Embedding(model=model, values=vector)
        for (uid, sequence, revision, model), vector in zip(keys, values, strict=True)
    }


def _steps(cursor: duckdb.DuckDBPyConnection, _ids: dict[int, str], places: Sequence[ExportPlace]) -> Found:
    parameters = {
        "uids": _uids(places),
        "revisions": [place.first for place in places],
        "ordinals": [place.second for place in places],
    }
    found: Found = {}
    for uid, revision, ordinal, body in cursor.execute(_STEPS, parameters).fetchall():
        record = Record()
        record.step.MergeFromString(body)
        found[ExportPlace(uid, _STEP, revision, ordinal)] = record.SerializeToString()
    return found


def _memories(cursor: duckdb.DuckDBPyConnection, ids: dict[int, str], places: Sequence[ExportPlace]) -> Found:
    return {
        ExportPlace(uid, _MEMORY): _memory({"conversation_id": ids[uid]}, content, update_time)
        for uid, content, update_time in cursor.execute(_MEMORIES, {"uids": _uids(places)}).fetchall()
    }


def _user_memories(cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object]) -> Found:
    rows = cursor.execute(_USER_MEMORIES, parameters).fetchall()
    return {
        ExportPlace(_LAST_UID, _USER_MEMORY, user_id=user_id): _memory({"user_id": user_id}, content, update_time)
        for user_id, content, update_time in rows
    }


def _memory(owner: dict[str, str], content: bytes, update_time: int) -> bytes:
    memory = WorkingMemoryRecord(scope=WorkingMemoryScope(**owner), content=content, update_time=timestamp(update_time))
    return Record(working_memory=memory).SerializeToString()
