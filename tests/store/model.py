"""The model of a store: dicts in memory, no journal, no database, no search.

It says plainly what a store is to do. Revisions grow by uneven steps, as those of a store would that numbers its writes
by the transactions of a database: whoever needs consecutive ones fails here.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from msgspec.structs import replace
from tests.store.checkpoint_model import Checkpoints, ThreadRows, Threads
from tests.store.fact_model import FactRows, Facts
from tests.store.history_model import EntrySteps, HistoryEntries
from tests.store.item_model import ItemRows, Items
from tests.store.memory_item_model import MemoryItemRows, MemoryItems
from tests.store.receipt_model import ReceiptRows, Receipts
from tests.store.trace_model import LogRecords, Spans
from tests.store.vector_model import Collections, VectorRows, Vectors, holds
from tests.store.workflow_model import TimelineEvents, WorkflowRuns, Workflows, WorkflowSteps

from remora.v1 import conversation_service_pb2, message_pb2, step_pb2, transfer_service_pb2
from remora.v1.conversation_pb2 import Conversation as ConversationMessage
from remora.v1.short_term_pb2 import ConversationSummary
from remora.v1.working_memory_pb2 import WorkingMemoryRecord, WorkingMemoryScope
from remora_server import wire
from remora_server.domain.backups import Backup, require_within
from remora_server.domain.calls import DEFAULT_USER, Outcome, Read, Write
from remora_server.domain.context_messages import SYSTEM_ROLES
from remora_server.domain.conversations import (
    Conversation,
    ConversationDraft,
    ConversationOrder,
    ConversationQuery,
    ConversationUpdate,
    Head,
    position_of,
    require_owner,
)
from remora_server.domain.errors import (
    BackupNotFound,
    ConversationExists,
    ConversationNotFound,
    RecordConflict,
    RequestIdReused,
    RevisionUnknown,
)
from remora_server.domain.messages import (
    Edit,
    MessageDraft,
    MessagePage,
    MessageQuery,
    Plan,
    View,
    plan_append,
    plan_clear,
    plan_delete,
    plan_edit,
)
from remora_server.domain.models import ServedModel
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.search import (
    Component,
    EmbeddingQueue,
    Hit,
    InConversation,
    IndexState,
    OfUser,
    Scope,
    SearchQuery,
    SearchResult,
    WordsOnly,
)
from remora_server.domain.status import EngineStatus, JournalStatus, StoreStatus
from remora_server.domain.steps import StepCursor, StepDraft, StepPage, StepPosition, StepQuery
from remora_server.domain.store import Store
from remora_server.domain.times import Between
from remora_server.domain.transfers import (
    ExportPage,
    ExportPlace,
    ExportPosition,
    ExportQuery,
    Import,
    ImportedMessage,
    ImportedRecord,
    plan_import,
    require_distinct,
)
from remora_server.domain.windows import WHOLE, Cover, Summary, Weights, Window, WindowListener, WindowMoved
from remora_server.domain.working_memory import (
    ConversationMemory,
    WorkingMemory,
    WorkingMemoryEdit,
    WorkingMemoryOwner,
)
from remora_server.storage.schema.message_reader import StoredMessageReader

STEPS = (1, 7, 2, 1_000, 3)
"""By which revisions grow, in turn."""
LAST_UID = 2**64 - 1
"""Where an export has users' working memories: behind all conversations."""

CountTokens = Callable[[list[str]], list[int]]
T = TypeVar("T")
Memory = tuple[bytes, int]
"""A content and when it was set."""
GivenSteps = Sequence[tuple[str, step_pb2.Step]]
GivenMemories = Sequence[tuple[str, WorkingMemoryRecord]]
"""Imported records, each with its place in the request."""


@dataclass
class Message:
    """A stored message."""

    id: str
    user_id: str
    sequence: int
    revision: int
    create_time: int
    update_time: int
    token_count: int
    draft: MessageDraft

    def served(self) -> message_pb2.Message:
        message = message_pb2.Message.FromString(self.draft.body)
        message.id, message.user_id, message.sequence = self.id, self.user_id, self.sequence
        message.revision, message.token_count = self.revision, self.token_count
        message.create_time.CopyFrom(wire.timestamp(self.create_time))
        message.update_time.CopyFrom(wire.timestamp(self.update_time))
        return message

    def exported(self) -> message_pb2.Message:
        message = self.served()
        message.ClearField("revision")
        if self.draft.embedding is not None:
            message.embedding.model, message.embedding.values = self.draft.embedding.model, self.draft.embedding.values
        return message


