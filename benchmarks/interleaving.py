"""Slices of several engines in turn, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.engines.engine import Engine, Unavailable
from benchmarks.loading import Load
from benchmarks.probe import Probe
from benchmarks.slices import Measured, Row, Slice, quiet
from rich.console import Console
from rich.progress import Progress

WARM_UP_SECONDS = 0.2

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how long to measure. Each figure rests on `rounds` quiet slices, or on what `budget` seconds gave; a
    short run leaves out what takes long. `messages` is the length of a backlog.
    """

    directory: Path
    load: Load
    probe: Probe
    seconds: float
    rounds: int
    budget: float
    short: bool
    messages: int
    console: Console

    def slice_of(self, operation: Callable[[], T]) -> Slice[T]:
        """One operation between two probes."""
        before = self.probe.seconds()
        measured = operation()
        return Slice(measured, before, self.probe.seconds())


@dataclass(frozen=True, slots=True)
class Cell:
    """One engine under one load."""

    engine: str
    load: str
    operation: Callable[[float], Measured]


def started(engines: Iterable[Engine], console: Console) -> list[Engine]:
    """Those that are installed here; of the others a line says what is missing."""
    running = []
    for engine in engines:
        try:
            engine.start()
        except Unavailable as missing:
            console.print(f"[dim]without {engine.name}: {missing}[/dim]")
        else:
            running.append(engine)
    return running


def measure(bench: Bench, cells: list[Cell], title: str) -> list[Row]:
    """A slice of each cell in turn, until each has enough quiet ones; where the time is up, until each has enough."""
    cells = [cell for cell in cells if _warmed(cell)]
    slices: list[list[Slice[Measured]]] = [[] for _ in cells]
    deadline = time.monotonic() + bench.budget
    with Progress(console=bench.console, transient=True, refresh_per_second=1) as progress:
        task = progress.add_task(title, total=bench.rounds)
        while _least(slices) < bench.rounds and (len(slices[0]) < bench.rounds or time.monotonic() < deadline):
            for cell, own in zip(cells, slices, strict=True):
                progress.update(task, description=f"{title}: {cell.engine}, {cell.load}")
                own.append(bench.slice_of(lambda cell=cell: cell.operation(bench.seconds)))  # type: ignore[misc]
            progress.update(task, completed=_least(slices))
            done = f"round {len(slices[0])}, {_least(slices)} of {bench.rounds} quiet slices"
            progress.console.print(f"[dim]{title}: {done}[/dim]")
    return [Row(cell.engine, cell.load, own) for cell, own in zip(cells, slices, strict=True)]


def _least(slices: list[list[Slice[Measured]]]) -> int:
    return min(map(quiet, slices))


def _warmed(cell: Cell) -> bool:
    try:
        cell.operation(WARM_UP_SECONDS)
    except Unavailable:
        return False
    return True
