"""The standard health service: whether the process works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2

from remora_server import failpoints
from remora_server.locking import Level, new_lock
from remora_server.supervision import LongLived

HEALTH = cast("ServiceDescriptor", health_pb2.DESCRIPTOR.services_by_name["Health"])

LIVENESS, READINESS, OVERALL = "liveness", "readiness", ""

Say = Callable[[str, bool], None]


class Health:
    """The state of the process: alive while it runs, ready while it can answer.

    `OVERALL` and the services' own names say the same as `READINESS`. What changes is told to `say`.
    """

    def __init__(self, services: Iterable[str], say: Say) -> None:
        self._say = say
        self._ready_names = (OVERALL, READINESS, *services)
        self._stopped = threading.Event()
        self._changing = new_lock(Level.LEAF)
        self._ready = False
        self._thread: LongLived | None = None
        say(LIVENESS, True)
        self.set_ready(ready=False)

    def set_ready(self, *, ready: bool) -> None:
        """Say whether calls are accepted; after `drain` they are not."""
        with self._changing:
            self._ready = ready
            for name in self._ready_names:
                self._say(name, ready and not self._stopped.is_set())

    def follow(self, works: Callable[[], bool], *, interval: float) -> None:
        """Ask at an interval in seconds whether the server works, and be ready while it does. Returns at once."""
        self._look(works)
        self._thread = LongLived("health", partial(self._follow, works, interval))
        self._thread.start()

    def _follow(self, works: Callable[[], bool], interval: float) -> None:
        while not self._stopped.wait(interval):
            self._look(works)

    def _look(self, works: Callable[[], bool]) -> None:
        """Ask. If that fails, the server counts as not working."""
        try:
            failpoints.hit("health_turn")
            ready = works()
        except BaseException:
            self.set_ready(ready=False)
            raise
        if ready != self._ready:
            self.set_ready(ready=ready)

    def drain(self) -> None:
        """From now on, be neither alive nor ready."""
        if self._thread is not None:
            self._thread.end()
        self._stopped.set()
        self.set_ready(ready=False)
        self._say(LIVENESS, False)
