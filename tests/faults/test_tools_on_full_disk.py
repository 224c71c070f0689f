"""Repair and restore onto a disk without room: nothing is half made, and it is done as soon as there is room."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.commands.terminal import done
from tests.faults.sidecar import Sidecar
from tests.faults.small_disk import SmallDisk
from tests.patience import PATIENCE

from remora import Message, Remora

SIZE = 160 << 20
"""Two segments of a journal, a database, and some more."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backup, and the data directory of a killed server."""
    directory = tmp_path_factory.mktemp("s")
    sidecar = Sidecar(directory, "--model=none", f"--segment-bytes={1 << 20}")
    sidecar.start()
    try:
        with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
            memory.conversation("c").append([Message("user", "word " * 1000)] * 100)
        done(sidecar.endpoint, "backup", directory / "backup", "--data", directory / "data")
    finally:
        sidecar.kill()
    return directory


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk", SIZE)
    yield disk
    disk.close()


def repair(sources: Path, target: Path) -> list[str]:
    return ["repair", f"--data={sources / 'data'}", f"--to={target}"]


def restore(sources: Path, target: Path) -> list[str]:
    return ["restore", str(sources / "backup"), f"--data={target}"]


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 8 << 10, 300 << 10, 5 << 20, 40 << 20])
@pytest.mark.parametrize("command", [repair, restore])
def test_what_finds_no_room_is_told_in_a_line_and_leaves_nothing(
    command: Callable[[Path, Path], list[str]], room: int, sources: Path, disk: SmallDisk, tmp_path: Path
) -> None:
    target = tmp_path / "disk" / "new"
    disk.fill(room)

    first = run(disk, command(sources, target))

    assert (first.returncode, first.stdout, first.stderr.count("\n")) == (1, "", 1), first.stderr
    assert "No space left on device" in first.stderr
    assert "make room" in first.stderr
    assert all(disk.size_of(f"new/{name}") == 0 for name in ("FORMAT", "FORMAT.unfinished", "remora.duckdb"))
    if room == 300 << 10:
        disk.clear()
        assert run(disk, command(sources, target)).returncode == 0
        assert disk.size_of("new/FORMAT") > 0


def run(disk: SmallDisk, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    program = [*disk.prefix, sys.executable, "-m", "remora_server.main"]
    return subprocess.run([*program, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)
