"""A small file system, a tmpfs in a mount namespace of its own: a disk that can be filled without any privilege."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

BLOCK = 4096
CAP_SYS_ADMIN = 1 << 21
"""The right to mount (linux/capability.h)."""


def may_mount() -> bool:
    """Whether this process may mount file systems: root may, unless its container keeps it from that."""
    if sys.platform != "linux":
        return False
    held = re.search(r"^CapEff:\s+(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return held is not None and bool(int(held[1], 16) & CAP_SYS_ADMIN)


def not_mounted(reason: bytes) -> NoReturn:
    """End a test that needs a mount: it fails for who may mount, and is skipped for others."""
    told = f"no file system can be mounted here: {reason.decode().strip()}"
    if may_mount():
        pytest.fail(told)
    pytest.skip(told)


class SmallDisk:
    """A file system of so many bytes on `directory`, seen by processes that are started behind `prefix`."""

    def __init__(self, directory: Path, size: int) -> None:
        """Mount it. Who may not needs a namespace of users, too, which not every kernel gives to everybody."""
        if sys.platform != "linux":
            pytest.skip("namespaces that have mounts of their own are Linux's")
        directory.mkdir()
        own = ["--mount"] if may_mount() else ["--mount", "--user"]
        map_user = ["--map-root-user"] if "--user" in own else []
        mount = f'mount -t tmpfs -o size={size} remora "$0" && echo mounted && exec sleep infinity'
        self._holder = subprocess.Popen(
            ["unshare", *own, *map_user, "sh", "-c", mount, str(directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            not_mounted(self._holder.communicate()[1])
        self._seen = Path(f"/proc/{self._holder.pid}/root{directory}")
        self._ballast = self._seen / "ballast"
        self.prefix = ("nsenter", f"--target={self._holder.pid}", *own, "--preserve-credentials", f"--wd={Path.cwd()}")

    def free(self) -> int:
        """The bytes left."""
        system = os.statvfs(self._seen)
        return system.f_bavail * system.f_frsize

    def size_of(self, name: str) -> int:
        """The length of a file, 0 where it is not there."""
        file = self._seen / name
        return file.stat().st_size if file.exists() else 0

    def remove(self, name: str) -> None:
        """Delete a file, where it is there."""
        (self._seen / name).unlink(missing_ok=True)

    def fill(self, leave: int = 0) -> None:
        """Write until just so many bytes are left, or less than a block."""
        with self._ballast.open("ab") as ballast:
            while (size := (self.free() - leave) // BLOCK * BLOCK) > 0:
                # Others write at the same time, so that there may be less by now.
                with suppress(OSError):
                    os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), size)
        assert self.free() < leave + BLOCK, "the disk is not full"

    def clear(self) -> None:
        """Give back what `fill` took."""
        self._ballast.unlink()

    def close(self) -> None:
        """Unmount it: nothing uses it any more."""
        self._holder.kill()
        self._holder.communicate()
