"""What a search by words costs, in conversations of few and of many messages, without a model."""

from __future__ import annotations

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, cpu

SIZES = (1_000, 10_000)


def run(bench: Bench) -> dict[str, Figure]:
    """Searches of 1 client, each in a user's own conversation; the figures by name."""
    server = Remora(bench.directory / "searched", bench.load)
    server.start()
    for size in SIZES:
        server.fill_conversation(size)
    rows = measure(bench, [_cell(server, size) for size in SIZES], "search")
    server.stop()
    show(bench.console, "search: the 10 best messages of a user for four words, 500 bytes each", rows)
    micros = {row.load: row.figure(cpu).times(1e6) for row in rows}
    return {f"search_cpu_us_at_{size}": micros[_load(size)] for size in SIZES}


def _load(size: int) -> str:
    return f"c1 at {size:,}"


def _cell(server: Remora, size: int) -> Cell:
    def search(seconds: float) -> Measured:
        return server.search(size, seconds)

    return Cell(server.name, _load(size), search)
