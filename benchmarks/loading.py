"""Runs the compiled load against a server's socket."""

from __future__ import annotations

import resource
import subprocess
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

NUMBER_PLACE = "#" * 16
"""Where the load puts a number that no other request has."""

NUMBERS_A_RUN = 1_000_000_000


class LoadFailed(Exception):
    """The load ended early; the message says why."""


Span: TypeAlias = tuple[float, float]
"""When something began and ended, in seconds of the monotonic clock."""


@dataclass(frozen=True, slots=True)
class Driven:
    """What became of a load's requests: those that were answered, those that were answered with an error, and how many
    were turned away because their connection had as many under way as it may. `cpu_seconds` is the load's own.
    """

    spans: Sequence[Span]
    failures: Sequence[Span]
    turned_away: int
    cpu_seconds: float


class Load:
    """The load's program, with a directory for its request files."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._runs = 0

    def run(
        self,
        socket: Path,
        wire: str,
        path: str,
        requests: Sequence[Sequence[bytes]],
        *,
        seconds: float,
        streams: int,
        rate: float = 0.0,
    ) -> Driven:
        """Load so long.

        `requests` holds, for each connection, those that it makes in turn. With a rate, so many are due in a second and
        begin when they are due; without one, each connection has `streams` under way at all times.
        """
        self._runs += 1
        files = [self._write(connection, turn) for connection, turn in enumerate(requests)]
        samples, failures = self._directory / "samples", self._directory / "failures"
        command = [
            str(self._program), "--socket", str(socket), "--wire", wire, "--path", path, "--seconds", str(seconds),
            "--streams", str(streams), "--first", str(self._runs * NUMBERS_A_RUN), "--samples", str(samples),
            "--failures", str(failures), "--rate", str(rate), *map(str, files),
        ]  # fmt: skip
        before = _cpu_of_ended()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise LoadFailed(f"{socket.name}: {done.stderr.strip()}")
        return Driven(_spans(samples), _spans(failures), int(done.stdout), _cpu_of_ended() - before)

    def _write(self, connection: int, requests: Sequence[bytes]) -> Path:
        file = self._directory / f"requests-{connection}"
        file.write_bytes(b"".join(len(one).to_bytes(4, "little") + one for one in requests))
        return file


def _cpu_of_ended() -> float:
    """CPU time of the processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spans(samples: Path) -> list[Span]:
    numbers = array("Q", samples.read_bytes())
    if sys.byteorder == "big":
        numbers.byteswap()
    return [(began / 1e9, ended / 1e9) for began, ended in zip(numbers[::2], numbers[1::2], strict=True)]
