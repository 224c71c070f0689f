"""Reads the SQLite file of another store: its tables and rows, and errors that name row and column."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from remora_server.commands.failures import CommandFailed

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
WRITE_VERSION = 18
"""The offset in the header of the journal mode: 2 is a write-ahead log."""
WITH_LOG = 2
TOO_DEEP = "is nested too deeply"
"""What is said of a value that Python does not parse."""


class Text(bytes):
    """A text as it is stored, which may be invalid UTF-8. Blobs are plain bytes."""

    __slots__ = ()


class Row(Struct, frozen=True):
    """A row, with its number in its table."""

    file: str
    table: str
    number: int
    values: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The row's place, for errors and differences."""
        return f"table {self.table}, row {self.number}"

    def fault(self, column: str, why: str) -> CommandFailed:
        """The error that says what is wrong with a column."""
        return CommandFailed(f"{self.file}: {self.place}: {column} {why}; nothing was copied")

    def text(self, column: str) -> str:
        """A text. Raises CommandFailed if there is none."""
        value = self.values.get(column)
        if not isinstance(value, Text):
            raise self.fault(column, "is not a text")
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise self.fault(column, "is not UTF-8") from error

    def optional_text(self, column: str) -> str:
        """A text; empty for NULL, and if an older file has no such column."""
        return "" if self.values.get(column) is None else self.text(column)

    def data(self, column: str) -> bytes:
        """The bytes of a blob or a text."""
        value = self.values.get(column)
        if not isinstance(value, bytes):
            raise self.fault(column, "is neither a blob nor a text")
        return bytes(value)

    def integer(self, column: str) -> int:
        """An integer."""
        value = self.values.get(column)
        if not isinstance(value, int):
            raise self.fault(column, "is not an integer")
        return value

    def number_or_none(self, column: str) -> float | None:
        """A number; None for NULL, and if an older file has no such column."""
        value = self.values.get(column)
        if value is not None and not isinstance(value, int | float):
            raise self.fault(column, "is not a number")
        return value

    def time(self, column: str) -> datetime:
        """A time as SQLite and Python write it, which is in UTC if it names no zone, in UTC."""
        text = self.text(column)
        try:
            found = datetime.fromisoformat(text)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError) as error:  # the years of UTC end where those of other zones go on
            raise self.fault(column, f"is not a time: {text[:40]!r}") from error

    def time_or_none(self, column: str) -> datetime | None:
        """A time; None for NULL, and if an older file has no such column."""
        return None if self.values.get(column) is None else self.time(column)


class SqliteFile:
    """An opened file. All reads see it as it was at the first read."""

    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        self.name = name
        self._connection = connection

    def require(self, owner: str, tables: Mapping[str, Collection[str]], otherwise: str = "") -> None:
        """Raise CommandFailed if a table or one of its columns is missing. `otherwise` is another reason for it."""
        for table, columns in tables.items():
            found = self.columns(table)
            if not found:
                raise CommandFailed(f"{self.name} has no table {table}: it is not a file of {owner}{otherwise}")
            for column in columns:
                if column not in found:
                    raise CommandFailed(f"{self.name}: table {table} has no column {column}: {owner} makes others")

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; none if there is no such table."""
        with self._reading(table):
            rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        return frozenset(name.decode() for (name,) in rows)

    def count(self, table: str) -> int:
        """How many rows a table has."""
        with self._reading(table):
            [count] = self._connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()  # noqa: S608 - quoted
        return int(count)

    def rows(self, table: str, clauses: str = "ORDER BY rowid", given: Sequence[object] = ()) -> Iterator[Row]:
        """Rows of a table, in the order of writing unless `clauses` give another order."""
        query = f"SELECT rowid, * FROM {quoted(table)} {clauses}"  # noqa: S608 - clauses are those of these modules
        with self._reading(table):
            cursor = self._connection.execute(query, given)
            columns = [column for column, *_ in cursor.description[1:]]
            for number, *values in cursor:
                yield Row(self.name, table, number, dict(zip(columns, values, strict=True)))

    @contextmanager
    def _reading(self, table: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise CommandFailed(f"{self.name}: table {table} cannot be read: {error}") from error


@contextmanager
def opened(path: Path) -> Iterator[SqliteFile]:
    """Opens a file, which is not changed. Raises CommandFailed if it is not a SQLite file."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEADER_BYTES)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from error
    if not head.startswith(MAGIC) or len(head) < HEADER_BYTES:
        raise CommandFailed(f"{path} is not an SQLite file")
    try:
        connection = sqlite3.connect(_address(path, head), uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise CommandFailed(f"{path} cannot be opened: {error}") from error
    connection.text_factory = Text
    with closing(connection):
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error as error:
            raise CommandFailed(f"{path} cannot be read: {error}") from error
        yield SqliteFile(str(path), connection)


def quoted(table: str) -> str:
    """A table's name in a statement."""
    return '"{}"'.format(table.replace('"', '""'))


def _address(path: Path, head: bytes) -> str:
    """Open only for reading. A closed file in the mode of a write-ahead log has no log: without `immutable`, SQLite
    would make one beside it.
    """
    log = path.with_name(path.name + "-wal")
    is_closed = head[WRITE_VERSION] == WITH_LOG and not log.exists()
    return f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if is_closed else ''}"
