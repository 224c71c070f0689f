"""Named places where a test makes the process die. Inert, at the cost of a call, unless `arm` was given some.

`transaction_written=abort@3,checkpoint_begun=abort:20`: the process gets SIGKILL at the pass after the third, or 20 ms
after a pass, when it is in the midst of what follows.
"""

from __future__ import annotations

import os
import re
import signal
import threading

from msgspec import Struct

VARIABLE = "REMORA_FAILPOINTS"
JOURNAL_VARIABLE = "REMORA_JOURNAL_FAILPOINTS"
"""Read by the journal itself, which has points of its own."""
POINTS = frozenset({
    "directory_begun",
    "database_opened",
    "transaction_written",
    "transaction_committed",
    "store_recovered",
    "checkpoint_begun",
    "checkpoint_done",
    "vectors_made",
    "vectors_accepted",
    "vectors_published",
})  # fmt: skip

_PART = re.compile(r"(?P<point>\w+)=abort(:(?P<millis>\d{1,6}))?(@(?P<passes>\d{1,6}))?")


class FailpointsError(Exception):
    """What is to be armed cannot be read."""


class _Armed(Struct):
    passes: int
    delay: float


_armed: dict[str, _Armed] = {}


def arm(setting: str) -> None:
    """Switch points on: name=abort[:milliseconds][@passes], with commas between. Raises FailpointsError."""
    for part in filter(None, setting.split(",")):
        found = _PART.fullmatch(part)
        if found is None or found["point"] not in POINTS:
            raise FailpointsError(f"{VARIABLE}: {part!r} is no failpoint")
        _armed[found["point"]] = _Armed(int(found["passes"] or 0), int(found["millis"] or 0) / 1000)


def hit(point: str) -> None:
    """Pass; where the point is armed, and was passed often enough, end the process."""
    if _armed:
        _reach(point)


def _reach(point: str) -> None:
    armed = _armed.get(point)
    if armed is None:
        return
    armed.passes -= 1
    if armed.passes < 0:
        _die(armed.delay)


def _die(delay: float) -> None:
    if delay:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
