"""What is known of a damaged database before it is copied: each part may be unknown while the others are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeAlias

import duckdb
from msgspec import Struct, field

from remora_server.domain.errors import one_line
from remora_server.storage.database import taking_over
from remora_server.storage.database.database import FILE_NAME, KIND_FACT, SCHEMA_VERSION
from remora_server.storage.database.tables import shape
from remora_server.storage.database.taking_over import OLD_TABLES
from remora_server.storage.recovery.mending import WAL_NAME, linked_file, read_only
from remora_server.storage.schema.kinds import Kinds, all_tables

Readable: TypeAlias = Callable[[], AbstractContextManager[Path]]
"""How the database's file is opened."""


class DamagedDatabase(Struct, frozen=True):
    """A database that opens, or that does not: then it has no tables.

    `columns`: of each table that it has. `facts`: what it says of itself; None if that cannot be read. `notes`: what is
    wrong with it, for people.
    """

    readable: Readable
    columns: dict[str, frozenset[str]] = field(default_factory=dict)
    facts: dict[str, str] | None = None
    notes: tuple[str, ...] = ()

    def tables(self) -> frozenset[str]:
        """The tables that can be opened; their rows may be damaged."""
        return frozenset(self.columns)

    @property
    def store_id(self) -> str | None:
        """Whose it is, as 32 hexadecimal digits."""
        return (self.facts or {}).get("store_id")

    @property
    def applied(self) -> int | None:
        """The last revision that was applied, 0 if it has no tables; None if that is unknown."""
        if self.facts is None:
            return None if self.columns else 0
        return int(self.facts.get("applied_revision", 0))

    @property
    def is_old(self) -> bool:
        """Whether it has the tables of schema 2, which the kinds took over."""
        if self.facts is not None:
            return int(self.facts.get("schema_version", 0)) < taking_over.SCHEMA_VERSION
        return "steps" in self.columns and "place" not in self.columns["steps"]

    def of_newer_version(self, kinds: Kinds) -> str | None:
        """What shows that a newer version wrote it, which a copy would leave out; None if all of it is known."""
        if self.facts is None:
            known = {table.name for table in all_tables(kinds)}
            known |= {name for old in OLD_TABLES for name in (old.name, old.set_aside)}
            return next((f"has the table {name}, which is not known" for name in sorted(self.tables() - known)), None)
        if int(self.facts.get("schema_version", 0)) > SCHEMA_VERSION:
            return "was written by a newer version of Remora"
        shapes = {f"{KIND_FACT}{kind.number}": shape(kind) for kind in kinds}
        news = (kept for fact, kept in self.facts.items() if fact.startswith(KIND_FACT) and shapes.get(fact) != kept)
        return next((f"has records of the kind {kept}, which is not known" for kept in news), None)


def look(directory: Path) -> DamagedDatabase:
    """Open a store's database with its write-ahead log or else without it, first of all so that its facts are read."""
    file = directory / FILE_NAME
    found = DamagedDatabase(lambda: nullcontext(file))
    if not file.exists():
        return _noted(found, ["the database is missing"])
    ways: list[tuple[str, Readable]] = [("", found.readable)]
    if (directory / WAL_NAME).exists():
        ways.append((" without its write-ahead log", lambda: linked_file(directory)))
    notes: list[str] = []
    for how, readable in ways:
        opened = _opened(readable, how, notes)
        if (opened.columns and not found.columns) or opened.facts is not None:
            found = opened
        if found.facts is not None:
            break
    return _noted(found, notes)


def _opened(readable: Readable, how: str, notes: list[str]) -> DamagedDatabase:
    """What one way of opening shows; what is wrong with it is added to the notes."""
    columns: dict[str, frozenset[str]] = {}
    try:
        with readable() as file, read_only(file) as connection:
            for table, names in connection.execute(_COLUMNS).fetchall():
                columns[table] = frozenset(names)
            facts = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    except (duckdb.Error, OSError) as error:
        what = "what the database says of itself cannot be read" if columns else "the database cannot be opened"
        notes.append(f"{what}{how}: {one_line(error)}")
        return DamagedDatabase(readable, columns)
    return DamagedDatabase(readable, columns, facts)


def _noted(found: DamagedDatabase, notes: Iterable[str]) -> DamagedDatabase:
    return DamagedDatabase(found.readable, found.columns, found.facts, (*found.notes, *notes))


_COLUMNS = """SELECT table_name, list(column_name) FROM duckdb_columns()
    WHERE database_name = current_database() AND NOT internal GROUP BY table_name"""
