"""A `remora serve` process that tests may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc
from tests.patience import PATIENCE

from remora import Remora
from remora.errors import RemoraError

REMORA = Path(sys.executable).with_name("remora")
ROOT = Path(__file__).resolve().parents[2]


class Sidecar:
    """A server on a Unix socket and a data directory that outlive the process."""

    def __init__(self, directory: Path, *arguments: str, token: str | None = None) -> None:
        """`token` is what it asks of callers, where it has a token file."""
        self.directory = directory
        self.changes: tuple[str, ...] = ()
        """What is changed in the server by `tests.faults.changed_server`, when it is started."""
        self.prefix: tuple[str, ...] = ()
        """The command that starts it, where it is not started directly."""
        self.failpoints: dict[str, str] = {}
        """The variables that switch failpoints on, when it is started."""
        self.preloaded: dict[str, str] = {}
        """The variables that put a library in front of the system's, when it is started."""
        self.token = token
        self.endpoint = f"unix:{directory / 'remora.sock'}"
        self._arguments = ["serve", "--listen", self.endpoint, "--data", str(directory / "data"), *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self.log = directory / "server.log"

    def start(self) -> None:
        """Start and wait until it answers; its log is appended to `log`."""
        self.launch()
        self._wait_until_it_answers()

    def launch(self) -> None:
        """Start and do not wait."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REMORA_")}
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self.prefix, *self._program(), *self._arguments],
                stdout=output,
                stderr=output,
                cwd=ROOT,
                env=environment | self.failpoints | self.preloaded,
            )

    def _program(self) -> list[str]:
        if not self.changes:
            return [str(REMORA)]
        return [sys.executable, "-m", "tests.faults.changed_server", ",".join(self.changes)]

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for its end, and return the exit code: less than 0 where a signal ended it. Raises TimeoutExpired."""
        assert self._process is not None
        return self._process.wait(seconds)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + PATIENCE
        with Remora(self.endpoint, token=self.token, timeout=10.0) as memory:
            while True:
                try:
                    memory.status()
                except (RemoraError, grpc.RpcError) as error:
                    if time.monotonic() > deadline or (self._process and self._process.poll() is not None):
                        raise RuntimeError(f"the server does not answer:\n{self.log.read_text()}") from error
                    time.sleep(0.05)
                else:
                    return

    @property
    def is_launched(self) -> bool:
        """Whether it was started at all."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.signal(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        return self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self._process.wait(PATIENCE)


def is_applied(memory: Remora) -> bool:
    """Whether the database has all that is published."""
    store = memory.status().store
    return bool(store.applied_revision == store.revision)
