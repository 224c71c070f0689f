"""`remora import`: an export, OpenAI chat messages as JSONL, or the file of a framework's own store, into a store.

Repeating it stores nothing twice.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console

from remora import AppendedMessage, Conversation, Remora
from remora.errors import ConversationNotFoundError, InvalidFieldError, MessageTooLargeError, RequestTooLargeError
from remora_server.commands.chat_lines import ChatGroup, Line, chat_groups, is_chat_line, numbered
from remora_server.commands.connecting import add_connection_flags, connected
from remora_server.commands.failures import CommandFailed, Misused
from remora_server.commands.moving import langgraph_checkpoints, langgraph_store, voltagent, voltagent_copy
from remora_server.commands.moving.sqlite_file import MAGIC, SqliteFile, opened
from remora_server.commands.numbers import counted, whole
from remora_server.commands.output import diagnostics, noting_silence, progress_of_bytes
from remora_server.commands.parsing import filled, name
from remora_server.commands.record_groups import Group, RecordRefused
from remora_server.commands.records import LineError, parse_line, parse_record, require_format, require_kind
from remora_server.commands.reported import Reported
from remora_server.domain.calls import DEFAULT_USER
from remora_server.domain.errors import one_line
from remora_server.rpc.handlers.exported import conversation_of

STANDARD_INPUT = "-"
LONGEST_LINE = 64 << 20


class Lines:
    """The lines of a file in turn, with the current line number."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        self.number = 0
        self.bytes = 0
        self.records = 0
        self._stream = stream
        self._looked_at: deque[bytes] = deque()

    @property
    def are_chat(self) -> bool:
        """Whether they are OpenAI chat messages and not an export. Looks at the first line that is not empty, without
        consuming any.
        """
        while not self._looked_at or self._looked_at[-1].isspace():
            self._looked_at.append(self._stream.readline(LONGEST_LINE))
        return is_chat_line(self._looked_at[-1])

    def numbered(self) -> Iterator[Line]:
        """The lines as they are."""
        looked_at, self._looked_at = self._looked_at, deque()
        return numbered(chain(looked_at, self._lines()), Path(self.name).name)

    def _lines(self) -> Iterator[bytes]:
        while line := self._stream.readline(LONGEST_LINE):
            yield line

    def values(self) -> Iterator[tuple[dict[str, Any], int]]:
        """The object of each line and its length, up to the last. Raises CommandFailed."""
        with self.checked():
            line = self._read()
            if not line:
                raise CommandFailed(f"{self.name} is empty: it is neither an export nor OpenAI chat")
            require_kind(line)
            require_format(_parsed(line))
        while True:
            before = self.bytes
            with self.checked():
                value = _parsed(self._read())
            if value["kind"] == "end":
                break
            self.records += 1
            yield value, self.bytes - before
        if value.get("records") != self.records:
            raise CommandFailed(
                f"{self.name} is not complete: it has {counted(self.records, 'record')} of {value.get('records')}"
            )
        if any(line.strip() for line in self._lines()):
            raise CommandFailed(
                f"{self.name}: more follows the end of the export in line {self.number}: "
                "import it from a file of its own"
            )

    def _read(self) -> bytes:
        line = self._looked_at.popleft() if self._looked_at else self._stream.readline(LONGEST_LINE)
        self.number += 1
        self.bytes += len(line)
        return line

    @contextmanager
    def checked(self) -> Iterator[None]:
        """End the command with an error that names the line."""
        try:
            yield
        except LineError as error:
            raise CommandFailed(f"{self.name}: line {self.number} {error}") from error


def _parsed(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise LineError("is missing or cut: export anew, or with --resume")
    return parse_line(line)


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
        help="the id of the conversation; of several, the first part of their ids (default: the file's name; standard "
        "input has none, so that it must be given)",
    )
    files = parser.add_argument_group("for the SQLite file of a framework's own store")
    files.add_argument(
        "--from",
        choices=sorted(SOURCES),
        help="whose file it is: it is read, copied, and compared (default: nobody's, FILE is an export or chat JSONL)",
    )
    files.add_argument(
        "--user-label",
        type=whole,
        metavar="N",
        help="for langgraph-store: which label of a namespace names the user, from 0, or from -1 backwards, as "
        "user_label of RemoraStore does (default: items are nobody's)",
    )
    files.add_argument(
        "--table-prefix",
        type=name,
        metavar="PREFIX",
        help=f"for voltagent: the tablePrefix of its LibSQLMemoryAdapter (default: {voltagent.PREFIX})",
    )
    add_connection_flags(parser)


def run(given: dict[str, Any]) -> None:
    """Import."""
    _require_own_options(given)
    if given["from"] is not None:
        _import_file(given)
        return
    if given["file"] == STANDARD_INPUT:
        _import(given, Lines("standard input", sys.stdin.buffer), None, "")
        return
    path = Path(given["file"])
    try:
        with path.open("rb") as stream:
            if stream.peek(len(MAGIC)).startswith(MAGIC):
                raise Misused(f"{path} is a SQLite file: say with --from whose it is, {' or '.join(sorted(SOURCES))}")
            _import(given, Lines(str(path), stream), path.stat().st_size, path.stem)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from error


def _import_file(given: dict[str, Any]) -> None:
    """Copy the file of a framework's own store, and compare."""
    if given["file"] == STANDARD_INPUT:
        raise Misused("--from needs a file: SQLite cannot read standard input")
    for option in ("user", "conversation"):
        if given[option] is not None:
            raise Misused(f"--{option} is for OpenAI chat JSONL: a file of {given['from']} has its own")
    with opened(Path(given["file"])) as file, connected(given) as client:
        diagnostics().print(SOURCES[given["from"]](client, file, given))


