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

from remora_server import supervision
from remora_server.commands.failures import CommandFailed


@contextmanager
def leased(file: Path | None, stopping: threading.Event) -> Iterator[None]:
    """Set `stopping` when nobody keeps the file locked, and remove the file after the end. None: there is no lease."""
    if file is None:
        yield
        return
    try:
        descriptor = os.open(file, os.O_RDWR)
    except OSError as error:
        raise CommandFailed(f"the lease {file} cannot be opened: {error.strerror}") from error
    unwanted = threading.Event()

    def wait() -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unwanted.set()
        stopping.set()

    supervision.run_apart("lease", wait)
    yield
    if unwanted.is_set():
        file.unlink(missing_ok=True)
