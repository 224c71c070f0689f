"""A data directory: its format, its store's id, and the lock that keeps a second process out."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Annotated, Self

import msgspec
from msgspec import Meta, Struct

from remora_server import failpoints
from remora_server.storage.database.database import FILE_NAME
from remora_server.storage.database.disk_space import is_lack_of_space

FORMAT_VERSION = 1
OPERATOR_TOKEN_FILE = "operator.token"  # noqa: S105 - a file's name
_FORMAT_FILE = "FORMAT"
_LOCK_FILE = "LOCK"
_JOURNAL = "journal"
_NEW = ".new"
_UNFINISHED_FILE = "FORMAT.unfinished"
# What may stand in a directory that is still to be begun: the lock, what a start that was killed left, and what a new
# file system brings.
_HARMLESS = {_LOCK_FILE, _FORMAT_FILE + _NEW, _UNFINISHED_FILE + _NEW, "lost+found"}

_MARKS = (_FORMAT_FILE, _UNFINISHED_FILE, _JOURNAL, FILE_NAME, _LOCK_FILE)
"""A directory with one of these is a data directory, or was to become one."""

FOREIGN = "is not empty and is not a data directory of Remora"
_REFUSED = f"{FOREIGN}: use another (--data)"
_NOT_EMPTY = "is not empty: name another directory, or empty it"


class DirectoryError(Exception):
    """The data directory cannot be used; the message says why and what to do."""


class Format(Struct, frozen=True):
    """The content of the file FORMAT. `begun`: the store was open once, so that it had a database and a journal."""

    format_version: Annotated[int, Meta(ge=1)]
    store_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    begun: bool = False


class FormatDamaged(Exception):
    """The file FORMAT is malformed."""


def read_format(directory: Path) -> Format:
    """The format of a data directory, also if this version does not know it. Raises OSError, FormatDamaged."""
    file = directory / _FORMAT_FILE
    try:
        return msgspec.json.decode(file.read_bytes(), type=Format)
    except msgspec.DecodeError as error:
        raise FormatDamaged(f"{file} is damaged: restore it from a backup of the directory") from error


def is_unfinished(directory: Path) -> bool:
    """Whether a restore or a repair into a directory was interrupted."""
    return (directory / _UNFINISHED_FILE).exists()


class DataDirectory:
    """An open data directory. Holds the lock until `close`, or the end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._has_begun = False
        _refuse_foreign(path, _REFUSED)
        self._lock = _locked(path)
        try:
            self.store_id = self._read_format()
            self._require_journal()
        except BaseException:
            self.close()
            raise

    @property
    def has_begun(self) -> bool:
        """Whether the store was open once, so that it had a database and a journal."""
        return self._has_begun

    def mark_begun(self) -> None:
        """Record that the store is open."""
        if not self._has_begun:
            self._has_begun = True
            _write_durably(self.path / _FORMAT_FILE, _format(self.store_id, begun=True))

    @property
    def journal(self) -> Path:
        """Where the journal lives."""
        return self.path / _JOURNAL

    @property
    def backups(self) -> Path:
        """Where snapshots wait to be read."""
        return self.path / "backups"

    def write_operator_token(self, token: str) -> None:
        """Leave the operator's token where only the owner of the directory can read it. A full disk has room for it in
        the place of the last start's.
        """
        file = self.path / OPERATOR_TOKEN_FILE
        try:
            _write_durably(file, token.encode())
        except OSError as error:
            if not (is_lack_of_space(error) and file.exists()):
                raise
            _write_over(file, token.encode())

    def close(self) -> None:
        """Release the lock for other processes."""
        os.close(self._lock)

    def _read_format(self) -> bytes:
        """The id of the store; a new directory gets one."""
        if not (self.path / _FORMAT_FILE).exists():
            return self._begin()
        try:
            found = read_format(self.path)
        except FormatDamaged as error:
            raise DirectoryError(str(error)) from error
        if found.format_version > FORMAT_VERSION:
            raise DirectoryError(
                f"{self.path} has format {found.format_version}; this version of Remora reads up to {FORMAT_VERSION}: "
                "upgrade Remora"
            )
        self._has_begun = found.begun
        return bytes.fromhex(found.store_id)

    def _begin(self) -> bytes:
        names = {entry.name for entry in contents(self.path)}
        if _UNFINISHED_FILE not in names and self._holds_store():
            raise DirectoryError(
                f"{self.path} holds a store, but its file {_FORMAT_FILE} is missing. Save the store with it into a new "
                f"directory: `remora repair --data {self.path} --to NEWDIR`"
            )
        if names:
            raise DirectoryError(f"{self.path} {_REFUSED}")
        store_id = uuid.uuid4().bytes
        _write_durably(self.path / _FORMAT_FILE, _format(store_id, begun=False))
        failpoints.hit("directory_begun")
        return store_id

    def _holds_store(self) -> bool:
        return (self.path / FILE_NAME).exists() or self._holds_journal()

    def _require_journal(self) -> None:
        """A store that was open must have a journal. A new one would hide the loss of the old one."""
        if self._has_begun and not self._holds_journal():
            raise DirectoryError(
                f"{self.path} holds a store, but its journal is missing, and what was in it alone is lost: restore a "
                f"backup, or save the rest into a new directory: `remora repair --data {self.path} --to NEWDIR`"
            )

    def _holds_journal(self) -> bool:
        try:
            return any(entry.name.endswith(".journal") for entry in self.journal.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return False


class NewDirectory:
    """A data directory that is made from a backup or a damaged store. It cannot be served before `finish`.

    What failed, or was interrupted, leaves nothing that the next does not clear. Raises DirectoryError if the
    directory is not empty.
    """

    def __init__(self, path: Path, store_id: bytes) -> None:
        self.path = path
        self._store_id = store_id

    @property
    def journal(self) -> Path:
        """Where the journal lives."""
        return self.path / _JOURNAL

    def __enter__(self) -> Self:
        _refuse_foreign(self.path, _NOT_EMPTY)
        self._lock = _locked(self.path)
        try:
            self._require_empty()
            _write_durably(self.path / _UNFINISHED_FILE, _format(self._store_id, begun=True))
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def finish(self) -> None:
        """Complete the directory, so that it can be served."""
        (self.path / _UNFINISHED_FILE).rename(self.path / _FORMAT_FILE)
        sync_folder(self.path)

    def __exit__(self, *_: object) -> None:
        try:
            self._clear_unfinished()
        finally:
            os.close(self._lock)

    def _require_empty(self) -> None:
        self._clear_unfinished()
        if (self.path / _FORMAT_FILE).exists() or contents(self.path):
            raise DirectoryError(f"{self.path} {_NOT_EMPTY}")

    def _clear_unfinished(self) -> None:
        unfinished = self.path / _UNFINISHED_FILE
        if unfinished.exists():
            for entry in contents(self.path) - {unfinished}:
                _remove(entry)
            unfinished.unlink()


def contents(path: Path) -> set[Path]:
    """The entries of a directory, without those that an unused one may have: a socket may be that of the server itself.
    Raises OSError.
    """
    return {entry for entry in path.iterdir() if entry.name not in _HARMLESS and not entry.is_socket()}


def is_foreign(path: Path) -> bool:
    """Whether a directory holds only something else. Raises OSError."""
    return not any((path / name).exists() for name in _MARKS) and bool(contents(path))


def _refuse_foreign(path: Path, complaint: str) -> None:
    """Refuse a directory with other content before anything is written to it. Raises DirectoryError."""
    try:
        has_to_be_refused = is_foreign(path)
    except OSError:  # it does not exist, or cannot be read: taking its lock says so
        return
    if has_to_be_refused:
        raise DirectoryError(f"{path} {complaint}")


def _locked(path: Path) -> int:
    """The lock of a directory, which is made where it is not there. Raises DirectoryError if another holds it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DirectoryError(f"the data directory {path} cannot be made: {error.strerror}") from error
    try:
        lock = os.open(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DirectoryError(f"the data directory {path} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise DirectoryError(f"another process serves {path}: stop it, or use another directory (--data)") from error
    return lock


def _format(store_id: bytes, *, begun: bool) -> bytes:
    return json.dumps({"format_version": FORMAT_VERSION, "store_id": store_id.hex(), "begun": begun}).encode()


def _remove(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry)
    else:
        entry.unlink()


def _write_durably(file: Path, content: bytes) -> None:
    """Write a file atomically, for its owner only: it has all its content, or does not exist."""
    fresh = file.with_name(file.name + _NEW)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.rename(file)
    sync_folder(file.parent)


def _write_over(file: Path, content: bytes) -> None:
    """Write a file in the blocks that it has."""
    with file.open("r+b", buffering=0) as stream:
        stream.write(content)
        stream.truncate()


def sync_file(path: Path) -> None:
    """Sync a file's content, so that it survives a crash."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Sync a folder's entries, so that they survive a crash."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
