"""Conversations that wait for background work. Each has one turn at a time. A failed turn is repeated after a pause."""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from typing import TypeAlias

from msgspec import Struct

from remora_server.locking import Level, new_condition

IDLE_SECONDS = 0.5
RETRY_SECONDS = (0.5, 60.0)
"""The pause after the first failure, and the longest one. Each is twice as long as the last, with jitter."""

Key: TypeAlias = tuple[str, str]
"""A tenant and the id of a conversation."""
NEVER = float("inf")


class Failed(Struct):
    """Why a turn failed, and when, and when the next one is, by the monotonic clock."""

    reason: str
    pause: float
    when: float
    due: float


class Turns:
    """A queue that several threads may take turns from. Safe to share between threads."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Key, int] = OrderedDict()
        """With the revision of the last write."""
        self._running: set[Key] = set()
        self._failed: dict[Key, Failed] = {}
        self._changed = new_condition(Level.LEAF)
        self._stopping = False

    def wait(self, key: Key, revision: int) -> None:
        """Queue a turn of a conversation, behind all others; after its pause, where its last one failed. The turn must
        see this revision.
        """
        with self._changed:
            self._waiting[key] = max(revision, self._waiting.get(key, 0))
            self._changed.notify()

    def next(self) -> tuple[Key, int] | None:
        """The next conversation, and the revision that its turn must see; None at the end. `over` ends the turn."""
        with self._changed:
            while not self._stopping:
                found = self._due() or self._first()
                if found is not None:
                    self._running.add(found[0])
                    return found
                self._changed.wait(IDLE_SECONDS if self._failed else None)
        return None

    def _due(self) -> tuple[Key, int] | None:
        now = time.monotonic()
        for key, failed in self._failed.items():
            if failed.due <= now and key not in self._running:
                failed.due = NEVER
                return key, self._waiting.pop(key, 0)
        return None

    def _first(self) -> tuple[Key, int] | None:
        key = next((key for key in self._waiting if key not in self._running and not self._is_paused(key)), None)
        return None if key is None else (key, self._waiting.pop(key))

    def _is_paused(self, key: Key) -> bool:
        """Whether a conversation waits for the end of its pause, however often it is written to meanwhile."""
        failed = self._failed.get(key)
        return failed is not None and failed.due != NEVER

    def over(self, key: Key) -> None:
        """End a conversation's turn, however it went."""
        with self._changed:
            self._running.discard(key)
            self._changed.notify()

    def succeeded(self, key: Key) -> bool:
        """Note that a turn succeeded. Returns whether the one before had failed."""
        with self._changed:
            return self._failed.pop(key, None) is not None

    def failed(self, key: Key, reason: str, wait: float = 0.0) -> bool:
        """Note why a turn failed. It is tried again after `wait` seconds or more. Returns whether it worked before."""
        with self._changed:
            before = self._failed.get(key)
            pause = RETRY_SECONDS[0] if before is None else min(2 * before.pause, RETRY_SECONDS[1])
            rest = max(wait, pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret
            now = time.monotonic()
            self._failed[key] = Failed(reason, pause, now, now + rest)
            self._changed.notify()
            return before is None

    def failure_of(self, key: Key) -> str:
        """Why the last turn of a conversation failed; empty if it did not."""
        found = self._failed.get(key)
        return found.reason if found else ""

    def failing(self, tenant_id: str | None) -> dict[Key, Failed]:
        """The conversations of a tenant, or with None of all, whose last turn failed."""
        with self._changed:
            return {key: failed for key, failed in self._failed.items() if tenant_id in {None, key[0]}}

    def close(self) -> None:
        """Give no further turns."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
