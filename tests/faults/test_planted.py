"""The check of kills finds what it is for: it is run against servers with a fault planted in each.

How a fault shows depends on what is under way when it comes: in the replies of later writes, after a kill, in the
database. It has to show somewhere, and nothing may where none is planted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.kill_checks import Faults
from tests.faults.kills import SERVE, KillRun
from tests.faults.planted import FAULTS

pytestmark = pytest.mark.slow

WRITERS, ROUNDS, ANSWERS = 3, 10, 100
MOST_ROUNDS = 50
"""Until a fault is found. What is lost of a kind shows by chance: the next version of a record hides it."""
ARGUMENTS = (*SERVE, "--transport", "grpcio")
"""The native transport waits for the disk itself; what is planted waits in the handlers."""
IN_USUAL_TESTS = {"acknowledge_before_it_is_written", "write_in_halves", "forget_applied_revision"}


def planted() -> list[object]:
    assert FAULTS.keys() > IN_USUAL_TESTS
    return [pytest.param(name, marks=[] if name in IN_USUAL_TESTS else pytest.mark.faults) for name in FAULTS]


def fill_again_and_again(run: KillRun, rounds: int) -> None:
    for _ in range(rounds):
        run.fill(ANSWERS)


@pytest.mark.parametrize("fault", planted())
def test_a_planted_fault_is_found(tmp_path: Path, fault: str) -> None:
    run = KillRun(tmp_path, fault, changes=[fault], writers=WRITERS, arguments=ARGUMENTS)

    with run.open(), pytest.raises(Faults) as raised:
        fill_again_and_again(run, MOST_ROUNDS)

    assert raised.value.found


@pytest.mark.faults
def test_without_a_fault_nothing_is_found(tmp_path: Path) -> None:
    run = KillRun(tmp_path, "none", writers=WRITERS, arguments=ARGUMENTS)

    with run.open():
        fill_again_and_again(run, ROUNDS)

    assert run.acknowledged > 0
