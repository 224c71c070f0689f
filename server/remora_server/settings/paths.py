"""Paths as people write them: `~` for a home directory, and relative to the current one."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

_NOT_OPENED = frozenset("?\\")
"""What DuckDB reads in another way than the system: a query behind the name, and a separator."""


def absolute(text: str) -> Path:
    """The absolute path. Raises ValueError, which says why there is none."""
    if "\0" in text:
        raise ValueError(f"must be a path, which has no NUL character: {text!r}")
    try:
        return _expanded(Path(text)).absolute()
    except (RuntimeError, KeyError):
        raise ValueError(f"names a home directory that is not known: {text!r}") from None
    except OSError as error:
        raise ValueError(f"is relative to the current directory, which cannot be used: {error.strerror}") from None


def of_store(text: str) -> Path:
    """The absolute path of a data directory or a backup. Raises ValueError, also for one that DuckDB cannot open."""
    path = absolute(text)
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"must have a name in UTF-8, as DuckDB needs it: {str(path)!r}") from None
    if _NOT_OPENED.intersection(str(path)):
        raise ValueError(f"must have neither ? nor \\ in its path, because DuckDB opens another file then: {path}")
    return path


def _expanded(path: Path) -> Path:
    """The path with the home directory that it names. An empty $HOME counts as unset: the system's own list says it."""
    if path.parts[:1] == ("~",) and not os.environ.get("HOME"):
        return Path(pwd.getpwuid(os.getuid()).pw_dir, *path.parts[1:])
    return path.expanduser()