def _langgraph_store(client: Remora, file: SqliteFile, given: dict[str, Any]) -> str:
    return langgraph_store.copy(client, file, given["user_label"])


def _langgraph_checkpoints(client: Remora, file: SqliteFile, _given: dict[str, Any]) -> str:
    return langgraph_checkpoints.copy(client, file)


def _voltagent(client: Remora, file: SqliteFile, given: dict[str, Any]) -> str:
    return voltagent_copy.copy(client, file, given["table_prefix"] or voltagent.PREFIX)


def _require_own_options(given: dict[str, Any]) -> None:
    """Raise Misused for an option of another store's file."""
    for option, source in (("user_label", "langgraph-store"), ("table_prefix", "voltagent")):
        if given[option] is not None and given["from"] != source:
            raise Misused(f"--{option.replace('_', '-')} is for --from {source}")


SOURCES: Mapping[str, Callable[[Remora, SqliteFile, dict[str, Any]], str]] = {
    "langgraph-checkpoints": _langgraph_checkpoints,
    "langgraph-store": _langgraph_store,
    "voltagent": _voltagent,
}
"""What copies the files of each store; it returns what is to be said of it."""


def _import(given: dict[str, Any], lines: Lines, size: int | None, stem: str) -> None:
    if lines.are_chat:
        _import_chat(given, lines, size, stem)
        return
    if given["user"] is not None or given["conversation"] is not None:
        raise Misused(
            f"{lines.name} does not begin with a line of OpenAI chat messages, a message or an object with messages; "
            "an export has its own users and conversations: leave out --user and --conversation"
        )
    _import_records(given, lines, size)


def _import_chat(given: dict[str, Any], lines: Lines, size: int | None, stem: str) -> None:
    name = given["conversation"] or stem
    if not name:  # what comes next through standard input would replace these messages
        raise Misused(f"{lines.name} has no name: name the conversation with --conversation")
    messages, replaced = 0, 0
    report = Reported(lines.name)
    checked: set[str] = set()
    with connected(given) as client, progress_of_bytes() as progress:
        task = progress.add_task("importing", total=size)
        for group in chat_groups(lines.numbered(), name, report):
            conversation = client.conversation(group.conversation_id, user_id=given["user"])
            with noting_silence(progress.console):
                if group.conversation_id not in checked:
                    _require_own(client, group.conversation_id, given["user"] or DEFAULT_USER, messages)
                    checked.add(group.conversation_id)
                placed = _append(conversation, group, lines.name, messages)
            replaced += sum(message.replaced for message in placed)
            messages += len(placed)
            progress.update(task, completed=group.position)
    report.end()
    there = f"; {counted(replaced, 'was replaced', 'were replaced')}" if replaced else ""
    diagnostics().print(f"{counted(messages - replaced, 'message')} imported{there}")


def _append(conversation: Conversation, group: ChatGroup, name: str, imported: int) -> Sequence[AppendedMessage]:
    """Append the group's messages. Raises CommandFailed with their place if the server takes less than this version."""
    try:
        return conversation.append(group.messages).messages
    except (InvalidFieldError, MessageTooLargeError, RequestTooLargeError) as error:
        place = group.place_of(error.metadata.get("field", ""))
        raise CommandFailed(
            f"{name}: {place}: {one_line(error)}; {counted(imported, 'message was', 'messages were')} imported before"
        ) from error


def _require_own(client: Remora, conversation_id: str, user: str, imported: int) -> None:
    """Raise CommandFailed if there is such a conversation of another user, to whom the messages do not belong."""
    try:
        owner = client.conversation(conversation_id).get().user_id
    except ConversationNotFoundError:
        return
    if owner != user:
        raise CommandFailed(
            f"conversation {conversation_id!r} belongs to user {owner!r}, not to {user!r}: name its owner with --user, "
            "or give the messages another conversation; "
            f"{counted(imported, 'message was', 'messages were')} imported before"
        )


def _import_records(given: dict[str, Any], lines: Lines, size: int | None) -> None:
    imported = 0
    with connected(given) as client, progress_of_bytes() as progress:
        task = progress.add_task("importing", total=size)
        try:
            for group in _groups(lines):
                imported += _send(client, group, lines.name, progress.console)
                progress.update(task, completed=lines.bytes)
        except CommandFailed as failure:
            raise CommandFailed(
                f"{failure}; {counted(imported, 'record was', 'records were')} imported before"
            ) from failure
    diagnostics().print(f"{counted(imported, 'record')} imported{_there(lines.records - imported)}")


def _there(count: int) -> str:
    return f"; {counted(count, 'was', 'were')} there already" if count else ""


def _groups(lines: Lines) -> Iterator[Group]:
    """The records, in the groups in which they are sent. The records before a wrong line are sent, too."""
    group = Group("")
    try:
        for value, size in lines.values():
            with lines.checked():
                record = parse_record(value)
            conversation_id = conversation_of(record)
            if not group.takes(conversation_id, size):
                yield group
                group = Group(conversation_id)
            group.add(record, f"line {lines.number}", size)
    except CommandFailed:
        if group.records:
            yield group
        raise
    if group.records:
        yield group


def _send(client: Remora, group: Group, name: str, console: Console) -> int:
    """Import a group. Returns how many records were new."""
    try:
        with noting_silence(console):
            return group.send(client)
    except RecordRefused as refused:
        raise CommandFailed(f"{name}: {refused}") from refused
