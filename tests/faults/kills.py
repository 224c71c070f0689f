"""SIGKILL at random points under eight writers of every kind of write, again and again, each time checked.

`python -m tests.faults.kills --kills 200 --seed 7`: a seed gives the same requests and the same times of kills.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tests.faults.kill_checks import Account, Checker, Faults, KillCheck
from tests.faults.sidecar import ROOT, Sidecar
from tests.faults.user_model import UserModel
from tests.faults.user_writer import TIMEOUT_SECONDS

from remora.v1 import conversation_pb2
from remora.v1 import conversation_service_pb2 as pb

WRITERS = 8
SHARED = "shared"
LOAD_SECONDS = (0.1, 1.0)
START_SECONDS = (0.1, 1.2)
KILLED_STARTS_SHARE = 0.25
SERVE = ("--model", "none", "--window-bytes", "100000", "--segment-bytes", str(1 << 20))


class WriterProcess:
    """A process that writes as one user."""

    def __init__(self, endpoint: str, user: str, seed: object, log: Path) -> None:
        command = [sys.executable, "-m", "tests.faults.user_writer", endpoint, user, SHARED, str(seed), str(log)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def go(self) -> None:
        """Write until a request is not answered."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")

    def wait(self, word: str) -> None:
        """Wait until it says this: `ready`, or `unanswered`."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != f"{word}\n":
            raise RuntimeError(f"a writer ended with {self._process.wait(TIMEOUT_SECONDS)}")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


class KillRun:
    """A store, its writers and what they logged."""

    def __init__(self, directory: Path, seed: object, changes: Sequence[str] = ()) -> None:
        """`changes` are made in every server that is started."""
        self._random = random.Random(f"{seed} kills")
        self._changes = tuple(changes)
        self.sidecar = Sidecar(directory, *SERVE)
        self._logs = {f"user-{number}": directory / f"user-{number}.log" for number in range(WRITERS)}
        given: dict[int, str] = {}
        accounts = [Account(UserModel(user, SHARED), log, given) for user, log in self._logs.items()]
        self._check = KillCheck(accounts, SHARED, seed)
        self._seed = seed

    @property
    def acknowledged(self) -> int:
        """How many writes were, so far."""
        return self._check.acknowledged

    def kills(self, count: int) -> Iterator[int]:
        """Kill so many times, checking each; yields after each. Raises Faults."""
        self._begin()
        with self._writers() as writers:
            for number in range(1, count + 1):
                self._load_and_kill(writers)
                self._restart()
                self._look()
                yield number
        self.sidecar.stop()
        self._start()
        self._look()

    def _begin(self) -> None:
        for log in self._logs.values():
            log.touch()
        self._start()
        checker = Checker(self.sidecar.endpoint)
        shared = conversation_pb2.Conversation(id=SHARED, user_id="everyone")
        checker.store.CreateConversation(pb.CreateConversationRequest(conversation=shared))
        checker.close()

    @contextmanager
    def _writers(self) -> Iterator[list[WriterProcess]]:
        writers = [WriterProcess(self.sidecar.endpoint, user, self._seed, log) for user, log in self._logs.items()]
        try:
            for writer in writers:
                writer.wait("ready")
            yield writers
        finally:
            for writer in writers:
                writer.close()

    def _load_and_kill(self, writers: list[WriterProcess]) -> None:
        for writer in writers:
            writer.go()
        time.sleep(self._random.uniform(*LOAD_SECONDS))
        self.sidecar.kill()
        for writer in writers:
            writer.wait("unanswered")

    def _restart(self) -> None:
        """Start again; now and then it is killed once more while it starts."""
        if self._random.random() < KILLED_STARTS_SHARE:
            self.sidecar.launch()
            time.sleep(self._random.uniform(*START_SECONDS))
            self.sidecar.kill()
        self._start()

    def _start(self) -> None:
        often = ("checkpoint_often",) if self._random.random() < 0.5 else ()
        self.sidecar.changes = self._changes + often
        self.sidecar.start()

    def _look(self) -> None:
        self._check.read_logs()
        checker = Checker(self.sidecar.endpoint)
        try:
            self._check.check(checker)
        finally:
            checker.close()


def main() -> int:
    """Kill, and show how far it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    sys.stdout.write(f"seed {given.seed}: --seed {given.seed} asks and kills alike again\n")
    directory = Path(tempfile.mkdtemp(prefix="remora-kills-"))
    run = KillRun(directory, given.seed)
    try:
        _show(run, given.kills)
    except Faults as faults:
        sys.stdout.write(f"{faults}\nseed {given.seed}; what is left is in {directory}\n")
        return 1
    finally:
        run.sidecar.kill()
    sys.stdout.write(f"{given.kills} kills, {run.acknowledged} acknowledged writes: all as it should be\n")
    return 0


def _show(run: KillRun, kills: int) -> None:
    columns = (
        TextColumn("kills"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[writes]} writes"),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("kills", total=kills, writes=0)
        for _ in run.kills(kills):
            progress.update(task, advance=1, writes=run.acknowledged)


if __name__ == "__main__":
    sys.exit(main())
