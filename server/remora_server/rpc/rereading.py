"""Files of credentials that are read again when they change: what is in them is rotated while the server runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from remora_server import failpoints
from remora_server.rpc.private_files import CredentialFileError
from remora_server.supervision import LongLived

LOOK_SECONDS = 0.5

logger = logging.getLogger(__name__)

State: TypeAlias = "tuple[tuple[int, ...] | None, ...]"
"""What changes with files."""


class Source(Struct, frozen=True):
    """Files that are read together, their state before they were read, and what reads them again. That raises
    CredentialFileError, and has changed nothing then.
    """

    files: tuple[Path, ...]
    state: State
    reread: Callable[[], None]


class Rereading:
    """Looks at files twice a second. What has changed, and stays so for one more look, is read again: files that belong
    together are replaced one after the other.
    """

    def __init__(self, sources: Sequence[Source], changed: Callable[[], None]) -> None:
        """`changed` is called when something was read again."""
        self._watched = [_Watched(source, changed) for source in sources]
        self._ended = threading.Event()
        self._thread = LongLived("rereading", self._look)

    def start(self) -> None:
        """Begin to look."""
        if self._watched:
            self._thread.start()

    @property
    def failure(self) -> str:
        """Why nobody looks; empty where somebody does."""
        return self._thread.failure

    def close(self) -> None:
        """Look no more."""
        self._thread.end()
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            for watched in self._watched:
                watched.look()


class _Watched:
    def __init__(self, source: Source, changed: Callable[[], None]) -> None:
        self._source = source
        self._changed = changed
        self._read = self._seen = source.state

    def look(self) -> None:
        """Read again what has changed. Whatever fails in it is done anew by the next look."""
        state = state_of(self._source.files)
        is_settled, self._seen = state == self._seen, state
        if not is_settled or state == self._read:
            return
        failpoints.hit("rereading_turn")
        if self._reread():
            self._changed()
        self._read = state

    def _reread(self) -> bool:
        """Whether it could be used."""
        names = [str(file) for file in self._source.files]
        try:
            self._source.reread()
        except CredentialFileError as error:
            logger.error("what was read before stays in use", extra={"files": names, "why": f"{error}: {error.remedy}"})  # noqa: TRY400 - it says what to do
            return False
        logger.info("credentials are read again", extra={"files": names})
        return True


def state_of(files: Sequence[Path]) -> State:
    """What changes with the files."""
    return tuple(map(_state_of, files))


def _state_of(file: Path) -> tuple[int, ...] | None:
    """What changes with a file or its mode, also where a symbolic link is turned to another one, as Kubernetes does."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
