"""Windows of the local store's conversations, and the summaries before them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from remora.v1.short_term_pb2 import ConversationSummary
from remora_server import wire
from remora_server._native import Head
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.context_messages import SYSTEM_ROLES
from remora_server.domain.conversations import require_owner
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.messages import Plan
from remora_server.domain.receipts import OF_SUMMARY
from remora_server.domain.windows import (
    WHOLE,
    Cover,
    Growth,
    Summary,
    Weights,
    Window,
    WindowListener,
    WindowMoved,
)
from remora_server.storage.commit.changes import Change
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.nouns.loading import AcceptedConversation
from remora_server.storage.nouns.recent_changes import RecentChanges
from remora_server.storage.records.reader import Partition, Record
from remora_server.storage.records.records import ABSENT, Put, Remove, RemovePartitions
from remora_server.storage.records.refusals import RevisionMismatch
from remora_server.storage.schema.kinds import CONVERSATION_SUMMARIES, CONVERSATION_WINDOWS, RECEIPT_CONTENTS
from remora_server.storage.v1.record_pb2 import ConversationWindow

_ONLY = b""
"""The key of the one record of a partition."""
_WINDOW = CONVERSATION_WINDOWS.encode_partition()


class WindowEvents:
    """Tells a listener, where there is one, what is written to conversations that have a policy, and remembers which
    messages have changed or are gone.
    """

    def __init__(self, began: int) -> None:
        self.listener: WindowListener | None = None
        self.changes = RecentChanges(began)
        """What readers of the owner's messages may have seen otherwise."""
        self.changes_of_others = RecentChanges(began)
        """What readers of other users' messages may have seen otherwise."""
        self.removals = RecentChanges(began)
        """Which messages are gone, whoever's they were."""

    def written(
        self, tenant_id: str, conversation_id: str, revision: int, plan: Plan, counts: Mapping[int, int]
    ) -> None:
        """Messages were written."""
        if not plan.only_adds:
            self._note_changes(revision, plan)
        if self.listener is not None and plan.head.has_short_term:
            self.listener.written(tenant_id, conversation_id, revision, _growth(plan, counts))

    def _note_changes(self, revision: int, plan: Plan) -> None:
        lowest = plan.lowest_changed
        if lowest is not None:
            self.changes.note(plan.head.uid, revision, lowest)
        lowest = plan.lowest_changed_of_others
        if lowest is not None:
            self.changes_of_others.note(plan.head.uid, revision, lowest)
        gone = plan.removed_between
        if gone is not None:
            self.removals.note(plan.head.uid, revision, *gone)

    def changed(self, tenant_id: str, conversation_id: str, revision: int) -> None:
        """A conversation has another policy, or is gone with the one that it had."""
        if self.listener is not None:
            self.listener.written(tenant_id, conversation_id, revision, None)


def _growth(plan: Plan, counts: Mapping[int, int]) -> Growth | None:
    """By what the window grows, if nothing else happens to it but that its oldest messages are pruned."""
    if plan.removed:
        return None
    texts, tokens = [], 0
    for put in plan.puts:
        if put.user_id == plan.head.user_id:
            if put.replaces or put.draft.role in SYSTEM_ROLES:
                return None
            texts.append(put.draft.text)
            tokens += counts[id(put.draft)]
    return Growth(texts, tokens)


