"""The standard health service: whether the process works."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2
from msgspec import Struct

from remora_server import failpoints
from remora_server.locking import Level, new_lock
from remora_server.supervision import LongLived

HEALTH = cast("ServiceDescriptor", health_pb2.DESCRIPTOR.services_by_name["Health"])

LIVENESS, STARTUP, READINESS, OVERALL = "liveness", "startup", "readiness", ""

STARTING, STOPPING = "it starts", "it stops"

Say = Callable[[str, str], None]
"""Takes the name of a service, and why it does not serve; empty if it does."""

logger = logging.getLogger(__name__)


class Condition(Struct, frozen=True):
    """Why calls are not answered, and why writes are refused; each is empty where that is not so."""

    unanswered: str = ""
    unwritten: str = ""


class Health:
    """The state of the process. What changes is told to `say`.

    `LIVENESS` serves while the process runs, `STARTUP` from its first answer on, and `READINESS` while it answers calls
    and takes writes. `OVERALL` and the services' own names serve while calls are answered: whoever chooses servers by
    them goes on reading from one whose disk is full.
    """

    def __init__(self, services: Iterable[str], say: Say) -> None:
        self._say = say
        self._answering = (OVERALL, *services)
        self._stopped = threading.Event()
        self._changing = new_lock(Level.LEAF)
        self._condition = Condition(STARTING)
        self._thread: LongLived | None = None
        say(LIVENESS, "")
        say(STARTUP, STARTING)
        self.tell(self._condition)

    def tell(self, condition: Condition) -> None:
        """Say what the condition is; after `drain` the server stops, whatever it is."""
        with self._changing:
            self._condition = condition
            unanswered = STOPPING if self._stopped.is_set() else condition.unanswered
            for name in self._answering:
                self._say(name, unanswered)
            self._say(READINESS, unanswered or condition.unwritten)

    def follow(self, look: Callable[[], Condition], *, interval: float) -> None:
        """Look at an interval in seconds what the condition is, and say it. Returns at once, when it has started."""
        self._look(look)
        self._say(STARTUP, "")
        self._thread = LongLived("health", partial(self._follow, look, interval))
        self._thread.start()

    def failure(self) -> str:
        """Why nobody looks now; empty if somebody does, or nobody has to yet."""
        return "" if self._thread is None else self._thread.failure

    def _follow(self, look: Callable[[], Condition], interval: float) -> None:
        while not self._stopped.wait(interval):
            self._look(look)

    def _look(self, look: Callable[[], Condition]) -> None:
        """Look. If that fails, calls count as not answered."""
        try:
            failpoints.hit("health_turn")
            condition = look()
        except BaseException:
            self.tell(Condition("its health is not known"))
            raise
        if condition != self._condition:
            _log(self._condition, condition)
            self.tell(condition)

    def drain(self) -> None:
        """From now on, be neither alive nor ready."""
        if self._thread is not None:
            self._thread.end()
        self._stopped.set()
        self.tell(self._condition)
        for name in (STARTUP, LIVENESS):
            self._say(name, STOPPING)


def _log(before: Condition, now: Condition) -> None:
    """That a start ends well is logged with what is served then."""
    reason = now.unanswered or now.unwritten
    if reason:
        logger.warning("not ready", extra={"reason": reason})
    elif before.unanswered != STARTING:
        logger.info("ready again")
