"""Files that hold secrets, which not every user of the machine may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

CHMOD = "`chmod 600` it; of a secret that Kubernetes mounts, set `defaultMode: 0400`, or 0440 with an `fsGroup`"
"""The remedy for an exposed file."""

_OTHERS = stat.S_IROTH | stat.S_IWOTH


class CredentialFileError(Exception):
    """A file of credentials cannot be used; `remedy` says what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


class ExposedError(Exception):
    """Every user of the machine can read or change the file."""


def read_private(file: Path) -> bytes:
    """The content of a file. Its group may read it, because Kubernetes gives a secret to a process that is not root in
    this way (`fsGroup`). Symbolic links are followed to the file whose mode counts. Raises ExposedError and OSError.
    """
    with file.open("rb") as stream:
        if os.fstat(stream.fileno()).st_mode & _OTHERS:
            raise ExposedError
        return stream.read()
