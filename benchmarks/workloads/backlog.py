"""What appends and searches keep of their speed while a backlog is embedded, and how fast it is embedded.

Three servers, each stopped while others are measured: one with a backlog, one with the same messages and no model for
appends without a backlog, and one with a model and nothing left to embed for searches without a backlog.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.engines.paused import Paused
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, rate
from benchmarks.workloads.comparison import present, ratio

CLIENTS = (1, 8)
EMBEDDED_SECONDS = 600.0
ALONE_SECONDS = 12.0
"""More than the server's own figure is of."""
FRESH = 20
BACKLOG, PLAIN, IDLE = "backlog", "without a model", "without a backlog"


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    backlog, plain, idle = _filled(bench)
    with ExitStack() as stopping:
        for server in (plain, idle, backlog):
            server.start()
            stopping.callback(server.stop)
            server.pause()
        figures = _progress(backlog)
        before, began = _embedded(backlog), backlog.running
        rows = measure(bench, _cells(backlog, plain, idle), "appends and searches beside a backlog")
        embedded = _embedded(backlog) - before
        figures["backlog_messages_per_second_under_load"] = Figure.unprobed(embedded / (backlog.running - began))
    show(bench.console, f"{bench.messages:,} messages to embed: appends and searches beside it, and without", rows)
    return figures | _figures(rows)


def _filled(bench: Bench) -> tuple[Paused, Paused, Paused]:
    """The servers, not started, each with what it is to hold."""
    idle = Paused(bench.directory, bench.load, IDLE, model=True)
    plain = Paused(bench.directory, bench.load, PLAIN, model=False)
    backlog = Paused(bench.directory, bench.load, BACKLOG, model=True)
    idle.start()
    idle.fill_searched(max(CLIENTS))
    _wait_until_embedded(idle)
    idle.stop()
    shutil.copytree(idle.data, plain.data)
    plain.start()
    plain.fill(bench.messages)
    plain.stop()
    shutil.copytree(plain.data, backlog.data)
    return backlog, plain, idle


def _wait_until_embedded(server: Paused) -> None:
    deadline = time.monotonic() + EMBEDDED_SECONDS
    while server.pending():
        if time.monotonic() > deadline:
            raise RuntimeError("the messages that are searched are not embedded in time")
        time.sleep(0.2)


def _embedded(server: Paused) -> int:
    with server.resumed():
        return server.embedded()


def _progress(server: Paused) -> dict[str, Figure]:
    """The backlog's own rate, and how soon a new message has its vector meanwhile."""
    with server.resumed():
        time.sleep(ALONE_SECONDS)
        per_second = server.status().model.messages_per_second
        fresh = [server.embedded_after(number) * 1e3 for number in range(FRESH)]
    return {
        "backlog_messages_per_second": Figure.unprobed(per_second),
        "fresh_message_embedded_ms_in_backlog": Figure.unprobed(*fresh),
    }


def _cells(backlog: Paused, plain: Paused, idle: Paused) -> list[Cell]:
    def cell(server: Paused, what: str, clients: int, operation: Callable[[int, float], Measured]) -> Cell:
        def resumed(seconds: float) -> Measured:
            with server.resumed():
                return operation(clients, seconds)

        return Cell(server.name, f"{what} c{clients}", resumed)

    return [
        made
        for clients in CLIENTS
        for made in (
            cell(plain, "append", clients, plain.append),
            cell(backlog, "append", clients, backlog.append),
            cell(idle, "search", clients, idle.search_own),
            cell(backlog, "search", clients, backlog.search_own),
        )
    ]


def _figures(rows: list[Row]) -> dict[str, Figure]:
    """What is left of the speed: the worse of one client and of eight, then each."""
    figures: dict[str, Figure] = {}
    for what, without in (("append", PLAIN), ("search", IDLE)):
        name = f"{what}_rate_in_backlog_over_without"
        each = present(
            {
                f"{name}_c{clients}": ratio(
                    rows, (BACKLOG, f"{what} c{clients}"), (without, f"{what} c{clients}"), rate
                )
                for clients in CLIENTS
            }
        )
        figures |= {name: min(each.values(), key=lambda figure: figure.median), **each}
    return figures
