"""The timestamps of records: wall-clock time that never goes back while the process runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from remora_server.locking import Level, new_lock

Clock: TypeAlias = Callable[[], int]


def wall_clock() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def monotonic_clock() -> int:
    """Microseconds of a clock that nobody sets."""
    return time.monotonic_ns() // 1000


class SteadyClock:
    """Microseconds since 1970, UTC. If the wall clock is set back, time continues from its last value by the monotonic
    clock; where it is set forward, time follows.
    """

    def __init__(self, wall: Clock = wall_clock, ticks: Clock = monotonic_clock) -> None:
        self._wall, self._ticks = wall, ticks
        self._lock = new_lock(Level.LEAF)
        self._last, self._last_ticks = wall(), ticks()

    def __call__(self) -> int:
        with self._lock:
            ticks = self._ticks()
            self._last = max(self._wall(), self._last + ticks - self._last_ticks)
            self._last_ticks = ticks
            return self._last