@dataclass
class Kept:
    """A conversation with all it holds: the `ConversationView` of plans."""

    uid: int
    draft: ConversationDraft
    create_time: int
    update_time: int = 0
    revision: int = 0
    last_sequence: int = 0
    last_time: int = 0
    messages: dict[int, Message] = field(default_factory=dict)
    steps: dict[tuple[str, str], tuple[int, int, step_pb2.Step]] = field(default_factory=dict)
    """By user and id: revision, ordinal and the step."""
    memory: Memory | None = None
    window: Window = WHOLE
    summary: Summary | None = None
    changes: list[tuple[int, int]] = field(default_factory=list)
    """The revisions that replaced or removed messages of its own user, and the lowest sequences."""
    changes_of_others: list[tuple[int, int]] = field(default_factory=list)
    """The same of messages of other users."""
    cleared: dict[str, int] = field(default_factory=dict)
    """At which revisions all messages of users were cleared."""

    @property
    def head(self) -> Head:
        return Head(
            uid=self.uid,
            user_id=self.draft.user_id,
            last_sequence=self.last_sequence,
            message_count=len(self.messages),
            last_time=self.last_time,
            update_time=self.update_time,
            storage_limit=self.draft.storage_limit,
            has_short_term=self.draft.short_term is not None,
        )

    @property
    def shown_window(self) -> Window:
        """The window, with the system message that stays in it now."""
        system = [each.sequence for each in self.of(self.draft.user_id) if each.draft.role in SYSTEM_ROLES]
        newest = max(system, default=0)
        return replace(self.window, system_sequence=newest if newest < self.window.first_sequence else 0)

    def of(self, user_id: str | None) -> list[Message]:
        return [self.messages[at] for at in sorted(self.messages) if user_id in (None, self.messages[at].user_id)]

    def find(self, user_id: str, ids: Sequence[str]) -> list[tuple[int, int] | None]:
        places = {message.id: (message.sequence, message.create_time) for message in self.of(user_id)}
        return [places.get(message_id) for message_id in ids]

    def live(self, user_id: str | None) -> list[int]:
        return [message.sequence for message in self.of(user_id)]

    def oldest(self, count: int) -> list[tuple[int, str]]:
        return [(message.sequence, message.user_id) for message in self.of(None)[:count]]

    def shown(self) -> Conversation:
        return Conversation(
            draft=self.draft,
            uid=self.uid,
            revision=self.revision,
            last_sequence=self.last_sequence,
            message_count=len(self.messages),
            create_time=self.create_time,
            update_time=self.update_time,
        )

    def touch(self, revision: int, now: int) -> None:
        self.revision, self.update_time = revision, max(now, self.update_time)


@dataclass
class Tenant:
    """What a tenant has."""

    conversations: dict[str, Kept] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    workflows: Workflows = field(default_factory=Workflows)
    vectors: VectorRows = field(default_factory=VectorRows)
    memory_items: MemoryItemRows = field(default_factory=MemoryItemRows)
    facts: FactRows = field(default_factory=FactRows)
    items: ItemRows = field(default_factory=ItemRows)
    threads: ThreadRows = field(default_factory=ThreadRows)
    receipts: ReceiptRows = field(default_factory=ReceiptRows)
    requests: dict[str, tuple[bytes, Outcome]] = field(default_factory=dict)

    def conversation(self, conversation_id: str) -> Kept:
        if conversation_id not in self.conversations:
            raise ConversationNotFound(conversation_id)
        return self.conversations[conversation_id]


