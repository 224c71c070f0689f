"""Token files as a server takes them."""

from __future__ import annotations

from pathlib import Path


def token_file(file: Path, *lines: str) -> Path:
    """The file, written with these lines, which its owner alone can read."""
    file.touch(mode=0o600)
    file.write_text("".join(f"{line}\n" for line in lines))
    return file
