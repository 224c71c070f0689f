"""Damage to a killed server's files: a start makes it good or refuses, the doctor finds it, repair saves the rest."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.faults.damaged_stores import (
    ARGUMENTS,
    CASES,
    CONVERSATIONS,
    DATABASE,
    FIRST,
    JOURNAL_LOST,
    WAL,
    Case,
    Order,
    Texts,
    Written,
    digest,
    flip,
    held,
    segments,
    truncate,
    write_other,
    write_released,
    write_unapplied,
    write_whole,
)
from tests.faults.sidecar import Sidecar

from remora_server.main import main
from remora_server.storage.recovery.inspection import inspect_store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    other = write_other(tmp_path_factory.mktemp("o"))
    return {
        "whole": write_whole(tmp_path_factory.mktemp("w"), other),
        "released": write_released(tmp_path_factory.mktemp("r"), other),
        "unapplied": write_unapplied(tmp_path_factory.mktemp("u"), other),
    }


@pytest.fixture
def damaged(case: Case, stores: dict[str, Written], directory: Path) -> Path:
    data = stores[case.store].copy(directory)
    case.damage(data, stores[case.store])
    return data


@pytest.fixture
def sidecar(directory: Path) -> Iterator[Sidecar]:
    server = Sidecar(directory, *ARGUMENTS)
    yield server
    if server.is_launched:
        server.kill()


def each_case(*, becomes: str = "") -> pytest.MarkDecorator:
    chosen = [case for case in CASES if case.becomes.startswith(becomes)]
    assert chosen
    return pytest.mark.parametrize("case", chosen, ids=lambda case: f"{case.store}: {case.name}")


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code of a command and the object that it writes."""
    capsys.readouterr()
    code = main([*arguments, "--json"])
    shown = capsys.readouterr()
    return code, json.loads(shown.out) if shown.out else {"error": shown.err}


def doctor(capsys: pytest.CaptureFixture[str], data: Path) -> tuple[int, dict[str, Any]]:
    return command(capsys, "doctor", "--model=none", f"--data={data}", "--listen=unix:/tmp/none")


