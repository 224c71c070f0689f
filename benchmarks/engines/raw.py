"""Raw write+fdatasync: no engine, the disk alone."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.engines.engine import Unavailable
from benchmarks.probe import Probe
from benchmarks.slices import Measured


class Raw:
    """One file to which 500 bytes at a time are written and synced: it grows, or they are written in place of zeros."""

    def __init__(self, directory: Path, *, in_place: bool = False) -> None:
        self.name = "write+fdatasync in place" if in_place else "write+fdatasync"
        self._directory, self._in_place = directory, in_place

    def start(self) -> None:
        self._probe = Probe(self._directory, in_place=self._in_place)

    def append(self, clients: int, seconds: float) -> Measured:
        if clients > 1:
            raise Unavailable("one file has one writer")
        began, cpu = time.monotonic(), time.process_time()
        spans = []
        while time.monotonic() - began < seconds:
            spans.append(self._probe.write())
        return Measured(spans, time.process_time() - cpu)

    def list50(self, clients: int, seconds: float) -> Measured:  # noqa: ARG002 - the Protocol's
        raise Unavailable("it keeps no messages")

    def stop(self) -> None:
        self._probe.close()
