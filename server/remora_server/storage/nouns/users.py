"""Clears a user's messages in all conversations, and deletes users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.conversations import Head
from remora_server.domain.messages import plan_clear
from remora_server.storage.commit import changes
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.loading import AcceptedConversation
from remora_server.storage.nouns.windows import Windows
from remora_server.storage.records.records import Remove
from remora_server.storage.schema.kinds import (
    HISTORY_ENTRIES,
    TIMELINE_EVENTS,
    WORKFLOW_RUNS,
    WORKFLOW_STEPS,
    Kind,
)

_OWNING, _PARTS = (WORKFLOW_RUNS, HISTORY_ENTRIES), (WORKFLOW_STEPS, TIMELINE_EVENTS)
"""What a user has, and its parts, which may name no user."""


class _Erasure(Struct, frozen=True):
    """The changes that erase a user's part, and their outcome."""

    changes: list[changes.Change]
    messages: int = 0
    conversations: int = 0


def _conversations(kinds: Iterable[Kind]) -> str:
    """The query for the conversations that a user owns, or has messages or records in."""
    tables = ["messages", *(kind.name for kind in kinds if kind.of_conversation)]
    parts = (
        f"OR uid IN (SELECT conversation_uid FROM {table} WHERE tenant_id = $tenant AND user_id = $user)"  # noqa: S608
        for table in tables
    )
    return (
        f"SELECT id FROM conversations WHERE tenant_id = $tenant AND (($owned AND user_id = $user) {' '.join(parts)})"  # noqa: S608
    )


def _nobodys_parts(kind: Kind) -> str:
    """The query for the parts of a user's runs and entries that name no user: they came before them."""
    of_user = " UNION ALL ".join(
        f"SELECT partition FROM {each.name} WHERE tenant_id = $tenant AND user_id = $user"  # noqa: S608 - a table of ours
        for each in _OWNING
    )
    return f"""
        SELECT partition, key FROM {kind.name}
        WHERE tenant_id = $tenant AND user_id = '' AND partition IN ({of_user})"""  # noqa: S608 - a table of ours


def _any_nobodys_part(kind: Kind) -> str:
    """The query for one part of a tenant that names no user."""
    return f"SELECT 1 FROM {kind.name} WHERE tenant_id = $tenant AND user_id = '' LIMIT 1"  # noqa: S608 - a table of ours


class Users:
    """Clears a user's messages everywhere, and forgets users."""

    def __init__(
        self, context: StoreContext, windows: Windows, *, on_erased: Callable[[str, str, int, bool], None]
    ) -> None:
        """`on_erased` is told of every user whose messages are gone: the tenant, the user, the revision, and whether
        the user is deleted.
        """
        self._on_erased = on_erased
        self._windows = windows
        self._core = context.core
        self._database = context.database
        self._nobodys_parts = context.nobodys_parts
        self._commits = context.commits
        self._commands = context.commands
        self._loader = context.loader
        self._locks = context.locks
        self._records = context.records

    def clear(self, write: Write, user_id: str) -> Outcome:
        return self._erase(write, user_id, owned=False)

    def delete(self, write: Write, user_id: str) -> Outcome:
        return self._erase(write, user_id, owned=True)

    def _erase(self, write: Write, user_id: str, *, owned: bool) -> Outcome:
        def plan(found: list[tuple[str, AcceptedConversation]], now: int) -> Planned | None:
            parts = [self._part(write, *each, user_id, now, owned=owned) for each in found]
            moves = [change for part in parts for change in part.changes]
            if owned:
                moves += self._records.changes(write, self._nobodys(write, user_id))
                moves.append(self._records.erased(user_id))
            outcome = Outcome(
                revision=0,
                deleted_messages=sum(part.messages for part in parts),
                deleted_conversations=sum(part.conversations for part in parts),
            )
            heads = [(each, view.head) for each, view in found]
            return Planned(moves, outcome, user_id, tell=partial(tell, heads)) if moves else None

        def tell(heads: Sequence[tuple[str, Head]], revision: int) -> None:
            self._on_erased(write.tenant_id, user_id, revision, owned)
            for conversation_id, head in heads:
                self._windows.removed(head.uid, revision)
                if head.user_id != user_id:
                    continue
                self._windows.cleared(head.uid, revision)
                if head.has_short_term:
                    self._windows.changed(write.tenant_id, conversation_id, revision)

        return self._commands.run(write, self._held(write, user_id, owned=owned), plan)

    def _nobodys(self, write: Write, user_id: str) -> Iterator[Remove]:
        """The parts of the user's runs and entries that name no user, and are removed with these.

        Most stores have no part without a user, and need not wait. Under the locks no more of them are accepted, so
        that those that are applied are all.
        """
        kinds = [kind for kind in self._records.kinds if kind in _PARTS]
        parameters = {"tenant": write.tenant_id}
        is_any = any(self._database.rows(_any_nobodys_part(kind), parameters) for kind in kinds)
        if not is_any and not self._nobodys_parts.are_new:
            return
        touched = max(self._core.kind_touched(kind.number) for kind in (*_OWNING, *_PARTS))
        self._commits.wait_published(touched, write.deadline)
        self._commits.wait_applied(touched, write.deadline)
        self._nobodys_parts.are_new = False
        for kind in kinds:
            for partition, key in self._database.rows(_nobodys_parts(kind), {**parameters, "user": user_id}):
                yield Remove(kind, 0, partition, key)

    @contextmanager
    def _held(self, write: Write, user_id: str, *, owned: bool) -> Iterator[list[tuple[str, AcceptedConversation]]]:
        """The conversations that a user has a part in, under their locks, and under those of its records."""
        self._commits.begin_query(Read(write.tenant_id, deadline=write.deadline))
        kinds = [kind for kind in self._records.kinds if (kind.of_user if owned else kind.is_cleared)]
        parameters = {"tenant": write.tenant_id, "user": user_id, "owned": owned}
        ids = [row[0] for row in self._database.rows(_conversations(kinds), parameters)]
        with self._locks.all_of(write, ids):
            views = [(i, self._loader.accepted(write, i)) for i in ids]
            # Last: the writes of all records wait for these locks, and those of one conversation only for its own.
            with self._records.held_of_users(write):
                yield [(conversation_id, view) for conversation_id, view in views if view is not None]

    def _part(
        self,
        write: Write,
        conversation_id: str,
        view: AcceptedConversation,
        user_id: str,
        now: int,
        *,
        owned: bool,
    ) -> _Erasure:
        uid, head = view.head.uid, view.head
        if owned and head.user_id == user_id:
            return _Erasure([changes.delete_conversation(uid, conversation_id)], head.message_count, 1)
        plan = plan_clear(view, user_id, now)
        records = self._records.changes(write, self._records.cleared(uid, user_id))
        records += self._windows.without_summary_of(write, plan)
        return _Erasure([*records, *changes.message_changes(conversation_id, plan, {})], plan.removed)
