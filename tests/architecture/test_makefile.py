"""What the Makefile refuses before it builds anything, and how parts that fail are told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks import run

ROOT = Path(__file__).resolve().parents[2]


def ended(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """How a command ended that is not given what the make above these tests, if any, was."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(command, cwd=ROOT, env=kept | variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bench", "W=typo"], f"W=typo: it must be one of: {' '.join(run.WORKLOADS)}."),
        (["bench", "SECONDS=soon"], "SECONDS=soon: it must be a number."),
        (["bench", "OUT=/nowhere/figures.json"], "there is no folder /nowhere/"),
        (["fuzz", "T=typo"], "T=typo: it must be one of: journal records requests tokens."),
        (["fuzz", "SECONDS=1.5"], "SECONDS=1.5: it must be a whole number."),
        (["faults", "KILLS=x"], "KILLS=x: it must be a whole number."),
        (["faults", "SEED=x"], "SEED=x: it must be a whole number."),
    ],
)
def test_a_wrong_parameter_is_refused_before_anything_is_built(arguments: list[str], said: str) -> None:
    done = ended("make", "--dry-run", *arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["test"], ["bench"], *(["bench", f"W={name}", "SECONDS=1.5"] for name in run.WORKLOADS), ["faults", "KILLS=20"]],
)
def test_what_may_be_given_is_taken(arguments: list[str]) -> None:
    assert ended("make", "--dry-run", *arguments).returncode == 0


@pytest.mark.parametrize("temporary", ["t", "a folder with blanks"])
def test_every_part_runs_and_those_that_failed_stand_last_with_their_names(temporary: str, tmp_path: Path) -> None:
    parts = ["one", "echo 1; exit 3", "two", "echo 2", "three", 'echo "    a::b" >"$NAMES"; exit 1']
    (tmp_path / temporary).mkdir()

    done = ended("tools/run_parts.sh", *parts, TMPDIR=str(tmp_path / temporary))

    assert done.returncode == 1
    said = re.sub(r"in \d+ s", "in 0 s", done.stdout)
    assert said == "1\n2\n\nFAILED  one, in 0 s\npassed  two, in 0 s\nFAILED  three, in 0 s\n    a::b\n"


def test_parts_that_run_together_name_their_lines(tmp_path: Path) -> None:
    # Each waits for what the other does: neither would end alone.
    met = f'touch "{tmp_path}/$0"; while [ ! -e "{tmp_path}/$1" ]; do sleep 0.01; done; echo $0'
    parts = ["one", f"bash -c '{met}' a b", "two", f"bash -c '{met}' b a; exit 3"]

    done = ended("tools/run_parts.sh", "--together", *parts)

    assert done.returncode == 1
    *lines, blank, first, second = re.sub(r"in \d+ s", "in 0 s", done.stdout).splitlines()
    assert sorted(lines) == ["one: a", "two: b"]
    assert [blank, first, second] == ["", "passed  one, in 0 s", "FAILED  two, in 0 s"]


def test_an_interrupt_ends_parts_that_run_together(tmp_path: Path) -> None:
    waiting = 'trap "echo ended; exit 1" INT; touch "$0"; while :; do sleep 0.01; done'
    parts = [part for name in ("one", "two") for part in (name, f"bash -c '{waiting}' '{tmp_path}/{name}'")]
    command = ["tools/run_parts.sh", "--together", *parts]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        while len(list(tmp_path.iterdir())) < 2:
            assert running.poll() is None
            time.sleep(0.01)

        os.killpg(running.pid, signal.SIGINT)
        said, _ = running.communicate()

    assert running.returncode == 130
    assert sorted(said.splitlines()) == ["one: ended", "two: ended"]


def test_the_names_of_rusts_tests_that_failed_are_kept(tmp_path: Path) -> None:
    cargo = tmp_path / "cargo"
    failures = "failures:\n\n---- a::b stdout ----\n    left: 1\n\nfailures:\n    a::b\n    src/c.rs - c (line 3)\n\n"
    output = f"{failures}test result: FAILED. 5 passed; 2 failed\n\nrunning 1 test\n.\ntest result: ok. 1 passed\n"
    cargo.write_text(f"#!/bin/sh\ncat <<'END'\n{output}END\nexit 101\n")
    cargo.chmod(0o755)

    done = ended("tools/test_rust.sh", CARGO=str(cargo), NAMES=str(tmp_path / "names"))

    assert done.returncode == 1
    assert done.stdout == output
    assert (tmp_path / "names").read_text() == "    a::b\n    src/c.rs - c (line 3)\n"


FAILING = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_some_fail(number):
    assert number == 0

@pytest.fixture
def broken():
    raise OSError

def test_an_error(broken):
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_the_names_of_pythons_tests_that_failed_are_kept(tmp_path: Path, workers: int) -> None:
    (tmp_path / "test_a.py").write_text(FAILING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    names = tmp_path / "names"

    done = ended(
        sys.executable,
        *("-m", "pytest", "-n", str(workers), "-p", "tests.failed_names", "-p", "no:langsmith_plugin"),
        *("-c", str(tmp_path / "pytest.ini"), str(tmp_path)),
        NAMES=str(names),
    )

    assert done.returncode == 1, done.stdout
    failed = ["test_a.py::test_an_error", "test_a.py::test_some_fail[1]", "test_a.py::test_some_fail[2]"]
    assert sorted(names.read_text().split()) == failed
