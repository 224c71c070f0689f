"""Supervised threads: every thread of the server is started here, and none ends unnoticed.

What a thread raises is logged without its text, as all failures are (`logs.describe`), whatever it is: an exception, a
panic of the engine (which Python sees as a BaseException), the SystemExit of a library.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from remora_server.tally import Tally

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
"""Seconds before failed work is restarted. Each consecutive pause is twice as long as the last."""
STEADY_SECONDS = 60.0
"""What worked for so long has not failed in a row."""

failed = Tally()
"""How often a thread's work failed since the start."""

logger = logging.getLogger(__name__)


class EndedTooSoon(Exception):
    """Work returned that nobody had told to end."""


class LongLived:
    """A thread whose work continues until it is told to end.

    Work that raises or returns earlier is restarted after a pause. Meanwhile `failure` says so.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        """`work` must tolerate a restart at any point."""
        self.name = name
        self.failure = ""
        """Why nothing is done now; empty if it is."""
        self._work = work
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop restarting the work. Call this before the work is told to end."""
        self._ending.set()

    def join(self) -> None:
        """Wait for the end of the work, which has been told to end, as it is now."""
        self.end()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._ending.is_set():
            began = time.monotonic()
            self.failure = ""
            try:
                self._work()
                self._require_end()
            except BaseException as error:
                if time.monotonic() - began > STEADY_SECONDS:
                    pause = FIRST_PAUSE
                failed.add()
                self.failure = f"the thread {self.name} failed and is restarted: {type(error).__name__}"
                logger.exception("a thread failed; it is restarted", extra={"failed": self.name})
                self._ending.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _require_end(self) -> None:
        if not self._ending.is_set():
            raise EndedTooSoon


def run_apart(name: str, work: Callable[[], None]) -> None:
    """Do something short in a thread of its own, for which nobody waits."""

    def run() -> None:
        try:
            work()
        except BaseException:
            failed.add()
            logger.exception("a thread failed", extra={"failed": name})

    threading.Thread(target=run, name=name, daemon=True).start()