class Books:
    """All tenants, the revisions and the clock; one command at a time."""

    def __init__(self, count_tokens: CountTokens) -> None:
        self.count_tokens = count_tokens
        self.revision = 0
        self.followers: list[Callable[[], None]] = []
        self.listener: WindowListener | None = None
        self._tenants: dict[str, Tenant] = {}
        self._steps = itertools.cycle(STEPS)
        self._ids = itertools.count(1)
        self.lock = threading.RLock()
        self._now = 0

    def now(self) -> int:
        return time.time_ns() // 1_000

    def tell(self, write: Write, conversation_id: str) -> None:
        """A conversation is written to. A store may say less."""
        if self.listener is not None:
            self.listener.written(write.tenant_id, conversation_id, 0, None)

    def new_id(self) -> str:
        return f"id-{next(self._ids)}"

    def tenant(self, tenant_id: str) -> Tenant:
        return self._tenants.setdefault(tenant_id, Tenant())

    def tenants(self) -> list[Tenant]:
        return list(self._tenants.values())

    def repeated(self, write: Write) -> Outcome | None:
        """The outcome of the same request where it came before."""
        found = self.tenant(write.tenant_id).requests.get(write.request_id)
        if found is None:
            return None
        fingerprint, first = found
        if fingerprint != write.fingerprint:
            raise RequestIdReused(write.request_id)
        return first

    def write(self, write: Write, change: Callable[[Tenant, int, int], Outcome | None]) -> Outcome:
        """Run a command, which is given its tenant, its revision and the time. None: it found nothing to change."""
        with self.lock:
            tenant = self.tenant(write.tenant_id)
            first = self.repeated(write)
            if first is not None:
                return first
            self._now = max(self._now, time.time_ns() // 1_000)
            revision = self.revision + next(self._steps)
            found = change(tenant, revision, self._now)
            if found is None and not write.request_id:
                return Outcome(self.revision)
            outcome = replace(found or Outcome(0), revision=revision)
            if write.request_id:
                tenant.requests[write.request_id] = (write.fingerprint, outcome)
            self.revision = revision
        for follower in self.followers:
            follower()
        return outcome

    def read(self, read: Read) -> tuple[Tenant, int]:
        """What a read sees, and the revision that this shows."""
        if read.min_revision > self.revision:
            raise RevisionUnknown(read.min_revision, self.revision)
        return self.tenant(read.tenant_id), self.revision


class Publication:
    """Everything is published once it is written."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def published(self) -> int:
        return self._books.revision

    def has_ended(self) -> bool:
        return False

    def follow(self, changed: Callable[[], None]) -> bool:
        self._books.followers.append(changed)
        return True


class OneAtATime:
    """A noun each of whose methods has the books to itself."""

    def __init__(self, noun: object, lock: AbstractContextManager[object]) -> None:
        self._noun = noun
        self._lock = lock

    def __getattr__(self, name: str) -> object:
        method = getattr(self._noun, name)

        def alone(*arguments: object, **keywords: object) -> object:
            with self._lock:
                return method(*arguments, **keywords)

        return alone


class Conversations:
    def __init__(self, books: Books) -> None:
        self._books = books

    def create(self, write: Write, draft: ConversationDraft) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome:
            named = replace(draft, id=draft.id or self._books.new_id(), user_id=draft.user_id or DEFAULT_USER)
            if named.id in tenant.conversations:
                raise ConversationExists(named.id)
            tenant.conversations[named.id] = Kept(revision, named, now, now, revision)
            return Outcome(0, conversation_id=named.id, time=now, created=True)

        return self._books.write(write, change)

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]:
        tenant, revision = self._books.read(read)
        kept = tenant.conversation(conversation_id)
        require_owner(kept.draft.user_id, user_id, conversation_id)
        return kept.shown(), revision

    def update(self, write: Write, conversation_id: str, user_id: str, update: ConversationUpdate) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome:
            kept = tenant.conversation(conversation_id)
            require_owner(kept.draft.user_id, user_id, conversation_id)
            kept.draft = replace(kept.draft, **{name: getattr(update.draft, name) for name in update.mask})
            kept.touch(revision, now)
            self._books.tell(write, conversation_id)
            return Outcome(0, conversation_id=conversation_id, time=kept.update_time)

        return self._books.write(write, change)

    def delete(self, write: Write, conversation_id: str, user_id: str, *, allow_missing: bool) -> Outcome:
        def change(tenant: Tenant, _revision: int, _now: int) -> Outcome | None:
            kept = tenant.conversations.get(conversation_id)
            if kept is None or user_id not in {"", kept.draft.user_id}:
                if allow_missing:
                    return None
                raise ConversationNotFound(conversation_id)
            del tenant.conversations[conversation_id]
            return Outcome(0, conversation_id=conversation_id, deleted=True, deleted_messages=len(kept.messages))

        return self._books.write(write, change)

    def count(self, read: Read, user_id: str, resource_id: str) -> tuple[int, int]:
        tenant, revision = self._books.read(read)
        return len(_chosen(tenant, user_id, resource_id)), revision

    def list(self, read: Read, query: ConversationQuery) -> tuple[list[Conversation], int]:
        tenant, revision = self._books.read(read)
        chosen = _chosen(tenant, query.user_id, query.resource_id)
        ordered = sorted(chosen, key=lambda kept: _place(kept, query.order_by), reverse=query.descending)
        if query.after is not None:
            after = (_folded(query.after.value), query.after.uid)
            places = [_place(kept, query.order_by) for kept in ordered]
            behind = [place < after if query.descending else place > after for place in places]
            ordered = list(itertools.compress(ordered, behind))
        return [kept.shown() for kept in ordered[query.skip : query.skip + query.limit]], revision


def _place(kept: Kept, order: ConversationOrder) -> tuple[Any, int]:
    position = position_of(kept.shown(), order)
    return _folded(position.value), position.uid


def _folded(value: int | str) -> int | str:
    """Titles are ordered without regard to case."""
    return value.lower() if isinstance(value, str) else value


def _chosen(tenant: Tenant, user_id: str, resource_id: str) -> list[Kept]:
    return [
        kept
        for kept in tenant.conversations.values()
        if user_id in {"", kept.draft.user_id} and resource_id in {"", kept.draft.resource_id}
    ]


class Messages:
    def __init__(self, books: Books) -> None:
        self._books = books

    def append(
        self,
        write: Write,
        conversation_id: str,
        user_id: str,
        messages: Sequence[MessageDraft],
        create_if_missing: ConversationDraft | None,
    ) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome:
            kept, template = tenant.conversations.get(conversation_id), create_if_missing
            if kept is None and template is None:
                raise ConversationNotFound(conversation_id)
            created = kept is None
            if kept is None and template is not None:
                owner = template.user_id or user_id or DEFAULT_USER
                kept = Kept(revision, replace(template, id=conversation_id, user_id=owner), now)
                tenant.conversations[conversation_id] = kept
            assert kept is not None
            self._books.tell(write, conversation_id)
            plan = plan_append(kept, user_id or kept.draft.user_id, messages, now, self._books.new_id)
            return replace(self._apply(kept, plan, revision), created=created)

        return self._books.write(write, change)

    def edit(
        self, write: Write, conversation_id: str, user_id: str, edits: Sequence[Edit], *, allow_missing: bool
    ) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome | None:
            kept = tenant.conversation(conversation_id)
            self._books.tell(write, conversation_id)
            user = user_id or kept.draft.user_id
            plan = plan_edit(kept, user, edits, now, self._books.new_id, allow_missing=allow_missing)
            return self._apply(kept, plan, revision) if plan.changes_messages else None

        return self._books.write(write, change)

    def delete(self, write: Write, conversation_id: str, user_id: str, ids: Sequence[str]) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome | None:
            kept = tenant.conversation(conversation_id)
            self._books.tell(write, conversation_id)
            plan = plan_delete(kept, user_id or kept.draft.user_id, ids, now)
            return self._apply(kept, plan, revision) if plan.changes_messages else None

        return self._books.write(write, change)

    def clear(self, write: Write, conversation_id: str, user_id: str) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome:
            kept = tenant.conversation(conversation_id)
            self._books.tell(write, conversation_id)
            return self.clear_part(kept, user_id or kept.draft.user_id, revision, now)

        return self._books.write(write, change)

    def clear_part(self, kept: Kept, user_id: str, revision: int, now: int) -> Outcome:
        """Clear a user's messages and steps, and what sums them up."""
        kept.steps = {key: row for key, row in kept.steps.items() if key[0] != user_id}
        kept.cleared[user_id] = revision
        outcome = self._apply(kept, plan_clear(kept, user_id, now), revision)
        if user_id == kept.draft.user_id:
            kept.summary = None
        return outcome

    def _apply(self, kept: Kept, plan: Plan, revision: int) -> Outcome:
        lowest = plan.lowest_changed
        if lowest is not None:
            kept.changes.append((revision, lowest))
            if kept.summary is not None and lowest <= kept.summary.covers_through:
                kept.summary, kept.window = None, WHOLE
        lowest = plan.lowest_changed_of_others
        if lowest is not None:
            kept.changes_of_others.append((revision, lowest))
        for removal in plan.removals:
            gone = kept.live(removal.user_id) if removal.sequences is None else removal.sequences
            for sequence in gone:
                del kept.messages[sequence]
        for put in plan.puts:
            kept.messages[put.sequence] = Message(
                id=put.id,
                user_id=put.user_id,
                sequence=put.sequence,
                revision=revision,
                create_time=put.create_time,
                update_time=put.update_time,
                token_count=self._books.count_tokens([put.draft.text])[0],
                draft=put.draft,
            )
        assert len(kept.messages) == plan.head.message_count
        kept.last_sequence, kept.last_time = plan.head.last_sequence, plan.head.last_time
        kept.revision, kept.update_time = revision, plan.head.update_time
        return Outcome(
            0,
            conversation_id=kept.draft.id,
            messages=plan.placed,
            pruned_messages=plan.pruned,
            deleted_messages=plan.removed,
        )

    def list(self, read: Read, query: MessageQuery) -> MessagePage:
        tenant, revision = self._books.read(read)
        kept = tenant.conversation(query.conversation_id)
        window = kept.shown_window if query.view is View.WINDOW else WHOLE
        own = [each for each in kept.of(query.user_id or kept.draft.user_id) if _is_in(window, each.sequence)]
        found = [message for message in own if _passes(message, query)]
        page: list[Message] = []
        size = 0
        for message in reversed(found) if query.newest else found:
            size += len(_page([message]))
            if len(page) == query.limit or (page and size > REPLY_BYTES):
                break
            page.append(message)
        page.sort(key=lambda message: message.sequence)
        first, last = (page[0].sequence, page[-1].sequence) if page else (0, 0)
        return MessagePage(_page(page), len(page), first, last, len(page) < len(found), revision, kept.uid)


def _page(messages: Sequence[Message]) -> bytes:
    reply = conversation_service_pb2.ListMessagesResponse(messages=[message.served() for message in messages])
    return reply.SerializeToString()


def _passes(message: Message, query: MessageQuery) -> bool:
    return (
        (not query.roles or message.draft.role in query.roles)
        and _is_within(query.sent, _sent_time(message))
        and _is_within(query.received, message.create_time)
        and (query.after_sequence is None or message.sequence > query.after_sequence)
        and (query.before_sequence is None or message.sequence < query.before_sequence)
        and (query.filter is None or holds(query.filter, message.served()))
    )


def _is_in(window: Window, sequence: int) -> bool:
    return sequence >= window.first_sequence or sequence == window.system_sequence


class Windows:
    def __init__(self, books: Books) -> None:
        self._books = books

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, int]:
        tenant, revision = self._books.read(read)
        kept = tenant.conversation(conversation_id)
        require_owner(kept.draft.user_id, user_id, conversation_id)
        return kept.shown_window, revision

    def weigh(self, read: Read, conversation_id: str, window: Window) -> Weights:
        tenant, revision = self._books.read(read)
        kept = tenant.conversation(conversation_id)
        own = [each for each in kept.of(kept.draft.user_id) if _is_in(window, each.sequence)]
        system = [each.sequence for each in own if each.draft.role in SYSTEM_ROLES]
        others = [each.served() for each in own if each.draft.role not in SYSTEM_ROLES]
        return Weights(
            [each.sequence for each in others],
            [each.token_count for each in others],
            max(system, default=0),
            any(each.tool_calls or each.tool_result_ids for each in others),
            revision,
        )

    def move(self, write: Write, conversation_id: str, uid: int, before: Window, after: Window) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome:
            kept = tenant.conversation(conversation_id)
            if kept.uid != uid:
                raise ConversationNotFound(conversation_id)
            if kept.window.revision != before.revision:
                raise WindowMoved
            kept.window = replace(after, revision=revision, move_time=now)
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def current(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, Summary | None, int]:
        window, revision = self.get(read, conversation_id, user_id)
        return window, self._books.read(read)[0].conversation(conversation_id).summary, revision

    def summarize(self, write: Write, conversation_id: str, uid: int, cover: Cover, summary: Summary) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome:
            kept = tenant.conversation(conversation_id)
            if kept.uid != uid:
                raise ConversationNotFound(conversation_id)
            changed = not kept.uid <= cover.revision <= self._books.revision or any(
                since > cover.revision and lowest <= cover.through for since, lowest in kept.changes
            )
            if changed or kept.window.revision != cover.window_revision:
                raise WindowMoved
            kept.window = Window(cover.through + 1, summary.system_sequence, revision, now)
            kept.summary = replace(summary, user_id=kept.draft.user_id, revision=revision, create_time=now)
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def listen(self, listener: WindowListener) -> None:
        self._books.listener = listener


