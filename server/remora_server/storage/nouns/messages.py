"""Messages of the local store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from remora.v1.message_pb2 import Message
from remora_server import _native, wire
from remora_server.domain.calls import DEFAULT_USER, Outcome, Read, Write
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.messages import (
    ConversationView,
    Edit,
    Keep,
    MessageDraft,
    MessagePage,
    MessageQuery,
    Plan,
    Remove,
    View,
    plan_append,
    plan_clear,
    plan_delete,
    plan_edit,
)
from remora_server.domain.replies import REPLY_BYTES, fitting
from remora_server.domain.windows import WHOLE, Window
from remora_server.storage.commit import changes
from remora_server.storage.commit.commands import Planned
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.nouns.filtered_messages import filtered_page
from remora_server.storage.nouns.loading import AcceptedConversation, NewConversation, Stored
from remora_server.storage.nouns.receipts import contents_of
from remora_server.storage.nouns.windows import Windows

CountTokens = Callable[[list[str]], list[int]]
OnPuts = Callable[[str, str, Plan, int], None]
_Entry: TypeAlias = tuple[int, bytes]
"""A message's sequence, and the message as an element of a page."""


class Messages:
    """Appends, edits, deletes and lists messages. `on_puts` is told of every accepted plan, `on_cleared` of a clear:
    the conversation's uid, the user and the revision.
    """

    def __init__(
        self,
        context: StoreContext,
        conversations: Conversations,
        windows: Windows,
        *,
        count_tokens: CountTokens,
        on_puts: OnPuts,
        on_cleared: Callable[[int, str, int], None],
    ) -> None:
        self._core = context.core
        self._commits = context.commits
        self._records = context.records
        self._commands = context.commands
        self._loader = context.loader
        self._new_id = context.new_id
        self._conversations = conversations
        self._windows = windows
        self._count_tokens = count_tokens
        self._on_puts = on_puts
        self._on_cleared = on_cleared

    def append(
        self,
        write: Write,
        conversation_id: str,
        user_id: str,
        messages: Sequence[MessageDraft],
        create_if_missing: ConversationDraft | None,
    ) -> Outcome:
        counts = self._token_counts(messages)

        def plan(found: AcceptedConversation | None, now: int) -> Planned:
            view, created = (found, []) if found else _creation(conversation_id, user_id, create_if_missing, now)
            appended = plan_append(view, user_id or view.head.user_id, messages, now, self._new_id)
            return self._planned(write, conversation_id, appended, counts, created)

        return self._commands.run(write, self._loader.locked(write, conversation_id), plan)

    def edit(
        self, write: Write, conversation_id: str, user_id: str, edits: Sequence[Edit], *, allow_missing: bool
    ) -> Outcome:
        counts = self._token_counts([edit.message for edit in edits if not isinstance(edit, Keep | Remove)])

        def plan(view: ConversationView, user: str, now: int) -> Plan:
            return plan_edit(view, user, edits, now, self._new_id, allow_missing=allow_missing)

        return self._change(write, conversation_id, user_id, plan, counts)

    def delete(self, write: Write, conversation_id: str, user_id: str, ids: Sequence[str]) -> Outcome:
        def plan(view: ConversationView, user: str, now: int) -> Plan:
            return plan_delete(view, user, ids, now)

        return self._change(write, conversation_id, user_id, plan, {})

    def _change(
        self,
        write: Write,
        conversation_id: str,
        user_id: str,
        make_plan: Callable[[ConversationView, str, int], Plan],
        counts: dict[int, int],
    ) -> Outcome:
        def plan(found: AcceptedConversation, now: int) -> Planned | None:
            made = make_plan(found, user_id or found.head.user_id, now)
            return self._planned(write, conversation_id, made, counts) if made.changes_messages else None

        return self._commands.run(write, self._conversations.locked(write, conversation_id), plan)

    def clear(self, write: Write, conversation_id: str, user_id: str) -> Outcome:
        def plan(found: AcceptedConversation, now: int) -> Planned:
            user = user_id or found.head.user_id
            records = self._records.changes(write, self._records.cleared(found.head.uid, user))
            planned = self._planned(write, conversation_id, plan_clear(found, user, now), {}, records)
            return replace(planned, tell=partial(self._tell_cleared, found.head.uid, user, planned.tell))

        return self._commands.run(write, self._conversations.locked(write, conversation_id), plan)

    def _planned(
        self,
        write: Write,
        conversation_id: str,
        plan: Plan,
        counts: dict[int, int],
        before: Sequence[changes.Change] = (),
    ) -> Planned:
        outcome = Outcome(
            revision=0,
            conversation_id=conversation_id,
            messages=plan.placed,
            created=plan.head.uid == 0,
            pruned_messages=plan.pruned,
            deleted_messages=plan.removed,
        )
        return Planned(
            [
                *before,
                *([] if plan.only_adds else self._gone_with(write, plan)),
                *changes.message_changes(conversation_id, plan, counts),
            ],
            outcome,
            plan.head.user_id,
            plan.head.update_time,
            tell=lambda revision: self._tell(write.tenant_id, conversation_id, plan, counts, revision),
        )

    def _gone_with(self, write: Write, plan: Plan) -> list[changes.Change]:
        """Removes what is derived from messages that are replaced or go: contents of receipts, the summary."""
        contents = self._records.changes(write, contents_of(plan))
        return [*contents, *self._windows.without_summary_of(write, plan)]

    def _tell_cleared(self, uid: int, user_id: str, tell: Callable[[int], object] | None, revision: int) -> None:
        """Records of a user go also where there are no messages."""
        self._windows.removed(uid, revision)
        self._on_cleared(uid, user_id, revision)
        if tell is not None:
            tell(revision)

    def _tell(self, tenant_id: str, conversation_id: str, plan: Plan, counts: dict[int, int], revision: int) -> None:
        self._on_puts(tenant_id, conversation_id, plan, revision)
        self._windows.written(tenant_id, conversation_id, revision, plan, counts)

    def _token_counts(self, messages: Sequence[MessageDraft]) -> dict[int, int]:
        counts = self._count_tokens([message.text for message in messages]) if messages else []
        return {id(message): count for message, count in zip(messages, counts, strict=True)}

    def list(self, read: Read, query: MessageQuery) -> MessagePage:
        where = query.filter
        if where is None:
            return self._listed(read, query)
        require_time(read.deadline)  # it may look at many messages
        return filtered_page(query, where, lambda rest: self._listed(read, rest))

    def _listed(self, read: Read, query: MessageQuery) -> MessagePage:
        self._commits.begin(read)
        while True:
            head = self._conversations.published(read, query.conversation_id)
            window = self._windows.published(read, query.conversation_id, head) if query.view is View.WINDOW else WHOLE
            try:
                return self._page(read, query, query.user_id or head.user_id, window)
            except KeyError:
                continue  # evicted since: load it again

    def _page(self, read: Read, query: MessageQuery, user_id: str, window: Window) -> MessagePage:
        page = self._core.list_messages(
            read.tenant_id,
            query.conversation_id,
            user_id,
            roles=list(query.roles),
            sent=(query.sent.after, query.sent.before),
            received=(query.received.after, query.received.before),
            after_sequence=query.after_sequence,
            before_sequence=query.before_sequence,
            window=(window.first_sequence, window.system_sequence),
            newest=query.newest,
            limit=query.limit,
            max_bytes=REPLY_BYTES,
        )
        if page.missing:
            self._commits.wait_applied(page.missing_revision, read.deadline)
            older, is_all = self._loader.missing(read, page.uid, page.missing, newest=query.newest)
            return _joined(page, older, is_all=is_all, newest=query.newest)
        ends = page.first_sequence, page.last_sequence
        return MessagePage(page.encoded, page.count, *ends, page.more, page.revision, page.uid)


