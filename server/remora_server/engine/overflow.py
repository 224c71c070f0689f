"""The thread that moves windows which have more tokens than they may."""

from __future__ import annotations

import logging
import random
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from remora_server import failpoints
from remora_server.domain.calls import Read, Write
from remora_server.domain.context_messages import ContextMessage, MessageReader
from remora_server.domain.conversations import Conversation
from remora_server.domain.errors import ConversationNotFound, RemoraError
from remora_server.domain.messages import MessagePage, MessageQuery, View
from remora_server.domain.short_term import ShortTermPolicy
from remora_server.domain.tokens import O200K_BASE, TokenCounter
from remora_server.domain.windows import Growth, Window, WindowMoved, WindowStore, first_to_stay, is_system
from remora_server.locking import Level, new_condition
from remora_server.supervision import LongLived

PAGE = 1_000
IDLE_SECONDS = 0.5
RETRY_SECONDS = (0.5, 60.0)
MOST_WATCHED = 100_000
"""Conversations whose tokens are known. The least recently written is counted again when it is written next."""

logger = logging.getLogger(__name__)

Key: TypeAlias = tuple[str, str]
"""A tenant and the id of a conversation."""


class Conversations(Protocol):
    """What overflow asks of conversations: see `domain.conversations.ConversationStore`."""

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]: ...