def _is_within(bounds: Between, time: int) -> bool:
    return (bounds.after is None or time > bounds.after) and (bounds.before is None or time < bounds.before)


def _sent_time(message: Message) -> int:
    served = message.served()
    return served.sent_time.ToMicroseconds() if served.HasField("sent_time") else message.create_time


class Steps:
    def __init__(self, books: Books) -> None:
        self._books = books

    def save(self, write: Write, steps: Sequence[StepDraft]) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome:
            found = {step.conversation_id: tenant.conversation(step.conversation_id) for step in steps}
            for ordinal, draft in enumerate(steps):
                kept = found[draft.conversation_id]
                step = step_pb2.Step.FromString(draft.body)
                step.conversation_id = draft.conversation_id
                step.user_id = draft.user_id or kept.draft.user_id
                step.create_time.CopyFrom(wire.timestamp(now if draft.create_time is None else draft.create_time))
                kept.steps[step.user_id, step.id] = (revision, ordinal, step)
            for kept in found.values():
                kept.touch(revision, now)
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def list(self, read: Read, query: StepQuery) -> StepPage:
        tenant, revision = self._books.read(read)
        kept = tenant.conversation(query.conversation_id)
        user = query.user_id or kept.draft.user_id
        rows = [row for (owner, _), row in kept.steps.items() if owner == user]
        found = [
            (StepPosition(step.step_index, revision, ordinal), step.SerializeToString())
            for revision, ordinal, step in sorted(rows, key=lambda row: (row[2].step_index, *row[:2]))
            if query.operation_id in {"", step.operation_id}
        ]
        if query.after is None:
            first = 0 if query.last is None else max(0, len(found) - query.last)
            rest = found[first + query.skip :]
            left = None if query.last is None else query.last - query.skip
        else:
            left = query.after.left
            rest = [each for each in found if each[0] > query.after.behind][:left]
        page: list[tuple[StepPosition, bytes]] = []
        for each in rest[: query.limit]:
            if page and sum(len(step) for _, step in page) + len(each[1]) > REPLY_BYTES:
                break
            page.append(each)
        encoded = wire.elements(wire.LIST_FIELD, (step for _, step in page))
        if not page or len(page) == len(rest):
            return StepPage(encoded, None, revision)
        return StepPage(encoded, StepCursor(page[-1][0], None if left is None else left - len(page)), revision)


