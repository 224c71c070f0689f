"""Commands of a user who has no rights of root's, and folders that such a user can reach."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
# What is imported later could be where only root reads it.
_PROGRAM = f"""
import os, sys
from remora_server.commands import doctor, export, repair
from remora_server.main import main
os.getuid() or os.setuid({NOBODY})
sys.exit(main(sys.argv[1:]))
"""


def remora_of_another(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command to its end, by nobody where root runs the tests, else by the same user."""
    return subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=False)


@contextmanager
def open_to_all() -> Iterator[Path]:
    """A folder that everybody can look into; those that pytest makes are their owner's alone."""
    with tempfile.TemporaryDirectory(prefix="remora-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
