"""Named points where a test makes the process or a thread die. Inert, at the cost of a call, unless some are armed.

`transaction_written=abort@3,checkpoint_begun=abort:20`: the process gets SIGKILL at the pass after the third, or 20 ms
after a pass, when it is in the midst of what follows. `applier_turn=raise` raises Planted, `applier_turn=exit` raises
what ends a thread without a word: each once.
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
ENGINE_VARIABLE = "REMORA_ENGINE_FAILPOINTS"
"""Read by the engine, which panics at points of its own."""
POINTS = frozenset({
    "directory_begun",
    "database_opened",
    "transaction_written",
    "transaction_committed",
    "store_recovered",
    "requests_loading",
    "checkpoint_begun",
    "checkpoint_done",
    "vectors_made",
    "vectors_accepted",
    "vectors_published",
    "applier_turn",
    "expiry_turn",
    "indexer_turn",
    "overflow_turn",
    "receipts_turn",
    "rereading_turn",
    "summary_turn",
    "summary_written",
    "health_turn",
    "lease_turn",
    "panics_turn",
    "endpoint_request",
    "transport_run",
    "worker_run",
    "caller_identified",
    "call_answered",
    "stream_pulled",
})  # fmt: skip

_PART = re.compile(r"(?P<point>\w+)=(abort(:(?P<millis>\d{1,6}))?|(?P<raises>raise|exit))(@(?P<passes>\d{1,6}))?")


class FailpointsError(Exception):
    """What is to be armed cannot be read."""


class Planted(Exception):
    """What a point raises that is armed to."""


class _Armed(Struct):
    passes: int
    delay: float
    raises: str


_armed: dict[str, _Armed] = {}


def arm(setting: str) -> None:
    """Switch points on: name=action[@passes], with commas between; actions are abort[:milliseconds], raise and exit.

    Raises FailpointsError.
    """
    for part in filter(None, setting.split(",")):
        found = _PART.fullmatch(part)
        if found is None or found["point"] not in POINTS:
            raise FailpointsError(f"{VARIABLE}: {part!r} is not a failpoint")
        _armed[found["point"]] = _Armed(
            int(found["passes"] or 0), int(found["millis"] or 0) / 1000, found["raises"] or ""
        )


def hit(point: str) -> None:
    """Pass; where the point is armed, and was passed often enough, end the process or raise."""
    if _armed:
        _reach(point)


def _reach(point: str) -> None:
    armed = _armed.get(point)
    if armed is None:
        return
    armed.passes -= 1
    if armed.passes >= 0:
        return
    if armed.raises:
        _armed.pop(point, None)
        raise SystemExit if armed.raises == "exit" else Planted
    _die(armed.delay)


def _die(delay: float) -> None:
    if delay:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
