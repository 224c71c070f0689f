"""The memory that the process may use."""

from __future__ import annotations

import os
from pathlib import Path


def memory_bytes() -> int:
    """The machine's memory, or less where the process's control group says so (version 2)."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    group = Path("/sys/fs/cgroup/memory.max")
    given = group.read_text("ascii").strip() if group.exists() else "max"
    return min(machine, int(given)) if given.isdigit() else machine
