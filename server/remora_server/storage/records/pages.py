"""Records with their bodies, a page at a time: for those that take more memory together than the database may use."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any, TypeAlias

import duckdb
from msgspec import Struct

from remora_server.storage.database.database import Database
from remora_server.storage.database.parsed import execute

Row: TypeAlias = tuple[Any, ...]
Source: TypeAlias = Callable[[duckdb.DuckDBPyConnection], AbstractContextManager[str]]
"""What to read from in a state of the database: the name of a table, or what stands for it."""
_Place: TypeAlias = tuple[bytes, bytes]
"""A partition and a key."""

_PARTITION = itemgetter(0)


class Selection(Struct, frozen=True):
    """Rows of a kind's table: the columns of those that a condition selects."""

    table: str
    columns: str
    where: str
    parameters: Sequence[object]

    def query(self, source: str) -> str:
        """The query that reads them from the table, or from what stands for it."""
        return f"SELECT {self.columns} FROM {source} WHERE {self.where}"  # noqa: S608 - a table of ours

    def between(self, cursor: duckdb.DuckDBPyConnection, source: str, places: Sequence[_Place]) -> list[Row]:
        """Those at some places. Only with bounds that the scan knows does DuckDB read no other bodies beside theirs."""
        keys = [key for _, key in places]
        bounds = [places[0][0], places[-1][0], min(keys), max(keys)]
        sql = f"{self.query(source)} AND partition BETWEEN ? AND ? AND key BETWEEN ? AND ?"
        return execute(cursor, sql, [*self.parameters, *bounds]).fetchall()


def each_page(
    database: Database, selection: Selection, *, rows: int, source: Source | None = None
) -> Iterator[list[Row]]:
    """All rows, at most so many at a time, and fewer where memory lacks.

    Each page is read in a state of its own: a row that is written meanwhile comes in the old or the new state, one that
    is new may be missing. Raises MemoryExhausted where a few rows alone take too much.
    """
    table = selection.table
    listed = Selection(table, "partition, key", f"{selection.where} ORDER BY ALL", selection.parameters)
    places: list[_Place] = database.rows(listed.query(table), listed.parameters)
    at = 0
    while at < len(places):

        def read(cursor: duckdb.DuckDBPyConnection, most: int, begin: int = at) -> tuple[int, int, list[Row]]:
            end = _end(places, begin, most)
            with source(cursor) if source else nullcontext(table) as origin:
                return end, most, selection.between(cursor, origin, places[begin:end])

        at, rows, page = database.in_pages(rows, read)
        yield page


def _end(places: Sequence[_Place], begin: int, most: int) -> int:
    """Where a page ends that begins here: it has a part of one partition, or whole ones, so that bounds select it."""
    end = min(begin + most, len(places))
    first, last = places[begin][0], places[end - 1][0]
    if first == last:
        return end
    if begin and places[begin - 1][0] == first:
        return bisect_right(places, first, lo=begin, hi=end, key=_PARTITION)
    if end < len(places) and places[end][0] == last:
        return bisect_left(places, last, lo=begin, hi=end, key=_PARTITION)
    return end
