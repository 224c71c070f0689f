"""The lease of a server: a file that everyone who wants the server keeps locked. When nobody does, the server stops.

The lock is flock's. Those who want the server share it, and the system releases theirs however they end; the server
waits for the exclusive one, and keeps it until it has ended.
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
    """Set `stopping` when nobody keeps the file locked, and remove the file after the end. None: nobody needs to."""
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
