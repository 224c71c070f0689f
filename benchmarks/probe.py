"""Raw write+fdatasync: what a durable write costs at the least, here and now."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

RECORD = b"\x5a" * 500
FILLED_BYTES = 32 << 20


class Probe:
    """A file that grows by 500 bytes at a time; in place, one whose length stays: a sync has nothing else to write."""

    def __init__(self, directory: Path, *, in_place: bool = False) -> None:
        self._file = os.open(directory / ("filled" if in_place else "probe"), os.O_CREAT | os.O_WRONLY, 0o600)
        self._place = 0
        self._in_place = in_place
        if in_place:
            os.write(self._file, bytes(FILLED_BYTES))
            os.fsync(self._file)

    def write(self) -> tuple[float, float]:
        """One write and fdatasync: when it began and when it ended."""
        began = time.monotonic()
        self._place += os.pwrite(self._file, RECORD, self._place)
        os.fdatasync(self._file)
        ended = time.monotonic()
        if self._in_place and self._place > FILLED_BYTES - len(RECORD):
            self._place = 0
        return began, ended

    def seconds(self, count: int = 40) -> float:
        """The median of so many."""
        spans = [self.write() for _ in range(count)]
        return statistics.median(ended - began for began, ended in spans)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
