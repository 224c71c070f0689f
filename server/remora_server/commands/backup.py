"""`remora backup`: a snapshot of the whole store, made by the server while it serves, checked after the download."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from remora import Remora, RemoraError
from remora.errors import DeadlineExceededError, OperatorOnlyError
from remora.v1.admin_service_pb2 import Backup
from remora_server.commands.connecting import add_connection_flags, connected
from remora_server.commands.failures import CommandFailed
from remora_server.commands.manifest import FILE_NAME, SNAPSHOT_NAME, Manifest
from remora_server.commands.numbers import counted, duration
from remora_server.commands.operator_token import token_in
from remora_server.commands.output import diagnostics, progress_of_bytes
from remora_server.commands.parsing import path, store_path
from remora_server.commands.setting_flags import load_settings
from remora_server.commands.unfinished import unfinished
from remora_server.domain.errors import one_line
from remora_server.domain.sizes import size


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "destination", metavar="DEST", type=store_path, help="the folder to write the backup to; it must not exist"
    )
    parser.add_argument(
        "--data",
        type=path,
        metavar="DIR",
        help="the server's data directory, for its operator.token (default: $REMORA_TOKEN, else the setting data)",
    )
    parser.add_argument(
        "--seconds",
        type=duration,
        default=3_600.0,
        help="the seconds that the server may take to make it (default: 3600)",
    )
    add_connection_flags(parser)


def run(given: dict[str, Any]) -> None:
    """Back up."""
    destination: Path = given["destination"]
    if destination.exists():
        raise CommandFailed(f"{destination} exists: name a folder that does not")
    if given["token"] is None and given["data"] is not None:
        given["token"] = token_in(given["data"])
    with connected(given, token=_token_of_settings()) as client:
        manifest = _backup(client, destination, given["seconds"])
    held = f"revision {manifest.revision}, {counted(manifest.messages, 'message')}, {size(manifest.bytes)}"
    diagnostics().print(f"{destination}: {held}, verified")


def _token_of_settings() -> str | None:
    """The operator's token in the data directory of the settings; None if it cannot be read."""
    directory = load_settings({}).settings.data
    with suppress(CommandFailed):
        return None if directory is None else token_in(directory)
    return None


def _backup(client: Remora, destination: Path, seconds: float) -> Manifest:
    try:
        with unfinished(destination, names=(SNAPSHOT_NAME, FILE_NAME)) as folder, _made(client, seconds) as backup:
            _receive(client, backup, folder / SNAPSHOT_NAME)
            manifest = Manifest.of(backup)
            _write(folder / FILE_NAME, manifest.text().encode())
    except OSError as error:
        raise CommandFailed(f"{destination} cannot be written: {error.strerror}") from error
    return manifest


@contextmanager
def _made(client: Remora, seconds: float) -> Iterator[Backup]:
    """A snapshot on the server, which is deleted at the end. If that fails, the next backup deletes it."""
    backup = _snapshot(client, seconds)
    try:
        yield backup
    finally:
        with suppress(RemoraError):
            client.delete_backup(backup.id)


def _snapshot(client: Remora, seconds: float) -> Backup:
    try:
        return client.create_backup(timeout=seconds)
    except DeadlineExceededError as error:
        raise CommandFailed(f"the server made no snapshot in {seconds:g} s: raise --seconds") from error
    except OperatorOnlyError as error:
        raise CommandFailed(f"{one_line(error)}: name that directory (--data)") from error


def _receive(client: Remora, backup: Backup, file: Path) -> None:
    digest = hashlib.sha256()
    with _created(file) as stream, progress_of_bytes() as progress:
        task = progress.add_task("receiving", total=backup.bytes)
        for part in _parts(client, backup.id):
            stream.write(part)
            digest.update(part)
            progress.update(task, advance=len(part))
        _sync(stream)
    if digest.digest() != backup.sha256:
        raise CommandFailed("what arrived is not what the server has sent: try again")


def _parts(client: Remora, backup_id: str) -> Iterator[bytes]:
    offset = 0
    while part := client.read_backup(backup_id, offset):
        yield part
        offset += len(part)


def _created(file: Path) -> BinaryIO:
    """A new file that only its owner can read."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _write(file: Path, content: bytes) -> None:
    with _created(file) as stream:
        stream.write(content)
        _sync(stream)


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())
