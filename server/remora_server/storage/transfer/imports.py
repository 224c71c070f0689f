"""Imports records from another store. Records that exist already are compared, never overwritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import duckdb
from google.protobuf.message import Message
from msgspec import Struct

from remora.v1 import message_pb2
from remora.v1.fact_pb2 import Fact
from remora.v1.memory_item_pb2 import MemoryItem
from remora.v1.short_term_pb2 import ConversationSummary
from remora.v1.timeline_event_pb2 import TimelineEvent
from remora.v1.vector_pb2 import Vector, VectorCollection
from remora.v1.workflow_pb2 import WorkflowStep
from remora_server import wire
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.errors import ConversationNotFound, InvalidField, RecordConflict
from remora_server.domain.messages import ConversationView, Plan
from remora_server.domain.transfers import (
    Import,
    ImportedConversation,
    ImportedMessage,
    ImportedRecord,
    plan_import,
    require_distinct,
)
from remora_server.domain.vectors import FLOAT_BYTES
from remora_server.storage.commit import changes
from remora_server.storage.commit.commands import Planned
from remora_server.storage.database.chosen import between
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.facts import index_fact
from remora_server.storage.nouns.loading import AcceptedConversation, NewConversation
from remora_server.storage.nouns.memory_items import index_item
from remora_server.storage.nouns.messages import CountTokens, OnPuts
from remora_server.storage.nouns.vector_collections import VectorCollections, claim
from remora_server.storage.nouns.windows import Windows
from remora_server.storage.records.reader import Partition, Record
from remora_server.storage.records.records import Move, Put
from remora_server.storage.records.refusals import BodyTooLong, RecordNotFound
from remora_server.storage.schema.encoding import STORED_COLUMNS, stored_message
from remora_server.storage.schema.kinds import Kind
from remora_server.storage.transfer.exports import caller_embeddings

_MESSAGES = f"""
SELECT {STORED_COLUMNS} FROM messages WHERE conversation_uid = $uid
    AND {between("sequence", "$sequences")} AND sequence IN (SELECT unnest($sequences::UBIGINT[]))
