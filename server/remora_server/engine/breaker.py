"""A circuit breaker: after consecutive failures, calls are refused at once for a while.

After M. Nygard, "Release It!", 2nd edition, 2018, chapter 5.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from remora_server.locking import Level, new_lock

FAILURES = 3
"""After so many failures in a row it opens."""
REST_SECONDS = (1.0, 30.0)
"""How long it stays open at first, and at most. The time doubles after each trial that fails."""


class Breaker:
    """A circuit breaker. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = new_lock(Level.LEAF)
        self._failures = 0
        self._rest = REST_SECONDS[0]
        self._until = 0.0

    def allows(self) -> bool:
        """Whether to try now. After the rest one caller may; the others may when that call has succeeded."""
        with self._lock:
            now = self._clock()
            if now < self._until:
                return False
            if self._failures >= FAILURES:
                self._until = now + self._rest
            return True

    def rest(self) -> float:
        """Seconds until a caller may try; 0 if that is now."""
        with self._lock:
            return max(0.0, self._until - self._clock())

    def succeeded(self) -> None:
        """Close: a call succeeded."""
        with self._lock:
            self._failures, self._rest, self._until = 0, REST_SECONDS[0], 0.0

    def failed(self) -> None:
        """Count a failed call."""
        with self._lock:
            self._failures += 1
            if self._failures >= FAILURES:
                self._until = self._clock() + self._rest * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, no secret
                self._rest = min(2 * self._rest, REST_SECONDS[1])

    def may_work_again(self) -> None:
        """Let the next call try, because it will probably succeed."""
        with self._lock:
            self._until = 0.0
