"""The engine's allocator takes its options: a thread of its own gives memory back. That thread takes no signals."""

from __future__ import annotations

import platform
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.patience import eventually

from remora_server import _native

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="jemalloc takes the place of glibc's allocator"
)

THREADS = Path("/proc/self/task")
NAME = "jemalloc_bg_thd"


def allocators_threads() -> list[Path]:
    return [thread for thread in THREADS.iterdir() if name_of(thread) == NAME]


def name_of(thread: Path) -> str:
    """Nothing if it ended meanwhile."""
    with suppress(OSError):
        return (thread / "comm").read_text().strip()
    return ""


def blocked(thread: Path) -> int:
    """The signals that a thread blocks, as a mask."""
    status = dict(line.split(":\t", 1) for line in (thread / "status").read_text().splitlines())
    return int(status["SigBlk"], 16)


def test_a_thread_of_the_allocator_gives_memory_back_and_takes_no_signals() -> None:
    _native.place("", 0, b"")

    threads = eventually(allocators_threads)

    handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    assert all(blocked(thread) >> number - 1 & 1 for thread in threads for number in handled)
