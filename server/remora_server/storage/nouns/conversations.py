"""Conversations of the local store."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from msgspec.structs import replace

from remora_server import _native
from remora_server.domain.calls import DEFAULT_USER, Access, Outcome, Read, Write
from remora_server.domain.conversations import (
    Conversation,
    ConversationDraft,
    ConversationOrder,
    ConversationQuery,
    ConversationUpdate,
    Head,
    require_owner,
)
from remora_server.domain.errors import ConversationExists, ConversationNotFound
from remora_server.storage.commit import changes
from remora_server.storage.commit.commands import Planned
from remora_server.storage.commit.locks import Locked
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.loading import AcceptedConversation
from remora_server.storage.schema.encoding import conversation_draft

_ORDER = {
    ConversationOrder.CREATE_TIME: "c.create_time",
    ConversationOrder.UPDATE_TIME: "h.update_time",
    ConversationOrder.TITLE: "lower(c.title)",
}


class Conversations:
    """Rows of conversations: made, read, listed, changed, deleted.

    `on_deleted` is told the uid of each that goes, and the revision; `on_policy` the tenant, the id and the revision
    where a policy is another one, or goes with its conversation.
    """

    def __init__(
        self,
        context: StoreContext,
        *,
        on_deleted: Callable[[int, int], object],
        on_policy: Callable[[str, str, int], object],
    ) -> None:
        self._on_policy = on_policy
        self._on_deleted = on_deleted
        self._database = context.database
        self._commits = context.commits
        self._commands = context.commands
        self._loader = context.loader
        self._locks = context.locks
        self._new_id = context.new_id

    def create(self, write: Write, draft: ConversationDraft) -> Outcome:
        draft = replace(draft, id=draft.id or self._new_id(), user_id=draft.user_id or DEFAULT_USER)

        def plan(found: AcceptedConversation | None, now: int) -> Planned:
            if found is not None:
                raise ConversationExists(draft.id)
            outcome = Outcome(revision=0, conversation_id=draft.id, time=now, created=True)
            return Planned(creation(draft, now), outcome, draft.user_id)

        return self._commands.run(write, self._loader.locked(write, draft.id), plan)

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]:
        revision = self._commits.begin(read)
        row = self.published(read, conversation_id)
        require_owner(row.user_id, user_id, conversation_id)
        return _conversation(row), revision

    def published(self, access: Access, conversation_id: str) -> _native.Head:
        """The head as readers see it. Raises ConversationNotFound."""
        row = self._loader.published(access, conversation_id)
        if row is None:
            raise ConversationNotFound(conversation_id)
        return row

    def accepted(self, access: Access, conversation_id: str) -> AcceptedConversation:
        """The conversation as writers see it, under its lock. Raises ConversationNotFound."""
        found = self._loader.accepted(access, conversation_id)
        if found is None:
            raise ConversationNotFound(conversation_id)
        return found

    def locked(self, access: Access, conversation_id: str) -> Locked[AcceptedConversation]:
        """The conversation as writers see it, under its lock. Entering raises ConversationNotFound."""
        return Locked(self._locks.of(access, conversation_id), lambda: self.accepted(access, conversation_id))

    def all_locked(self, access: Access, ids: Collection[str]) -> Locked[dict[str, AcceptedConversation]]:
        """The same of several, by their ids."""
        return Locked(self._locks.all_of(access, ids), lambda: {each: self.accepted(access, each) for each in ids})

    def update(self, write: Write, conversation_id: str, user_id: str, update: ConversationUpdate) -> Outcome:
        def plan(found: AcceptedConversation, now: int) -> Planned:
            require_owner(found.head.user_id, user_id, conversation_id)
            now = max(now, found.head.update_time)
            head = changes.put_head(conversation_id, replace(found.head, update_time=now))
            row = [_masked(found, update)] if update.mask else []
            outcome = Outcome(revision=0, conversation_id=conversation_id, time=now)
            return Planned([*row, head], outcome, found.head.user_id, now, tell=tell)

        def tell(revision: int) -> None:
            if "short_term" in update.mask:
                self._on_policy(write.tenant_id, conversation_id, revision)

        return self._commands.run(write, self.locked(write, conversation_id), plan)

    def delete(self, write: Write, conversation_id: str, user_id: str, *, allow_missing: bool) -> Outcome:
        def plan(found: AcceptedConversation | None, _now: int) -> Planned | None:
            if found is None or (user_id and user_id != found.head.user_id):
                if not allow_missing:
                    raise ConversationNotFound(conversation_id)
                return None
            head = found.head
            outcome = Outcome(
                revision=0, conversation_id=conversation_id, deleted=True, deleted_messages=head.message_count
            )
            return Planned(
                [changes.delete_conversation(head.uid, conversation_id)],
                outcome,
                head.user_id,
                tell=lambda revision: tell(head, revision),
            )

        def tell(head: Head, revision: int) -> None:
            self._on_deleted(head.uid, revision)
            if head.has_short_term:
                self._on_policy(write.tenant_id, conversation_id, revision)

        return self._commands.run(write, self._loader.locked(write, conversation_id), plan)

    def list(self, read: Read, query: ConversationQuery) -> tuple[list[Conversation], int]:
        revision = self._commits.begin_query(read)
        where, parameters = _where(read, query.user_id, query.resource_id)
        behind, position = _behind(query)
        way = "DESC" if query.descending else "ASC"
        rows = self._database.rows(
            f"""SELECT c.body, c.uid, h.revision, h.last_sequence, h.message_count, c.create_time, h.update_time
                FROM conversations c JOIN heads h ON h.uid = c.uid WHERE {where} AND {behind}
                ORDER BY {_ORDER[query.order_by]} {way}, c.uid {way} LIMIT ? OFFSET ?""",  # noqa: S608 - constants
            [*parameters, *position, query.limit, query.skip],
        )
        return [Conversation(conversation_draft(row[0]), *row[1:]) for row in rows], revision

    def count(self, read: Read, user_id: str, resource_id: str) -> tuple[int, int]:
        revision = self._commits.begin_query(read)
        where, parameters = _where(read, user_id, resource_id)
        rows = self._database.rows(f"SELECT count(*) FROM conversations c WHERE {where}", parameters)  # noqa: S608
        return rows[0][0], revision


def creation(draft: ConversationDraft, now: int) -> list[changes.Change]:
    """The changes that create an empty conversation."""
    head = Head(uid=0, user_id=draft.user_id, last_sequence=0, message_count=0, last_time=0, update_time=now)
    return [changes.put_conversation(0, draft, now), changes.put_head(draft.id, head)]


def _masked(found: AcceptedConversation, update: ConversationUpdate) -> changes.Change:
    fields: dict[str, Any] = {name: getattr(update.draft, name) for name in update.mask}
    return changes.put_conversation(found.head.uid, replace(found.draft, **fields), found.row.create_time)


def _conversation(row: _native.Head) -> Conversation:
    return Conversation(
        draft=conversation_draft(row.body),
        uid=row.uid,
        revision=row.revision,
        last_sequence=row.last_sequence,
        message_count=row.message_count,
        create_time=row.create_time,
        update_time=row.update_time,
    )


def _where(read: Read, user_id: str, resource_id: str) -> tuple[str, list[str]]:
    named = [("c.tenant_id", read.tenant_id), ("c.user_id", user_id), ("c.resource_id", resource_id)]
    used = [(column, value) for column, value in named if value or column == "c.tenant_id"]
    return " AND ".join(f"{column} = ?" for column, _ in used), [value for _, value in used]


def _behind(query: ConversationQuery) -> tuple[str, list[int | str]]:
    """The condition that a conversation stands behind the query's position, if it has one."""
    if query.after is None:
        return "true", []
    ordered = _ORDER[query.order_by]
    value = "lower(?)" if query.order_by is ConversationOrder.TITLE else "?"
    return f"(({ordered}, c.uid) {'<' if query.descending else '>'} ({value}, ?))", [query.after.value, query.after.uid]
