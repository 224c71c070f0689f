"""VoltAgent's adapters, each engine's in a Node process of its own, which makes the calls that it is told to make."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.engines.paused import Paused
from benchmarks.loading import Load
from benchmarks.processes import cpu_seconds, rest
from benchmarks.slices import Measured

PACKAGE = Path(__file__).resolve().parents[2] / "clients" / "typescript" / "packages" / "voltagent"
PROGRAM = PACKAGE / ".build" / "bench.mjs"
REST_SECONDS, STOP_SECONDS = 15.0, 30.0


def build() -> None:
    """Compile the Node program. Make has installed its packages."""
    subprocess.run(["npm", "run", "--silent", "build-bench"], cwd=PACKAGE, check=True)


@dataclass(frozen=True, slots=True)
class Calls:
    """What became of a slice: the calls, and how many RPCs they took, what is stored behind them included."""

    measured: Measured
    rpcs: int


class Adapters:
    """The adapters of an engine in the process itself."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self._directory = directory / name
        self._running = ExitStack()
        self._process: subprocess.Popen[str] | None = None

    @property
    def place(self) -> str:
        """Where the data are."""
        return str(self._directory)

    def start(self) -> None:
        """Start Node."""
        self._directory.mkdir(parents=True, exist_ok=True)
        log = self._running.enter_context(self._log.open("w"))
        # Otherwise @voltagent/core asks the network for a list of models.
        environment = os.environ | {"NODE_ENV": "production"}
        self._process = subprocess.Popen(
            ["node", PROGRAM, self.name, self.place],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=PACKAGE, env=environment,
        )  # fmt: skip
        self._running.callback(self._end)

    @property
    def pids(self) -> list[int]:
        """The processes whose CPU time counts."""
        return [self._started.pid]

    def call(self, load: str, seconds: float) -> Calls:
        """Make the calls of a load, for so long."""
        before = self._cpu_seconds()
        answer = self._ask({"load": load, "seconds": seconds})
        spans = [(began, ended) for began, ended in answer["spans"]]
        return Calls(Measured(spans, self._cpu_seconds() - before), answer["rpcs"])

    def measure(self, load: str, seconds: float) -> Measured:
        """The same, only its times."""
        return self.call(load, seconds).measured

    def rest(self) -> None:
        """Wait until what it does behind its answers is done."""

    def stop(self) -> None:
        """End it."""
        self._running.close()

    @property
    def _log(self) -> Path:
        return self._directory / "log"

    @property
    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not started")
        return self._process

    @property
    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._started.stdin is None or self._started.stdout is None:
            raise RuntimeError(f"{self.name} has no pipes")
        return self._started.stdin, self._started.stdout

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        questions, answers = self._pipes
        print(json.dumps(question), file=questions, flush=True)
        answer = answers.readline()
        if not answer:
            code = self._started.wait(STOP_SECONDS)
            ended = f"ended with code {code}" if code >= 0 else f"was ended by signal {-code}"
            raise RuntimeError(f"{self.name}, {question['load']}: its process {ended}:\n{self._log.read_text()}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def _cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, self.pids))

    def _end(self) -> None:
        questions, _ = self._pipes
        questions.close()
        self._started.wait(STOP_SECONDS)


class RemoraAdapters(Adapters):
    """Remora's adapters, with a server that runs only while they call: what it does behind its answers delays no other
    engine, but its own later calls.
    """

    def __init__(self, directory: Path, load: Load) -> None:
        super().__init__("remora", directory)
        self._server = Paused(directory, load, "remora-server", model=False)

    @property
    def place(self) -> str:
        return f"unix:{self._server.socket}"

    @property
    def pids(self) -> list[int]:
        return [*super().pids, self._server.pid]

    def rest(self) -> None:
        with self._server.resumed():
            self._server.applied()
            rest(self._server.pid, REST_SECONDS)

    def start(self) -> None:
        self._running.callback(self._server.stop)
        self._server.start()
        super().start()
        self._server.pause()

    def call(self, load: str, seconds: float) -> Calls:
        with self._server.resumed():
            return super().call(load, seconds)
