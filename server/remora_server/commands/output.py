"""What commands show: text and tables for people, one JSON object a line for scripts, progress on standard error.

Imported by the commands that show more than a line, because it imports rich.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Literal, NamedTuple, cast

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from remora._printable import printable_json
from remora_server.commands import standard_output

SILENT_SECONDS = 5.0
"""After so many seconds without an answer, the command says that it waits."""

_UNBOUNDED = 100_000
"""The width if the output is not a terminal: lines are not broken for a pipe."""

SET_IN = " " * 4
GAP = " " * 2
LEAST_COLUMNS = 8


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object per line, for scripts")


def write_json(value: Mapping[str, object]) -> None:
    """Write an object as one line, at once."""
    ascii_only = sys.stdout.encoding.lower() != "utf-8"
    encoded = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
    standard_output.write(printable_json(encoded) + "\n")
    standard_output.flush()


class _Output:
    """Standard output for rich. It ends the command if a write fails."""

    def write(self, text: str) -> int:
        return standard_output.write(text)

    def flush(self) -> None:
        standard_output.flush()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a stream has
        return getattr(sys.stdout, name)


def output() -> Console:
    """Standard output. Only on a terminal lines are broken and, unless NO_COLOR is set, coloured."""
    return _console(stderr=False)


def diagnostics() -> Console:
    """Standard error, likewise."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNBOUNDED
    file = None if stderr else cast("IO[str]", _Output())
    return Console(file=file, stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def print_set_in(console: Console, text: Text) -> None:
    """Print text with its continuation lines indented, whichever character breaks a line."""
    width = max(LEAST_COLUMNS, console.width - len(SET_IN))
    lines = text.wrap(console, width) if console.is_terminal else text.split(allow_blank=True)
    console.print(Text(f"\n{SET_IN}").join(lines), soft_wrap=True)


def print_cut(console: Console, text: Text, *, begin: str = "") -> None:
    """Print an entry of a list: on a terminal as one line, truncated to its width; elsewhere as `print_set_in`. It
    begins with `begin`, such as an id, which is never cut.
    """
    whole = Text(begin, text.style)
    if not console.is_terminal:
        print_set_in(console, whole + text)
        return
    line = Text(" ").join(text.split(allow_blank=True))
    line.expand_tabs()
    room = console.width - whole.cell_len
    if not begin or room >= LEAST_COLUMNS:
        line.truncate(room, overflow="ellipsis")
        whole.append_text(line)
    console.print(whole, soft_wrap=True)


class Column(NamedTuple):
    """A column of a table: its head, and its text in each row. Ids are shown whole; a title has what room is left."""

    head: str
    texts: Sequence[str]
    kind: Literal["id", "text", "number", "title"]

    @property
    def least_width(self) -> int:
        """The cells that it needs."""
        texts = () if self.kind == "title" else self.texts
        return max(map(cell_len, (self.head, *texts)))


def print_table(console: Console, columns: Sequence[Column]) -> None:
    """Print a table. A terminal that is too narrow for it gets fewer columns: the last ones go first, but ids stay.

    Where ids alone are too wide, they stand one behind the other, for the terminal to break the line: who copies an id
    from there gets it whole.
    """
    shown = list(columns)
    while not _have_room(console, shown) and any(column.kind != "id" for column in shown):
        shown.remove([column for column in shown if column.kind != "id"][-1])
    if not _have_room(console, shown):
        for row in zip(*((column.head, *column.texts) for column in shown), strict=True):
            console.print(GAP.join(row), soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, expand=console.is_terminal and shown[-1].kind == "title")
    for column in shown:
        table.add_column(
            column.head,
            no_wrap=True,
            justify="right" if column.kind == "number" else "left",
            ratio=1 if column.kind == "title" else None,
        )
    for row in zip(*(column.texts for column in shown), strict=True):
        table.add_row(*row)
    console.print(table)


def _have_room(console: Console, columns: Sequence[Column]) -> bool:
    needed = sum(column.least_width for column in columns) + len(GAP) * (len(columns) - 1)
    return needed <= console.width or not console.is_terminal


@contextmanager
def noting_silence(console: Console) -> Iterator[None]:
    """Say on a console that a call takes long. The client repeats it silently while the server may recover."""
    note = f"no answer for {SILENT_SECONDS:.0f} s: the server is busy, short of something or gone; still asking"
    timer = threading.Timer(SILENT_SECONDS, lambda: console.print(note))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def progress_of_conversations() -> Progress:
    """Conversations, their total and the field `records` on standard error, if it is a terminal; removed at the end."""
    return _progress(BarColumn(), MofNCompleteColumn(), TextColumn("conversations, {task.fields[records]:,} records"))


def progress_of_bytes() -> Progress:
    """Bytes and their total on standard error, if that is a terminal; removed at the end."""
    return _progress(BarColumn(), DownloadColumn(binary_units=True))


def progress_of_rows() -> Progress:
    """Rows and their total on standard error, if that is a terminal; removed at the end."""
    return _progress(BarColumn(), MofNCompleteColumn(), TextColumn("rows"))


def _progress(*columns: ProgressColumn) -> Progress:
    console = diagnostics()
    return Progress(
        TextColumn("{task.description}"),
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not sys.stderr.isatty(),  # FORCE_COLOR makes rich take anything for a terminal
    )
