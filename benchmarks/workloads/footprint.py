"""What the server costs while it does nothing, and how soon it is there: without a model."""

from __future__ import annotations

import shutil
import signal
import statistics
from pathlib import Path

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench
from benchmarks.processes import resident_bytes
from benchmarks.texts import texts

STARTS = 5
MEBIBYTE = 1 << 20
JOURNAL_BYTES = 16 * MEBIBYTE
BATCH = 20
FILLED_MESSAGES = 100_000


def empty(bench: Bench) -> dict[str, float]:
    """Starts with an empty directory: the median until a call is answered, and resident memory afterwards."""
    seconds, resident = [], []
    for number in range(STARTS):
        server = Remora(bench.directory / f"empty-{number}", bench.load)
        seconds.append(server.start_and_time())
        server.settle()
        resident.append(resident_bytes(server.pid) / MEBIBYTE)
        server.stop()
    return {"ready_seconds_empty": statistics.median(seconds), "rss_idle_mb_no_model": statistics.median(resident)}


def after_kill(bench: Bench) -> dict[str, float]:
    """Starts after a SIGKILL with 16 MiB of journal of which the database holds nothing: the median."""
    server = Remora(bench.directory / "killed", bench.load)
    server.start()
    server.stop()
    before = bench.directory / "database-before"
    shutil.copy(server.database, before)
    server.start()
    while _journal_bytes(server.data) < JOURNAL_BYTES:
        _append_batches(server)
    server.end(signal.SIGKILL)
    seconds = []
    for _ in range(STARTS):
        _put_back(server.database, before)
        seconds.append(server.start_and_time())
        server.end(signal.SIGKILL)
    return {"ready_seconds_after_kill": statistics.median(seconds)}


def filled(bench: Bench) -> dict[str, float]:
    """Resident memory with 100,000 messages stored, at rest."""
    server = Remora(bench.directory / "filled", bench.load)
    server.start()
    server.fill(FILLED_MESSAGES)
    resident = resident_bytes(server.pid) / MEBIBYTE
    server.stop()
    return {"rss_mb_100k_messages": resident}


def _append_batches(server: Remora) -> None:
    requests = [
        [server.append_request(f"conversation-{client}", f"user-{client}", texts(client, BATCH))] for client in range(8)
    ]
    server.load.run(server.socket, server.wire, server.append_path, requests, seconds=0.2, streams=1)


def _journal_bytes(data: Path) -> int:
    """What is written of the segments: behind it they are zero."""
    return sum(len(segment.read_bytes().rstrip(b"\0")) for segment in (data / "journal").iterdir() if segment.is_file())


def _put_back(database: Path, before: Path) -> None:
    shutil.copy(before, database)
    database.with_name(database.name + ".wal").unlink(missing_ok=True)
