"""Gets of records that are not in memory, and puts: with a thousand records stored, and with a million."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.engines.record_calls import gets, puts
from benchmarks.engines.remora_records import RemoraRecords
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, latency, rate
from benchmarks.workloads.comparison import present, ratio

FEW, MANY = 1_000, 1_000_000
COLD, PUTS = "cold get", "put c32"
COLD_GETS = 200
"""Of each slice."""

PUT_CLIENTS, PUTS_IN_TURN = 32, 128
BUDGET = 45.0
"""Seconds, where the machine is not quiet."""


class Stored:
    """A server with the records of so many users."""

    def __init__(self, server: RemoraRecords, count: int) -> None:
        self.name = f"{count:,} records"
        self.server = server
        self._count = count
        self._chance = random.Random(count)
        self._users: Sequence[str] = ()
        self._unasked: list[str] = []

    def fill(self) -> None:
        """Store the records; they are in the database when it returns."""
        self.server.start()
        self._users = self.server.fill_users(self._count)
        self.server.applied()
        self.server.checkpointed()

    def cold_gets(self, seconds: float) -> Measured:
        """Gets of one client, each of a record that nobody asked for since the server's start."""
        if len(self._unasked) < COLD_GETS:
            self._forget()
        asked = [self._unasked.pop() for _ in range(COLD_GETS)]
        return self.server.call(seconds, gets(asked), turns=1)

    def _forget(self) -> None:
        self.server.restart()
        self._unasked = self._chance.sample(self._users, len(self._users))
        self.server.check_user(self._unasked.pop())

    def puts(self, seconds: float) -> Measured:
        """Puts of several clients to records drawn at random; what is refused is no put."""
        drawn = [puts(self._chance.choices(self._users, k=PUTS_IN_TURN)) for _ in range(PUT_CLIENTS)]
        return self.server.drive(drawn[0].path, [client.requests for client in drawn], seconds)


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    bench = replace(bench, budget=min(bench.budget, BUDGET))
    few, many = stores = [
        Stored(RemoraRecords(bench.directory / f"stored-{count}", bench.load), count) for count in (FEW, MANY)
    ]
    with ExitStack() as stopping:
        for store in stores:
            stopping.callback(store.server.stop)
            store.fill()
        rows = measure(bench, [Cell(store.name, COLD, store.cold_gets) for store in stores], COLD)
        rows += measure(bench, [Cell(store.name, PUTS, store.puts) for store in stores], PUTS)
    show(bench.console, "few and many records of 600 bytes stored", rows)
    return figures(rows, few.name, many.name)


def figures(rows: list[Row], few: str, many: str) -> dict[str, Figure]:
    """Many records over few."""
    return present(
        {
            "record_cold_get_p50_1m_over_1k": ratio(rows, (many, COLD), (few, COLD), latency(0.5)),
            "record_put_rate_1m_over_1k": ratio(rows, (many, PUTS), (few, PUTS), rate),
        }
    )
