"""Reviews: the vectors of a part of a conversation are compared with its texts, once the names in it have changed.

After a start, all parts that have names are reviewed: what happened to them before is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from remora_server.domain.search import Unembedded
from remora_server.locking import Level, new_lock
from remora_server.storage.embedding.left_behind import Embedded, LeftBehind
from remora_server.storage.embedding.order import part_of
from remora_server.storage.embedding.review_schedule import ReviewSchedule
from remora_server.storage.embedding.scopes import Part
from remora_server.storage.embedding.speakers import Speakers
from remora_server.storage.embedding.texts import digests

MESSAGES_AT_ONCE = 8192
"""As many messages are compared at once, about."""
MOST_AT_ONCE = 1024
"""Parts that are reviewed at once, however short they are."""
FIRST_AT_ONCE = 16
"""The same while it is not known yet how long they are."""
BUSY_SHARE = 8
"""While messages wait that have no vector at all, so many times less is done at once."""
PATIENCE = 1.0
"""How many seconds a review waits for such messages."""

Requeue: TypeAlias = Callable[[Sequence[Unembedded]], Iterable[Unembedded]]
"""Queues messages that have a vector of another text; gives those that find no room."""


class Reviews:
    """Reviews what is due, one group after the other. To be made while the database has everything that was accepted.
    Safe to share between threads.
    """

    def __init__(self, left_behind: LeftBehind, speakers: Speakers, schedule: ReviewSchedule, requeue: Requeue) -> None:
        self._left_behind = left_behind
        self._speakers = speakers
        self._schedule = schedule
        self._requeue = requeue
        self._running = new_lock(Level.REVIEW)
        self._at_once = FIRST_AT_ONCE
        schedule.past(left_behind.named())

    def are_due(self) -> bool:
        """Whether there is something to review that nobody reviews."""
        return not self._running.locked() and self._schedule.has_due()

    def run(self, *, busy: bool) -> bool:
        """Review a group of parts, unless another thread does; False if none was due.

        `busy`: messages wait that have no vector at all.
        """
        if not self._running.acquire(blocking=False):
            return False
        try:
            share, patience = (BUSY_SHARE, PATIENCE) if busy else (1, 0.0)
            parts = self._schedule.take(max(1, self._at_once // share), patience)
            if parts:
                self._review(parts)
            return bool(parts)
        finally:
            self._running.release()

    def _review(self, parts: list[Part]) -> None:
        left_out = set(parts)
        try:
            found, revision = self._left_behind.parts(parts)
            self._adapt(len(parts), len(found))
            left_out = set(map(part_of, self._requeue(self._stale(parts, found, revision))))
        finally:
            self._schedule.end(parts, again=left_out)

    def _adapt(self, parts: int, messages: int) -> None:
        """Do as much the next time as these were, but no sudden leap: others may be longer."""
        at_once = MESSAGES_AT_ONCE * parts // max(messages, 1)
        self._at_once = max(1, min(at_once, 4 * self._at_once, MOST_AT_ONCE))

    def _stale(self, parts: Sequence[Part], found: Sequence[Embedded], revision: int) -> list[Unembedded]:
        """The messages whose vectors are of other texts than they have now."""
        present: dict[Part, set[str]] = {part: set() for part in parts}
        for each in found:
            present[part_of(each.message)].update({each.name} - {""})
        names = self._speakers.reviewed(present, revision)
        embedded = [each for each in found if each.digest is not None]
        now = digests([each.message for each in embedded], names)
        return [each.message for each, digest in zip(embedded, now, strict=True) if each.digest != digest]