def _creation(
    conversation_id: str, user_id: str, template: ConversationDraft | None, now: int
) -> tuple[ConversationView, list[changes.Change]]:
    """A conversation that an append creates, and the change that does it. Raises ConversationNotFound without one."""
    if template is None:
        raise ConversationNotFound(conversation_id, ": create_if_missing makes one")
    draft = replace(template, id=conversation_id, user_id=template.user_id or user_id or DEFAULT_USER)
    return NewConversation(draft), [changes.put_conversation(0, draft, now)]


def _joined(page: _native.MessagePage, older: list[Stored], *, is_all: bool, newest: bool) -> MessagePage:
    """A page of what is in memory and of older messages from DuckDB, ended where it would grow over its bytes.

    `is_all`: whether no older messages follow on this page.
    """
    entries = [(sequence, wire.elements(wire.LIST_FIELD, [encoded])) for sequence, encoded in older]
    if newest:
        kept, memory = _before(entries, page.encoded), page.encoded
    else:
        kept = fitting(entries, _size)
        room = REPLY_BYTES - sum(map(_size, kept))
        follows = is_all and len(kept) == len(entries) and (not kept or len(page.encoded) <= room)
        memory = page.encoded if follows else b""
    first = kept[0][0] if kept else _first_sequence(memory) if memory else page.first_sequence
    last = page.last_sequence if memory or not kept else kept[-1][0]
    return MessagePage(
        encoded=b"".join(entry for _, entry in kept) + memory,
        count=len(kept) + (page.count - len(page.missing) if memory else 0),
        first_sequence=first,
        last_sequence=last,
        more=page.more or not is_all or len(kept) < len(entries) or len(memory) < len(page.encoded),
        revision=page.revision,
        uid=page.uid,
    )


def _first_sequence(encoded: bytes) -> int:
    """The sequence of the first message of a page."""
    return Message.FromString(next(wire.split_elements(wire.LIST_FIELD, encoded))).sequence


def _size(entry: _Entry) -> int:
    return len(entry[1])


def _before(entries: list[_Entry], memory: bytes) -> list[_Entry]:
    """The last entries that fit before those in memory; at least one where there are none."""
    return fitting(entries[::-1], _size, room=REPLY_BYTES - len(memory), least=0 if memory else 1)[::-1]
