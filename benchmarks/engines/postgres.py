"""PostgreSQL over a Unix socket, driven by its own pgbench."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path

from benchmarks.engines.engine import Unavailable
from benchmarks.engines.server import PREFILLED, START_SECONDS, TEXTS
from benchmarks.processes import cpu_seconds
from benchmarks.slices import Measured
from benchmarks.texts import texts

PROGRAMS = ("initdb", "postgres", "psql", "pgbench")
ACCOUNT = "postgres"  # PostgreSQL does not run as root
PORT = 5432
SCHEMA = """
CREATE TABLE messages (
    conversation_id integer, sequence bigint, id text, text text, create_time bigint,
    PRIMARY KEY (conversation_id, sequence)
);
"""
APPEND = """
INSERT INTO messages SELECT :client_id, coalesce(max(sequence), 0) + 1, gen_random_uuid()::text, '{text}',
extract(epoch FROM clock_timestamp())::bigint FROM messages WHERE conversation_id = :client_id RETURNING sequence;
"""
NEWEST = "SELECT * FROM messages WHERE conversation_id = :client_id ORDER BY sequence DESC LIMIT 50;\n"
FILL = """
INSERT INTO messages SELECT client, n, gen_random_uuid()::text, '{text}', 0
FROM generate_series(0, 63) client, generate_series(1, {count}) n;
"""


class Postgres:
    """A server of its own with its defaults, in a new directory; pgbench prepares its statements."""

    name = "postgresql"

    def __init__(self, directory: Path) -> None:
        self.directory = directory / self.name
        self._process: subprocess.Popen[bytes] | None = None
        self._user = ACCOUNT if os.geteuid() == 0 else None

    def start(self) -> None:
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            raise Unavailable(f"{', '.join(missing)} cannot be found")
        self._make_directory()
        data = str(self.directory / "data")
        self._run("initdb", "--auth=trust", "--no-instructions", "--pgdata", data)
        command = ["postgres", "-D", data, "-k", str(self.directory), "-c", "listen_addresses=", "-p", str(PORT)]
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, user=self._user, cwd=self.directory)
        self._wait()
        self._psql(SCHEMA)
        self._psql(FILL.format(text=texts(0, 1)[0], count=PREFILLED))

    def _make_directory(self) -> None:
        self.directory.mkdir(mode=0o700)
        if self._user is not None:
            try:
                account = pwd.getpwnam(ACCOUNT)
            except KeyError:
                raise Unavailable(f"it does not run as root, and there is no account {ACCOUNT}") from None
            os.chown(self.directory, account.pw_uid, account.pw_gid)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while subprocess.run(
            ["psql", *self._connection(), "-c", "SELECT 1"], check=False, capture_output=True, user=self._user, cwd="/"
        ).returncode:
            if time.monotonic() > deadline:
                raise Unavailable(f"it does not start: {(self.directory / 'log').read_text()}")
            time.sleep(0.1)

    def append(self, clients: int, seconds: float) -> Measured:
        return self._bench([APPEND.format(text=text) for text in texts(0, TEXTS)[:8]], clients, seconds)

    def list50(self, clients: int, seconds: float) -> Measured:
        return self._bench([NEWEST], clients, seconds)

    def _bench(self, scripts: list[str], clients: int, seconds: float) -> Measured:
        files = [self.directory / f"script-{number}.sql" for number in range(len(scripts))]
        for file, script in zip(files, scripts, strict=True):
            file.write_text(" ".join(script.split()) + "\n")
            file.chmod(0o644)
        for old in self.directory.glob("log.*"):
            old.unlink()
        before = cpu_seconds(self._pid)
        self._run(
            "pgbench", *self._connection(), "-n", "-M", "prepared", "-c", str(clients), "-j", "1",
            "-T", str(max(1, round(seconds))), "-l", "--log-prefix", str(self.directory / "log"),
            *[f"--file={file}" for file in files],
        )  # fmt: skip
        return Measured(self._spans(), cpu_seconds(self._pid) - before)

    @property
    def _pid(self) -> int:
        if self._process is None:
            raise RuntimeError("PostgreSQL is not started")
        return self._process.pid

    def _spans(self) -> list[tuple[float, float]]:
        lines = [line.split() for log in self.directory.glob("log.*") for line in log.read_text().splitlines()]
        ends = [(int(line[4]) + int(line[5]) / 1e6, int(line[2]) / 1e6) for line in lines]
        return [(ended - took, ended) for ended, took in ends]

    def _connection(self) -> list[str]:
        return [
            "-h",
            str(self.directory),
            "-p",
            str(PORT),
            "-U",
            self._user or pwd.getpwuid(os.geteuid()).pw_name,
            "postgres",
        ]

    def _psql(self, sql: str) -> None:
        self._run("psql", "-q", "-v", "ON_ERROR_STOP=1", *self._connection(), "-c", sql)

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, check=False, capture_output=True, text=True, user=self._user, cwd=self.directory)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stderr}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(START_SECONDS)
