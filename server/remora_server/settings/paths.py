"""Paths as people write them: `~` for a home directory, and relative to the current one."""

from __future__ import annotations

from pathlib import Path


def absolute(text: str) -> Path:
    """The absolute path. Raises ValueError, which says why there is none."""
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"names a home directory that is not known: {text!r}") from None
    except OSError as error:
        raise ValueError(f"is relative to the current directory, which cannot be used: {error.strerror}") from None
