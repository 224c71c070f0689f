"""The thread that moves windows with too many tokens, or has them summarised."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from remora_server import failpoints
from remora_server.domain.calls import Read, Write
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.errors import ConversationNotFound, RemoraError
from remora_server.domain.facts import Reading
from remora_server.domain.short_term import ShortTermPolicy, Summarize, gives_facts
from remora_server.domain.status import OverflowStatus
from remora_server.domain.summarizing import Summarizing, SummaryRequest, WeighedWindow, WindowReader, WindowView
from remora_server.domain.tokens import O200K_BASE, TokenCounter
from remora_server.domain.windows import (
    Growth,
    WindowMoved,
    WindowStore,
    missing_to_summarize,
)
from remora_server.engine.authors import Author
from remora_server.engine.summaries import Summaries
from remora_server.engine.turns import Key, Turns
from remora_server.locking import Level, new_lock
from remora_server.supervision import LongLived

MOST_WATCHED = 100_000
"""Conversations whose tokens are known. The least recently written is counted again when it is written next."""
NEVER = 1 << 62
"""More tokens or messages than any window grows by."""

logger = logging.getLogger(__name__)


class FactKeeper(Protocol):
    """Keeps what messages say of their user: see `domain.fact_memory.FactMemory`."""

    @property
    def asks_model(self) -> bool: ...

    def keep(self, write: Write, user_id: str, messages: Iterable[ContextMessage], reading: Reading) -> None: ...


class Watched(Struct):
    """By how many tokens a window may still grow, and by fewer than how many messages."""

    policy: ShortTermPolicy
    room: int
    messages: int = NEVER
    revision: int = 0
    """What was counted may not be readable before this revision is."""

    @property
    def is_due(self) -> bool:
        """Whether the window must be looked at."""
        return self.room < 0 or self.messages <= 0


class Grown(Struct):
    """What was appended to a window while it was looked at, up to a revision. The look may have seen it or not."""

    growths: list[Growth] = []
    revision: int = 0


class Overflow:
    """Moves windows in the background, from `start` to `close`, one conversation at a time.

    What fails is tried again after a while, which grows. After a restart, a window is looked at when its conversation
    is written to. Summaries are written by threads of their own, which also flush windows whose facts a model finds.
    """

    def __init__(
        self,
        windows: WindowReader,
        store: WindowStore,
        tokens: TokenCounter,
        author: Author,
        *,
        facts: FactKeeper,
    ) -> None:
        self._windows = windows
        self._store = store
        self._tokens = tokens
        self._facts = facts
        self._summarizing = Summarizing(windows, store, tokens)
        self._summaries = Summaries(windows, self._summarizing, author, self._turn, self._flush)
        self._watched: OrderedDict[Key, Watched] = OrderedDict()
        self._looked_at: dict[Key, Grown] = {}
        self._lock = new_lock(Level.LEAF)
        self._turns = Turns()
        self._thread = LongLived("overflow", self._run)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._summaries.start()

    def close(self) -> None:
        """End after the current conversation."""
        self._thread.end()
        self._turns.close()
        self._thread.join()
        self._summaries.close()

    @property
    def failure(self) -> str:
        """Why one of its threads is not running; empty if all are."""
        return self._thread.failure or self._summaries.failure

    def failure_of(self, tenant_id: str, conversation_id: str) -> str:
        """Why the window of a conversation could not be moved; empty if nothing failed."""
        key = tenant_id, conversation_id
        return self._turns.failure_of(key) or self._summaries.failure_of(key)

    def status(self, tenant_id: str | None) -> OverflowStatus:
        """How many windows of a tenant, or with None of all tenants, could not be moved, and why."""
        moves, summaries = self._turns.failing(tenant_id), self._summaries.failing(tenant_id)
        if not moves and not summaries:
            return OverflowStatus()
        last = max([*moves.values(), *summaries.values()], key=lambda failed: failed.when)
        return OverflowStatus(len(moves.keys() | summaries.keys()), last.reason)

    def written(self, tenant_id: str, conversation_id: str, revision: int, growth: Growth | None) -> None:
        """See `domain.windows.WindowListener`. This is brief, unless tokens are counted in another encoding."""
        key = tenant_id, conversation_id
        if growth is None or not self._has_room(key, revision, growth):
            self._turn(key, revision)

    def _has_room(self, key: Key, revision: int, growth: Growth) -> bool:
        """Whether a window need not be looked at for this. A window that is being looked at counts it at the end of
        the look: otherwise it would be looked at for as long as anybody writes.
        """
        with self._lock:
            grown = self._looked_at.get(key)
            if grown is not None:
                grown.growths.append(growth)
                grown.revision = max(revision, grown.revision)
                return True
            known = self._watched.get(key)
            if known is None:
                return False
            self._count(known, growth)
            known.revision = max(revision, known.revision)
            return not known.is_due

    def _count(self, known: Watched, growth: Growth) -> None:
        known.room -= self._tokens_of(known.policy, growth)
        known.messages -= len(growth.texts)

    def _tokens_of(self, policy: ShortTermPolicy, growth: Growth) -> int:
        if policy.encoding == O200K_BASE:
            return growth.o200k_tokens
        return sum(self._tokens.count(policy.encoding, growth.texts))

    def _turn(self, key: Key, revision: int) -> None:
        """Look at a conversation once the revision can be read."""
        with self._lock:
            revision = self._forget(key, revision)
        self._turns.wait(key, revision)

    def _forget(self, key: Key, revision: int) -> int:
        """Under the lock: the revision that a look must see which is to see this one, and all that was counted."""
        known = self._watched.pop(key, None)
        return revision if known is None else max(revision, known.revision)

    def _run(self) -> None:
        while (found := self._turns.next()) is not None:
            try:
                failpoints.hit("overflow_turn")
                self._try(*found)
            except BaseException:
                self._turn(*found)  # behind all others
                raise
            finally:
                self._turns.over(found[0])

    def _try(self, key: Key, revision: int) -> None:
        try:
            self._move(key, revision)
        except ConversationNotFound:
            self._turns.succeeded(key)
        except WindowMoved:
            self._turn(key, revision)
        except RemoraError as error:
            if self._turns.failed(key, str(error)):
                logger.warning("a window cannot be moved; it is tried again", extra={"reason": type(error).__name__})
        else:
            if self._turns.succeeded(key):
                logger.info("a window was moved at last")

    def _move(self, key: Key, revision: int) -> None:
        with self._lock:
            revision = self._forget(key, revision)
            grown = self._looked_at[key] = Grown()
        try:
            watched = self._looked(key, revision)
        except BaseException:
            if self._stop_looking(key, None):
                self._turn(key, grown.revision)
            raise
        if self._stop_looking(key, watched) and watched is not None and watched.is_due:
            self._turn(key, grown.revision)

    def _looked(self, key: Key, revision: int) -> Watched | None:
        """Move a window, if it has too many tokens. Returns by how many it may grow; None without a policy."""
        tenant_id, conversation_id = key
        weighed = self._windows.weigh(Read(tenant_id, min_revision=revision), conversation_id)
        if weighed is None:
            return None
        policy = weighed.policy
        if weighed.first_to_stay:
            if gives_facts(policy) and self._facts.asks_model:
                self._summaries.wait(key, weighed.revision)
                return Watched(policy, policy.trigger)
            self._leave(key, weighed)
        room = policy.trigger - weighed.tokens
        return Watched(policy, room) if room >= 0 else self._beyond(key, weighed)

    def _leave(self, key: Key, weighed: WeighedWindow) -> int:
        """Move a window, and keep the facts in what leaves it first where the policy wants that; the revision."""
        tenant_id, conversation_id = key
        own, window = weighed.conversation, weighed.moved
        if gives_facts(weighed.policy) and weighed.view is not None:
            leaving = [message for message in weighed.view.messages if message.sequence < window.first_sequence]
            write = Write(tenant_id, method="ExtractFacts")
            reading = Reading(weighed.view.revision, own.uid, window.first_sequence - 1)
            self._facts.keep(write, own.draft.user_id, leaving, reading)
        write = Write(tenant_id, method="MoveWindow")
        return self._store.move(write, conversation_id, own.uid, weighed.window, window).revision

    def _flush(self, key: Key, view: WindowView) -> None:
        """Move a window that gives facts, however long finding them takes."""
        policy = view.conversation.draft.short_term
        weighed = None if policy is None else WeighedWindow.of(view, policy)
        if weighed is not None and weighed.first_to_stay:
            self._turn(key, self._leave(key, weighed))

    def _beyond(self, key: Key, weighed: WeighedWindow) -> Watched:
        """When a window that already has too many tokens is looked at again."""
        policy, overflow, view = weighed.policy, weighed.policy.overflow, weighed.view
        if not isinstance(overflow, Summarize) or view is None:
            return Watched(policy, -1)
        if overflow.by_client:
            return Watched(policy, NEVER)
        if self._summarizing.of(view, SummaryRequest(key[1])) is None:
            return Watched(policy, NEVER, missing_to_summarize(view.messages, overflow.keep_messages))
        self._summaries.wait(key, view.revision)
        return Watched(policy, policy.trigger)

    def _stop_looking(self, key: Key, watched: Watched | None) -> bool:
        """Count what is appended from now on, and what came since the look began. Returns whether anything did."""
        with self._lock:
            grown = self._looked_at.pop(key)
            if watched is not None:
                for growth in grown.growths:
                    self._count(watched, growth)
                watched.revision = grown.revision
                self._watched[key] = watched
                if len(self._watched) > MOST_WATCHED:
                    self._watched.popitem(last=False)
        return bool(grown.growths)
