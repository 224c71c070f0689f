"""ARCHITECTURE.md says which files a new kind needs: the newest one is in all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remora_server.storage.schema.kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "remora_server"
ROW = re.compile(r"^\| (?P<when>[^|]+) \| (?P<count>\d+) \| (?P<files>.+) \|$", re.MULTILINE)
FILE = re.compile(r"`([\w/]+\.(?:py|md))`")
OF_NOUNS = {"its noun is new", "it has new RPCs"}
"""Where the kind's noun is named, which may have other kinds."""


def rows() -> dict[str, tuple[int, list[str]]]:
    """When, how many files, and which."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = text.partition("## To add a kind")[2].partition("\n## ")[0]
    return {found["when"]: (int(found["count"]), FILE.findall(found["files"])) for found in ROW.finditer(section)}


def newest() -> str:
    """The name of the newest kind that callers write."""
    return max((kind for kind in KINDS if not kind.by_server), key=lambda kind: kind.number).name


def noun_of(kind: str) -> str:
    """The file of the noun that names a kind."""
    names = re.compile(rf"\b{kind.upper()}\b")
    (noun,) = [file.stem for file in (SERVER / "storage/nouns").glob("*.py") if names.search(file.read_text("utf-8"))]
    return noun


def is_named(name: str, file: str) -> bool:
    """Whether a file has a name, whatever its case, its underscores and its number."""
    path = next(path for path in (SERVER / file, ROOT / file) if path.exists())
    return name.replace("_", "").removesuffix("s") in path.read_text("utf-8").replace("_", "").lower()


def test_each_row_has_as_many_files_as_it_says() -> None:
    assert rows().keys() > OF_NOUNS
    assert [(when, count) for when, (count, files) in rows().items() if count != len(files)] == []


@pytest.mark.parametrize("when", rows())
def test_the_newest_kind_is_in_every_file_that_a_kind_needs(when: str) -> None:
    kind = newest()
    noun = noun_of(kind)
    files = [file.replace("/x.py", f"/{noun}.py") for file in rows()[when][1]]

    assert [file for file in files if not is_named(noun if when in OF_NOUNS else kind, file)] == []
