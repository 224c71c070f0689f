"""How many processors this process may use, and the priorities of its threads."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from enum import Enum
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")


class Priority(Enum):
    """A thread's share of a processor beside the threads that answer requests."""

    WAITED_FOR = 5
    """A third, for work that somebody waits for."""
    STEADY = 10
    """A tenth, so that it makes progress on a busy machine."""
    IDLE = 19
    """Only what no other thread uses."""


def give_way(thread_id: int, priority: Priority) -> None:
    """Set a thread's priority. Only Linux has priorities of threads."""
    if sys.platform != "linux":
        return
    with suppress(OSError):
        now = os.getpriority(os.PRIO_PROCESS, thread_id)
        os.setpriority(os.PRIO_PROCESS, thread_id, max(now, priority.value))
        if priority is Priority.IDLE:
            os.sched_setscheduler(thread_id, os.SCHED_IDLE, os.sched_param(0))


def processors() -> int:
    """How many processors this process may use: at least 1, and no more than the quota of its control group."""
    here = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(here, int(quota(_read(QUOTA)) or here)))


def quota(text: str) -> float | None:
    """The processors that a control group may use, by its `cpu.max`: `$MAX $PERIOD` in microseconds; None: no limit."""
    most, _, period = text.partition(" ")
    return int(most) / int(period) if most.isdigit() and period.strip().isdigit() else None


def _read(file: Path) -> str:
    try:
        return file.read_text("ascii")
    except OSError:
        return ""
