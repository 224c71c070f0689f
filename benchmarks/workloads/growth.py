"""What an append costs the disk, and how its cost grows with what is stored."""

from __future__ import annotations

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench
from benchmarks.processes import written_bytes
from benchmarks.report import show
from benchmarks.slices import Row, kept
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
        few = _appends(bench, server, f"c1 at {FEW:,}")
        server.fill(MANY - FEW, lambda stored: progress.update(task, completed=stored))
        many = _appends(bench, server, f"c1 at {MANY:,}")
    server.stop()
    show(bench.console, "growth: appends with few and with many messages stored", [few, many])
    return {"append_slope": many.cpu().median / few.cpu().median}


def _appends(bench: Bench, server: Remora, load: str) -> Row:
    server.append(1, bench.seconds)
    return kept(server.name, load, [bench.slice_of(lambda: server.append(1, bench.seconds)) for _ in range(SLICES)])
