"""The machine: the disk, the duration of a sync there, and the limits of the process."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import time
from pathlib import Path

from msgspec import Struct

SYNCS = 20
PROBE_BYTES = 4096


class Disk(Struct, frozen=True):
    """A file system: its type (empty if unknown), its bytes, the median of a few syncs in microseconds (0 if none could
    be measured), and whether this user may write in the directory.
    """

    kind: str
    total_bytes: int
    free_bytes: int
    sync_micros: int
    writable: bool


def disk_of(directory: Path) -> Disk:
    """The disk of a directory, which need not exist yet."""
    while not _can_be_seen(directory):
        directory = directory.parent
    usage = shutil.disk_usage(directory)
    return Disk(_kind(directory), usage.total, usage.free, _sync_micros(directory), os.access(directory, os.W_OK))


def _can_be_seen(directory: Path) -> bool:
    try:
        return directory.exists()
    except OSError:
        return False


def _kind(directory: Path) -> str:
    """The type of the mount with the longest path above the directory (Linux)."""
    mounts = Path("/proc/self/mountinfo")
    if not mounts.exists():
        return ""
    best, kind = "", ""
    target = str(directory.resolve())
    for line in mounts.read_text("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind


def _sync_micros(directory: Path) -> int:
    """The median time of writing and syncing a file without a name, so that the directory does not change."""
    flags = getattr(os, "O_TMPFILE", None)
    if flags is None:
        return 0
    try:
        probe = os.open(directory, flags | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError:
        return 0
    try:
        os.pwrite(probe, bytes(PROBE_BYTES), 0)
        os.fsync(probe)
        return round(statistics.median(_timed_sync(probe) for _ in range(SYNCS)) * 1e6)
    except OSError:
        return 0
    finally:
        os.close(probe)


def _timed_sync(probe: int) -> float:
    os.pwrite(probe, os.urandom(PROBE_BYTES), 0)
    begun = time.perf_counter()
    os.fdatasync(probe)
    return time.perf_counter() - begun


def open_files_limit() -> int:
    """How many files the process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
