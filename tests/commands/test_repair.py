"""What `remora repair` says of what it found, kept and lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora_server.commands import repair
from remora_server.storage.recovery.repair_report import RepairReport, Touched


def said(report: RepairReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    repair._show(report)
    return capsys.readouterr().out.splitlines()


def test_each_loss_and_each_change_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    report = RepairReport(
        Path("/old"),
        Path("/new"),
        revision=9,
        rows={"messages": 1200},
        lost_revisions=[(3, 4)],
        lost_after=9,
        lost_rows={"messages": 2048, "heads": 0},
        filled={"messages.create_time": 300},
        removed={"messages whose id a newer message has": 1},
        rebuilt=["the collection books of tenant acme: its dimension, 3, is taken from its vectors"],
        conversations=[Touched("acme", "c", 2), Touched("", "recovered-7", 0, "its own id is lost")],
        notes=["the journal is damaged"],
    )

    assert said(report, capsys) == [
        "saved in /new: 1,200 messages; the store is at revision 9",
        "lost: revisions 3 to 4",
        "lost: what was written after revision 9, if anything; how far the journal came is not known",
        "not readable: 2,048 rows of messages; the journal may have brought some of that back",
        "not readable: all rows of heads; the journal may have brought some of that back",
        "not readable: messages.create_time of 300 rows, kept with values that are derived or stand for unknown ones",
        "not kept: 1 row: messages whose id a newer message has",
        "made anew: the collection books of tenant acme: its dimension, 3, is taken from its vectors",
        "touched: c of tenant acme: 2 messages are lost",
        "touched: recovered-7 of tenant (none): its own id is lost",
        "note: the journal is damaged",
        "look at it with `remora doctor --data /new`, then serve it",
    ]


@pytest.mark.parametrize(
    "change",
    [{"filled": {"messages.role": 1}}, {"removed": {"messages": 1}}, {"rebuilt": ["a collection"]}],
)
def test_a_store_that_is_not_as_it_was_is_not_called_whole(
    change: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = RepairReport(Path("/old"), Path("/new"))
    changed = RepairReport(Path("/old"), Path("/new"), **change)  # type: ignore[arg-type]

    assert "nothing is lost" in said(whole, capsys)
    assert "nothing is lost" not in said(changed, capsys)
