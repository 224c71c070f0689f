"""Makes a data directory from a snapshot: its database, and a journal that continues after the snapshot's revision."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

from remora_server import _native
from remora_server._native import Core
from remora_server.domain.errors import one_line
from remora_server.storage.database.database import FILE_NAME, SCHEMA_VERSION
from remora_server.storage.database.directory import FORMAT_VERSION, DirectoryError, NewDirectory, sync_file
from remora_server.storage.database.disk_space import is_lack_of_space
from remora_server.storage.recovery.backups import contents_of, digest_of


class SnapshotError(Exception):
    """A snapshot cannot be restored; the message says why."""


def restore(snapshot: Path, directory: Path, *, store_id: bytes, revision: int) -> None:
    """Make `directory` (empty, or not there) the data directory of the store as it was at the snapshot's revision.

    What a restore before this one left unfinished is made anew. Raises DirectoryError, SnapshotError.
    """
    file = directory / FILE_NAME
    try:
        with NewDirectory(directory, store_id) as begun:
            shutil.copyfile(snapshot, file)
            sync_file(file)
            begin_journal(begun.journal, store_id, revision)
            begun.finish()
    except (OSError, _native.JournalError) as error:
        remedy = "make room, or name a directory on another disk: " if is_lack_of_space(error) else ""
        raise DirectoryError(f"{directory} cannot be written: {remedy}{one_line(error)}") from error


def begin_journal(directory: Path, store_id: bytes, revision: int) -> None:
    """Make a journal that continues after a revision. Raises JournalError."""
    core = Core(str(directory), store_id=store_id, applied_revision=revision, start_after=revision)
    core.close()


def require_whole(
    snapshot: Path,
    *,
    size: int,
    sha256: bytes,
    contents: tuple[str, int, dict[str, int]],
    format_version: int,
    schema_version: int,
) -> None:
    """Check that a snapshot is what its manifest says, and that this version can read it. Raises SnapshotError.

    `contents`: the store's id in hexadecimal digits, the revision, and the rows of each table.
    """
    if format_version > FORMAT_VERSION or schema_version > SCHEMA_VERSION:
        raise SnapshotError("it was written by a newer version of Remora: upgrade Remora")
    try:
        if (found_size := snapshot.stat().st_size) != size:
            raise SnapshotError(f"{snapshot} is damaged: it has {found_size} bytes, its manifest says {size}")
        if digest_of(snapshot) != sha256:
            raise SnapshotError(f"{snapshot} is damaged: its SHA-256 is not that of the manifest")
        found = contents_of(snapshot)
    except (OSError, duckdb.Error) as error:
        raise SnapshotError(f"{snapshot} cannot be read: {one_line(error)}") from error
    if (found.store_id, found.revision, found.rows) != contents:
        raise SnapshotError(f"{snapshot} does not hold what its manifest says")
