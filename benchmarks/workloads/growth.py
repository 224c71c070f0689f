"""What an append costs the disk, and how its cost grows with what is stored."""

from __future__ import annotations

import statistics

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench
from benchmarks.processes import written_bytes
from rich.progress import Progress

CLIENTS = 32
WRITING_SLICES = 6
FEW, MANY = 10_000, 1_000_000
SLICES = 5


def bytes_written(bench: Bench) -> dict[str, float]:
    """Bytes that reach the disk for a message of 500, journal and database, after the checkpoint."""
    server = Remora(bench.directory / "written", bench.load)
    server.start()
    server.settle()
    before = written_bytes(server.pid)
    measured = server.append(CLIENTS, WRITING_SLICES * bench.seconds)
    server.checkpointed()
    written = written_bytes(server.pid) - before
    server.stop()
    return {"bytes_written_per_message": written / len(measured.spans)}


def slope(bench: Bench) -> dict[str, float]:
    """The server's CPU time of an append with 1,000,000 messages stored over that with 10,000."""
    server = Remora(bench.directory / "growing", bench.load)
    server.start()
    with Progress(console=bench.console, transient=True, refresh_per_second=1) as progress:
        task = progress.add_task("filling", total=MANY)
        server.fill(FEW)
        few = _cpu(server, bench.seconds)
        server.fill(MANY - FEW, lambda stored: progress.update(task, completed=stored))
        many = _cpu(server, bench.seconds)
    server.stop()
    return {"append_slope": many / few}


def _cpu(server: Remora, seconds: float) -> float:
    server.append(1, seconds)
    return statistics.median(server.append(1, seconds).cpu for _ in range(SLICES))
