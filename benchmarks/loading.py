"""Runs the compiled load against a server's socket."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
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
    were turned away because their connection had as many under way as it may. `cpu_seconds` is the load's own. Requests
    are numbered from `first` on.
    """

    spans: Sequence[Span]
    failures: Sequence[Span]
    turned_away: int
    cpu_seconds: float
    first: int


class Load:
    """The load's program, with a directory for its files. Several runs may be under way at a time."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._runs = itertools.count(1)

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
        turns: int = 0,
    ) -> Driven:
        """Load so long, or until each connection has made all its requests `turns` times.

        `requests` holds, for each connection, those that it makes in turn. With a rate, so many are due in a second and
        begin when they are due; without one, each connection has `streams` under way at all times.
        """
        first = next(self._runs) * NUMBERS_A_RUN
        with tempfile.TemporaryDirectory(prefix="load-", dir=self._directory) as name:
            directory = Path(name)
            samples, failures = directory / "samples", directory / "failures"
            command = [
                str(self._program), "--socket", str(socket), "--wire", wire, "--path", path, "--seconds", str(seconds),
                "--streams", str(streams), "--first", str(first), "--rate", str(rate),
                "--turns", str(turns), "--samples", str(samples), "--failures", str(failures),
                *(str(_write(directory / str(connection), own)) for connection, own in enumerate(requests)),
            ]  # fmt: skip
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode != 0:
                raise LoadFailed(f"{socket.name}: {done.stderr.strip()}")
            turned_away, cpu_nanos = map(int, done.stdout.split())
            return Driven(_spans(samples), _spans(failures), turned_away, cpu_nanos / 1e9, first)


def _write(file: Path, requests: Sequence[bytes]) -> Path:
    file.write_bytes(b"".join(len(one).to_bytes(4, "little") + one for one in requests))
    return file


def _spans(samples: Path) -> list[Span]:
    numbers = array("Q", samples.read_bytes())
    if sys.byteorder == "big":
        numbers.byteswap()
    return [(began / 1e9, ended / 1e9) for began, ended in zip(numbers[::2], numbers[1::2], strict=True)]
