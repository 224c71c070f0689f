"""Reads what the store holds, record by record: a page of places first, with their sizes, then what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import duckdb

from remora.v1 import conversation_service_pb2, message_pb2, transfer_service_pb2
from remora_server.domain.calls import Read
from remora_server.domain.conversations import require_owner
from remora_server.domain.transfers import ExportPage, ExportPlace, ExportPosition, ExportQuery
from remora_server.storage import arrow
from remora_server.storage.context import StoreContext
from remora_server.storage.conversations import Conversations
from remora_server.storage.encoding import STORED_COLUMNS, stored_message, timestamp

PAGE_BYTES = 3 << 20

_CONVERSATION, _MESSAGE, _STEP, _MEMORY, _USER_MEMORY = range(5)
_LAST_UID = 2**64 - 1
"""Where working memories of users stand, behind all conversations."""

CONVERSATIONS_AT_ONCE = 64
"""A page looks at so many: each has its own record, so that a page is never empty before the end."""

# The parts of each conversation by (part, first, second): its record, its messages by sequence, its steps by revision
# and ordinal, its working memory. Sizes in bytes.
_PLACES = """
WITH picked AS (
    SELECT uid, body FROM conversations
    WHERE tenant_id = $tenant AND uid >= $uid AND uid <= $through
        AND ($user = '' OR user_id = $user) AND ($only = 0 OR uid = $only)
    ORDER BY uid LIMIT $conversations
), vectors AS (
    SELECT conversation_uid, sequence, message_revision, dimension FROM embeddings
    WHERE by_caller AND conversation_uid >= $uid AND conversation_uid IN (SELECT uid FROM picked)
), places AS (
    SELECT uid, 0 AS part, 0 AS first, 0 AS second, '' AS user_id, octet_length(body) AS size FROM picked
    UNION ALL
    SELECT m.conversation_uid, 1, m.sequence, 0, '',
        octet_length(m.body) + strlen(m.text) + 4 * coalesce(v.dimension, 0)
    FROM messages m LEFT JOIN vectors v ON v.conversation_uid = m.conversation_uid AND v.sequence = m.sequence
        AND v.message_revision = m.revision
    WHERE m.conversation_uid >= $uid AND m.conversation_uid IN (SELECT uid FROM picked)
        AND NOT (m.conversation_uid = $uid AND m.sequence > $newest)
    UNION ALL
    SELECT conversation_uid, 2, revision, ordinal, '', octet_length(body)
    FROM steps WHERE conversation_uid IN (SELECT uid FROM picked)
    UNION ALL
    SELECT conversation_uid, 3, 0, 0, '', octet_length(content)
    FROM working_memories WHERE conversation_uid IN (SELECT uid FROM picked)
    UNION ALL
    SELECT 18446744073709551615, 4, 0, 0, user_id, octet_length(content)
    FROM working_memories
    WHERE tenant_id = $tenant AND conversation_uid = 0 AND $only = 0 AND ($user = '' OR user_id = $user)
        AND (SELECT count(*) FROM picked) < $conversations
)
SELECT uid, part, first, second, user_id, size, (SELECT count(*) FROM picked) FROM places
WHERE (uid, part, first, second, user_id) > ($uid, $part, $first, $second, $after_user)
ORDER BY uid, part, first, second, user_id LIMIT $limit
"""
_CONVERSATIONS = """
SELECT c.uid, c.body, c.create_time, h.last_sequence, h.last_time, h.update_time
FROM conversations c JOIN heads h ON h.uid = c.uid WHERE c.uid IN (SELECT unnest($uids))
"""
_CHOSEN = "(SELECT unnest($uids) AS uid, unnest($firsts) AS first, unnest($seconds) AS second) p"
_MESSAGES = f"""
SELECT m.conversation_uid, c.id, {", ".join("m." + name for name in STORED_COLUMNS.split(", "))}
FROM messages m JOIN {_CHOSEN} ON m.conversation_uid = p.uid AND m.sequence = p.first
JOIN conversations c ON c.uid = m.conversation_uid
"""  # noqa: S608 - constants
_EMBEDDINGS = f"""
FROM embeddings e JOIN {_CHOSEN} ON e.conversation_uid = p.uid AND e.sequence = p.first
JOIN messages m ON m.conversation_uid = p.uid AND m.sequence = p.first AND m.revision = e.message_revision
WHERE e.by_caller ORDER BY e.conversation_uid, e.sequence
"""
_STEPS = f"""
SELECT s.conversation_uid, s.revision, s.ordinal, s.body
FROM steps s JOIN {_CHOSEN} ON s.conversation_uid = p.uid AND s.revision = p.first AND s.ordinal = p.second
"""  # noqa: S608 - a constant
_MEMORIES = """
SELECT w.conversation_uid, c.id, w.content, w.update_time
FROM working_memories w JOIN conversations c ON c.uid = w.conversation_uid
WHERE w.conversation_uid IN (SELECT unnest($uids))
"""
_USER_MEMORIES = """
SELECT user_id, content, update_time FROM working_memories
WHERE tenant_id = $tenant AND conversation_uid = 0 AND user_id IN (SELECT unnest($users))
"""

Record = transfer_service_pb2.Record
Sized: TypeAlias = tuple[ExportPlace, int]
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
    places, is_last = _places(cursor, tenant_id, query, position, only)
    chosen = _fitting(places[: query.limit])
    records = _read(cursor, tenant_id, [place for place, _ in chosen])
    more = len(chosen) < len(places) or not is_last
    return records, _following(cursor, position, chosen[-1][0]) if more else None


def _places(
    cursor: duckdb.DuckDBPyConnection, tenant_id: str, query: ExportQuery, position: ExportPosition, only: int
) -> tuple[list[Sized], bool]:
    """The next places, one more than asked for where there is one, and whether no conversations are left behind."""
    after = position.after
    rows = cursor.execute(
        _PLACES,
        {
            "tenant": tenant_id,
            "user": query.user_id,
            "only": only,
            "through": position.through,
            "newest": position.newest,
            "uid": after.uid,
            "part": after.part,
            "first": after.first,
            "second": after.second,
            "after_user": after.user_id,
            "limit": query.limit + 1,
            "conversations": CONVERSATIONS_AT_ONCE,
        },
    ).fetchall()
    return [(ExportPlace(*row[:5]), row[5]) for row in rows], not rows or rows[0][6] < CONVERSATIONS_AT_ONCE


def _fitting(places: Sequence[Sized]) -> list[Sized]:
    """The first that a reply holds, at least one where there is any."""
    chosen: list[Sized] = []
    room = PAGE_BYTES
    for place, size in places:
        room -= size
        if room < 0 and chosen:
            break
        chosen.append((place, size))
    return chosen


def _following(cursor: duckdb.DuckDBPyConnection, position: ExportPosition, last: ExportPlace) -> ExportPosition:
    """Where the next page begins: the conversation in which this one ends is bounded where its record was read."""
    if last.uid in (position.after.uid, _LAST_UID):
        return ExportPosition(last, position.through, position.newest)
    newest = cursor.execute("SELECT last_sequence FROM heads WHERE uid = ?", [last.uid]).fetchall()[0][0]
    return ExportPosition(last, position.through, newest)


def _read(cursor: duckdb.DuckDBPyConnection, tenant_id: str, places: Sequence[ExportPlace]) -> list[bytes]:
    """The records that stand at places."""
    found: Found = {}
    for part, read in enumerate((_conversations, _messages, _steps, _memories)):
        chosen = [place for place in places if place.part == part]
        if chosen:
            found |= read(cursor, _parameters(chosen))
    users = [place.user_id for place in places if place.part == _USER_MEMORY]
    if users:
        found |= _user_memories(cursor, {"tenant": tenant_id, "users": users})
    return [found[place] for place in places]


def _parameters(places: Sequence[ExportPlace]) -> dict[str, object]:
    return {
        "uids": [place.uid for place in places],
        "firsts": [place.first for place in places],
        "seconds": [place.second for place in places],
    }


def _named(parameters: dict[str, object], *names: str) -> dict[str, object]:
    return {name: parameters[name] for name in names}


def _conversations(cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object]) -> Found:
    rows = cursor.execute(_CONVERSATIONS, _named(parameters, "uids")).fetchall()
    return {ExportPlace(row[0], _CONVERSATION): _conversation(*row[1:]) for row in rows}


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


def _messages(cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object]) -> Found:
    embeddings = caller_embeddings(cursor, parameters)
    found: Found = {}
    for uid, conversation_id, *row in cursor.execute(_MESSAGES, parameters).fetchall():
        key = (uid, row[0])
        message = message_pb2.Message.FromString(stored_message(*row))
        message.ClearField("revision")
        if key in embeddings:
            message.embedding.CopyFrom(embeddings[key])
        record = Record(message=transfer_service_pb2.MessageRecord(conversation_id=conversation_id, message=message))
        found[ExportPlace(uid, _MESSAGE, row[0])] = record.SerializeToString()
    return found


def caller_embeddings(
    cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object]
) -> dict[tuple[int, int], message_pb2.Embedding]:
    """The callers' own vectors of messages, by the conversation's uid and the sequence.

    `parameters`: uids, firsts (the sequences) and seconds (zeros), one of each for each message.
    """
    keys = cursor.execute(f"SELECT e.conversation_uid, e.sequence, e.model {_EMBEDDINGS}", parameters).fetchall()
    values = arrow.vectors(cursor.sql(f"SELECT e.values {_EMBEDDINGS}", params=parameters))
    return {
        (uid, sequence): message_pb2.Embedding(model=model, values=vector)
        for (uid, sequence, model), vector in zip(keys, values, strict=True)
    }


def _steps(cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object]) -> Found:
    found: Found = {}
    for uid, revision, ordinal, body in cursor.execute(_STEPS, parameters).fetchall():
        record = Record()
        record.step.MergeFromString(body)
        found[ExportPlace(uid, _STEP, revision, ordinal)] = record.SerializeToString()
    return found


def _memories(cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object]) -> Found:
    rows = cursor.execute(_MEMORIES, _named(parameters, "uids")).fetchall()
    return {
        ExportPlace(uid, _MEMORY): _memory({"conversation_id": conversation_id}, content, update_time)
        for uid, conversation_id, content, update_time in rows
    }


def _user_memories(cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object]) -> Found:
    rows = cursor.execute(_USER_MEMORIES, parameters).fetchall()
    return {
        ExportPlace(_LAST_UID, _USER_MEMORY, user_id=user_id): _memory({"user_id": user_id}, content, update_time)
        for user_id, content, update_time in rows
    }


def _memory(owner: dict[str, str], content: bytes, update_time: int) -> bytes:
    memory = transfer_service_pb2.WorkingMemoryRecord(
        scope=conversation_service_pb2.WorkingMemoryScope(**owner), content=content, update_time=timestamp(update_time)
    )
    return Record(working_memory=memory).SerializeToString()