"""  # noqa: S608 - a constant


_Place: TypeAlias = tuple[Partition, bytes]


class _Draft(Struct, frozen=True):
    """An imported record with its kind."""

    field: str
    kind: Kind
    message: Message

    def place(self, uid: int) -> _Place:
        """Where it is to stand."""
        partition, key = self.kind.place(self.message)
        return Partition(self.kind, uid, partition), key


def _is_nobodys_part(draft: _Draft) -> bool:
    """Whether it is a part of a run or an entry and names no user."""
    return isinstance(draft.message, WorkflowStep | TimelineEvent) and not draft.message.user_id


class Imports:
    """Stores imported records. `on_puts` is called with every accepted plan."""

    def __init__(
        self,
        context: StoreContext,
        collections: VectorCollections,
        windows: Windows,
        *,
        count_tokens: CountTokens,
        on_puts: OnPuts,
    ) -> None:
        self._database = context.database
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._nobodys_parts = context.nobodys_parts
        self._loader = context.loader
        self._collections = collections
        self._windows = windows
        self._count_tokens = count_tokens
        self._on_puts = on_puts

    def store(self, write: Write, given: Import) -> Outcome:
        drafts = self._drafts(given.records)
        require_distinct((each.field, (each.kind.name, each.kind.place(each.message))) for each in drafts)
        if not given.conversation_id:
            moves: list[Move] = [Put(each.kind, 0, each.message) for each in drafts]
            moves += [claim(vector.collection_id) for _, vector in _vectors(drafts)]
            return self._commands.run(
                write, self._records.held(write, moves), lambda _, now: self._without_conversation(write, drafts, now)
            )
        held = self._loader.locked(write, given.conversation_id)
        return self._commands.run(
            write, held, lambda found, now: self._into_conversation(write, given, drafts, found, now)
        )

    def _drafts(self, records: Sequence[ImportedRecord]) -> list[_Draft]:
        return [self._draft(record) for record in records]

    def _draft(self, record: ImportedRecord) -> _Draft:
        """A record with its kind: of those that an export calls so, the one whose owner it names."""
        named = [kind for kind in self._records.kinds.transferred() if kind.transfer == record.kind]
        message = named[0].message.FromString(record.body)
        if isinstance(message, MemoryItem):
            index_item(message)
        if isinstance(message, Fact):
            index_fact(message)
        kind = named[0] if len(named) == 1 else next(kind for kind in named if kind.is_of(message))
        return _Draft(record.field, kind, message)

    def _without_conversation(self, write: Write, drafts: Sequence[_Draft], now: int) -> Planned | None:
        """Records of no conversation; None if all are there. Vectors join their collections, also a new one."""
        puts = self._new_records(write, 0, drafts)
        if any(map(_is_nobodys_part, drafts)):
            self._nobodys_parts.are_new = True
        joined = self._records.changes(write, self._joined(write, drafts, now)) if puts else []
        return Planned([*puts, *joined], Outcome(revision=0, imported_records=len(puts))) if puts else None

    def _joined(self, write: Write, drafts: Sequence[_Draft], now: int) -> Iterator[Move]:
        """What changes of collections that are not imported themselves. Raises DimensionMismatch."""
        given = {each.message.id: each.message for each in drafts if isinstance(each.message, VectorCollection)}
        by_collection: dict[str, list[tuple[str, int]]] = {}
        for field, vector in _vectors(drafts):
            dimension = len(vector.values) // FLOAT_BYTES
            by_collection.setdefault(vector.collection_id, []).append((f"{field}.values", dimension))
        for collection_id, dimensions in by_collection.items():
            yield from self._collections.joined(write, collection_id, dimensions, now, given.get(collection_id))

    def _into_conversation(
        self, write: Write, given: Import, drafts: Sequence[_Draft], found: AcceptedConversation | None, now: int
    ) -> Planned | None:
        """Records of a conversation; None if all are there."""
        view, created = _view(found, given)
        uid = view.head.uid
        planned = plan_import(view, given.conversation, given.messages)
        if found is not None and planned.taken:
            self._commits.settle(write.deadline)
        self._require_same_messages(uid, planned.taken)
        others = self._new_records(write, uid, drafts)
        stored = len(created) + len(planned.plan.puts) + len(others)
        if not stored and planned.plan.head == view.head:
            return None
        outcome = Outcome(revision=0, conversation_id=given.conversation_id, imported_records=stored)
        windows = self._behind_summaries(write, given.conversation_id, planned.plan, drafts, now) if others else []
        return self._planned(write, planned.plan, [*created, *others, *windows], outcome)

    def _behind_summaries(
        self, write: Write, conversation_id: str, plan: Plan, drafts: Sequence[_Draft], now: int
    ) -> list[changes.Change]:
        """The window of a conversation without one begins behind the summary that is imported. Raises InvalidField for
        one of a user who does not own it, because it would never be shown.
        """
        moves: list[Move] = []
        for draft in drafts:
            if isinstance(draft.message, ConversationSummary):
                if draft.message.user_id != plan.head.user_id:
                    raise InvalidField(f"{draft.field}.user_id", "must be the conversation's own user")
                moves += self._windows.behind_imported(write, conversation_id, plan, draft.message, now)
        return self._records.changes(write, moves)

    def _planned(self, write: Write, plan: Plan, before: Sequence[changes.Change], outcome: Outcome) -> Planned:
        counts = self._count_tokens([put.draft.text for put in plan.puts]) if plan.puts else []
        by_draft = {id(put.draft): count for put, count in zip(plan.puts, counts, strict=True)}
        moves = changes.message_changes(outcome.conversation_id, plan, by_draft)
        return Planned(
            [*before, *moves],
            outcome,
            plan.head.user_id,
            tell=lambda revision: self._tell(write.tenant_id, outcome.conversation_id, plan, revision),
        )

    def _tell(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> None:
        self._on_puts(tenant_id, conversation_id, plan, revision)
        self._windows.imported(plan.head.uid, revision, [put.sequence for put in plan.puts])

    def _require_same_messages(self, uid: int, messages: Sequence[ImportedMessage]) -> None:
        if not messages:
            return

        def ask(cursor: duckdb.DuckDBPyConnection, rows: int) -> str | None:
            pages = (messages[begin : begin + rows] for begin in range(0, len(messages), rows))
            return next(filter(None, (_conflict(cursor, uid, page) for page in pages)), None)

        conflict = self._database.in_pages(len(messages), ask)
        if conflict is not None:
            raise RecordConflict(conflict)

    def _new_records(self, write: Write, uid: int, drafts: Sequence[_Draft]) -> list[changes.Change]:
        """The changes that store what is not there. Raises RecordConflict, InvalidField."""
        stored = (
            self._stored(write, uid, drafts) if uid or not any(each.kind.of_conversation for each in drafts) else {}
        )
        fresh: list[Move] = []
        for draft in drafts:
            found = stored.get(draft.place(uid))
            if found is None:
                fresh.append(Put(draft.kind, uid, draft.message))
            elif not draft.kind.is_same(found.body, draft.message):
                raise RecordConflict(draft.field)
        try:
            return self._records.changes(write, fresh)
        except RecordNotFound as error:
            field = next(each.field for each in drafts if each.place(uid)[0].partition == error.partition)
            raise InvalidField(field, f"what it belongs to, of {error.kind}, is not there") from error
        except BodyTooLong as error:
            field = next(each.field for each in drafts if each.message.ByteSize() > error.limit)
            raise InvalidField(field, f"has more than the {error.limit:,} bytes of a record") from error

    def _stored(self, write: Write, uid: int, drafts: Sequence[_Draft]) -> dict[_Place, Record]:
        """The records that stand where drafts are to go."""
        by_partition: dict[Partition, list[bytes]] = {}
        for draft in drafts:
            partition, key = draft.place(uid)
            by_partition.setdefault(partition, []).append(key)
        return {
            (partition, record.key): record
            for partition, keys in by_partition.items()
            for record in self._records.accepted(write, partition, keys)
        }


def _vectors(drafts: Sequence[_Draft]) -> Iterator[tuple[str, Vector]]:
    """The vectors among some records, each with where the request has it."""
    for each in drafts:
        if isinstance(each.message, Vector):
            yield each.field, each.message


def _view(found: AcceptedConversation | None, given: Import) -> tuple[ConversationView, list[changes.Change]]:
    """The conversation, and the change that creates it where it is not there."""
    own = given.conversation
    if found is None:
        if own is None:
            raise ConversationNotFound(given.conversation_id)
        new = NewConversation(own.draft)
        return new, [changes.put_conversation(0, own.draft, own.create_time)]
    if own is not None and not _is_same(found, own):
        raise RecordConflict(own.field)
    return found, []


def _is_same(found: AcceptedConversation, own: ImportedConversation) -> bool:
    rows = wire.conversation(found.draft), wire.conversation(own.draft)
    return found.row.create_time == own.create_time and rows[0] == rows[1]


def _message(given: ImportedMessage) -> message_pb2.Message:
    """The message as it would be stored."""
    message = message_pb2.Message.FromString(given.draft.body)
    message.id, message.user_id, message.sequence = given.draft.id, given.user_id, given.sequence
    message.create_time.CopyFrom(wire.timestamp(given.create_time))
    message.update_time.CopyFrom(wire.timestamp(given.update_time))
    if given.draft.embedding is not None:
        message.embedding.model, message.embedding.values = given.draft.embedding.model, given.draft.embedding.values
    return message


def _conflict(cursor: duckdb.DuckDBPyConnection, uid: int, messages: Sequence[ImportedMessage]) -> str | None:
    """The field of the first message that is stored as another one."""
    sequences = [message.sequence for message in messages]
    rows = cursor.execute(_MESSAGES, {"uid": uid, "sequences": sequences}).fetchall()
    embeddings = caller_embeddings(cursor, [uid] * len(sequences), sequences)
    stored: dict[int, message_pb2.Message] = {}
    for row in rows:
        sequence, revision = row[:2]
        stored[sequence] = message_pb2.Message.FromString(stored_message(*row))
        if (uid, sequence, revision) in embeddings:
            stored[sequence].embedding.CopyFrom(embeddings[uid, sequence, revision])
    differing = (each.field for each in messages if _without_server_fields(stored[each.sequence]) != _message(each))
    return next(differing, None)


def _without_server_fields(message: message_pb2.Message) -> message_pb2.Message:
    message.ClearField("revision")
    message.ClearField("token_count")
    return message
