"""A server process on a Unix socket that the compiled load drives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.loading import Load
from benchmarks.processes import cpu_seconds, rest
from benchmarks.slices import Measured

START_SECONDS = 30.0
REST_SECONDS = 1.5
PREFILLED = 60
TEXTS = 64


@dataclass(frozen=True, slots=True)
class Calls:
    """What one client calls in turn: a method, with gRPC; requests of HTTP/1.1 hold their own paths."""

    path: str
    requests: Sequence[bytes]


class Server(ABC):
    """Starts, is loaded, comes to rest, stops. Everything it keeps is in its own directory."""

    name: str
    wire: str
    append_path = ""
    list_path = ""

    def __init__(self, directory: Path, load: Load) -> None:
        self.directory = directory / self.name
        self.socket = directory / f"{self.name}.sock"
        self.load = load
        self.process: subprocess.Popen[bytes] | None = None
        self._filled: set[int] = set()

    @abstractmethod
    def command(self) -> list[str]:
        """What starts it."""

    @abstractmethod
    def append_requests(self, client: int) -> list[bytes]:
        """The appends of a client, with places for numbers."""

    @abstractmethod
    def list_request(self, client: int) -> bytes:
        """A client's read of the newest 50."""

    @property
    def pid(self) -> int:
        """The process."""
        if self.process is None:
            raise RuntimeError(f"{self.name} is not started")
        return self.process.pid

    def start(self) -> None:
        """Start and wait until the socket is taken."""
        self.directory.mkdir(parents=True, exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REMORA_")}
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + START_SECONDS
        while not answers(self.socket):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"{self.name} does not start:\n{(self.directory / 'log').read_text()}")
            time.sleep(0.002)

    def append(self, clients: int, seconds: float) -> Measured:
        """Appends of all clients at once."""
        return self.drive(self.append_path, [self.append_requests(client) for client in range(clients)], seconds)

    def list50(self, clients: int, seconds: float) -> Measured:
        """Reads of all clients at once, of conversations that hold more."""
        self._fill(clients)
        return self.drive(self.list_path, [[self.list_request(client)] for client in range(clients)], seconds)

    def drive(
        self,
        path: str,
        requests: Sequence[Sequence[bytes]],
        seconds: float,
        streams: int = 1,
        rate: float = 0.0,
        *,
        turns: int = 0,
        settle: bool = True,
    ) -> Measured:
        """Load and wait for the end of the work that the load left behind, where it leaves any."""
        before = cpu_seconds(self.pid)
        driven = self.load.run(
            self.socket, self.wire, path, requests, seconds=seconds, streams=streams, rate=rate, turns=turns
        )
        if settle:
            self.settle()
        return Measured(
            driven.spans, cpu_seconds(self.pid) - before, driven.failures, driven.turned_away, driven.cpu_seconds
        )

    def call(self, seconds: float, *clients: Calls, turns: int = 0, settle: bool = False) -> Measured:
        """A load of clients that call the same method. Raises RuntimeError where a call fails."""
        path, requests = clients[0].path, [client.requests for client in clients]
        measured = self.drive(path, requests, seconds, turns=turns, settle=settle)
        if measured.failures:
            raise RuntimeError(f"{self.name}: {len(measured.failures)} calls failed: {path}")
        return measured

    def settle(self) -> None:
        """Wait until it is at rest."""
        rest(self.pid, REST_SECONDS)

    def _fill(self, clients: int) -> None:
        missing = [client for client in range(clients) if client not in self._filled]
        for client in missing:
            count = 0
            while count < PREFILLED:
                driven = self.load.run(
                    self.socket, self.wire, self.append_path, [self.append_requests(client)], seconds=0.05, streams=1
                )
                count += len(driven.spans)
        self._filled.update(missing)

    def last_log_lines(self, count: int = 40) -> str:
        """What it wrote to its log at last."""
        log = self.directory / "log"
        return "\n".join(log.read_text("utf-8", "replace").splitlines()[-count:]) if log.exists() else ""

    def stop(self) -> None:
        """SIGTERM, and wait for the end."""
        self.end(signal.SIGTERM)

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(START_SECONDS)


def answers(path: Path) -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
        probe.connect(str(path))
        return True
    return False
