"""Exports a tenant's records in pages: first the keys of a page's records, then the records until the page is full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeAlias

import duckdb

from remora.v1 import message_pb2, transfer_service_pb2
from remora_server import _native, wire
from remora_server.domain.calls import Read
from remora_server.domain.conversations import require_owner
from remora_server.domain.replies import read_fitting
from remora_server.domain.transfers import ExportPage, ExportPlace, ExportPosition, ExportQuery
from remora_server.storage.database import arrow
from remora_server.storage.database.chosen import CHOSEN_MESSAGES, UIDS, between
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.records.expiries import UnappliedExpiries
from remora_server.storage.schema.encoding import STORED_COLUMNS, stored_message
from remora_server.storage.schema.kinds import Kind, parts_of
from remora_server.storage.v1 import record_pb2

_CONVERSATION, _MESSAGE, _RECORDS = range(3)
"""The parts of a conversation. Those of the kinds begin with the last, each at that and its number."""
_LAST_UID = 2**64 - 1
"""Where records stand that belong to no conversation, behind all of these."""

CONVERSATIONS_AT_ONCE = 64
"""A page looks at so many: each has its own record, so that a page is never empty before the end."""
ROWS_AT_ONCE = 1024
"""A page reads records of at most so many places at a time."""

_PICKED = """
SELECT uid, id FROM conversations
WHERE tenant_id = $tenant AND uid >= $uid AND uid <= $through
    AND ($user = '' OR user_id = $user) AND ($only = 0 OR uid = $only)
ORDER BY uid LIMIT $conversations
"""
# The parts of each conversation by (part, first, second, key): its record, its messages by sequence, its records of
# each kind; then those of no conversation. Records come by key, since they may change while they are exported, or by
# revision and ordinal if they are steps or final. No texts and no sizes: they would be read of all conversations for
# every page.
_PLACES = f"""
WITH places AS (
    SELECT unnest($uids::UBIGINT[]) AS uid, 0 AS part, 0 AS first, 0 AS second, ''::BLOB AS key
    UNION ALL
    SELECT conversation_uid, 1, sequence, 0, ''::BLOB FROM messages
    WHERE conversation_uid IN {UIDS} AND NOT (conversation_uid = $uid AND sequence > $newest)
    {{kinds}}
)
SELECT uid, part, first, second, key FROM places
WHERE (uid, part, first, second, key) > ($uid, $part, $first, $second, $after_key)
ORDER BY uid, part, first, second, key LIMIT $limit
"""  # noqa: S608 - a constant
_UNEXPIRED = "(expire_time IS NULL OR expire_time > $now)"
_CONVERSATIONS = f"SELECT uid, body, create_time FROM conversations WHERE uid IN {UIDS}"  # noqa: S608 - a constant
_HEADS = f"SELECT uid, last_sequence, last_time, update_time FROM heads WHERE uid IN {UIDS}"  # noqa: S608 - a constant
_MESSAGES = f"SELECT conversation_uid, {STORED_COLUMNS} FROM messages WHERE {CHOSEN_MESSAGES}"  # noqa: S608 - constants
_EMBEDDINGS = (
    f"FROM embeddings WHERE by_caller AND {CHOSEN_MESSAGES} ORDER BY conversation_uid, sequence, message_revision"
)
_VERSIONS_OF_CONVERSATIONS = f"""
conversation_uid IN {UIDS} AND {between("revision", "$revisions")}
AND (conversation_uid, revision, ordinal) IN (
    SELECT (unnest($uids::UBIGINT[]), unnest($revisions::UBIGINT[]), unnest($ordinals::INTEGER[])))
"""
_VERSIONS_OF_NONE = f"""
tenant_id = $tenant AND {between("revision", "$revisions")}
AND (revision, ordinal) IN (SELECT (unnest($revisions::UBIGINT[]), unnest($ordinals::INTEGER[])))
"""
_KEYS_OF_CONVERSATIONS = f"""
conversation_uid IN {UIDS}
AND (conversation_uid, partition || key) IN (SELECT (unnest($uids::UBIGINT[]), unnest($keys::BLOB[])))
"""
_KEYS_OF_NONE = "tenant_id = $tenant AND partition || key IN (SELECT unnest($keys::BLOB[]))"

Record = transfer_service_pb2.Record
Version: TypeAlias = tuple[int, int, int]
"""A message's conversation uid, its sequence and the revision that last wrote it."""
Found: TypeAlias = dict[ExportPlace, bytes]


