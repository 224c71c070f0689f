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
from tests.faults.database_checks import applied_revision
from tests.faults.kill_checks import Account, Checker, Faults, KillCheck
from tests.faults.sidecar import ROOT, Sidecar
from tests.faults.user_model import UserModel
from tests.patience import PATIENCE
from tests.storage.written import OF_CALLERS, written_kinds

from remora.v1 import conversation_pb2
from remora.v1 import conversation_service_pb2 as pb
from remora_server.failpoints import JOURNAL_VARIABLE, VARIABLE

WRITERS = 8
SHARED = "shared"
JOURNAL = "journal_"
ANSWERS = 5
"""Of each writer, at least, before a kill."""
LOAD_SECONDS = 0.9
"""Of a load, at most, once each writer has had its answers."""
START_SECONDS = (0.1, 1.2)
KILLED_STARTS_SHARE = 0.25
SERVE = ("--model", "none", "--window-bytes", "100000", "--segment-bytes", str(1 << 20))


class WriterProcess:
    """A process that writes as one user."""

    def __init__(self, endpoint: str, user: str, log: Path, seed: object) -> None:
        command = [sys.executable, "-m", "tests.faults.user_writer", endpoint, user, SHARED, str(seed), str(log)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._said = ""

    def go(self, answers: int) -> None:
        """Write until a request is not answered; `answered` is said when so many were."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{answers}\n")
        self._said = ""

    def wait(self, word: str) -> None:
        """Wait until it says this: `ready`, `answered` or `unanswered`. After the last, it says nothing more."""
        assert self._process.stdout is not None
        while self._said not in (f"{word}\n", "unanswered\n"):
            self._said = self._process.stdout.readline()
            if not self._said:
                raise RuntimeError(f"a writer ended with {self._process.wait(PATIENCE)}")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


class KillRun:
    """A store, its writers and what they logged. Everything that looks at the store raises Faults."""

    def __init__(
        self,
        directory: Path,
        seed: object,
        *,
        changes: Sequence[str] = (),
        writers: int = WRITERS,
        answers: int = ANSWERS,
        load_seconds: float = LOAD_SECONDS,
        arguments: Sequence[str] = SERVE,
    ) -> None:
        """`changes` are made in every server that is started."""
        self._random = random.Random(f"{seed} kills")
        self._answers, self._load_seconds = answers, load_seconds
        self.changes = tuple(changes)
        self.sidecar = Sidecar(directory, *arguments)
        self._logs = {f"user-{number}": directory / f"user-{number}.log" for number in range(writers)}
        given: dict[int, str] = {}
        accounts = [Account(UserModel(user, SHARED), log, given) for user, log in self._logs.items()]
        self._check = KillCheck(accounts, SHARED, seed)
        self._seed = seed
        self._writers: list[WriterProcess] = []
        self._applied = 0
        self.written_kinds: set[str] = set()
        """The kinds of records that the writers have written."""

    @property
    def acknowledged(self) -> int:
        """How many writes were, so far."""
        return self._check.acknowledged

    def kills(self, count: int) -> Iterator[int]:
        """Kill so many times, checking each; yields after each."""
        with self.open():
            self.start()
            for number in range(1, count + 1):
                self.load(self._answers, self._random.uniform(0.0, self._load_seconds))
                self._restart()
                self.look()
                yield number
            self.sidecar.stop()
            self.start()
            self.look()

    @contextmanager
    def open(self) -> Iterator[KillRun]:
        """A store that was begun, and writers that wait for their word; no process is left behind."""
        try:
            self._begin()
            self.sidecar.kill()
            yield self
        finally:
            self.sidecar.kill()
            for writer in self._writers:
                writer.close()

    def _begin(self) -> None:
        for log in self._logs.values():
            log.touch()
        self.start()
        checker = Checker(self.sidecar.endpoint)
        shared = conversation_pb2.Conversation(id=SHARED, user_id="everyone")
        checker.store.CreateConversation(pb.CreateConversationRequest(conversation=shared))
        checker.close()
        self._writers = [WriterProcess(self.sidecar.endpoint, *user, self._seed) for user in self._logs.items()]
        for writer in self._writers:
            writer.wait("ready")

    def start(self, *changes: str) -> None:
        """Start the server, with these changes, too."""
        self.sidecar.changes = (*self.changes, *changes)
        self.sidecar.start()

    def fill(self, answers: int) -> None:
        """Start the server, have so many answers for each writer, kill it, look at what is left, and kill it again."""
        self.start()
        self.load(answers)
        self.start()
        self.look()
        self.sidecar.kill()

    def load(self, answers: int, seconds: float = 0.0) -> None:
        """Let all write until each has had so many answers, and for so long, then kill the server."""
        self._go(answers)
        time.sleep(seconds)
        self.sidecar.kill()
        self._drain()

    def _go(self, answers: int) -> None:
        """Have all write, until the server dies; each has had so many answers when this returns, or it died before."""
        for writer in self._writers:
            writer.go(answers)
        for writer in self._writers if answers else ():
            writer.wait("answered")

    def _drain(self) -> None:
        """Wait for the writers of a dead server, and look at its database."""
        for writer in self._writers:
            writer.wait("unanswered")
        applied = applied_revision(self.sidecar.directory / "data")
        if applied < self._applied:
            raise Faults([f"the database is at revision {applied}, after {self._applied}"])
        self._applied = applied
        if not {kind.name for kind in OF_CALLERS} <= self.written_kinds:
            self.written_kinds |= {name for _, name in written_kinds(self.sidecar.directory / "data")}

    def die_under_load(self, *changes: str, **failpoints: str) -> int:
        """Start the server with failpoints and let all write until it has died of them; its exit code."""
        with self._armed(failpoints):
            self.start(*changes)
        self._go(0)
        code = self.sidecar.wait()
        self._drain()
        return code

    def die_at_start(self, **failpoints: str) -> int:
        """Start the server and wait until it has died of failpoints; its exit code."""
        with self._armed(failpoints):
            self.sidecar.changes = self.changes
            self.sidecar.launch()
        return self.sidecar.wait()

    def die_at_stop(self, answers: int, **failpoints: str) -> int:
        """Let all write for so many answers each, then stop the server, which dies of failpoints; its exit code."""
        with self._armed(failpoints):
            self.start()
        self._go(answers)
        code = self.sidecar.stop()
        self._drain()
        return code

    @contextmanager
    def _armed(self, failpoints: dict[str, str]) -> Iterator[None]:
        """What is launched meanwhile has these points, of the server (`point`) or its journal (`journal_point`)."""
        own = [f"{name}={do}" for name, do in failpoints.items() if not name.startswith(JOURNAL)]
        journal = [f"{name.removeprefix(JOURNAL)}={do}" for name, do in failpoints.items() if name.startswith(JOURNAL)]
        self.sidecar.failpoints = {VARIABLE: ",".join(own), JOURNAL_VARIABLE: ",".join(journal)}
        yield
        self.sidecar.failpoints = {}

    def _restart(self) -> None:
        """Start again; now and then it is killed once more while it starts."""
        if self._random.random() < KILLED_STARTS_SHARE:
            self.sidecar.launch()
            time.sleep(self._random.uniform(*START_SECONDS))
            self.sidecar.kill()
        self.start(*(("checkpoint_often",) if self._random.random() < 0.5 else ()))

    def look(self) -> None:
        """Compare what the server shows with what the writers logged."""
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
    parser.add_argument("--answers", type=int, default=ANSWERS, help="of each writer, at least, before a kill")
    parser.add_argument("--seconds", type=float, default=LOAD_SECONDS, help="the longest load before a kill")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    sys.stdout.write(f"seed {given.seed}: --seed {given.seed} asks and kills alike again\n")
    directory = Path(tempfile.mkdtemp(prefix="remora-kills-"))
    run = KillRun(directory, given.seed, answers=given.answers, load_seconds=given.seconds)
    try:
        _show(run, given.kills)
    except Faults as faults:
        sys.stdout.write(f"{faults}\nseed {given.seed}; what is left is in {directory}\n")
        return 1
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
