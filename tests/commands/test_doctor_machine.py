"""`remora doctor` on what the machine gives: room and syncs of the disk, open files, memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.commands.another_user import open_to_all, remora_of_another
from tests.faults.small_disk import SmallDisk

from remora_server.commands import doctor as command
from remora_server.commands import machine
from remora_server.commands.machine import Disk
from remora_server.main import main
from remora_server.settings.memory import memory_bytes

FIXED = ["doctor", "--json", "--model=none", "--listen=unix:/nowhere/socket"]
SEGMENT = 1 << 20
AMPLE = Disk("ext4", total_bytes=1 << 40, free_bytes=1 << 39, sync_micros=500, writable=True)


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and what it says for scripts."""
    capsys.readouterr()
    code = main([*FIXED, *arguments])
    return code, json.loads(capsys.readouterr().out)


def process(*arguments: str, behind: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
    """Likewise of a process of its own, which is started behind a command."""
    program = [*behind, sys.executable, "-m", "remora_server.main", *FIXED, *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def whats(said: dict[str, Any], kind: str, part: str) -> list[str]:
    """What the findings or the notes say of a part."""
    assert all(one["remedy"] for one in said[kind])
    return [one["what"] for one in said[kind] if one["part"] == part]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk", 16 * SEGMENT)
    yield disk
    disk.close()


@pytest.mark.slow
def test_a_disk_with_room_for_less_than_two_segments_is_found(disk: SmallDisk, tmp_path: Path) -> None:
    arguments = (f"--data={tmp_path / 'disk' / 'data'}", f"--segment-bytes={SEGMENT}")
    disk.fill(2 * SEGMENT)
    ample = process(*arguments, behind=disk.prefix)
    disk.fill(2 * SEGMENT - 8192)

    code, said = process(*arguments, behind=disk.prefix)

    assert (ample[0], ample[1]["findings"]) == (0, [])
    assert (code, said["healthy"]) == (1, False)
    assert whats(said, "findings", "disk") == ["1 MiB are free: writes are refused soon"]
    assert said["disk"]["free_bytes"] == disk.free()
    assert whats(said, "notes", "disk") == [f"{tmp_path / 'disk' / 'data'} is in memory (tmpfs)"]


@pytest.mark.parametrize(("millis", "noted"), [(0, []), (25, ["a sync takes"])])
def test_a_disk_that_syncs_slowly_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, millis: int, noted: list[str]
) -> None:
    monkeypatch.setattr(os, "fdatasync", lambda _: time.sleep(millis / 1000))
    if machine.disk_of(tmp_path).sync_micros == 0:
        pytest.skip("the file system of the tests has no files without a name, by which syncs are timed")

    code, said = doctor(capsys, f"--data={tmp_path}")

    assert code == 0, "it is slow, and works"
    told = [what for what in whats(said, "notes", "disk") if "in memory" not in what]
    assert [what[: len("a sync takes")] for what in told] == noted
    assert said["disk"]["sync_micros"] >= millis * 1000


def test_a_sync_is_slow_beyond_twenty_milliseconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for micros in (20_000, 20_001, 47_000):
        disk = replace(AMPLE, sync_micros=micros)
        monkeypatch.setattr(command, "disk_of", lambda _, disk=disk: disk)
        told += whats(doctor(capsys, f"--data={tmp_path}")[1], "notes", "disk")

    assert told == ["a sync takes 20 ms, and so does a write", "a sync takes 47 ms, and so does a write"]


@pytest.mark.slow
def test_a_directory_that_cannot_be_written_is_found() -> None:
    """Whoever looks can read it, and would not be able to serve it."""
    with open_to_all() as folder:
        data = folder / "data"
        data.mkdir(mode=0o755 if os.getuid() == 0 else 0o555)
        for directory in (data, data / "new"):
            done = remora_of_another(*FIXED, f"--data={directory}")

            assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
            found = json.loads(done.stdout)["findings"]
            assert [one["what"] for one in found] == [f"{directory} cannot be written"]


@pytest.mark.slow
@pytest.mark.parametrize(("files", "found"), [(1024, []), (1023, ["the process may open 1023 files only"])])
def test_too_few_open_files_are_found(files: int, found: list[str], tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= files

    code, said = process(f"--data={tmp_path / 'none'}", behind=("sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"))

    assert code == len(found)
    assert said["limits"]["open_files"] == files
    assert whats(said, "findings", "limits") == found
    assert all("ulimit -n 1024" in one["remedy"] for one in said["findings"])


def test_settings_that_allow_more_memory_than_there_is_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("window", "record", "vector", "recall", "search", "queue", "database")
    sizes = [f"--{name}-bytes={64 << 20}" for name in names]
    monkeypatch.setattr(command, "memory_bytes", lambda: 384 << 20)
    enough = doctor(capsys, f"--data={tmp_path}", *sizes)

    monkeypatch.setattr(command, "memory_bytes", lambda: 383 << 20)
    code, said = doctor(capsys, f"--data={tmp_path}", *sizes)

    assert (enough[0], enough[1]["findings"]) == (0, [])
    assert (enough[1]["limits"]["memory_set_bytes"], enough[1]["limits"]["memory_bytes"]) == (384 << 20, 384 << 20)
    assert code == 1
    assert whats(said, "findings", "settings") == ["the settings allow 384 MiB of memory, and there are 383"]


def test_settings_are_compared_with_the_limit_that_is_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = doctor(capsys, f"--data={tmp_path}", "--model=none", "--memory-limit=200MiB")

    assert (code, said["limits"]["memory_bytes"]) == (0, 200 << 20)
    assert 58 << 20 <= said["limits"]["memory_set_bytes"] <= (200 - 96) << 20


def test_the_memory_of_the_machine_is_what_the_kernel_tells() -> None:
    told = Path("/proc/meminfo")
    if not told.exists():
        pytest.skip("the kernel has no /proc")
    machine_bytes = int(told.read_text().split()[1]) << 10

    assert 0 < memory_bytes() <= machine_bytes
