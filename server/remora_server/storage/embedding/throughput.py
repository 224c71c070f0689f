"""The recent rate of something, per second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 10.0


class Throughput:
    """Counts what was done in the last seconds. Not safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._done: deque[tuple[float, int]] = deque()
        self._count = 0
        self._since = 0.0

    def add(self, count: int) -> None:
        """Count some that were done just now."""
        now = self._forget()
        if not self._done:
            self._since = now
        self._done.append((now, count))
        self._count += count

    def rate(self) -> float:
        """How many a second, over the last ten seconds or since work began; 0 if there was none."""
        seconds = min(self._forget() - self._since, WINDOW_SECONDS)
        return self._count / max(seconds, 1.0)

    def _forget(self) -> float:
        now = self._clock()
        while self._done and self._done[0][0] < now - WINDOW_SECONDS:
            self._count -= self._done.popleft()[1]
        return now