class Windows:
    """Reads and moves windows, with their summaries."""

    def __init__(self, context: StoreContext, conversations: Conversations, events: WindowEvents) -> None:
        self._events = events
        self.written = events.written
        self.changed = events.changed
        self._core = context.core
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._conversations = conversations

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, int]:
        revision = self._commits.begin(read)
        head = self._conversations.published(read, conversation_id)
        require_owner(head.user_id, user_id, conversation_id)
        return self.published(read, conversation_id, head), revision

    def published(self, read: Read, conversation_id: str, head: Head) -> Window:
        """The window of a conversation that readers see. Most have none stored, which memory answers.

        Which system message stays in it is decided now: the stored one may be gone since, or another one be newer.
        """
        window = self._stored(read, head.uid)
        if window is WHOLE:
            return window
        newest = self._newest_system(read, conversation_id, head.user_id)
        return replace(window, system_sequence=newest if newest < window.first_sequence else 0)

    def _stored(self, read: Read, uid: int) -> Window:
        place = _place(uid)
        if self._records.shown(read, place, _ONLY) is None:
            return WHOLE
        return _window(self._records.get(read, place, _ONLY)[0])

    def _newest_system(self, read: Read, conversation_id: str, user_id: str) -> int:
        """The sequence of the newest system message of a conversation's own user; 0: there is none."""
        while True:
            try:
                page = self._core.list_messages(
                    read.tenant_id,
                    conversation_id,
                    user_id,
                    roles=list(SYSTEM_ROLES),
                    sent=(None, None),
                    received=(None, None),
                    after_sequence=None,
                    before_sequence=None,
                    window=(0, 0),
                    newest=True,
                    limit=1,
                    max_bytes=1,
                )
            except KeyError:
                self._conversations.published(read, conversation_id)  # evicted since: load it again
            else:
                return page.last_sequence

    def current(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, Summary | None, int]:
        revision = self._commits.begin(read)
        head = self._conversations.published(read, conversation_id)
        require_owner(head.user_id, user_id, conversation_id)
        while True:
            window = self.published(read, conversation_id, head)
            if window is WHOLE:
                return window, None, revision  # a summary stands before a window, and goes with it
            found, revision = self._records.get(read, _summary_place(head.uid, head.user_id), _ONLY)
            if self._stored(read, head.uid).revision == window.revision:
                return window, _summary(found), revision

    def weigh(self, read: Read, conversation_id: str, window: Window) -> Weights:
        self._commits.begin(read)
        own = window.first_sequence, window.system_sequence
        while True:
            head = self._conversations.published(read, conversation_id)
            try:
                found = self._core.weigh_messages(
                    read.tenant_id, conversation_id, head.user_id, own, list(SYSTEM_ROLES)
                )
            except KeyError:
                continue  # evicted since: load it again
            return Weights(found.sequences, found.tokens, found.newest_apart, found.may_use_tools, found.revision)

    def move(self, write: Write, conversation_id: str, uid: int, before: Window, after: Window) -> Outcome:
        def plan(found: AcceptedConversation, now: int) -> Planned:
            _require_uid(found, uid, conversation_id)
            put = _moved(conversation_id, uid, after, now, before.revision)
            return Planned(self._records.changes(write, [put]), Outcome(revision=0, time=now), found.head.user_id)

        return self._planned(write, conversation_id, plan)

    def summarize(self, write: Write, conversation_id: str, uid: int, cover: Cover, summary: Summary) -> Outcome:
        def plan(found: AcceptedConversation, now: int) -> Planned:
            _require_uid(found, uid, conversation_id)
            if self.has_changed(uid, cover.revision, cover.through):
                raise WindowMoved
            window = Window(cover.through + 1, summary.system_sequence)
            puts = [
                _moved(conversation_id, uid, window, now, cover.window_revision),
                Put(CONVERSATION_SUMMARIES, uid, _stored(found.head.user_id, summary, now)),
            ]
            return Planned(self._records.changes(write, puts), Outcome(revision=0, time=now), found.head.user_id)

        return self._planned(write, conversation_id, plan)

    def has_changed(self, uid: int, revision: int, through: int) -> bool:
        """Whether a message up to the sequence `through` is another than it was at a revision, or nobody can know. A
        conversation has the revision that created it as its uid: before, another one may have had its id.
        """
        is_known = uid <= revision <= self._core.accepted()
        return not is_known or self._events.changes.since(uid, revision, through)

    def has_changed_of_anybody(self, uid: int, revision: int, through: int) -> bool:
        """The same of messages of any user, or whether all of a user's, or the conversation, are gone."""
        return (
            self.has_changed(uid, revision, through)
            or self._events.changes_of_others.since(uid, revision, through)
            or self.has_lost(uid, revision, 0)
        )

    def _planned(
        self, write: Write, conversation_id: str, plan: Callable[[AcceptedConversation, int], Planned]
    ) -> Outcome:
        try:
            return self._commands.run(write, self._conversations.locked(write, conversation_id), plan)
        except RevisionMismatch as error:
            raise WindowMoved from error

    def without_summary_of(self, write: Write, plan: Plan) -> list[Change]:
        """What ends with a write to messages, under the conversation's lock: a summary that covers one of them, and the
        window behind it, so that no summary says what is not there any more. Where all messages are cleared, the
        summary goes with them (`Records.cleared`).
        """
        lowest, uid = plan.lowest_changed, plan.head.uid
        if lowest is None or not uid:
            return []
        place = _summary_place(uid, plan.head.user_id)
        found = next(iter(self._records.accepted(write, place, [_ONLY])), None)
        if found is None or ConversationSummary.FromString(found.body).covers_through_sequence < lowest:
            return []
        gone = (place, _place(uid)) if lowest else (_place(uid),)
        kept = RECEIPT_CONTENTS.encode_partition(plan.head.user_id, OF_SUMMARY)
        return self._records.changes(
            write,
            [
                *(Remove(each.kind, uid, each.partition, _ONLY) for each in gone),
                RemovePartitions(RECEIPT_CONTENTS, uid, kept),
            ],
        )

    def behind_imported(
        self, write: Write, conversation_id: str, plan: Plan, summary: ConversationSummary, now: int
    ) -> list[Put]:
        """The window behind a summary that is imported, under the conversation's lock; none if there is one. Messages
        that are appended later are in it, whatever the summary says that it covers.
        """
        uid = plan.head.uid
        if uid and self._records.stored(write, _place(uid), _ONLY) is not None:
            return []
        covered = min(summary.covers_through_sequence, plan.head.last_sequence)
        return [_moved(conversation_id, uid, Window(covered + 1, summary.system_sequence), now, ABSENT)]

    def has_lost(self, uid: int, revision: int, sequence: int) -> bool:
        """Whether a message may be gone since a revision; with the sequence 0, whether all of a user's may be."""
        return self._events.removals.since(uid, revision, sequence, first=sequence)

    def latest_loss(self, uid: int) -> int:
        """A revision since which no message of a conversation has gone."""
        return self._events.removals.latest(uid)

    def cleared(self, uid: int, revision: int) -> None:
        """All messages of a conversation's own user were removed."""
        self._events.changes.note(uid, revision, 0)

    def removed(self, uid: int, revision: int) -> None:
        """All messages of a user of a conversation were removed, or the conversation."""
        self._events.removals.note(uid, revision, 0)

    def imported(self, uid: int, revision: int, sequences: Iterable[int]) -> None:
        """Messages were imported: they may stand among others."""
        lowest = min(sequences, default=None)
        if uid and lowest is not None:
            self._events.changes.note(uid, revision, lowest)

    def listen(self, listener: WindowListener) -> None:
        self._events.listener = listener


