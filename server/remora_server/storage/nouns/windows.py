"""Windows of the local store's conversations."""

from __future__ import annotations

from collections.abc import Mapping

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.context_messages import SYSTEM_ROLES
from remora_server.domain.conversations import require_owner
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.messages import Plan
from remora_server.domain.windows import WHOLE, Growth, Window, WindowListener, WindowMoved
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.nouns.loading import AcceptedConversation
from remora_server.storage.records.reader import Partition, Record
from remora_server.storage.records.records import ABSENT, Put
from remora_server.storage.records.refusals import RevisionMismatch
from remora_server.storage.schema.kinds import CONVERSATION_WINDOWS
from remora_server.storage.v1.record_pb2 import ConversationWindow

_ONLY = b""
"""The key of the one record of a partition."""


class WindowEvents:
    """Tells a listener, where there is one, what is written to conversations that have a policy."""

    def __init__(self) -> None:
        self.listener: WindowListener | None = None

    def written(
        self, tenant_id: str, conversation_id: str, revision: int, plan: Plan, counts: Mapping[int, int]
    ) -> None:
        """Messages were written."""
        if self.listener is not None:
            self.listener.written(tenant_id, conversation_id, revision, _growth(plan, counts))

    def changed(self, tenant_id: str, conversation_id: str, revision: int) -> None:
        """A conversation has another policy."""
        if self.listener is not None:
            self.listener.written(tenant_id, conversation_id, revision, None)


def _growth(plan: Plan, counts: Mapping[int, int]) -> Growth | None:
    """By what the window grows, where that is all that happens to it."""
    own = [put for put in plan.puts if put.user_id == plan.head.user_id]
    if plan.removals or any(put.replaces or put.draft.role in SYSTEM_ROLES for put in own):
        return None
    return Growth([put.draft.text for put in own], sum(counts[id(put.draft)] for put in own))


class Windows:
    """Reads and moves windows."""

    def __init__(self, context: StoreContext, conversations: Conversations, events: WindowEvents) -> None:
        self._events = events
        self.written = events.written
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._conversations = conversations

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, int]:
        self._commits.begin(read)
        head = self._conversations.published(read, conversation_id)
        require_owner(head.user_id, user_id, conversation_id)
        found, revision = self._records.get(read, _place(head.uid), _ONLY)
        return _window(found), revision

    def published(self, read: Read, uid: int) -> Window:
        """The window of a conversation that readers see."""
        return _window(self._records.get(read, _place(uid), _ONLY)[0])

    def move(self, write: Write, conversation_id: str, uid: int, before: Window, after: Window) -> Outcome:
        def plan(found: AcceptedConversation, now: int) -> Planned:
            if found.head.uid != uid:
                raise ConversationNotFound(conversation_id)
            window = ConversationWindow(
                conversation_id=conversation_id,
                first_sequence=after.first_sequence,
                system_sequence=after.system_sequence,
                move_time=now,
            )
            put = Put(CONVERSATION_WINDOWS, uid, window, expected=before.revision or ABSENT)
            return Planned(self._records.changes(write, [put]), Outcome(revision=0, time=now), found.head.user_id)

        try:
            return self._commands.run(write, self._conversations.locked(write, conversation_id), plan)
        except RevisionMismatch as error:
            raise WindowMoved from error

    def listen(self, listener: WindowListener) -> None:
        self._events.listener = listener


def _place(uid: int) -> Partition:
    return Partition(CONVERSATION_WINDOWS, uid, CONVERSATION_WINDOWS.encode_partition())


def _window(found: Record | None) -> Window:
    if found is None:
        return WHOLE
    stored = ConversationWindow.FromString(found.body)
    return Window(stored.first_sequence, stored.system_sequence, found.revision, stored.move_time)
