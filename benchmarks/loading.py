"""Runs the compiled load against a server's socket."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

NUMBER_PLACE = "#" * 16
"""Where the load puts a number that no other request has."""

NUMBERS_A_RUN = 1_000_000_000


class LoadFailed(Exception):
    """The load ended early; the message says why."""


class Load:
    """The load's program, with a directory for its request files."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._runs = 0

    def run(
        self, socket: Path, wire: str, path: str, requests: Sequence[Sequence[bytes]], *, seconds: float, streams: int
    ) -> tuple[list[tuple[float, float]], int]:
        """When each request began and ended, and how many were answered with an error.

        `requests` holds, for each connection, those that it makes in turn.
        """
        self._runs += 1
        files = [self._write(connection, turn) for connection, turn in enumerate(requests)]
        samples = self._directory / "samples"
        command = [
            str(self._program), "--socket", str(socket), "--wire", wire, "--path", path, "--seconds", str(seconds),
            "--streams", str(streams), "--first", str(self._runs * NUMBERS_A_RUN), "--samples", str(samples),
            *map(str, files),
        ]  # fmt: skip
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise LoadFailed(f"{socket.name}: {done.stderr.strip()}")
        return _spans(samples), int(done.stdout.split()[1])

    def _write(self, connection: int, requests: Sequence[bytes]) -> Path:
        file = self._directory / f"requests-{connection}"
        file.write_bytes(b"".join(len(one).to_bytes(4, "little") + one for one in requests))
        return file


def _spans(samples: Path) -> list[tuple[float, float]]:
    numbers = array("Q", samples.read_bytes())
    if sys.byteorder == "big":
        numbers.byteswap()
    return [(began / 1e9, ended / 1e9) for began, ended in zip(numbers[::2], numbers[1::2], strict=True)]
