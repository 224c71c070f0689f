"""How tests wait for what happens by itself: as long as it takes, on whatever machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0
"""Seconds after which something hangs: far more than anything takes here on a busy machine. It bounds no speed."""
PAUSE_SECONDS = 0.05


def eventually(attempt: Callable[[], T], *, until: Callable[[T], bool] = bool) -> T:
    """Repeat an attempt until what it gives is as it should be, and return that."""
    deadline = time.monotonic() + PATIENCE
    while not until(found := attempt()):
        assert time.monotonic() < deadline, f"it remains {found!r}"
        time.sleep(PAUSE_SECONDS)
    return found


def with_more_and_more_time(ask: Callable[[float], T], *too_short: type[Exception]) -> T:
    """What a call gives that waits for its deadline, which is in so many seconds and soon passes on a fast machine.

    Where the deadline was too short for all else, the call ends with one of these errors, and is given more time.
    """
    seconds = 0.2
    while seconds < PATIENCE:
        try:
            return ask(seconds)
        except too_short:
            seconds *= 4
    return ask(PATIENCE)
