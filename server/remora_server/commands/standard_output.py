"""Standard output: a failed write ends the command with one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from remora_server.commands.failures import CommandFailed


def write(text: str) -> int:
    """Write. Raises CommandFailed."""
    with _told():
        return sys.stdout.write(text)


def flush() -> None:
    """Flush. Raises CommandFailed."""
    with _told():
        sys.stdout.flush()


@contextmanager
def _told() -> Iterator[None]:
    """It is no failure if the reader has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandFailed(f"standard output cannot be written: {error.strerror}") from error
