"""Makes a data directory of a snapshot: its database, and a journal that goes on behind the snapshot's revision."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

from remora_server import _native
from remora_server._native import Core
from remora_server.storage.backups import digest_of, rows_of
from remora_server.storage.database import FILE_NAME, SCHEMA_VERSION
from remora_server.storage.directory import FORMAT_VERSION, DirectoryError, NewDirectory, sync_file


class SnapshotError(Exception):
    """A snapshot cannot be restored; the message says why."""


def restore(snapshot: Path, directory: Path, *, store_id: bytes, revision: int) -> None:
    """Make `directory` (empty, or not there) the data directory of the store as it was at the snapshot's revision.

    What a restore before this one left unfinished is made anew. Raises DirectoryError, SnapshotError.
    """
    with NewDirectory(directory, store_id) as begun:
        file = directory / FILE_NAME
        try:
            shutil.copyfile(snapshot, file)
            sync_file(file)
            _begin_journal(begun.journal, store_id, revision)
        except (OSError, _native.JournalError) as error:
            raise DirectoryError(f"{directory} cannot be written: {error}") from error
        begun.finish()


def _begin_journal(directory: Path, store_id: bytes, revision: int) -> None:
    core = Core(str(directory), store_id=store_id, applied_revision=revision, start_after=revision)
    core.close()


def require_whole(
    snapshot: Path, *, sha256: bytes, rows: dict[str, int], revision: int, format_version: int, schema_version: int
) -> None:
    """Check that a snapshot is what its manifest says, and that this version can read it. Raises SnapshotError."""
    if format_version > FORMAT_VERSION or schema_version > SCHEMA_VERSION:
        raise SnapshotError("it was written by a newer version of Remora: upgrade Remora")
    try:
        if digest_of(snapshot) != sha256:
            raise SnapshotError(f"{snapshot} is damaged: its SHA-256 is not that of the manifest")
        found = rows_of(snapshot)
    except (OSError, duckdb.Error) as error:
        raise SnapshotError(f"{snapshot} cannot be read: {' '.join(str(error).split())}") from error
    if found != (rows, revision):
        raise SnapshotError(f"{snapshot} does not hold what its manifest says")
