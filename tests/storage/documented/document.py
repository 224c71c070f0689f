"""`docs/format.md` as tests read it: its tables, by the headings above them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TypeAlias

FILE = Path(__file__).resolve().parents[3] / "docs" / "format.md"
Row: TypeAlias = dict[str, str]
"""A row's cells by the headings of their columns, without backticks."""


def table(heading: str, first: str = "") -> list[Row]:
    """The rows of the table below a heading whose first column is called so; of the only one there, without `first`."""
    found = [rows for rows in _tables()[heading] if rows and first in {"", next(iter(rows[0]))}]
    assert len(found) == 1, f"{len(found)} tables below {heading!r} begin with {first!r}"
    return found[0]


@cache
def _tables() -> dict[str, list[list[Row]]]:
    tables: dict[str, list[list[Row]]] = {}
    for section in re.split(r"^#+ ", FILE.read_text("utf-8"), flags=re.MULTILINE):
        heading, _, text = section.partition("\n")
        blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
        tables[heading.replace("`", "")] = [_rows(block.splitlines()) for block in blocks]
    return tables


def _rows(lines: list[str]) -> list[Row]:
    names, _, *rows = [[cell.strip() for cell in line.replace("`", "").strip("|").split("|")] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in rows]


def layout(heading: str) -> dict[str, slice]:
    """Where each field of a header lies. The fields follow one another without gaps."""
    fields = {row["field"]: (int(row["offset"]), int(row["size"])) for row in table(heading)}
    end = 0
    for offset, size in fields.values():
        assert offset == end, heading
        end += size
    return {name: slice(offset, offset + size) for name, (offset, size) in fields.items()}


def constant(heading: str, field: str) -> str:
    """The value that a field of a header always has."""
    return next(row["value"] for row in table(heading) if row["field"] == field)


def numbers(cell: str) -> set[int]:
    """The numbers that a cell lists, such as `1 to 7, 15`."""
    found: set[int] = set()
    for part in cell.split(", "):
        first, _, last = part.partition(" to ")
        found |= set(range(int(first), int(last or first) + 1))
    return found
