"""Every failpoint is used by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remora_server import failpoints

ROOT = Path(__file__).resolve().parents[2]
ENGINE, JOURNAL = ROOT / "rust/supervision/src/failpoints.rs", ROOT / "rust/journal/src/failpoints.rs"
JOURNAL_TESTS = ROOT / "rust/journal/src/tests"


def texts(folder: Path, ending: str) -> list[str]:
    """The files that speak of failpoints."""
    found = (path.read_text("utf-8") for path in folder.rglob(f"*.{ending}") if path != Path(__file__))
    return [text for text in found if "failpoints" in text or "Point::" in text or "abort" in text]


def named(point: str) -> re.Pattern[str]:
    """Where a test gives a point's name: as a string, before an action, or as a keyword, with the journal's prefix."""
    return re.compile(rf"\b(journal_)?{point}[\"=]")


def declared(file: Path, pattern: str) -> dict[str, str]:
    """The points of a crate: their names for the variable, and in Rust."""
    return dict(re.findall(pattern, file.read_text("utf-8"), re.MULTILINE))


def points_of_engine() -> dict[str, str]:
    return declared(ENGINE, r'^    "(\w+)" (\w+): "')


def points_of_journal() -> dict[str, str]:
    return declared(JOURNAL, r'\("(\w+)", Self::(\w+)\)')


@pytest.mark.parametrize("owner", ["server", "engine", "journal"])
def test_every_failpoint_is_used_by_a_test(owner: str) -> None:
    names = {
        "server": dict.fromkeys(failpoints.POINTS, ""),
        "engine": points_of_engine(),
        "journal": points_of_journal(),
    }[owner]
    in_python, in_rust = texts(ROOT / "tests", "py"), texts(JOURNAL_TESTS, "rs") if owner == "journal" else []

    used = {
        name
        for name, in_code in names.items()
        if any(named(name).search(text) for text in in_python)
        or any(re.search(rf"\bPoint::{in_code}\b", text) for text in in_rust)
    }

    assert len(names) > 5
    assert set(names) - used == set()


def test_every_failpoint_of_the_engine_is_hit() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "rust").rglob("src/**/*.rs") if path != ENGINE]
    points = points_of_engine()

    assert len(points) > 20
    assert {one for one in points.values() if not any(f"hit(Point::{one})" in text for text in sources)} == set()