class WorkingMemories:
    def __init__(self, books: Books) -> None:
        self._books = books

    def get(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory:
        tenant, revision = self._books.read(read)
        content, update_time = _memory(tenant, owner) or (None, 0)
        return WorkingMemory(content, update_time, revision)

    def set(self, write: Write, owner: WorkingMemoryOwner, content: bytes) -> Outcome:
        def change(tenant: Tenant, _revision: int, now: int) -> Outcome:
            _memory(tenant, owner)
            _set_memory(tenant, owner, (content, now))
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def edit(self, write: Write, owner: WorkingMemoryOwner, edit: WorkingMemoryEdit) -> Outcome:
        def change(tenant: Tenant, _revision: int, now: int) -> Outcome:
            before, _ = _memory(tenant, owner) or (None, 0)
            _set_memory(tenant, owner, (edit.applied_to(before), now))
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def delete(self, write: Write, owner: WorkingMemoryOwner) -> Outcome:
        def change(tenant: Tenant, _revision: int, _now: int) -> Outcome | None:
            if _memory(tenant, owner) is None:
                return None
            _set_memory(tenant, owner, None)
            return Outcome(0, deleted=True)

        return self._books.write(write, change)


def _memory(tenant: Tenant, owner: WorkingMemoryOwner) -> Memory | None:
    if not isinstance(owner, ConversationMemory):
        return tenant.memories.get(owner.user_id)
    kept = tenant.conversation(owner.conversation_id)
    require_owner(kept.draft.user_id, owner.user_id, owner.conversation_id)
    return kept.memory


def _set_memory(tenant: Tenant, owner: WorkingMemoryOwner, memory: Memory | None) -> None:
    if isinstance(owner, ConversationMemory):
        tenant.conversation(owner.conversation_id).memory = memory
    elif memory is None:
        del tenant.memories[owner.user_id]
    else:
        tenant.memories[owner.user_id] = memory


class Users:
    def __init__(self, books: Books, messages: Messages) -> None:
        self._books = books
        self._messages = messages

    def clear(self, write: Write, user_id: str) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome | None:
            parts = [
                kept
                for kept in tenant.conversations.values()
                if kept.of(user_id) or any(owner == user_id for owner, _ in kept.steps)
            ]
            cleared = [self._messages.clear_part(kept, user_id, revision, now) for kept in parts]
            return Outcome(0, deleted_messages=sum(part.deleted_messages for part in cleared)) if cleared else None

        return self._books.write(write, change)

    def delete(self, write: Write, user_id: str) -> Outcome:
        def change(tenant: Tenant, revision: int, now: int) -> Outcome:
            owned = [kept for kept in tenant.conversations.values() if kept.draft.user_id == user_id]
            for kept in owned:
                del tenant.conversations[kept.draft.id]
            others = [
                self._messages.clear_part(kept, user_id, revision, now)
                for kept in tenant.conversations.values()
                if kept.of(user_id) or any(owner == user_id for owner, _ in kept.steps)
            ]
            tenant.memories.pop(user_id, None)
            tenant.workflows.forget(user_id)
            tenant.vectors.forget(user_id)
            tenant.memory_items.forget(user_id)
            tenant.facts.forget(user_id)
            tenant.items.forget(user_id)
            tenant.threads.forget(user_id)
            tenant.receipts.forget(user_id, revision)
            gone = sum(len(kept.messages) for kept in owned) + sum(part.deleted_messages for part in others)
            return Outcome(0, deleted_messages=gone, deleted_conversations=len(owned))

        return self._books.write(write, change)


Record = transfer_service_pb2.Record


class Exports:
    def __init__(self, books: Books) -> None:
        self._books = books

    def page(self, read: Read, query: ExportQuery) -> ExportPage:
        tenant, revision = self._books.read(read)
        if query.conversation_id:
            kept = tenant.conversation(query.conversation_id)
            require_owner(kept.draft.user_id, query.user_id, query.conversation_id)
        position = query.position or ExportPosition(ExportPlace(), through=revision, newest=0)
        places = sorted((place, record) for place, record in _places(tenant, query, position) if place > position.after)
        page: list[tuple[ExportPlace, bytes]] = []
        for place, record in places[: query.limit]:
            if page and sum(len(each) for _, each in page) + len(record) > REPLY_BYTES:
                break
            page.append((place, record))
        following = None if len(page) == len(places) else _following(tenant, position, page[-1][0])
        return ExportPage(tuple(record for _, record in page), following, revision)


def _following(tenant: Tenant, position: ExportPosition, last: ExportPlace) -> ExportPosition:
    if last.uid in {position.after.uid, LAST_UID}:
        return ExportPosition(last, position.through, position.newest)
    newest = next(kept.last_sequence for kept in tenant.conversations.values() if kept.uid == last.uid)
    return ExportPosition(last, position.through, newest)


def _places(tenant: Tenant, query: ExportQuery, position: ExportPosition) -> Iterator[tuple[ExportPlace, bytes]]:
    for kept in tenant.conversations.values():
        wanted = query.user_id in {"", kept.draft.user_id} and query.conversation_id in {"", kept.draft.id}
        if wanted and kept.uid <= position.through:
            yield from _records(kept, position.newest if kept.uid == position.after.uid else LAST_UID)
    for user_id, memory in tenant.memories.items():
        if not query.conversation_id and query.user_id in {"", user_id}:
            yield (
                ExportPlace(LAST_UID, 4, key=user_id.encode()),
                _memory_record(WorkingMemoryScope(user_id=user_id), memory),
            )
    if not query.conversation_id:
        for part, key, user_id, record in (
            *tenant.workflows.exported(),
            *tenant.vectors.exported(),
            *tenant.items.exported(),
            *tenant.memory_items.exported(),
            *tenant.facts.exported(),
        ):
            if query.user_id in {"", user_id}:
                yield ExportPlace(LAST_UID, part, key=key), record


def _records(kept: Kept, newest: int) -> Iterator[tuple[ExportPlace, bytes]]:
    own = Record()
    own.conversation.conversation.CopyFrom(_row(kept))
    own.conversation.conversation.last_sequence = kept.last_sequence
    own.conversation.conversation.create_time.CopyFrom(wire.timestamp(kept.create_time))
    own.conversation.conversation.update_time.CopyFrom(wire.timestamp(kept.update_time))
    if kept.last_time:
        own.conversation.last_append_time.CopyFrom(wire.timestamp(kept.last_time))
    yield ExportPlace(kept.uid), own.SerializeToString()
    for message in kept.of(None):
        if message.sequence <= newest:
            record = transfer_service_pb2.MessageRecord(conversation_id=kept.draft.id, message=message.exported())
            yield ExportPlace(kept.uid, 1, message.sequence), Record(message=record).SerializeToString()
    for revision, ordinal, step in kept.steps.values():
        yield ExportPlace(kept.uid, 2, revision, ordinal), Record(step=step).SerializeToString()
    if kept.memory is not None:
        scope = WorkingMemoryScope(conversation_id=kept.draft.id)
        yield ExportPlace(kept.uid, 3), _memory_record(scope, kept.memory)
    if kept.summary is not None:
        summary = Record(conversation_summary=_exported_summary(kept.draft.id, kept.summary))
        yield ExportPlace(kept.uid, 4), summary.SerializeToString()


def _exported_summary(conversation_id: str, summary: Summary) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=conversation_id,
        user_id=summary.user_id,
        covers_through_sequence=summary.covers_through,
        text=summary.text,
        model=summary.model,
        token_count=summary.token_count,
        system_sequence=summary.system_sequence,
        create_time=wire.timestamp(summary.create_time),
    )


