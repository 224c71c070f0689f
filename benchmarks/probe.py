"""Raw write+fdatasync: what a durable write costs at the least, here and now."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

RECORD = b"\x5a" * 500


class Probe:
    """A file that grows by 500 bytes at a time."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / "probe", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def write(self) -> tuple[float, float]:
        """One write and fdatasync: when it began and when it ended."""
        began = time.monotonic()
        os.write(self._file, RECORD)
        os.fdatasync(self._file)
        return began, time.monotonic()

    def seconds(self, count: int = 40) -> float:
        """The median of so many."""
        spans = [self.write() for _ in range(count)]
        return statistics.median(ended - began for began, ended in spans)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
