"""The check of kills finds what it is for: it is run against servers with a fault planted in each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.faults.kill_checks import Faults
from tests.faults.kills import SERVE, KillRun
from tests.faults.planted import FAULTS

WRITERS = 3
ROUNDS, ANSWERS = 10, 100
IN_USUAL_TESTS = {"acknowledge_before_it_is_written", "write_in_halves", "forget_applied_revision"}

REPORTS = {
    "acknowledge_before_it_is_written": "the store is at revision|is refused with NOT_FOUND",
    "write_in_halves": "neither without an unanswered (AppendMessages|EditMessages|ImportRecords)",
    "lose_records": r"the database has|^user-\d: (conversation|messages|steps|working|neither)",
    "reorder_messages": "messages of .* is .*, not ",
    "miscount_messages": "head counts other messages|message_count is",
    "lose_vectors": "a search finds",
    "lose_working_memory": "working memories|WorkingMemory",
    "apply_twice": "messages with another's place",
    "forget_applied_revision": "rows of revisions that were not applied|with another's place",
    "forget_requests": "its repeat|refused",
}
"""What the check says of each."""


def planted() -> list[object]:
    return [pytest.param(name, marks=[] if name in IN_USUAL_TESTS else pytest.mark.faults) for name in FAULTS]


def test_every_fault_has_its_report() -> None:
    assert FAULTS
    assert FAULTS.keys() == REPORTS.keys()
    assert FAULTS.keys() > IN_USUAL_TESTS


def fill_again_and_again(run: KillRun) -> None:
    for _ in range(ROUNDS):
        run.fill(ANSWERS)


@pytest.mark.parametrize("fault", planted())
def test_a_planted_fault_is_found(tmp_path: Path, fault: str) -> None:
    # The native transport waits for the disk itself; what is planted waits in the handlers.
    arguments = (*SERVE, "--transport", "grpcio")
    run = KillRun(tmp_path, fault, changes=[fault], writers=WRITERS, arguments=arguments)

    with run.open(), pytest.raises(Faults) as raised:
        fill_again_and_again(run)

    assert any(re.search(REPORTS[fault], text, re.DOTALL) for text in raised.value.found), raised.value
