"""A small file system, a tmpfs in a mount namespace of its own: a disk that can be filled without any privilege."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

BLOCK = 4096


class SmallDisk:
    """A file system of so many bytes on `directory`, seen by processes that are started behind `prefix`."""

    def __init__(self, directory: Path, size: int) -> None:
        """Mount it. Skips the test where the kernel does not let ordinary users have mounts of their own."""
        directory.mkdir()
        mount = f'mount -t tmpfs -o size={size} remora "$0" && echo mounted && exec sleep infinity'
        self._holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            reason = self._holder.communicate()[1].decode().strip()
            pytest.skip(f"no file system can be mounted in a namespace of one's own here: {reason}")
        self._seen = Path(f"/proc/{self._holder.pid}/root{directory}")
        self._ballast = self._seen / "ballast"
        self.prefix = (
            "nsenter",
            f"--target={self._holder.pid}",
            "--user",
            "--mount",
            "--preserve-credentials",
            f"--wd={Path.cwd()}",
        )

    def free(self) -> int:
        """The bytes left."""
        system = os.statvfs(self._seen)
        return system.f_bavail * system.f_frsize

    def size_of(self, name: str) -> int:
        """The length of a file, 0 where it is not there."""
        file = self._seen / name
        return file.stat().st_size if file.exists() else 0

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
