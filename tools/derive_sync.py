"""Derives the sync client, clients/python/remora/_sync, from the async one, clients/python/remora/_async.

python tools/derive_sync.py            writes it
python tools/derive_sync.py --check    lists the files that are out of date, and fails if there are any
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "clients/python/remora"
SOURCE, DERIVED = PACKAGE / "_async", PACKAGE / "_sync"

MARK = "# Derived from {source} by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.\n"

REPLACEMENTS: Mapping[str, str] = {
    r"# ruff: noqa: ASYNC.*\n": "",
    r"The async client\. .*(?=\"\"\")": "The sync client.",
    r"\bremora\._async\b": "remora._sync",
    r"\basynchronous as backend\b": "synchronous as backend",
    r"\b_backends\.asynchronous\b": "_backends.synchronous",
    r"\basync (def|with|for)\b": r"\1",
    r"\bawait ": "",
    r"\b__a(enter|exit)__\b": r"__\1__",
    r"\bAsync([A-Z]\w*)": r"\1",
}


def derive(source: Path) -> str:
    """The sync text of one async module."""
    text = source.read_text(encoding="utf-8")
    for pattern, replacement in REPLACEMENTS.items():
        text = re.sub(pattern, replacement, text)
    text = MARK.format(source=source.relative_to(PACKAGE.parent)) + text
    return formatted(text, DERIVED / source.name)


def formatted(text: str, path: Path) -> str:
    """The text with its imports sorted and its lines broken as the repository's are."""
    sort = ["check", "--select", "I", "--fix", "--quiet"]
    for arguments in (sort, ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(path), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


def derive_all() -> dict[Path, str]:
    """The text of every derived file, by its path."""
    return {DERIVED / source.name: derive(source) for source in sorted(SOURCE.glob("*.py"))}


def stale(expected: Mapping[Path, str]) -> list[Path]:
    """Derived files that are missing, differ, or have no source."""
    present = {path: path.read_text(encoding="utf-8") for path in DERIVED.glob("*.py")}
    return sorted(path for path in expected.keys() | present.keys() if expected.get(path) != present.get(path))


def write(expected: Mapping[Path, str], paths: list[Path]) -> None:
    """Brings these files up to date."""
    for path in paths:
        if path in expected:
            path.parent.mkdir(exist_ok=True)
            path.write_text(expected[path], encoding="utf-8")
        else:
            path.unlink()


def main() -> int:
    """Writes what is stale, or with --check names it and fails."""
    parser = argparse.ArgumentParser(description="Derives the sync client from the async one.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    only_check = parser.parse_args().check
    expected = derive_all()
    paths = stale(expected)
    for path in paths:
        print(f"{'out of date' if only_check else 'written'}: {path.relative_to(PACKAGE)}")
    if only_check:
        return 1 if paths else 0
    write(expected, paths)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
