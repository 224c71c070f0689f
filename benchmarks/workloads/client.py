"""What the Python client costs its process beside the generated stub, and its appends beside the disk's."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.engines.python_clients import AsyncClient, AsyncStub, Caller, Client, Stub
from benchmarks.engines.raw import Raw
from benchmarks.engines.remora import Remora
from benchmarks.interleaving import WARM_UP_SECONDS, Bench, Cell, measure, started
from benchmarks.report import show
from benchmarks.slices import Figure, Row, cpu, latency
from benchmarks.workloads.comparison import present, ratio

APPEND, LIST50 = "append", "list50"


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    server = Remora(bench.directory, bench.load)
    raws = [Raw(bench.directory), Raw(bench.directory, in_place=True)]
    with ExitStack() as running:
        for engine in started([*raws, server], bench.console):
            running.callback(engine.stop)
        server.list50(1, WARM_UP_SECONDS)  # from here on there is a conversation of more than 50 messages
        raw_cells = [Cell(raw.name, APPEND, lambda seconds, raw=raw: raw.append(1, seconds)) for raw in raws]  # type: ignore[misc]
        rows = measure(bench, [*raw_cells, *_cells(server, running)], "client")
    show(bench.console, "client: one caller in this process, whose CPU time this is", rows)
    return figures(rows)


def _cells(server: Remora, running: ExitStack) -> list[Cell]:
    cells = []
    for kind in (Stub, Client, AsyncStub, AsyncClient):
        caller: Caller = kind(f"unix:{server.socket}", "conversation-0", "user-0")
        running.callback(caller.close)
        cells += [Cell(caller.name, APPEND, caller.append), Cell(caller.name, LIST50, caller.list50)]
    return cells


def figures(rows: list[Row]) -> dict[str, Figure]:
    """How the client compares."""
    client, stub = (Client.name, APPEND), (Stub.name, APPEND)
    return present(
        {
            "client_list50_cpu_over_stub": ratio(rows, (Client.name, LIST50), (Stub.name, LIST50), cpu),
            "client_append_cpu_over_stub": ratio(rows, client, stub, cpu),
            "client_async_list50_cpu_over_stub": ratio(rows, (AsyncClient.name, LIST50), (AsyncStub.name, LIST50), cpu),
            "client_async_append_cpu_over_stub": ratio(rows, (AsyncClient.name, APPEND), (AsyncStub.name, APPEND), cpu),
            "client_append_p50_over_fdatasync": ratio(rows, client, ("write+fdatasync", APPEND), latency(0.5)),
            "client_append_p50_over_fdatasync_in_place": ratio(
                rows, client, ("write+fdatasync in place", APPEND), latency(0.5)
            ),
        }
    )