class Messages(Protocol):
    """What overflow asks of messages: see `domain.messages.MessageStore`."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage: ...


class Watched(Struct):
    """What is known of a window: by how many tokens it may still grow."""

    policy: ShortTermPolicy
    room: int


class Failed(Struct):
    """What could not be moved, and when it is tried again, by the monotonic clock."""

    reason: str
    pause: float
    due: float


class Overflow:
    """Moves windows in the background, from `start` to `close`, one conversation at a time.

    What fails is tried again after a while, which grows. After a restart, a window is looked at when its conversation
    is written to.
    """

    def __init__(
        self,
        conversations: Conversations,
        messages: Messages,
        windows: WindowStore,
        reader: MessageReader,
        tokens: TokenCounter,
    ) -> None:
        self._conversations = conversations
        self._messages = messages
        self._windows = windows
        self._reader = reader
        self._tokens = tokens
        self._watched: OrderedDict[Key, Watched] = OrderedDict()
        self._waiting: OrderedDict[Key, int] = OrderedDict()
        """With the revision of the last write."""
        self._failed: dict[Key, Failed] = {}
        self._changed = new_condition(Level.LEAF)
        self._stopping = False
        self._thread = LongLived("overflow", self._run)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End after the conversation at hand."""
        self._thread.end()
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    @property
    def failure(self) -> str:
        """Why its thread is not running; empty if it is."""
        return self._thread.failure

    def failure_of(self, tenant_id: str, conversation_id: str) -> str:
        """Why the window of a conversation could not be moved; empty where nothing is wrong."""
        found = self._failed.get((tenant_id, conversation_id))
        return found.reason if found else ""

    def written(self, tenant_id: str, conversation_id: str, revision: int, growth: Growth | None) -> None:
        """See `domain.windows.WindowListener`. This is brief, unless tokens are counted in another encoding."""
        key = tenant_id, conversation_id
        with self._changed:
            known = self._watched.get(key)
            if known is not None and growth is not None:
                known.room -= self._tokens_of(known.policy, growth)
                if known.room >= 0:
                    return
            self._wait(key, revision)

    def _tokens_of(self, policy: ShortTermPolicy, growth: Growth) -> int:
        if policy.encoding == O200K_BASE:
            return growth.o200k_tokens
        return sum(self._tokens.count(policy.encoding, growth.texts))

    def _wait(self, key: Key, revision: int) -> None:
        """Look at a conversation once the revision can be read."""
        self._watched.pop(key, None)
        self._waiting[key] = max(revision, self._waiting.get(key, 0))
        self._changed.notify()

    def _run(self) -> None:
        while (found := self._next()) is not None:
            try:
                failpoints.hit("overflow_turn")
                self._try(*found)
            except BaseException:
                with self._changed:
                    self._wait(*found)  # behind all others
                raise

    def _next(self) -> tuple[Key, int] | None:
        """The next conversation to look at, and as of which revision at least; None at the end."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                due = next((key for key, failed in self._failed.items() if failed.due <= now), None)
                if due is not None:
                    self._failed[due].due = float("inf")
                    return due, 0
                if self._waiting:
                    return self._waiting.popitem(last=False)
                self._changed.wait(IDLE_SECONDS if self._failed else None)
        return None

    def _try(self, key: Key, revision: int) -> None:
        try:
            self._move(key, revision)
        except ConversationNotFound:
            self._failed.pop(key, None)
        except WindowMoved:
            with self._changed:
                self._wait(key, revision)
        except RemoraError as error:
            self._keep_failure(key, error)
        else:
            if self._failed.pop(key, None):
                logger.info("a window was moved at last")

    def _keep_failure(self, key: Key, error: RemoraError) -> None:
        before = self._failed.get(key)
        pause = RETRY_SECONDS[0] if before is None else min(2 * before.pause, RETRY_SECONDS[1])
        due = time.monotonic() + pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
        self._failed[key] = Failed(str(error), pause, due)
        if before is None:
            logger.warning("a window cannot be moved; it is tried again", extra={"reason": type(error).__name__})

    def _move(self, key: Key, revision: int) -> None:
        tenant_id, conversation_id = key
        with self._changed:
            self._watched.pop(key, None)  # a write from here on has the window counted again
        read = Read(tenant_id, min_revision=revision)
        conversation, _ = self._conversations.get(read, conversation_id, "")
        policy = conversation.draft.short_term
        if policy is None:
            return
        window, _ = self._windows.get(read, conversation_id, "")
        listed = self._listed(read, conversation_id)
        messages = [message for message in listed if not is_system(message)]
        counts = self._counts(policy, messages)
        first = first_to_stay(policy, messages, counts)
        system = self._system(listed, first or window.first_sequence)
        if first or system != window.system_sequence:
            write = Write(tenant_id, method="MoveWindow")
            moved = Window(first or window.first_sequence, system)
            self._windows.move(write, conversation_id, conversation.uid, window, moved)
        left = sum(count for message, count in zip(messages, counts, strict=True) if message.sequence >= first)
        self._watch(key, Watched(policy, policy.trigger - left))

    def _watch(self, key: Key, watched: Watched) -> None:
        with self._changed:
            self._watched[key] = watched
            self._watched.move_to_end(key)
            while len(self._watched) > MOST_WATCHED:
                self._watched.popitem(last=False)

    def _listed(self, read: Read, conversation_id: str) -> list[ContextMessage]:
        """The messages of the window, by sequence."""
        found: list[ContextMessage] = []
        query = MessageQuery(conversation_id, view=View.WINDOW, newest=False, limit=PAGE)
        while True:
            page = self._messages.list(read, query)
            found += self._reader.page(conversation_id, page.encoded)
            if not page.more:
                return found
            query = MessageQuery(
                conversation_id, view=View.WINDOW, newest=False, limit=PAGE, after_sequence=page.last_sequence
            )

    def _counts(self, policy: ShortTermPolicy, messages: Sequence[ContextMessage]) -> list[int]:
        if policy.encoding == O200K_BASE and all(message.token_count is not None for message in messages):
            return [message.token_count or 0 for message in messages]
        return self._tokens.count(policy.encoding, [message.text for message in messages])

    @staticmethod
    def _system(listed: Sequence[ContextMessage], first: int) -> int:
        """The newest system message, where it stands before the window."""
        newest = next((message.sequence for message in reversed(listed) if is_system(message)), 0)
        return newest if newest < first else 0
