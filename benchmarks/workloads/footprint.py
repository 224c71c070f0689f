"""What the server costs while it does nothing, and how soon it is there: without a model."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench
from benchmarks.processes import resident_bytes
from benchmarks.slices import Figure
from benchmarks.texts import texts

STARTS = 5
MEBIBYTE = 1 << 20
JOURNAL_BYTES = 16 * MEBIBYTE
BATCH = 20
FILLED_MESSAGES, FILLINGS = 100_000, 3


@dataclass(frozen=True, slots=True)
class Started:
    """A start: the seconds until a call was answered, and the resident memory at rest, in MiB."""

    seconds: float
    resident: float


def empty(bench: Bench) -> dict[str, Figure]:
    """Starts with an empty directory: the median until a call is answered, and resident memory afterwards."""
    starts = [bench.slice_of(partial(_started_empty, bench, number)) for number in range(STARTS)]
    return {
        "ready_seconds_empty": Figure.of(starts, lambda start: start.seconds),
        "rss_idle_mb_no_model": Figure.of(starts, lambda start: start.resident),
    }


def _started_empty(bench: Bench, number: int) -> Started:
    server = Remora(bench.directory / f"empty-{number}", bench.load)
    seconds = server.start_and_time()
    server.settle()
    resident = resident_bytes(server.pid) / MEBIBYTE
    server.stop()
    return Started(seconds, resident)


def after_kill(bench: Bench) -> dict[str, Figure]:
    """Starts after a SIGKILL with 16 MiB of journal of which the database holds nothing: the median."""
    server = Remora(bench.directory / "killed", bench.load)
    server.start()
    server.stop()
    before = bench.directory / "database-before"
    shutil.copy(server.database, before)
    server.start()
    while server.journal_bytes() < JOURNAL_BYTES:
        _append_batches(server)
    server.end(signal.SIGKILL)
    starts = []
    for _ in range(STARTS):
        _put_back(server.database, before)
        starts.append(bench.slice_of(server.start_and_time))
        server.end(signal.SIGKILL)
    return {"ready_seconds_after_kill": Figure.of(starts, float)}


def filled(bench: Bench) -> dict[str, Figure]:
    """Resident memory with 100,000 messages stored, at rest."""
    resident = [bench.slice_of(partial(_resident_filled, bench, number)) for number in range(FILLINGS)]
    return {"rss_mb_100k_messages": Figure.of(resident, float)}


def _resident_filled(bench: Bench, number: int) -> float:
    server = Remora(bench.directory / f"filled-{number}", bench.load)
    server.start()
    server.fill(FILLED_MESSAGES)
    resident = resident_bytes(server.pid) / MEBIBYTE
    server.stop()
    return resident


def _append_batches(server: Remora) -> None:
    requests = [
        [server.append_request(f"conversation-{client}", f"user-{client}", texts(client, BATCH))] for client in range(8)
    ]
    server.load.run(server.socket, server.wire, server.append_path, requests, seconds=0.2, streams=1)


def _put_back(database: Path, before: Path) -> None:
    shutil.copy(before, database)
    database.with_name(database.name + ".wal").unlink(missing_ok=True)
