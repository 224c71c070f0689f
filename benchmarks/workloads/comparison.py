"""One operation on several engines: their cells, and how two of them compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.engines.engine import Engine
from benchmarks.interleaving import Cell
from benchmarks.slices import Figure, Measured, Row

CLIENTS = (1, 32)


def cells(engines: Sequence[Engine], operation: Callable[[Engine, int, float], Measured]) -> list[Cell]:
    """Each engine under 1 and 32 clients."""

    def cell(engine: Engine, clients: int) -> Cell:
        return Cell(engine.name, f"c{clients}", lambda seconds: operation(engine, clients, seconds))

    return [cell(engine, clients) for clients in CLIENTS for engine in engines]


def row(rows: Sequence[Row], engine: str, load: str) -> Row | None:
    """The row of an engine under a load, where there is one."""
    return next((one for one in rows if (one.engine, one.load) == (engine, load)), None)


def ratio(
    rows: Sequence[Row], one: tuple[str, str], other: tuple[str, str], value: Callable[[Measured], float]
) -> Figure | None:
    """A value of a row over that of another, None where one of them is missing."""
    above, below = row(rows, *one), row(rows, *other)
    return None if above is None or below is None else above.over(below, value)


def present(figures: dict[str, Figure | None]) -> dict[str, Figure]:
    """The figures that could be measured."""
    return {name: figure for name, figure in figures.items() if figure is not None}
