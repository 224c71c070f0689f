"""Processors and priorities."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from remora_server.engine.processors import Priority, give_way, processors, quota


@pytest.mark.parametrize(
    ("text", "expected"), [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None), ("nonsense", None)]
)
def test_a_control_groups_quota_is_read(text: str, expected: float | None) -> None:
    assert quota(text) == expected


def test_there_is_a_processor() -> None:
    assert 1 <= processors() <= (os.cpu_count() or 1)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux alone")
@pytest.mark.parametrize("priority", Priority)
def test_a_thread_gives_way_and_no_other_does(priority: Priority) -> None:
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    found: list[tuple[int, int]] = []

    def look() -> None:
        give_way(threading.get_native_id(), priority)
        found.append((os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), os.sched_getscheduler(0)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    policy = os.SCHED_IDLE if priority is Priority.IDLE else os.SCHED_OTHER
    assert found == [(max(own, priority.value), policy)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_a_thread_that_is_gone_is_no_failure() -> None:
    give_way(2**22 + 1, Priority.IDLE)
