"""The folder in which a backup is made, until it is complete. It has a mark; a folder without a mark is not touched."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from remora_server.commands.failures import CommandFailed
from remora_server.storage.database.directory import sync_folder

MARK = "UNFINISHED"
"""An empty file, locked by the process that makes the backup. An unlocked mark is left over from an earlier process."""


@contextmanager
def unfinished(destination: Path, *, names: Collection[str]) -> Iterator[Path]:
    """A folder beside the destination for files of these names. It becomes the destination at the end. If the work in
    it fails, they are removed.

    It is new, or left over from a backup that was killed. Raises CommandFailed if it is neither, or if another process
    uses it.
    """
    folder = destination.with_name(destination.name + ".partial")
    with _marked(folder):
        try:
            _remove(folder, names)
            yield folder
            (folder / MARK).unlink()
            sync_folder(folder)
            folder.rename(destination)
            sync_folder(destination.parent)
        except BaseException:
            _remove(folder, names)
            (folder / MARK).unlink(missing_ok=True)
            with suppress(OSError):  # others' files are in it
                folder.rmdir()
            raise


@contextmanager
def _marked(folder: Path) -> Iterator[None]:
    mark = os.open(folder / MARK, os.O_RDWR | os.O_CLOEXEC | _making(folder), 0o600)
    try:
        _lock(mark, folder)
        yield
    finally:
        os.close(mark)


def _making(folder: Path) -> int:
    """Make the folder. Returns the flag with which a new one gets its mark, or 0 if it has one."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not (folder / MARK).is_file():
            raise CommandFailed(
                f"{folder} exists and is not an unfinished backup: move it away, or name another"
            ) from None
        return 0
    return os.O_CREAT


def _lock(mark: int, folder: Path) -> None:
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _under_way(folder) from None
    if not os.fstat(mark).st_nlink:  # another process finished it between the two calls
        raise _under_way(folder)


def _under_way(folder: Path) -> CommandFailed:
    return CommandFailed(f"another backup is being made in {folder}: wait for it, or name another folder")


def _remove(folder: Path, names: Collection[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