def _memory_record(scope: WorkingMemoryScope, memory: Memory) -> bytes:
    record = WorkingMemoryRecord(scope=scope, content=memory[0], update_time=wire.timestamp(memory[1]))
    return Record(working_memory=record).SerializeToString()


def _row(kept: Kept) -> ConversationMessage:
    return wire.conversation(kept.draft)


class Imports:
    def __init__(self, books: Books) -> None:
        self._books = books

    def store(self, write: Write, given: Import) -> Outcome:
        steps = [(each.field, step_pb2.Step.FromString(each.body)) for each in given.records if each.kind == "step"]
        memories = [
            (each.field, WorkingMemoryRecord.FromString(each.body))
            for each in given.records
            if each.kind == "working_memory"
        ]
        require_distinct((place, (step.user_id, step.id)) for place, step in steps)
        require_distinct((place, memory.scope.SerializeToString()) for place, memory in memories)
        if given.conversation_id:
            return self._books.write(
                write, lambda tenant, revision, now: self._into(tenant, revision, now, given, steps, memories)
            )
        return self._books.write(
            write, lambda tenant, revision, now: _import_others(tenant, revision, now, given.records, memories)
        )

    def _into(  # noqa: PLR0917 - the records of one request
        self, tenant: Tenant, revision: int, now: int, given: Import, steps: GivenSteps, memories: GivenMemories
    ) -> Outcome | None:
        found, own = tenant.conversations.get(given.conversation_id), given.conversation
        if found is None and own is None:
            raise ConversationNotFound(given.conversation_id)
        if found is not None and own is not None and (found.draft, found.create_time) != (own.draft, own.create_time):
            raise RecordConflict(own.field)
        kept = found or Kept(revision, own.draft, own.create_time)  # type: ignore[union-attr]
        planned = plan_import(kept, own, given.messages)
        for message in planned.taken:
            _require_same(kept.messages[message.sequence], message)
        fresh_steps = [step for place, step in steps if not _has_step(kept, place, step)]
        fresh_memories = [memory for place, memory in memories if not _is_kept(kept.memory, place, memory)]
        summary = _fresh_summary(kept, given)
        stored = (found is None) + len(planned.plan.puts) + len(fresh_steps) + len(fresh_memories)
        stored += summary is not None
        if not stored and planned.plan.head == kept.head:
            return None
        Messages(self._books)._apply(kept, planned.plan, revision)
        for ordinal, step in enumerate(fresh_steps):
            kept.steps[step.user_id, step.id] = (revision, ordinal, step)
        for memory in fresh_memories:
            kept.memory = _content(memory)
        _put_summary(kept, summary, revision, now)
        tenant.conversations[given.conversation_id] = kept
        return Outcome(0, conversation_id=given.conversation_id, imported_records=stored)


