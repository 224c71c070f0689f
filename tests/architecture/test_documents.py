"""The files and folders that documents name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/format.md", "tests/storage/formats/README.md"]
NAME = re.compile(r"`([\w.*/-]+(?:\.(?:py|rs|proto|md|sh|json|toml|yaml|sql|importlinter)|/))`|\]\(([\w./-]+)\)")
"""A file by its ending, a folder by its slash, or what a link leads to."""
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
    found = {name or link for name, link in NAME.findall((ROOT / document).read_text("utf-8"))}
    names = {name for name in found if not NOT_THERE.search(name)}

    missing = [name for name in names if not any(fnmatchcase(path, f"*/{name.rstrip('/')}") for path in PATHS)]
    assert names
    assert missing == []
