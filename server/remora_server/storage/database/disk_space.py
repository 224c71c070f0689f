"""Disk space: how much is free, and which errors report that none is."""

from __future__ import annotations

import errno
import os
from pathlib import Path

# DuckDB's and the journal's errors carry the system's text alone. A process may also be limited in the files it writes.
_TEXTS = [os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)]
# DuckDB lets its temporary files take most of what was free when it opened the database.
_TEXTS.append("max_temp_directory_size")


def is_lack_of_space(error: BaseException) -> bool:
    """Whether a failure is due to a lack of disk space."""
    text = str(error)
    return any(lack in text for lack in _TEXTS)


def require_room(directory: Path, size: int) -> None:
    """Raise OSError (ENOSPC) where a directory's file system has not so many bytes left."""
    system = os.statvfs(directory)
    if system.f_bavail * system.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