def _import_others(
    tenant: Tenant, revision: int, now: int, records: Sequence[ImportedRecord], memories: GivenMemories
) -> Outcome | None:
    fresh = [
        memory for place, memory in memories if not _is_kept(tenant.memories.get(memory.scope.user_id), place, memory)
    ]
    parts = tenant.workflows.fresh(records)
    for memory in fresh:
        tenant.memories[memory.scope.user_id] = _content(memory)
    tenant.workflows.take(revision, parts)
    stored = len(fresh) + len(parts) + tenant.vectors.take(revision, records, now)
    stored += tenant.items.take(revision, records)
    stored += tenant.memory_items.take(revision, records)
    stored += tenant.facts.take(revision, records)
    return Outcome(0, imported_records=stored) if stored else None


def _fresh_summary(kept: Kept, given: Import) -> Summary | None:
    """The imported summary, unless it is there."""
    records = [record for record in given.records if record.kind == "conversation_summary"]
    require_distinct((record.field, given.conversation_id) for record in records)
    for record in records:
        told = ConversationSummary.FromString(record.body)
        if kept.summary is None:
            return Summary(
                text=told.text,
                covers_through=told.covers_through_sequence,
                model=told.model,
                token_count=told.token_count,
                system_sequence=told.system_sequence,
                user_id=told.user_id,
                create_time=told.create_time.ToMicroseconds(),
            )
        if _exported_summary(kept.draft.id, kept.summary) != told:
            raise RecordConflict(record.field)
    return None


def _put_summary(kept: Kept, summary: Summary | None, revision: int, now: int) -> None:
    if summary is not None:
        kept.summary = replace(summary, revision=revision)
    if summary is not None and kept.window == WHOLE:
        covered = min(summary.covers_through, kept.last_sequence)
        kept.window = Window(covered + 1, summary.system_sequence, revision, now)


def _content(given: WorkingMemoryRecord) -> Memory:
    return given.content, given.update_time.ToMicroseconds()


def _is_kept(there: Memory | None, field_path: str, given: WorkingMemoryRecord) -> bool:
    if there is not None and there != _content(given):
        raise RecordConflict(field_path)
    return there is not None


def _has_step(kept: Kept, field_path: str, given: step_pb2.Step) -> bool:
    there = kept.steps.get((given.user_id, given.id))
    if there is not None and there[2] != given:
        raise RecordConflict(field_path)
    return there is not None


def _require_same(there: Message, given: ImportedMessage) -> None:
    same = (
        (there.id, there.user_id, there.create_time, there.update_time)
        == (given.draft.id, given.user_id, given.create_time, given.update_time)
        and message_pb2.Message.FromString(there.draft.body) == message_pb2.Message.FromString(given.draft.body)
        and there.draft.embedding == given.draft.embedding
    )
    if not same:
        raise RecordConflict(given.field)


