"""What Linux says of a process: its CPU time, its memory and what it wrote; and when it has come to rest."""

from __future__ import annotations

import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
REST_STEP, REST_SHARE = 0.3, 0.1


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, of its children that are gone and of those that live."""
    return _own_and_gone(pid) + sum(map(_own_and_gone, _children(pid)))


def resident_bytes(pid: int) -> int:
    """Resident memory."""
    return _field(pid, "status", "VmRSS") * 1024


def peak_bytes(pid: int) -> int:
    """The most resident memory that the process ever had."""
    return _field(pid, "status", "VmHWM") * 1024


def written_bytes(pid: int) -> int:
    """Bytes that the process caused to be written to the disk: whole pages, each time they are written."""
    return _field(pid, "io", "write_bytes")


def rest(pid: int, timeout: float) -> None:
    """Wait until the process takes less than a tenth of a core, at most so many seconds."""
    deadline = time.monotonic() + timeout
    before = cpu_seconds(pid)
    while time.monotonic() < deadline:
        time.sleep(REST_STEP)
        now = cpu_seconds(pid)
        if now - before < REST_SHARE * REST_STEP:
            return
        before = now


def _own_and_gone(pid: int) -> float:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, after_name[11:15])) / TICKS  # utime, stime, cutime, cstime: proc_pid_stat(5)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _field(pid: int, name: str, key: str) -> int:
    lines = Path(f"/proc/{pid}/{name}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
