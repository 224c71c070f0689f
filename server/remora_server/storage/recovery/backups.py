"""Snapshots of the database, made while it serves, and verified.

A snapshot is copied by DuckDB within one transaction, never as a file: a consistent state, without what was deleted.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from msgspec import Struct

from remora_server.domain.backups import Backup, require_within
from remora_server.domain.calls import Read
from remora_server.domain.errors import BackupNotFound, BackupUnavailable, StoreFull
from remora_server.locking import Level, new_lock
from remora_server.storage.commit.clock import wall_clock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import SCHEMA_VERSION, Database, literal, table_names
from remora_server.storage.database.directory import FORMAT_VERSION, sync_file, sync_folder
from remora_server.storage.database.lacks import lack_of
from remora_server.storage.records.expiry import Expiry

READ_BYTES = 1 << 20
VERIFYING_BYTES = 128 << 20
"""Memory for the database that is opened to verify a snapshot."""


class Contents(Struct, frozen=True):
    """What a database holds: whose store, of each table how many rows and a sum of their digests, and the revision that
    it reaches.
    """

    store_id: str
    rows: dict[str, int]
    digests: dict[str, int]
    revision: int


class Backups:
    """Makes snapshots in a folder of the data directory, at most one at a time."""

    def __init__(
        self, database: Database, commits: Commits, expiry: Expiry, folder: Path | None, store_id: str
    ) -> None:
        """Clears what a process before left in the folder. None: the store is in memory."""
        self._database = database
        self._commits = commits
        self._expiry = expiry
        self._folder = folder
        self._store_id = store_id
        self._busy = new_lock(Level.BACKUP)
        self._kept: Backup | None = None
        self._clear()

    def create(self, deadline: float) -> Backup:
        """See `domain.backups.BackupStore`."""
        folder = self._folder
        if folder is None:
            raise BackupUnavailable("the store is in memory only: there is nothing to back up")
        if not self._busy.acquire(blocking=False):
            raise BackupUnavailable("another backup is under way")
        try:
            return self._replace(folder, deadline)
        finally:
            self._busy.release()

    def _replace(self, folder: Path, deadline: float) -> Backup:
        self._clear()
        revision = self._expiry.journal_all(deadline)
        self._commits.begin_query(Read(tenant_id="", min_revision=revision, deadline=deadline))
        try:
            with _telling_lacks(), self._database.copying:
                made = self._make(folder)
        except BaseException:
            self._clear()
            raise
        self._kept = made
        return made

    def read(self, backup_id: str, offset: int) -> bytes:
        """See `domain.backups.BackupStore`."""
        file = self._file(backup_id)
        try:
            require_within(offset, file.stat().st_size)
            with file.open("rb") as stream:
                stream.seek(offset)
                return stream.read(READ_BYTES)
        except FileNotFoundError:
            raise BackupNotFound(backup_id) from None

    def delete(self, backup_id: str) -> bool:
        """See `domain.backups.BackupStore`."""
        try:
            file = self._file(backup_id)
        except BackupNotFound:
            return False
        self._kept = None
        file.unlink(missing_ok=True)
        return True

    def _file(self, backup_id: str) -> Path:
        if self._folder is None or self._kept is None or self._kept.id != backup_id:
            raise BackupNotFound(backup_id)
        return self._folder / f"{backup_id}.duckdb"

    def _clear(self) -> None:
        self._kept = None
        if self._folder is not None and self._folder.exists():
            shutil.rmtree(self._folder)

    def _make(self, folder: Path) -> Backup:
        folder.mkdir(mode=0o700)
        if shutil.disk_usage(folder).free < self._database.bytes():
            raise StoreFull
        backup_id = uuid.uuid4().hex
        file = folder / f"{backup_id}.duckdb"
        copied = self._copy(file)
        _require_same(copied, contents_of(file))
        return Backup(
            id=backup_id,
            revision=copied.revision,
            store_id=self._store_id,
            format_version=FORMAT_VERSION,
            schema_version=SCHEMA_VERSION,
            duckdb_version=duckdb.__version__,
            create_time=wall_clock(),
            size=file.stat().st_size,
            sha256=digest_of(file),
            rows=copied.rows,
        )

    def _copy(self, file: Path) -> Contents:
        """Copy the database into a new file, and say what it held."""
        cursor = self._database.cursor()
        cursor.execute(f"ATTACH {literal(str(file))} AS snapshot")
        try:
            copied = self._copy_tables()
            cursor.execute("CHECKPOINT snapshot")
        finally:
            cursor.execute("DETACH DATABASE IF EXISTS snapshot")
        sync_file(file)
        sync_folder(file.parent)
        return copied

    def _copy_tables(self) -> Contents:
        copied: list[Contents] = []

        def copy(cursor: duckdb.DuckDBPyConnection) -> None:
            copied.append(_contents(cursor))
            name = cursor.execute("SELECT current_database()").fetchall()[0][0]
            cursor.execute(f'COPY FROM DATABASE "{name}" TO snapshot')

        self._database.transact(copy)
        return copied[0]


def contents_of(file: Path) -> Contents:
    """What a database file holds, opened read-only. Raises duckdb.Error where it cannot be read."""
    config: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "memory_limit": f"{VERIFYING_BYTES}B"}
    with duckdb.connect(str(file), read_only=True, config=config) as connection:
        return _contents(connection)


def digest_of(file: Path) -> bytes:
    """The SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _contents(cursor: duckdb.DuckDBPyConnection) -> Contents:
    rows, digests = {}, {}
    for name in table_names(cursor):
        found = cursor.execute(f'SELECT count(*), coalesce(sum(hash(t)), 0) FROM "{name}" t').fetchall()  # noqa: S608
        rows[name], digests[name] = int(found[0][0]), int(found[0][1])
    facts = dict(cursor.execute("SELECT key, value FROM meta").fetchall())
    return Contents(facts.get("store_id", ""), rows, digests, int(facts.get("applied_revision", 0)))


def _require_same(live: Contents, copied: Contents) -> None:
    if live != copied:
        raise RuntimeError("the snapshot does not hold what the database held when it was made")


@contextmanager
def _telling_lacks() -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if lack := lack_of(error):
            raise lack from error
        raise
