"""`remora repair`: copies what can be read of a damaged store into a new directory, and lists what is lost."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from remora._printable import printable
from remora_server.commands.failures import CommandFailed, of_system
from remora_server.commands.numbers import counted
from remora_server.commands.output import add_json_flag, output, write_json
from remora_server.commands.parsing import store_path
from remora_server.storage.database.directory import DirectoryError
from remora_server.storage.recovery.repair_report import RepairReport, Touched, saved_facts
from remora_server.storage.recovery.salvage import RepairError, repair


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--data", type=store_path, metavar="DIR", required=True, help="the damaged store, which is not changed"
    )
    parser.add_argument(
        "--to",
        type=store_path,
        metavar="NEWDIR",
        required=True,
        help="the directory to save into; it must be empty or not exist",
    )
    add_json_flag(parser)


def run(given: dict[str, Any]) -> None:
    """Repair, and say what is lost. Raises CommandFailed if nothing was saved."""
    if not given["data"].is_dir():
        raise CommandFailed(f"there is no store in {given['data']}")
    try:
        report = repair(given["data"], given["to"])
    except (RepairError, DirectoryError) as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        raise CommandFailed(of_system(error)) from error
    if given["json"]:
        write_json(saved_facts(report))
    else:
        _show(report)


def _show(report: RepairReport) -> None:
    console = output()
    held = ", ".join(f"{count:,} {table}" for table, count in report.rows.items())
    console.print(f"saved in {printable(str(report.target))}: {held}; the store is at revision {report.revision}")
    for line in _losses(report):
        console.print(line)
    for note in report.notes:
        console.print(f"note: {printable(note)}")
    if report.is_complete:
        console.print("nothing is lost")
    console.print(f"look at it with `remora doctor --data {printable(str(report.target))}`, then serve it")


def _losses(report: RepairReport) -> Iterator[str]:
    """What is lost, or not as it was: a line for each."""
    for first, last in report.lost_revisions:
        yield f"lost: revisions {first} to {last}"
    if report.lost_after is not None:
        lost = f"lost: what was written after revision {report.lost_after}, if anything"
        yield f"{lost}; how far the journal came is not known"
    for table, count in report.lost_rows.items():
        rows = counted(count, "row") if count else "all rows"
        yield f"not readable: {rows} of {table}; the journal may have brought some of that back"
    for column, count in report.filled.items():
        kept = f"{counted(count, 'row')}, kept with values that are derived or stand for unknown ones"
        yield f"not readable: {column} of {kept}"
    for what, count in report.removed.items():
        yield f"not kept: {counted(count, 'row')}: {what}"
    for made in report.rebuilt:
        yield f"made anew: {printable(made)}"
    for touched in report.conversations:
        place = f"{touched.conversation_id} of tenant {touched.tenant_id or '(none)'}"
        yield f"touched: {printable(place)}: {_change_of(touched)}"


def _change_of(touched: Touched) -> str:
    if not touched.lost_messages:
        return touched.note
    return f"{counted(touched.lost_messages, 'message is', 'messages are')} lost"