class Backups:
    """One snapshot: all that there is, as text."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._kept: tuple[Backup, bytes] | None = None

    def create(self, _deadline: float) -> Backup:
        content = repr(self._books.tenants()).encode()
        messages = sum(len(kept.messages) for tenant in self._books.tenants() for kept in tenant.conversations.values())
        made = Backup(
            id=self._books.new_id(),
            revision=self._books.revision,
            store_id="00" * 16,
            format_version=1,
            schema_version=1,
            duckdb_version="",
            create_time=time.time_ns() // 1_000,
            size=len(content),
            sha256=hashlib.sha256(content).digest(),
            rows={"messages": messages},
        )
        self._kept = (made, content)
        return made

    def read(self, backup_id: str, offset: int) -> bytes:
        if self._kept is None or self._kept[0].id != backup_id:
            raise BackupNotFound(backup_id)
        require_within(offset, self._kept[0].size)
        return self._kept[1][offset : offset + 100]

    def delete(self, backup_id: str) -> bool:
        found = self._kept is not None and self._kept[0].id == backup_id
        if found:
            self._kept = None
        return found


class Words:
    """Finds messages by the words that they share with the query: as many as there are is the score."""

    def __init__(self, books: Books) -> None:
        self._books = books

    @contextmanager
    def open(self, read: Read, scope: Scope) -> Iterator[WordsOf]:
        with self._books.lock:
            tenant, revision = self._books.read(read)
            _in_scope(tenant, scope)
            yield WordsOf(tenant, revision)


class WordsOf:
    """A tenant's messages at a revision, while the books are locked."""

    def __init__(self, tenant: Tenant, revision: int) -> None:
        self._tenant = tenant
        self._revision = revision

    def without_names(self, text: str) -> str:
        return text

    def search(self, query: SearchQuery) -> SearchResult:
        words = set(query.text.lower().split())
        hits = [
            _hit(kept, message, shared, query.around)
            for kept, message in _in_scope(self._tenant, query.scope)
            if (shared := len(words.intersection(message.draft.text.lower().replace(",", " ").split())))
            and (kept.uid, message.sequence) not in query.exclude
            and message.draft.role not in query.without_roles
        ]
        best = sorted(hits, key=lambda hit: (-hit.score, hit.conversation_uid, hit.sequence))[: query.options.k]
        state = IndexState("", 0, query.words_only or WordsOnly.NO_MODEL)
        return SearchResult(tuple(best), state, query.options.profile, self._revision)


def _hit(kept: Kept, message: Message, shared: int, around: int) -> Hit:
    encoded = message.served().SerializeToString()
    here = kept.of(message.user_id)
    before = [each.served().SerializeToString() for each in here if each.sequence < message.sequence]
    after = [each.served().SerializeToString() for each in here if each.sequence > message.sequence]
    part = Component("bm25", float(shared), 1.0)
    places = kept.uid, kept.draft.id, message.sequence
    return Hit(
        *places, float(shared), (part,), encoded, before[len(before) - around :] if around else (), after[:around]
    )


def _in_scope(tenant: Tenant, scope: Scope) -> list[tuple[Kept, Message]]:
    if isinstance(scope, InConversation):
        kept = tenant.conversation(scope.conversation_id)
        return [(kept, message) for message in kept.of(scope.user_id or kept.draft.user_id)]
    user_id = scope.user_id if isinstance(scope, OfUser) else None
    return [(kept, message) for kept in tenant.conversations.values() for message in kept.of(user_id)]


class NoQueues:
    """Nothing is embedded."""

    def of(self, model: ServedModel) -> EmbeddingQueue:
        raise KeyError(model)

    def dimension(self, model: ServedModel) -> int:
        return 0


class Health:
    def __init__(self, books: Books) -> None:
        self._books = books

    def failure(self) -> str:
        return ""

    def write_failure(self) -> str:
        return ""

    def background_failure(self) -> str:
        return ""

    def status(self) -> StoreStatus:
        conversations = [kept for tenant in self._books.tenants() for kept in tenant.conversations.values()]
        return StoreStatus(
            store_id="00" * 16,
            format_version=1,
            in_memory=True,
            failure="",
            revision=self._books.revision,
            applied_revision=self._books.revision,
            database_bytes=0,
            conversations=len(conversations),
            messages=sum(len(kept.messages) for kept in conversations),
            embeddings={},
            journal=JournalStatus(bytes=0, segments=0, records=0, batches=0, sync_micros=0),
            engine=EngineStatus(
                kernels="none",
                conversations=0,
                window_bytes=0,
                parts=0,
                index_bytes=0,
                record_partitions=0,
                record_bytes=0,
                vector_partitions=0,
                vector_bytes=0,
            ),
        )


def open_model(count_tokens: CountTokens) -> Store:
    """An empty model."""
    books = Books(count_tokens)
    messages = Messages(books)

    def alone(noun: T) -> T:
        return cast("T", OneAtATime(noun, books.lock))

    return Store(
        id="00" * 16,
        secret=bytes(32),
        conversations=alone(Conversations(books)),
        messages=alone(messages),
        message_reader=StoredMessageReader(),
        steps=alone(Steps(books)),
        working_memories=alone(WorkingMemories(books)),
        windows=alone(Windows(books)),
        workflow_runs=alone(WorkflowRuns(books)),
        workflow_steps=alone(WorkflowSteps(books)),
        timeline_events=alone(TimelineEvents(books)),
        history_entries=alone(HistoryEntries(books)),
        entry_steps=alone(EntrySteps(books)),
        vectors=alone(Vectors(books)),
        collections=alone(Collections(books)),
        memory_items=alone(MemoryItems(books)),
        facts=alone(Facts(books)),
        items=alone(Items(books)),
        spans=alone(Spans(books)),
        log_records=alone(LogRecords(books)),
        checkpoints=alone(Checkpoints(books)),
        threads=alone(Threads(books)),
        users=alone(Users(books, messages)),
        receipts=alone(Receipts(books)),
        index=Words(books),
        embeddings=NoQueues(),
        exports=alone(Exports(books)),
        imports=alone(Imports(books)),
        backups=alone(Backups(books)),
        health=alone(Health(books)),
        publication=Publication(books),
        close=lambda: None,
    )