@pytest.mark.parametrize("store", ["whole", "released"])
def test_the_doctor_is_content_with_a_killed_store(
    stores: dict[str, Written], store: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = stores[store].copy(directory)
    before = digest(data)

    code, report = doctor(capsys, data)

    assert (code, report["findings"]) == (0, [])
    assert report["store"]["database"]["rows"]["messages"] == sum(map(len, stores[store].texts.values()))
    assert report["store"]["journal"]["records"] > 0
    assert digest(data) == before


@each_case()
def test_the_doctor_finds_the_damage_and_changes_nothing(
    case: Case, damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digest(damaged)

    code, report = doctor(capsys, damaged)

    assert code == 1
    found = "\n".join(f"{finding['part']}: {finding['what']}" for finding in report["findings"])
    assert re.search(case.finding, found), found
    assert all(finding["remedy"] for finding in report["findings"])
    is_mended = all("the next start" in finding["remedy"] for finding in report["findings"])
    assert is_mended == (case.becomes == "mended"), found
    assert digest(damaged) == before


@each_case(becomes="mended")
def test_what_the_journal_holds_is_made_good_and_said(
    case: Case, damaged: Path, stores: dict[str, Written], sidecar: Sidecar, capsys: pytest.CaptureFixture[str]
) -> None:
    sidecar.start()

    assert held(sidecar) == stores[case.store].texts
    assert re.search(" warning .*(the journal makes it good|rebuilt from the journal)", sidecar.log.read_text())
    assert sidecar.stop() == 0
    assert doctor(capsys, damaged)[0] == 0


@each_case(becomes="refused")
def test_what_the_journal_does_not_hold_is_refused_with_what_to_do(case: Case, damaged: Path, sidecar: Sidecar) -> None:
    before = data_files(damaged)
    sidecar.launch()

    assert sidecar.wait() == 1
    said = sidecar.log.read_text()
    assert "backup" in said or f"remora repair --data {damaged}" in said
    assert said.count("Traceback") == 0
    assert data_files(damaged) == before, "nothing is moved"


@each_case(becomes="refused")
def test_repair_saves_the_rest_into_a_new_directory_and_lists_what_is_lost(
    case: Case,
    damaged: Path,
    stores: dict[str, Written],
    sidecar: Sidecar,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, target = digest(damaged), damaged.with_name("new")

    code, report = command(capsys, "repair", f"--data={damaged}", f"--to={target}")

    assert digest(damaged) == before
    if case.name == "all missing":
        assert code == 1
        assert "restore a backup" in report["error"]
        assert not target.exists()
        return
    assert code == 0, report
    assert doctor(capsys, target)[1]["findings"] == []
    damaged.rename(damaged.with_name("old"))
    target.rename(damaged)
    sidecar.start()
    saved, texts = held(sidecar), stores[case.store].texts
    for name, kept in saved.items():
        assert is_subsequence(kept, texts[name]), name
    is_all = saved == texts
    is_listed = report["lost_revisions"] or report["lost_rows"] or report["lost_after"] is not None
    assert report["complete"] or not is_all or is_listed
    if not is_all:
        assert not report["complete"]
        assert is_listed or report["conversations"]


@pytest.mark.parametrize("damage", JOURNAL_LOST.values(), ids=JOURNAL_LOST)
def test_what_a_lost_journal_alone_held_is_never_said_to_be_saved(
    damage: Callable[[Path, Written], None],
    stores: dict[str, Written],
    directory: Path,
    sidecar: Sidecar,
    capsys: pytest.CaptureFixture[str],
) -> None:
    written, data = stores["unapplied"], stores["unapplied"].copy(directory)
    applied = inspect_store(data).database.applied_revision
    assert 0 < applied < len(written.order)
    damage(data, written)

    code, report = command(capsys, "repair", f"--data={data}", f"--to={directory / 'new'}")

    assert (code, report["complete"]) == (0, False)
    assert (report["revision"], report["lost_revisions"], report["lost_after"]) == (applied, [], applied)
    said = repair_for_people(capsys, data, directory / "again")
    assert f"lost: what was written after revision {applied}, if anything" in said
    assert "nothing is lost" not in said
    data.rename(directory / "old")
    (directory / "new").rename(data)
    sidecar.start()
    assert held(sidecar) == texts_of(written.order[:applied])


def test_the_records_of_a_lost_journal_with_its_note_are_listed_exactly(
    stores: dict[str, Written], directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written, data = stores["unapplied"], stores["unapplied"].copy(directory)
    applied, newest = inspect_store(data).database.applied_revision, len(written.order)
    for segment in segments(data):
        segment.unlink()

    code, report = command(capsys, "repair", f"--data={data}", f"--to={directory / 'new'}")

    assert (code, report["complete"], report["revision"]) == (0, False, newest)
    assert (report["lost_revisions"], report["lost_after"]) == ([[applied + 1, newest]], None)
    assert report["notes"] == [f"journal: the journal ends at revision 0, but revision {applied} was applied"]
    said = repair_for_people(capsys, data, directory / "again")
    assert f"lost: revisions {applied + 1} to {newest}\n" in said
    assert "nothing is lost" not in said


@pytest.mark.parametrize(
    "damage", [Path.unlink, partial(flip, at=20), partial(truncate, length=0)], ids=["missing", "flipped", "empty"]
)
def test_without_the_journals_note_nobody_knows_that_nothing_is_lost(
    damage: Callable[[Path], None], stores: dict[str, Written], directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written, data = stores["unapplied"], stores["unapplied"].copy(directory)
    damage(data / "journal" / "reach")

    code, report = command(capsys, "repair", f"--data={data}", f"--to={directory / 'new'}")

    assert (code, report["complete"], report["lost_after"]) == (0, False, len(written.order))
    assert (report["rows"]["messages"], report["lost_revisions"]) == (len(written.order), [])
    assert ["the note of how far it came" in note for note in report["notes"]] == [True]


@pytest.mark.parametrize("store", ["whole", "released", "unapplied"])
def test_of_a_store_that_was_only_killed_nothing_is_lost(
    store: str, stores: dict[str, Written], directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = stores[store].copy(directory)

    code, report = command(capsys, "repair", f"--data={data}", f"--to={directory / 'new'}")

    assert (code, report["complete"], report["notes"]) == (0, True, [])
    assert (report["lost_after"], report["rows"]["messages"]) == (None, len(stores[store].order))
    assert "nothing is lost" in repair_for_people(capsys, data, directory / "again")


def test_repair_saves_what_is_before_and_behind_each_gap_and_lists_exactly_the_rest(
    stores: dict[str, Written], directory: Path, sidecar: Sidecar, capsys: pytest.CaptureFixture[str]
) -> None:
    """An old copy of the database, a journal that begins later, and in its midst a segment that is gone."""
    written, data, target = stores["released"], stores["released"].copy(directory), directory / "new"
    (data / WAL).unlink()
    shutil.copy(written.copies["first"], data / DATABASE)
    begin, gap, behind = [int(file.stem) for file in segments(data)[:3]]
    segments(data)[1].unlink()
    copied, newest = FIRST * CONVERSATIONS, len(written.order)
    saved = [*range(1, copied + 1), *range(begin, gap), *range(behind, newest + 1)]

    _, report = command(capsys, "repair", f"--data={data}", f"--to={target}")

    assert report["revision"] == newest
    assert report["lost_revisions"] == [[copied + 1, begin - 1], [gap, behind - 1]]
    left = [written.order[revision - 1] for revision in saved]
    lost = Counter(name for name, _ in written.order) - Counter(name for name, _ in left)
    touched = {one["conversation_id"]: one["lost_messages"] for one in report["conversations"]}
    assert touched == lost
    data.rename(directory / "old")
    target.rename(data)
    sidecar.start()
    assert held(sidecar) == texts_of(left)


def repair_for_people(capsys: pytest.CaptureFixture[str], data: Path, target: Path) -> str:
    """What repair shows without `--json`."""
    capsys.readouterr()
    assert main(["repair", f"--data={data}", f"--to={target}"]) == 0
    return capsys.readouterr().out


def texts_of(order: Order) -> Texts:
    """The texts by conversation."""
    texts = Texts()
    for name, text in order:
        texts.setdefault(name, []).append(text)
    return texts


def data_files(data: Path) -> set[str]:
    """The names of the files that hold the store's data."""
    return {str(file.relative_to(data)) for pattern in ("*.duckdb*", "*.journal*") for file in data.rglob(pattern)}


def is_subsequence(kept: list[str], texts: list[str]) -> bool:
    rest = iter(texts)
    return all(text in rest for text in kept)
