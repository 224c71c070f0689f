"""The thread that logs panics of the engine: their location and thread, but no message, which may quote contents."""

from __future__ import annotations

import logging
import threading

from remora_server import _native, failpoints
from remora_server.supervision import LongLived

LOOK_SECONDS = 0.5

logger = logging.getLogger(__name__)


class PanicLog:
    """Logs panics from `start` on."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = LongLived("panics", self._follow)

    @property
    def failure(self) -> str:
        """Why panics are not logged now; empty if they are."""
        return self._thread.failure

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Log the remaining panics, and end."""
        self._thread.end()
        self._stopping.set()
        self._thread.join()
        while _log_next(0.0):
            pass

    def _follow(self) -> None:
        while not self._stopping.is_set():
            failpoints.hit("panics_turn")
            _log_next(LOOK_SECONDS)


def _log_next(timeout: float) -> bool:
    """Wait for the next panic, for a while, and log it. Returns whether there was one."""
    panic = _native.next_panic(timeout)
    if panic is None:
        return False
    location, thread, thread_id, unnoted = panic
    about = {"location": location, "panicked": thread or _name_of(thread_id)}
    if unnoted:
        about["unnoted"] = str(unnoted)
    logger.error("the engine panicked", extra=about)
    return True


def _name_of(thread_id: int) -> str:
    """The name of one of Python's threads; empty if it has ended."""
    return next((thread.name for thread in threading.enumerate() if thread.native_id == thread_id), "")
