"""Files that hold secrets, which not every user of the machine may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

CHMOD = "`chmod 600` it; of a secret that Kubernetes mounts, set `defaultMode: 0400`, or 0440 with an `fsGroup`"
"""What to do about a file that is exposed."""

_OTHERS = stat.S_IROTH | stat.S_IWOTH


class CredentialFileError(Exception):
    """A file of credentials cannot be used; `remedy` says what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


class ExposedError(Exception):
    """Every user of the machine can read or change the file."""


def read_private(file: Path) -> bytes:
    """What a file holds. Its group may read it, which is how Kubernetes hands a secret to a process that is not root
    (`fsGroup`). What counts is the mode of the file that a symbolic link leads to. Raises ExposedError and OSError.
    """
    with file.open("rb") as stream:
        if os.fstat(stream.fileno()).st_mode & _OTHERS:
            raise ExposedError
        return stream.read()
