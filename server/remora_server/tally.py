"""Counts of what is done now and then, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from remora_server.domain.status import Done
from remora_server.locking import Level, new_lock


class Tally:
    """How often something was done since the start, and how long it took in all."""

    def __init__(self) -> None:
        self._changing = new_lock(Level.LEAF)
        self._count = 0
        self._seconds = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure what is done in this context. It counts if it fails, too."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(time.monotonic() - began)

    def add(self, seconds: float = 0.0) -> None:
        """Count one that took so long."""
        with self._changing:
            self._count += 1
            self._seconds += seconds

    def done(self) -> Done:
        """What was counted so far."""
        with self._changing:
            return Done(self._count, self._seconds)
