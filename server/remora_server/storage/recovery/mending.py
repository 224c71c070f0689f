"""Handles a database that cannot be used: it is set aside and rebuilt from the journal, or the start is refused.

Nothing is moved before it is certain that the journal holds everything that will then be missing.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from remora_server import _native
from remora_server.domain.errors import one_line
from remora_server.storage.database.database import DAMAGE_MARK, FILE_NAME, is_damage, table_names
from remora_server.storage.database.directory import DataDirectory, DirectoryError, sync_folder

logger = logging.getLogger(__name__)

WAL_NAME = FILE_NAME + ".wal"
DAMAGED = "damaged"


def advice(directory: Path) -> str:
    """What to do about a store that cannot be opened."""
    return (
        "restore a backup (`remora restore`), or save what can be saved into a new directory: "
        f"`remora repair --data {directory} --to NEWDIR`"
    )


def require_database(directory: DataDirectory) -> None:
    """Look whether the database's file is there where it should be, and is whole where a read has met damage; what is
    left of a lost one is set aside, and the journal makes it good. Raises DirectoryError if it cannot.
    """
    if (directory.path / FILE_NAME).exists():
        _mend_known_damage(directory)
    elif directory.has_begun or (directory.path / WAL_NAME).exists() or any(directory.journal.glob("*.journal")):
        _rebuild(directory, "the database is missing")


def _mend_known_damage(directory: DataDirectory) -> None:
    """Where the journal cannot make it good, the rest of the store is served as it is."""
    mark = directory.path / DAMAGE_MARK
    if not mark.exists():
        return
    try:
        if (error := _damage(directory.path / FILE_NAME)) is not None:
            mend(directory, error)
    except DirectoryError as refused:
        logger.warning("a part of the database is damaged; the others are served", extra={"reason": str(refused)})
    else:
        mark.unlink(missing_ok=True)


def mend(directory: DataDirectory, error: BaseException) -> None:
    """Set aside what makes the database fail so, if the journal makes it good; the store can then be opened again.

    Raises DirectoryError if that cannot be done.
    """
    _require_damage(directory, error)
    if (directory.path / WAL_NAME).exists() and _is_log_to_blame(directory):
        logger.warning(
            "the database's write-ahead log is damaged; it is set aside, and the journal makes it good",
            extra={"reason": one_line(error), "kept_in": str(_set_aside(directory, WAL_NAME))},
        )
    else:
        _rebuild(directory, f"the database cannot be read: {one_line(error)}")


def rebuild(directory: DataDirectory, error: BaseException) -> None:
    """Set the database aside as a whole, where `mend` was not enough. Raises DirectoryError if it cannot."""
    _require_damage(directory, error)
    _rebuild(directory, f"the database cannot be read: {one_line(error)}")


def _require_damage(directory: DataDirectory, error: BaseException) -> None:
    if not is_damage(error):
        raise DirectoryError(f"the database in {directory.path} cannot be opened: {one_line(error)}") from error


def _rebuild(directory: DataDirectory, reason: str) -> None:
    """Set the whole database aside, if the journal reaches back to the first revision."""
    found = _inspect(directory, applied=0)
    if not holds_all(found):
        raise DirectoryError(f"{reason}, and {_held(found)}: {advice(directory.path)}")
    kept = [str(_set_aside(directory, name)) for name in (WAL_NAME, FILE_NAME) if (directory.path / name).exists()]
    (directory.path / DAMAGE_MARK).unlink(missing_ok=True)
    logger.warning(
        "the database is rebuilt from the journal",
        extra={"reason": reason, "kept_in": ", ".join(kept) or "nothing", "revision": found.last_revision},
    )


def holds_all(found: _native.JournalInspection) -> bool:
    """Whether a journal rebuilds the database from nothing."""
    return bool(found.segments) and found.first_revision == 1 and not found.refused


def _held(found: _native.JournalInspection) -> str:
    if not found.segments:
        return "there is no journal"
    refusals = [finding for finding in found.findings if not finding.torn_end]
    if found.first_revision > 1 or not refusals:
        return f"the journal holds revisions {found.first_revision} to {found.last_revision} only"
    return f"the journal is damaged in {refusals[0].segment} at byte {refusals[0].offset}: {refusals[0].reason}"


def _is_log_to_blame(directory: DataDirectory) -> bool:
    """Whether the file can be read through without its log alone, and the journal holds what is not in it."""
    try:
        with linked_file(directory.path) as file:
            facts = _read_through(file)
    except (duckdb.Error, OSError):
        return False
    require_owner(directory.path, facts.get("store_id"), directory.store_id)
    is_sound_with_log = _damage(directory.path / FILE_NAME) is None
    return not is_sound_with_log and not _inspect(directory, int(facts.get("applied_revision", 0))).refused


def _damage(file: Path) -> duckdb.Error | None:
    """What reading all of a database finds, with its write-ahead log if there is one beside it."""
    try:
        _read_through(file)
    except duckdb.Error as error:
        return error
    return None


def _read_through(file: Path) -> dict[str, str]:
    """Read all of a database; what it says of itself. Raises duckdb.Error."""
    with read_only(file) as connection:
        for table in table_names(connection):
            read_table(connection, table)
        return dict(connection.execute("SELECT key, value FROM meta").fetchall())


def read_table(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    """Read every value of a table: each block has a checksum, which reading compares.

    Returns how many rows there are. Raises duckdb.Error.
    """
    count: int
    [(count, _)] = connection.execute(
        f"SELECT count(*), bit_xor(hash({table})) FROM {table}"  # noqa: S608 - a table of ours
    ).fetchall()
    return count


def require_owner(directory: Path, owner: str | None, store_id: bytes) -> None:
    """Raise DirectoryError if the database says that it belongs to another store."""
    if owner not in (None, store_id.hex()):
        what = f"the database belongs to store {owner}, the directory to {store_id.hex()}"
        raise DirectoryError(f"{what}: {advice(directory)}")


def _inspect(directory: DataDirectory, applied: int) -> _native.JournalInspection:
    directory.journal.mkdir(mode=0o700, exist_ok=True)
    try:
        return _native.inspect_journal(directory.journal, store_id=directory.store_id, applied_revision=applied)
    except _native.JournalError as error:
        raise DirectoryError(f"the journal cannot be read: {error}") from error


@contextmanager
def linked_file(directory: Path) -> Iterator[Path]:
    """The database's file under a second name, beside which there is no write-ahead log, while it is looked at.

    A hard link, because DuckDB follows the other kind to the log; thus on the same file system. Raises OSError.
    """
    with tempfile.TemporaryDirectory(prefix=".look-", dir=directory) as folder:
        link = Path(folder, FILE_NAME)
        link.hardlink_to(directory / FILE_NAME)
        yield link


@contextmanager
def read_only(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a database that changes nothing, not even its write-ahead log. Raises duckdb.Error."""
    connection = duckdb.connect(
        str(file),
        read_only=True,
        config={
            "threads": 1,
            "temp_directory": "",
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
        },
    )
    try:
        yield connection
    finally:
        connection.close()


def _set_aside(directory: DataDirectory, name: str) -> Path:
    """Set a file of the data directory aside, durably."""
    folder = directory.path / DAMAGED
    folder.mkdir(mode=0o700, exist_ok=True)
    number = 0
    while (kept := folder / f"{name}.{number}").exists():
        number += 1
    (directory.path / name).rename(kept)
    for changed in (folder, directory.path):
        sync_folder(changed)
    return kept
