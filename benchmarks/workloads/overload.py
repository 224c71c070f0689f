"""What is left of a server's work under far more load than it can serve."""

from __future__ import annotations

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Measured, Row
from benchmarks.workloads.comparison import present, ratio

CLIENTS = 32
"""As many as the server answers best, each with one call at a time."""

CONNECTIONS, STREAMS = 170, 16
"""Ten times as many calls as find room (16 threads, 256 that wait). Who is refused asks again at once."""

NAME, BEST, OVERLOAD = "remora", "best", "overload"


def run(bench: Bench) -> dict[str, float]:
    """Measure and show; the figures by name."""
    figures: dict[str, float] = {}
    server = Remora(bench.directory, bench.load)
    server.start()
    try:
        for what, path in (("append", server.append_path), ("list50", server.list_path)):
            rows = measure(bench, _cells(server, what, path), f"{what} under overload")
            show(
                bench.console, f"{what}: {CLIENTS} calls at a time, and {CONNECTIONS * STREAMS}; failed: refused", rows
            )
            figures |= _figures(what, rows)
    finally:
        server.stop()
    return figures


def _cells(server: Remora, what: str, path: str) -> list[Cell]:
    def best(seconds: float) -> Measured:
        return server.append(CLIENTS, seconds) if what == "append" else server.list50(CLIENTS, seconds)

    def overload(seconds: float) -> Measured:
        requests = [_requests(server, what, client % CLIENTS) for client in range(CONNECTIONS)]
        return server.drive(path, requests, seconds, STREAMS)

    return [Cell(NAME, BEST, best), Cell(NAME, OVERLOAD, overload)]


def _requests(server: Remora, what: str, client: int) -> list[bytes]:
    return server.append_requests(client) if what == "append" else [server.list_request(client)]


def _figures(what: str, rows: list[Row]) -> dict[str, float]:
    """The goodput under overload over the best, and how much was asked for over it."""
    return present(
        {
            f"{what}_goodput_in_overload_over_best": ratio(rows, (NAME, OVERLOAD), (NAME, BEST), _goodput),
            f"{what}_offered_in_overload_over_best": ratio(rows, (NAME, OVERLOAD), (NAME, BEST), _offered),
        }
    )


def _goodput(row: Row) -> float:
    return row.rate().median


def _offered(row: Row) -> float:
    answered = sum(len(one.measured.spans) for one in row.slices)
    return row.rate().median * (answered + row.failed()) / answered
