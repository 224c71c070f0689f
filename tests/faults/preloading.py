"""Libraries in front of the system's, which make the calls of a server fail or lie while a file says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SHIMS = Path(__file__).with_name("shims")


def built(name: str, directory: Path) -> Path:
    """A library of `shims`, compiled: by the compiler that Rust links with, so that who has built the server has it."""
    if sys.platform != "linux":
        pytest.skip("calls are made to fail by what Linux preloads")
    compiler = shutil.which("cc")
    assert compiler, "there is no C compiler"
    library = directory / f"{name}.so"
    source = SHIMS / f"{name}.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library


class RefusedIo:
    """Makes writes or syncs of some files fail with EIO."""

    def __init__(self, directory: Path) -> None:
        self._library = built("refused_io", directory)
        self._control = directory / "refused"
        self._hits = directory / "refused.hits"

    @property
    def variables(self) -> dict[str, str]:
        """What a process is started with."""
        return {"LD_PRELOAD": str(self._library), "SHIM_REFUSED": str(self._control)}

    def begin(self, kind: str, suffix: str) -> None:
        """From now on every `write` or `sync` of files whose path ends like this fails."""
        fresh = self._control.with_suffix(".new")
        fresh.write_text(f"{kind} {suffix}\n")
        fresh.rename(self._control)

    def end(self) -> None:
        """Nothing fails any more."""
        self._control.unlink()

    def hits(self) -> list[str]:
        """The calls that were made to fail: kind and path of each."""
        return self._hits.read_text().splitlines() if self._hits.exists() else []


class SetClock:
    """Sets the wall clock of a process; its monotonic clock goes on."""

    def __init__(self, directory: Path) -> None:
        self._library = built("set_clock", directory)
        self._control = directory / "clock"
        self.set(0)

    @property
    def variables(self) -> dict[str, str]:
        """What a process is started with."""
        return {"LD_PRELOAD": str(self._library), "SHIM_CLOCK": str(self._control)}

    def set(self, seconds: int) -> None:
        """By how much its wall clock differs from the machine's."""
        fresh = self._control.with_suffix(".new")
        fresh.write_text(f"{seconds}\n")
        fresh.rename(self._control)