class Exports:
    """Reads pages of records."""

    def __init__(self, context: StoreContext, conversations: Conversations) -> None:
        self._kinds = context.records.kinds.transferred()
        self._core = context.core
        self._clock = context.clock
        self._database = context.database
        self._commits = context.commits
        self._conversations = conversations

    def page(self, read: Read, query: ExportQuery) -> ExportPage:
        """The next records. Raises ConversationNotFound."""
        revision = self._commits.begin_query(read)
        only = self._only(read, query)
        position = query.position or ExportPosition(ExportPlace(), through=revision, newest=0)
        now = self._clock()
        expiries = [UnappliedExpiries(self._core, kind, read.tenant_id) for kind in self._kinds]

        def ask(cursor: duckdb.DuckDBPyConnection, rows: int) -> tuple[list[bytes], ExportPosition | None]:
            with ExitStack() as registered:
                sources = [registered.enter_context(each.source(cursor)) for each in expiries]
                kinds = dict(zip(self._kinds, sources, strict=True))
                return _Snapshot(cursor, read.tenant_id, kinds, rows).page(query, position, only, now)

        records, following = self._database.in_pages(ROWS_AT_ONCE, ask)
        return ExportPage(tuple(records), following, revision)

    def _only(self, read: Read, query: ExportQuery) -> int:
        """The uid of the requested conversation; 0 if the request names none."""
        if not query.conversation_id:
            return 0
        head = self._conversations.published(read, query.conversation_id)
        require_owner(head.user_id, query.user_id, query.conversation_id)
        return head.uid


