"""`remora import`: an export, or OpenAI chat messages as JSONL, into a store. Repeating it stores nothing twice."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field
from rich.console import Console

from remora import Remora
from remora.errors import InvalidFieldError, RecordConflictError
from remora.v1.transfer_service_pb2 import Record
from remora_server.commands.chat_lines import Line, chat_groups, is_chat_line, numbered
from remora_server.commands.connecting import add_connection_flags, connected
from remora_server.commands.failures import CommandFailed, Misused
from remora_server.commands.output import diagnostics, noting_silence, progress_of_bytes
from remora_server.commands.parsing import filled, name
from remora_server.commands.printable import printable
from remora_server.commands.records import LineError, parse_line, parse_record, require_format
from remora_server.rpc.handlers.exported import conversation_of

STANDARD_INPUT = "-"
LONGEST_LINE = 64 << 20
GROUP_RECORDS, GROUP_BYTES = 500, 1 << 20
MOST_REPORTED = 20


class Group(Struct):
    """Records of one conversation that are sent together, with their line numbers."""

    conversation_id: str
    records: list[Record] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bytes: int = 0

    def takes(self, conversation_id: str, size: int) -> bool:
        """Whether a record of a conversation, of so many bytes, can be sent with them."""
        if not self.records:
            return True
        fits = len(self.records) < GROUP_RECORDS and self.bytes + size <= GROUP_BYTES
        return fits and conversation_id == self.conversation_id


class Lines:
    """The lines of a file in turn, with the current line number."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        self.number = 0
        self.bytes = 0
        self.records = 0
        self._stream = stream
        self._first: bytes | None = None

    @property
    def are_chat(self) -> bool:
        """Whether they are OpenAI chat messages, and no export. Looks at the first line, and leaves it to be read."""
        if self._first is None:
            self._first = self._stream.readline(LONGEST_LINE)
        return is_chat_line(self._first)

    def numbered(self) -> Iterator[Line]:
        """The lines as they are."""
        first, self._first = self._first, None
        return numbered(chain([] if first is None else [first], self._lines()))

    def _lines(self) -> Iterator[bytes]:
        while line := self._stream.readline(LONGEST_LINE):
            yield line

    def values(self) -> Iterator[tuple[dict[str, Any], int]]:
        """The object of each line and its length, up to the last. Raises CommandFailed."""
        with self.checked():
            require_format(self._next())
        while True:
            before = self.bytes
            with self.checked():
                value = self._next()
            if value["kind"] == "end":
                break
            self.records += 1
            yield value, self.bytes - before
        if value.get("records") != self.records:
            raise CommandFailed(f"{self.name} is not complete: it has {self.records} records of {value.get('records')}")

    def _next(self) -> dict[str, Any]:
        first, self._first = self._first, None
        line = self._stream.readline(LONGEST_LINE) if first is None else first
        self.number += 1
        self.bytes += len(line)
        if not line.endswith(b"\n"):
            raise LineError("is missing or cut: export anew, or with --resume")
        return parse_line(line)

    @contextmanager
    def checked(self) -> Iterator[None]:
        """End the command with an error in a line, and its number."""
        try:
            yield
        except LineError as error:
            raise CommandFailed(f"{self.name}: line {self.number} {error}") from error


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "file",
        type=filled,
        metavar="FILE",
        help="an export, or OpenAI chat JSONL: one message a line, or one conversation a line as "
        '{"messages": [...]}; - for standard input',
    )
    chat = parser.add_argument_group("for OpenAI chat JSONL")
    chat.add_argument(
        "--user", type=name, help="the user who owns the conversations (default: the server's own, `default`)"
    )
    chat.add_argument(
        "--conversation",
        type=name,
        help="the id of the conversation; of several, the first part of their ids (default: the file's name)",
    )
    add_connection_flags(parser)


def run(given: dict[str, Any]) -> None:
    """Import."""
    if given["file"] == STANDARD_INPUT:
        _import(given, Lines("standard input", sys.stdin.buffer), None, "standard-input")
        return
    path = Path(given["file"])
    try:
        with path.open("rb") as stream:
            _import(given, Lines(str(path), stream), path.stat().st_size, path.stem)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from error


def _import(given: dict[str, Any], lines: Lines, size: int | None, stem: str) -> None:
    if lines.are_chat:
        _import_chat(given, lines, size, stem)
        return
    if given["user"] is not None or given["conversation"] is not None:
        raise Misused(f"{lines.name} is no OpenAI chat JSONL: an export has its own users and conversations")
    _import_records(given, lines, size)


def _import_chat(given: dict[str, Any], lines: Lines, size: int | None, stem: str) -> None:
    messages, replaced = 0, 0
    report = Reported(lines.name)
    with connected(given) as client, progress_of_bytes() as progress:
        task = progress.add_task("importing", total=size)
        for group in chat_groups(lines.numbered(), given["conversation"] or stem, report):
            conversation = client.conversation(group.conversation_id, user_id=given["user"])
            with noting_silence(progress.console):
                placed = conversation.append(group.messages).messages
            replaced += sum(message.replaced for message in placed)
            messages += len(placed)
            progress.update(task, completed=group.position)
    if report.count > MOST_REPORTED:
        diagnostics().print(f"{report.count - MOST_REPORTED:,} more lines like these are left out")
    diagnostics().print(f"{messages - replaced:,} messages imported{_there(replaced)}")


class Reported:
    """Says on standard error what is not imported: the first of it, line by line."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.count = 0

    def __call__(self, text: str) -> None:
        self.count += 1
        if self.count <= MOST_REPORTED:
            diagnostics().print(printable(f"{self._name}: {text}"))


def _import_records(given: dict[str, Any], lines: Lines, size: int | None) -> None:
    imported = 0
    with connected(given) as client, progress_of_bytes() as progress:
        task = progress.add_task("importing", total=size)
        try:
            for group in _groups(lines):
                imported += _send(client, group, lines.name, progress.console)
                progress.update(task, completed=lines.bytes)
        except CommandFailed as failure:
            raise CommandFailed(f"{failure}; {imported:,} records were imported before") from failure
    diagnostics().print(f"{imported:,} records imported{_there(lines.records - imported)}")


def _there(count: int) -> str:
    return f"; {count:,} were there already" if count else ""


def _groups(lines: Lines) -> Iterator[Group]:
    """The records, in the groups in which they are sent; what stands before a wrong line is sent, too."""
    group = Group("")
    try:
        for value, size in lines.values():
            with lines.checked():
                record = parse_record(value)
            conversation_id = conversation_of(record)
            if not group.takes(conversation_id, size):
                yield group
                group = Group(conversation_id)
            group.conversation_id = conversation_id
            group.records.append(record)
            group.numbers.append(lines.number)
            group.bytes += size
    except CommandFailed:
        if group.records:
            yield group
        raise
    if group.records:
        yield group


def _send(client: Remora, group: Group, name: str, console: Console) -> int:
    """Import a group; how many were new."""
    try:
        with noting_silence(console):
            return client.import_records(group.records)
    except (RecordConflictError, InvalidFieldError) as error:
        line = group.numbers[_index(error.metadata.get("field", ""))]
        raise CommandFailed(f"{name}: line {line}: {' '.join(str(error).split())}") from error


def _index(path: str) -> int:
    """The record that a field's path leads through: `records[3].message`."""
    number = path.partition("[")[2].partition("]")[0]
    return int(number) if number.isdigit() else 0
