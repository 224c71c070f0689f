"""Lists of a few of the 100,000 steps of a conversation, those of one operation, cold and hot."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.engines.record_calls import newest_steps, steps_of_operations
from benchmarks.engines.remora_records import RemoraRecords
from benchmarks.engines.server import Calls
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, latency

STEPS, OPERATION, ASKED = 100_000, 20, 64
MANY, OTHER = "many", "other"
COLD, HOT = "steps of an operation, cold", "steps of an operation, hot"
BUDGET = 30.0
"""Seconds, where the machine is not quiet."""


class Listed:
    """A server with the steps."""

    def __init__(self, bench: Bench) -> None:
        self.server = RemoraRecords(bench.directory / "listed", bench.load)
        self._chance = random.Random(STEPS)
        self._operations: Sequence[str] = ()

    def fill(self) -> None:
        """Store the steps; they are in the database when it returns."""
        self.server.start()
        self.server.fill_steps(OTHER, OPERATION, OPERATION)
        self._operations = self.server.fill_steps(MANY, STEPS, OPERATION)
        self.server.applied()
        self.server.checkpointed()
        self.server.check_steps(self._lists(1), OPERATION)

    def cold(self, seconds: float) -> Measured:
        """The first list of the conversation after a start; of another one the server has listed steps."""
        self.server.restart()
        self.server.check_steps(newest_steps(OTHER, OPERATION), OPERATION)
        return self.server.call(seconds, self._lists(1), turns=1)

    def hot(self, seconds: float) -> Measured:
        """Lists of many operations."""
        return self.server.call(seconds, self._lists(ASKED))

    def _lists(self, count: int) -> Calls:
        return steps_of_operations(MANY, self._chance.sample(self._operations, count))


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    bench = replace(bench, budget=min(bench.budget, BUDGET))
    listed = Listed(bench)
    listed.fill()
    cells = [Cell(listed.server.name, COLD, listed.cold), Cell(listed.server.name, HOT, listed.hot)]
    rows = measure(bench, cells, "filtered lists")
    listed.server.stop()
    show(bench.console, f"{OPERATION} of {STEPS:,} steps, by their operation", rows)
    return figures(rows)


def figures(rows: list[Row]) -> dict[str, Figure]:
    """The median of a list."""
    millis = {row.load: row.figure(latency(0.5)).times(1e3) for row in rows}
    return {
        "record_filtered_list_cold_ms_at_100k": millis[COLD],
        "record_filtered_list_hot_p50_ms_at_100k": millis[HOT],
    }
