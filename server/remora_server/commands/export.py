"""`remora export`: a tenant's records as lines of JSON, page by page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

from msgspec import DecodeError, Meta, Struct, json
from rich.console import Console

from remora import Remora
from remora.errors import PageTokenInvalidError
from remora_server.commands.connecting import add_connection_flags, connected
from remora_server.commands.failures import CommandFailed, Misused
from remora_server.commands.numbers import counted
from remora_server.commands.output import diagnostics, noting_silence, progress_of_conversations
from remora_server.commands.parsing import filled, name
from remora_server.commands.records import first_line, is_first_line, is_last_line, last_line, record_line

STANDARD_OUTPUT = "-"


TAIL_BYTES = 1 << 12
"""More bytes than the first line of a file has, or the last line of a complete one."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]


class Reached(Struct, frozen=True):
    """How far an export is: the bytes of the file, its records, its conversations, and the token of the next page. The
    token is empty before the first page and after the last one.
    """

    bytes: Count = 0
    records: Count = 0
    conversations: Count = 0
    page_token: str = ""

    @property
    def is_last(self) -> bool:
        """Whether no page follows."""
        return self.bytes > 0 and not self.page_token

    @property
    def whole_conversations(self) -> int:
        """How many conversations are complete in it."""
        return self.conversations if self.is_last else max(0, self.conversations - 1)


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "file", type=filled, metavar="FILE", help="the file to write, which must not exist; - for standard output"
    )
    parser.add_argument("--user", type=name, help="only this user's conversations and working memory")
    parser.add_argument("--conversation", type=name, help="only this conversation")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted export to FILE")
    add_connection_flags(parser)


def run(given: dict[str, Any]) -> None:
    """Export."""
    if given["file"] == STANDARD_OUTPUT:
        if given["resume"]:
            raise Misused("--resume needs a file")
        _export(given, sys.stdout.buffer, Reached(), lambda _: None)
    else:
        _to_file(given, Path(given["file"]))


def _to_file(given: dict[str, Any], path: Path) -> None:
    exists = _exists(path)
    if exists and not given["resume"]:
        raise CommandFailed(f"{path} exists: go on with --resume, or name another file")
    if exists:
        _require_own(path, given)
    state = path.with_name(path.name + ".resume")
    if exists and _is_complete(path) and not state.exists():
        raise CommandFailed(f"{path} is a complete export and stays as it is: name another file")
    _write(given, path, state, _reached(path, state))
    state.unlink(missing_ok=True)


def _exists(path: Path) -> bool:
    """Raises CommandFailed where its folder may not be looked into."""
    try:
        return path.exists()
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from error


def _require_own(path: Path, given: dict[str, Any]) -> None:
    """Refuse a file that is not the beginning of this export. It may end within its first line."""
    line = b""
    if path.is_file():
        with _opened(path, os.O_RDONLY) as stream:
            line = stream.readline(TAIL_BYTES)
    if not path.is_file() or not is_first_line(line):
        raise CommandFailed(f"{path} is not an export and stays as it is: name another file")
    if not _head(given).startswith(line):
        raise CommandFailed(
            f"{path} is an export with another --user or --conversation: give the same, or another file"
        )


def _head(given: dict[str, Any]) -> bytes:
    return first_line(given["user"], given["conversation"])


def _is_complete(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - TAIL_BYTES))
        last = stream.read().splitlines(keepends=True)[-1:]
    return bool(last) and is_last_line(last[0])


def _write(given: dict[str, Any], path: Path, state: Path, reached: Reached) -> None:
    """Continue in a file. What it holds beyond the progress is truncated when the next page is written. A new file that
    stayed empty is removed.
    """
    with _opened(path, os.O_WRONLY | os.O_CREAT | (0 if given["resume"] else os.O_EXCL)) as stream:
        stream.seek(reached.bytes)
        try:
            _export(given, stream, reached, lambda now: _keep(state, stream, now))
        except BaseException:
            if not os.fstat(stream.fileno()).st_size:
                path.unlink(missing_ok=True)
            raise
        stream.truncate()
        os.fsync(stream.fileno())


def _opened(path: Path, flags: int) -> BinaryIO:
    """The file. Raises CommandFailed."""
    try:
        return os.fdopen(os.open(path, flags | os.O_CLOEXEC, 0o600), "rb" if flags == os.O_RDONLY else "wb")
    except OSError as error:
        verb = "read" if flags == os.O_RDONLY else "written"
        raise CommandFailed(f"{path} cannot be {verb}: {error.strerror}") from error


def _reached(path: Path, state: Path) -> Reached:
    """How far an interrupted export is. One without records begins anew. Raises CommandFailed for one whose progress is
    not known: only the token of its next page tells which tenant it is of.
    """
    if not path.exists() or not _has_records(path):
        return Reached()
    remedy = f"remove {path}, and the export begins anew, or name another file"
    try:
        left = json.decode(state.read_bytes(), type=Reached)
    except FileNotFoundError as error:
        raise CommandFailed(f"{path} cannot be continued, because {state} is missing: {remedy}") from error
    except (DecodeError, OSError) as error:
        raise CommandFailed(f"{path} cannot be continued, because {state} is damaged: {remedy}") from error
    if path.stat().st_size < left.bytes:
        raise CommandFailed(f"{path} cannot be continued, because it is shorter than {state} says: {remedy}")
    return left


def _has_records(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.readline()
        return bool(stream.read(1))


def _keep(state: Path, stream: BinaryIO, now: Reached) -> None:
    """Write what a later export needs to continue from here, after the records that it names are on the disk."""
    stream.truncate()
    os.fdatasync(stream.fileno())
    fresh = state.with_name(state.name + ".new")
    with fresh.open("wb") as written:
        written.write(json.encode(now))
        written.flush()
        os.fdatasync(written.fileno())
    fresh.rename(state)


def _export(given: dict[str, Any], stream: BinaryIO, reached: Reached, keep: Callable[[Reached], None]) -> None:
    try:
        with connected(given) as client, progress_of_conversations() as progress:
            total = None if progress.disable else _conversations(client, given)
            task = progress.add_task("exporting", total=total, records=0)
            while not reached.is_last:
                reached = _write_page(client, given, stream, reached, progress.console)
                if not reached.is_last:  # the token of the last page stays, so that it is asked for again
                    keep(reached)
                progress.update(task, completed=reached.whole_conversations, records=reached.records)
            stream.write(last_line(reached.records))
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandFailed(f"the export cannot be written: {error.strerror}") from error
    diagnostics().print(f"{counted(reached.records, 'record')} exported")


def _conversations(client: Remora, given: dict[str, Any]) -> int:
    """How many conversations there are to export."""
    return 1 if given["conversation"] is not None else client.count_conversations(user_id=given["user"])


def _write_page(client: Remora, given: dict[str, Any], stream: BinaryIO, reached: Reached, console: Console) -> Reached:
    """Write the next page. Returns the progress after it."""
    try:
        with noting_silence(console):
            page = client.export_records(
                user_id=given["user"], conversation_id=given["conversation"], page_token=reached.page_token
            )
    except PageTokenInvalidError as error:
        raise CommandFailed(
            f"{given['file']} is an export of another tenant or store: ask for that, or name another file"
        ) from error
    head = b"" if reached.bytes else _head(given)
    lines = head + b"".join(map(record_line, page.records))
    stream.write(lines)
    return Reached(
        reached.bytes + len(lines),
        reached.records + len(page.records),
        reached.conversations + sum(record.HasField("conversation") for record in page.records),
        page.next_page_token,
    )
