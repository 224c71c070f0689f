"""A control group as the benchmark of a pod makes it, and what a server in it takes from its limit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.control_group import ControlGroup, NoControlGroups

LIMIT = 256 << 20
REMORA = Path(sys.executable).with_name("remora")
TAKE_TOO_MUCH = "bytearray(400 << 20)"


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    try:
        made = ControlGroup(f"remora-test-{os.getpid()}", memory_bytes=LIMIT, cores=0.5)
    except NoControlGroups as reason:
        pytest.skip(f"no control group can be made: {reason}")
    yield made
    made.remove()


def run_in(group: ControlGroup, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(group.entering(command), capture_output=True, text=True, check=False)


def test_the_limit_of_its_memory_is_what_a_server_fits_into(group: ControlGroup) -> None:
    inside = run_in(group, str(REMORA), "config", "--model", "none")
    told = run_in(group, str(REMORA), "config", "--model", "none", "--memory-limit", str(LIMIT))

    assert inside.returncode == 0, inside.stderr
    assert sizes(inside.stdout) == sizes(told.stdout)
    assert sizes(inside.stdout)["memory_limit"] == str(LIMIT)


def test_a_process_that_takes_more_memory_is_killed_and_counted(group: ControlGroup) -> None:
    before = group.killed()

    ended = run_in(group, sys.executable, "-c", TAKE_TOO_MUCH)

    assert (before, group.killed()) == (0, 1)
    assert ended.returncode == -9


def sizes(shown: str) -> dict[str, str]:
    """The bounds of memory, as `remora config` shows them."""
    lines = [line.split(": ") for line in shown.splitlines()]
    return {line[0]: line[1].split()[0] for line in lines if line[0].endswith(("_bytes", "memory_limit"))}
