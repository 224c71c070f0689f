"""A control group: memory and CPU that a process and its children may take, as a pod's limits are kept.

Version 2 has one folder for a group; version 1 has one for each controller. Making one takes root, or a group that was
delegated to the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
PERIOD_MICROS = 100_000
ENTER = 'for group in $REMORA_GROUPS; do echo $$ > "$group/cgroup.procs"; done; unset REMORA_GROUPS; exec "$@"'


class NoControlGroups(Exception):
    """No group can be made here; the message says why."""


class ControlGroup:
    """A group with limits, until it is removed."""

    def __init__(self, name: str, *, memory_bytes: int, cores: float) -> None:
        """Raises NoControlGroups."""
        quota = int(cores * PERIOD_MICROS)
        try:
            if (ROOT / "cgroup.controllers").exists():
                self._memory = self._cpu = _made(ROOT / name)
                self._limit("memory.max", memory_bytes, "cpu.max", f"{quota} {PERIOD_MICROS}")
                self._no_swap("memory.swap.max", 0)
            else:
                self._memory, self._cpu = (_made(_own(controller) / name) for controller in ("memory", "cpu"))
                self._limit("memory.limit_in_bytes", memory_bytes, "cpu.cfs_quota_us", quota)
                self._no_swap("memory.memsw.limit_in_bytes", memory_bytes)
        except OSError as error:
            raise NoControlGroups(f"{error.filename}: {error.strerror}") from error

    def entering(self, command: Sequence[str]) -> list[str]:
        """A command that enters the group and then becomes the given one."""
        folders = " ".join(map(str, self._folders))
        return ["env", f"REMORA_GROUPS={folders}", "sh", "-c", ENTER, "sh", *command]

    def killed(self) -> int:
        """How many processes of the group were killed for want of memory."""
        for name in ("memory.events", "memory.oom_control"):
            file = self._memory / name
            words = file.read_text().split() if file.exists() else []
            if "oom_kill" in words:
                return int(words[words.index("oom_kill") + 1])
        raise NoControlGroups(f"{self._memory} does not say whether anything was killed")

    def throttled(self) -> float:
        """The part of the periods in which the group wanted more CPU than it may have."""
        words = (self._cpu / "cpu.stat").read_text().split()
        stat = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        return stat["nr_throttled"] / max(1, stat["nr_periods"])

    def remove(self) -> None:
        """Its processes are gone."""
        for folder in self._folders:
            folder.rmdir()

    @property
    def _folders(self) -> list[Path]:
        return sorted({self._memory, self._cpu})

    def _limit(self, memory: str, memory_bytes: int, cpu: str, quota: int | str) -> None:
        (self._memory / memory).write_text(f"{memory_bytes}\n")
        (self._cpu / cpu).write_text(f"{quota}\n")

    def _no_swap(self, name: str, limit: int) -> None:
        """Pods have none. A kernel that counts none has no such file."""
        with suppress(OSError):
            (self._memory / name).write_text(f"{limit}\n")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _own(controller: str) -> Path:
    """The folder of this process's own group in version 1."""
    lines = (line.split(":", 2) for line in OWN.read_text().splitlines())
    paths = [path for _, controllers, path in lines if controller in controllers.split(",")]
    folder = ROOT / controller
    inner = folder / paths[0].lstrip("/") if paths else folder
    return inner if inner.is_dir() else folder
