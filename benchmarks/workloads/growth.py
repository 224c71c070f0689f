"""What an append costs the disk, and how its cost grows with what is stored."""

from __future__ import annotations

from functools import partial

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench
from benchmarks.processes import written_bytes
from benchmarks.report import show
from benchmarks.slices import Figure, Row, cpu
from rich.progress import Progress

CLIENTS = 32
WRITINGS, WRITING_SLICES = 3, 6
"""How often it is measured, and how many slices long."""
FEW, MANY = 10_000, 1_000_000
SLICES = 5


def bytes_written(bench: Bench) -> dict[str, Figure]:
    """Bytes that reach the disk for a message of 500, journal and database, after the checkpoint."""
    server = Remora(bench.directory / "written", bench.load)
    server.start()
    server.settle()
    written = [bench.slice_of(partial(_written_for_an_append, bench, server)) for _ in range(WRITINGS)]
    server.stop()
    return {"bytes_written_per_message": Figure.of(written, float)}


def _written_for_an_append(bench: Bench, server: Remora) -> float:
    before = written_bytes(server.pid)
    measured = server.append(CLIENTS, WRITING_SLICES * bench.seconds)
    server.checkpointed()
    return (written_bytes(server.pid) - before) / len(measured.spans)


def slope(bench: Bench) -> dict[str, Figure]:
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
    return {"append_slope": many.over(few, cpu)}


def _appends(bench: Bench, server: Remora, load: str) -> Row:
    server.append(1, bench.seconds)
    return Row(server.name, load, [bench.slice_of(lambda: server.append(1, bench.seconds)) for _ in range(SLICES)])
