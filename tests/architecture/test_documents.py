"""The files and folders that documents name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from benchmarks.run import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/benchmarks.md",
    "docs/format.md",
    *sorted(f"docs/design/{path.name}" for path in (ROOT / "docs" / "design").glob("*.md")),
    "tests/storage/formats/README.md",
]
NAME = re.compile(r"`([\w.*/-]+(?:\.(?:py|rs|proto|md|sh|json|toml|yaml|sql|importlinter)|/))`")
"""A file by its ending, a folder by its slash."""
LINK = re.compile(r"\]\(([\w./-]+)(?:#[\w-]+)?\)")
"""What a link within the repository leads to."""
TEST = re.compile(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`")
"""A test, and the file that stands before it."""
NOT_THERE = re.compile(r"(^|/)x(_service)?\.|^(\.look-|damaged/|journal/)")
"""Names that stand for any other, and those of a data directory."""


def there() -> Iterator[str]:
    """Every path of the repository."""
    for top in ROOT.iterdir():
        if top.name in {".git", ".venv", ".cache", "node_modules", "target"}:
            continue
        for path in [top, *(top.rglob("*") if top.is_dir() else ())]:
            yield f"/{path.relative_to(ROOT)}"


PATHS = list(there())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_document_names_is_there(document: str) -> None:
    text = (ROOT / document).read_text("utf-8")
    names = {name for name in NAME.findall(text) if not NOT_THERE.search(name)}

    missing = [name for name in names if not any(fnmatchcase(path, f"*/{name.rstrip('/')}") for path in PATHS)]
    assert names or LINK.findall(text)
    assert missing == []


def test_links_lead_to_files() -> None:
    documents = [ROOT / path for path in DOCUMENTS] + sorted((ROOT / "docs").rglob("*.md"))
    links = {(document, link) for document in documents for link in LINK.findall(document.read_text("utf-8"))}

    missing = [(document.name, link) for document, link in links if not (document.parent / link).exists()]
    assert len(links) > 50
    assert missing == []


def test_tests_that_the_page_on_ballerina_names_are_there() -> None:
    named = TEST.findall((ROOT / "docs/ballerina.md").read_text("utf-8"))

    missing = [
        (file, test)
        for file, test in named
        if f"def {test}(" not in (ROOT / (file or "tests/client/test_ballerina_short_term.py")).read_text("utf-8")
    ]
    assert len(named) > 15
    assert missing == []


def test_the_map_links_every_document_of_the_design() -> None:
    linked = set(LINK.findall((ROOT / "ARCHITECTURE.md").read_text("utf-8")))

    assert {document for document in DOCUMENTS if document.startswith("docs/")} <= linked


def test_the_page_on_benchmarks_has_every_workload_and_no_other() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)

    assert headings == ["Figures", *WORKLOADS]
