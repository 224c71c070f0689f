"""What commands show: text and tables for people, one JSON object a line for scripts, progress on standard error.

Imported by the commands that show more than a line, because it imports rich.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, cast

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
from rich.text import Text

from remora._printable import printable_json
from remora_server.commands import standard_output

SILENT_SECONDS = 5.0
"""After so many seconds without an answer, the command says that it waits."""

_UNBOUNDED = 100_000
"""The width if the output is not a terminal: lines are not broken for a pipe."""

SET_IN = " " * 4
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


def print_cut(console: Console, text: Text) -> None:
    """Print an entry of a list: on a terminal as one line, truncated to its width; elsewhere as `print_set_in`."""
    if not console.is_terminal:
        print_set_in(console, text)
        return
    line = Text(" ").join(text.split(allow_blank=True))
    line.expand_tabs()
    line.truncate(console.width, overflow="ellipsis")
    console.print(line, soft_wrap=True)


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