class _Snapshot:
    """One state of the database, as a tenant sees it. `_ids` are the conversations of the page, by uid."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, tenant_id: str, kinds: Mapping[Kind, str], rows: int) -> None:
        """`kinds`: which kinds of records are exported, and what to read each from; `rows`: how many at once."""
        self._cursor = cursor
        self._tenant_id = tenant_id
        self._kinds = kinds
        self._rows_at_once = rows
        self._ids: dict[int, str] = {}

    def page(
        self, query: ExportQuery, position: ExportPosition, only: int, now: int
    ) -> tuple[list[bytes], ExportPosition | None]:
        """The records of a page, and where the next one begins."""
        parameters = {
            "tenant": self._tenant_id,
            "user": query.user_id,
            "only": only,
            "uid": position.after.uid,
            "conversations": CONVERSATIONS_AT_ONCE,
        }
        self._ids = dict(self._rows(_PICKED, {**parameters, "through": position.through}))
        places = self._places({**parameters, "uids": list(self._ids), "now": now}, query, position)
        records = read_fitting(places[: query.limit], self._read, len, most=self._rows_at_once)
        is_last = len(records) == len(places) and len(self._ids) < CONVERSATIONS_AT_ONCE
        return records, None if is_last else self._following(position, places[len(records) - 1])

    def _rows(self, sql: str, parameters: dict[str, object]) -> list[Any]:
        return self._cursor.execute(sql, parameters).fetchall()

    def _places(self, parameters: dict[str, object], query: ExportQuery, position: ExportPosition) -> list[ExportPlace]:
        """The next places, one more than asked for where there is one."""
        after = position.after
        where = {
            "newest": position.newest,
            "part": after.part,
            "first": after.first,
            "second": after.second,
            "after_key": after.key,
            "limit": query.limit + 1,
        }
        kinds = "".join(f"UNION ALL {_places_of(kind, source)}" for kind, source in self._kinds.items())
        return [ExportPlace(*row) for row in self._rows(_PLACES.format(kinds=kinds), {**parameters, **where})]

    def _following(self, position: ExportPosition, last: ExportPlace) -> ExportPosition:
        """Where the next page begins: the conversation in which this one ends is bounded where its record was read."""
        if last.uid in (position.after.uid, _LAST_UID):
            return ExportPosition(last, position.through, position.newest)
        newest = self._rows("SELECT last_sequence FROM heads WHERE uid = $uid", {"uid": last.uid})[0][0]
        return ExportPosition(last, position.through, newest)

    def _read(self, places: Sequence[ExportPlace]) -> list[bytes]:
        """The records that stand at places."""
        readers = {_CONVERSATION: self._conversations, _MESSAGE: self._messages}
        readers |= {_part(kind): partial(self._records, kind) for kind in self._kinds}
        found: Found = {}
        for part, read in readers.items():
            chosen = [place for place in places if place.part == part]
            if chosen:
                found |= read(chosen)
        return [found[place] for place in places]

    def _conversations(self, places: Sequence[ExportPlace]) -> Found:
        parameters: dict[str, object] = {"uids": _uids(places)}
        heads = {uid: rest for uid, *rest in self._rows(_HEADS, parameters)}
        rows = self._rows(_CONVERSATIONS, parameters)
        return {ExportPlace(uid, _CONVERSATION): _conversation(*rest, *heads[uid]) for uid, *rest in rows}

    def _messages(self, places: Sequence[ExportPlace]) -> Found:
        uids, sequences = _uids(places), [place.first for place in places]
        embeddings = caller_embeddings(self._cursor, uids, sequences)
        found: Found = {}
        for uid, *row in self._rows(_MESSAGES, {"uids": uids, "sequences": sequences}):
            sequence, revision = row[:2]
            message = message_pb2.Message.FromString(stored_message(*row))
            message.ClearField("revision")
            if (uid, sequence, revision) in embeddings:
                message.embedding.CopyFrom(embeddings[uid, sequence, revision])
            own = transfer_service_pb2.MessageRecord(conversation_id=self._ids[uid], message=message)
            found[ExportPlace(uid, _MESSAGE, sequence)] = Record(message=own).SerializeToString()
        return found

    def _records(self, kind: Kind, places: Sequence[ExportPlace]) -> Found:
        columns = "conversation_uid, partition || key, revision, ordinal, user_id, expire_time, upload_id, body"
        chosen: dict[str, object] = {"uids": _uids(places)} if kind.of_conversation else {"tenant": self._tenant_id}
        if _is_by_version(kind):
            chosen["revisions"] = [place.first for place in places]
            chosen["ordinals"] = [place.second for place in places]
            where = _VERSIONS_OF_CONVERSATIONS if kind.of_conversation else _VERSIONS_OF_NONE
        else:
            chosen["keys"] = [place.key for place in places]
            where = _KEYS_OF_CONVERSATIONS if kind.of_conversation else _KEYS_OF_NONE
        rows = self._rows(f"SELECT {columns} FROM {self._kinds[kind]} WHERE {where}", chosen)  # noqa: S608 - ours
        found: Found = {}
        for uid, key, revision, ordinal, user_id, expire_time, upload_id, body in rows:
            whole = self._uploaded(kind, uid, upload_id) if upload_id else body
            message = kind.exported(whole, self._ids.get(uid, ""), user_id, expire_time)
            record = Record()
            getattr(record, kind.transfer).CopyFrom(message)
            part = _part(kind)
            own = {"first": revision, "second": ordinal} if _is_by_version(kind) else {"key": key}
            place = ExportPlace(uid or _LAST_UID, part, **own)
            found[place] = record.SerializeToString()
        return found

    def _uploaded(self, kind: Kind, uid: int, upload_id: str) -> bytes:
        """A body put together of the parts that its record names."""
        parts = parts_of(kind)
        name, _, count = upload_id.partition("/")
        partition = parts.encode_partition(name)
        where = {
            "place": _native.place(self._tenant_id, uid, partition),
            "partition": partition,
            "end": parts.encode_key(int(count)),
        }
        rows = self._rows(
            f"""SELECT body FROM {parts.name} WHERE place = $place AND partition = $partition AND key < $end
                ORDER BY key""",  # noqa: S608 - a table of ours
            where,
        )
        return b"".join(record_pb2.BodyPart.FromString(body).data for (body,) in rows)


def _places_of(kind: Kind, source: str) -> str:
    """The query for the places of a kind's records."""
    part = _part(kind)
    order = "revision, ordinal, ''::BLOB" if _is_by_version(kind) else "0, 0, partition || key"
    if kind.of_conversation:
        return f"""
            SELECT conversation_uid, {part}, {order} FROM {source}
            WHERE conversation_uid IN {UIDS} AND {_UNEXPIRED}"""  # noqa: S608 - a table of ours
    of_user = "user_id = $user" if kind.of_user else "false"
    return f"""
        SELECT {_LAST_UID}, {part}, {order} FROM {source}
        WHERE tenant_id = $tenant AND $only = 0 AND ($user = '' OR {of_user}) AND len($uids) < $conversations
        AND {_UNEXPIRED}"""  # noqa: S608 - a table of ours


def _is_by_version(kind: Kind) -> bool:
    """Whether its records are exported in the order of writing, for the order of lists that is to be kept."""
    return kind.is_final or (kind.of_conversation and bool(kind.orders))


def _part(kind: Kind) -> int:
    return _RECORDS + kind.number


def _uids(places: Sequence[ExportPlace]) -> list[int]:
    return [place.uid for place in places]


def _conversation(body: bytes, create_time: int, last_sequence: int, last_time: int, update_time: int) -> bytes:
    record = Record()
    conversation = record.conversation.conversation
    conversation.MergeFromString(body)
    conversation.last_sequence = last_sequence
    conversation.create_time.CopyFrom(wire.timestamp(create_time))
    conversation.update_time.CopyFrom(wire.timestamp(update_time))
    if last_time:
        record.conversation.last_append_time.CopyFrom(wire.timestamp(last_time))
    return record.SerializeToString()


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
