"""Commands, in this process or in processes of their own, as a shell starts them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.patience import PATIENCE

from remora.v1 import transfer_service_pb2 as transfers
from remora_server.commands.records import first_line, last_line, record_line
from remora_server.main import main

NONE: Mapping[str, str] = {}
REMORA = [sys.executable, "-m", "remora_server.main"]


@dataclass(frozen=True)
class Ended:
    """How a command ended, and the most memory that it held, in bytes."""

    code: int
    error: str
    memory: int


def environment(endpoint: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that asks a server."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REMORA_")}
    return clean | {"REMORA_ENDPOINT": endpoint, **variables}


def begin(
    endpoint: str, *arguments: str | Path, variables: Mapping[str, str] = NONE, program: Sequence[str] = REMORA
) -> subprocess.Popen[bytes]:
    """A command that is under way."""
    return subprocess.Popen(
        [*program, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(endpoint, variables),
    )


def remora(
    endpoint: str, *arguments: str | Path, given: bytes = b"", variables: Mapping[str, str] = NONE
) -> tuple[int, bytes, str]:
    """A command's exit code, its output and what it said beside that.

    It runs in this process, on files for its streams: to begin a process takes longer than most commands.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdin,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stderr,
        patch.multiple(sys, stdin=stdin, stdout=stdout, stderr=stderr),
        patch.dict(os.environ, environment(endpoint, variables), clear=True),
    ):
        stdin.buffer.write(given)
        stdin.seek(0)
        code = _ended(*map(str, arguments))
        stdout.seek(0)
        stderr.seek(0)
        return code, bytes(stdout.buffer.read()), stderr.read()


def _ended(*arguments: str) -> int:
    """The exit code of a command."""
    mask = os.umask(0o022)
    os.umask(mask)
    try:
        return main(arguments)
    except SystemExit as ended:  # after help, and where the command line is wrong
        return int(ended.code or 0)
    finally:
        os.umask(mask)


def done(endpoint: str, *arguments: str | Path, variables: Mapping[str, str] = NONE) -> bytes:
    """The output of a command that must succeed."""
    code, output, error = remora(endpoint, *arguments, variables=variables)
    assert code == 0, error
    return output


def measured(endpoint: str, *arguments: str | Path) -> Ended:
    """A command to its end, with its memory."""
    process = begin(endpoint, *arguments)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read().decode()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(process.returncode, error, usage.ru_maxrss * 1024)


def on_terminal(endpoint: str, *arguments: str | Path, **variables: str) -> str:
    """What a command that must succeed shows where standard output is a terminal."""
    with showing(endpoint, *arguments, stream="stdout", **variables) as (process, shown):
        output = b"".join(shown)
    assert process.returncode == 0
    return output.decode().replace("\r\n", "\n")


@contextmanager
def showing(
    endpoint: str, *arguments: str | Path, stream: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[bytes]]]:
    """A command whose `stdout` or `stderr` is a terminal, and what it shows there, as it comes."""
    leader, follower = pty.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: follower}
    given = environment(endpoint, {"TERM": "xterm-256color", "COLUMNS": "60", **variables})
    process = subprocess.Popen(
        [*REMORA, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=streams["stdout"],
        stderr=streams["stderr"],
        env=given,
    )
    os.close(follower)
    try:
        yield process, _shown(leader)
        process.wait(PATIENCE)
    finally:
        os.close(leader)
        process.kill()
        process.wait()


def _shown(leader: int) -> Iterator[bytes]:
    with suppress(OSError):  # what Linux says when the other end is closed
        while part := os.read(leader, 1 << 16):
            yield part


def conversation_lines(name: str, count: int, text: str) -> list[bytes]:
    """The lines of a conversation of so many messages, written a second apart; every third sequence is a gap."""
    sequences = [number + number // 2 for number in range(1, count + 1)]
    conversation = transfers.Record()
    own = conversation.conversation.conversation
    own.id, own.user_id, own.last_sequence = name, "sarah", sequences[-1]
    own.create_time.seconds, own.update_time.seconds = 1, sequences[-1]
    conversation.conversation.last_append_time.seconds = sequences[-1]
    return [record_line(conversation), *(record_line(_message(name, number, text)) for number in sequences)]


def _message(name: str, sequence: int, text: str) -> transfers.Record:
    record = transfers.Record()
    record.message.conversation_id = name
    message = record.message.message
    message.id, message.user_id, message.role, message.sequence = f"m{sequence}", "sarah", "user", sequence
    message.text = f"{sequence} {text}"
    message.create_time.seconds = message.update_time.seconds = sequence
    return record


def write_export(path: Path, lines: Sequence[bytes]) -> None:
    """A complete export of these records."""
    path.write_bytes(first_line() + b"".join(lines) + last_line(len(lines)))


def without_token_counts(content: bytes) -> bytes:
    """An export as it would be before the server counted tokens."""
    head, *rest = content.split(b',"token_count":')
    return head + b"".join(part[part.index(b",") if b"," in part[:8] else part.index(b"}") :] for part in rest)
