"""What is left of a server's work under far more load than it can serve.

The best is the highest rate of any lower load of the same run. Ten times as much is asked for in two ways: by callers
of whom each asks again as soon as it is answered or refused, and at a fixed rate, whatever becomes of what was asked
before. Server and load share the machine in all of them. The load's own CPU is told: where it takes no more in overload
than at the best, what is lost is the server's doing.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, cpu, rate

LOWER = {"8 calls": (8, 1), "32 calls": (32, 1), "16 x 8 calls": (16, 8)}
"""Connections and calls of each at a time, of which the server has room for all."""

CONNECTIONS, STREAMS = 170, 16
"""Ten times as many calls as find room (16 threads, 256 that wait)."""

FACTOR = 10
"""How many times the best rate is asked for at a fixed rate."""

CONVERSATIONS = 32
NAME, CLOSED, OPEN = "remora", f"{CONNECTIONS} x {STREAMS} calls", f"{FACTOR} times the rate"


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    figures: dict[str, Figure] = {}
    server = Remora(bench.directory, bench.load)
    server.start()
    try:
        server.list50(CONVERSATIONS, bench.seconds)
        # The conversations are longer after it: a list is not to be measured of those that memory has no room for.
        for what, path in (("list50", server.list_path), ("append", server.append_path)):
            rows = measure(bench, _cells(server, what, path, bench.seconds), f"{what} under overload")
            show(bench.console, f"{what}; failed: refused", rows)
            figures |= _figures(what, {row.load: row for row in rows})
    finally:
        server.stop()
    return figures


def _cells(server: Remora, what: str, path: str, seconds: float) -> list[Cell]:
    def drive(connections: int, streams: int, seconds: float, rate: float = 0.0) -> Measured:
        requests = [_requests(server, what, client % CONVERSATIONS) for client in range(connections)]
        return server.drive(path, requests, seconds, streams, rate)

    def lower(connections: int, streams: int) -> Callable[[float], Measured]:
        return lambda seconds: drive(connections, streams, seconds)

    best = max(drive(*load, seconds).rate for load in LOWER.values())
    return [
        *(Cell(NAME, name, lower(*load)) for name, load in LOWER.items()),
        Cell(NAME, CLOSED, lambda seconds: drive(CONNECTIONS, STREAMS, seconds)),
        Cell(NAME, OPEN, lambda seconds: drive(CONNECTIONS, STREAMS, seconds, FACTOR * best)),
    ]


def _requests(server: Remora, what: str, client: int) -> list[bytes]:
    return server.append_requests(client) if what == "append" else [server.list_request(client)]


def _figures(what: str, rows: dict[str, Row]) -> dict[str, Figure]:
    """Of both ways to ask for too much: the goodput and what was asked for over the best rate, the time in which half
    of the refusals and 99 of 100 came, and the CPU of an answer over that at the best rate.
    """
    best = max((rows[name] for name in LOWER), key=lambda row: row.figure(rate).median)
    figures = {f"{what}_best_load_cores": best.figure(_load_cores)}
    for way, row in (("closed_loop", rows[CLOSED]), ("open_loop", rows[OPEN])):
        figures |= {
            f"{what}_{way}_goodput_over_best": row.over(best, rate),
            f"{what}_{way}_offered_over_best": row.over(best, _offered, rate),
            f"{what}_{way}_refused_p50_ms": row.figure(_refused_after(0.5)).times(1e3),
            f"{what}_{way}_refused_p99_ms": row.figure(_refused_after(0.99)).times(1e3),
            f"{what}_{way}_cpu_an_answer_over_best": row.over(best, cpu),
            f"{what}_{way}_load_cores": row.figure(_load_cores),
        }
    return figures


def _offered(measured: Measured) -> float:
    return measured.offered


def _load_cores(measured: Measured) -> float:
    return measured.load_cores


def _refused_after(share: float) -> Callable[[Measured], float]:
    return lambda measured: measured.failed_after(share)
