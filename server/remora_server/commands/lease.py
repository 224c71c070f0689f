"""The lease of a server: a file that every user of the server keeps locked. When the last lock goes, the server stops.

The lock is flock's. Users hold a shared lock, which the system releases however they end. The server waits for the
exclusive lock, and keeps it until it has ended.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from remora_server import failpoints
from remora_server.commands.failures import CommandFailed
from remora_server.supervision import LongLived


class Lease:
    """Waits for the exclusive lock of a file."""

    def __init__(self, file: Path, stopping: threading.Event) -> None:
        """Waits from now on, and sets `stopping` when it has the lock. Raises CommandFailed."""
        try:
            self._descriptor = os.open(file, os.O_RDWR)
        except OSError as error:
            raise CommandFailed(f"the lease {file} cannot be opened: {error.strerror}") from error
        self._stopping = stopping
        self._thread = LongLived("lease", self._wait)
        self.has_ended = False
        """Whether nobody kept the file locked any more."""
        self._thread.start()

    @property
    def failure(self) -> str:
        """Why nobody waits for the lock; empty if somebody does."""
        return self._thread.failure

    def _wait(self) -> None:
        failpoints.hit("lease_turn")
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self._thread.end()
        self.has_ended = True
        self._stopping.set()


@contextmanager
def leased(file: Path | None, stopping: threading.Event) -> Iterator[list[Lease]]:
    """Set `stopping` when nobody keeps the file locked, and remove the file after the end. None: there is no lease."""
    if file is None:
        yield []
        return
    lease = Lease(file, stopping)
    yield [lease]
    if lease.has_ended:
        file.unlink(missing_ok=True)