def _place(uid: int) -> Partition:
    return Partition(CONVERSATION_WINDOWS, uid, _WINDOW)


def _window(found: Record | None) -> Window:
    if found is None:
        return WHOLE
    stored = ConversationWindow.FromString(found.body)
    return Window(stored.first_sequence, stored.system_sequence, found.revision, stored.move_time)


def _summary_place(uid: int, user_id: str) -> Partition:
    return Partition(CONVERSATION_SUMMARIES, uid, CONVERSATION_SUMMARIES.encode_partition(user_id))


def _summary(found: Record | None) -> Summary | None:
    if found is None:
        return None
    stored = ConversationSummary.FromString(found.body)
    return Summary(
        text=stored.text,
        covers_through=stored.covers_through_sequence,
        model=stored.model,
        token_count=stored.token_count,
        system_sequence=stored.system_sequence,
        user_id=found.user_id,
        revision=found.revision,
        create_time=stored.create_time.ToMicroseconds(),
    )


def _stored(user_id: str, summary: Summary, now: int) -> ConversationSummary:
    return ConversationSummary(
        user_id=user_id,
        covers_through_sequence=summary.covers_through,
        text=summary.text,
        model=summary.model,
        token_count=summary.token_count,
        system_sequence=summary.system_sequence,
        create_time=wire.timestamp(now),
    )


def _moved(conversation_id: str, uid: int, after: Window, now: int, expected: int) -> Put:
    """A window's move, from where it is at a revision."""
    window = ConversationWindow(
        conversation_id=conversation_id,
        first_sequence=after.first_sequence,
        system_sequence=after.system_sequence,
        move_time=now,
    )
    return Put(CONVERSATION_WINDOWS, uid, window, expected=expected or ABSENT)


def _require_uid(found: AcceptedConversation, uid: int, conversation_id: str) -> None:
    """Require that a conversation was not created anew. Raises ConversationNotFound."""
    if found.head.uid != uid:
        raise ConversationNotFound(conversation_id)
