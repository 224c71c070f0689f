"""Records by key: what a put and a get cost hot, cold, beside writers, and with a million records stored."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.engines.fastapi_sqlite import FastapiSqlite, http_gets, http_puts
from benchmarks.engines.raw import Raw
from benchmarks.engines.record_calls import (
    CONVERSATIONS,
    USERS,
    conversation_gets,
    gets,
    gets_of_conversations,
    newest_messages,
    newest_steps,
    puts,
)
from benchmarks.engines.remora_records import RemoraRecords
from benchmarks.engines.server import Calls, Server
from benchmarks.interleaving import Bench, Cell, measure, started
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, beside, cpu, latency, over
from benchmarks.workloads import record_lists, record_scans, records_stored
from benchmarks.workloads.comparison import present, ratio, row

REMORA, FASTAPI, RAW = "remora", "fastapi+sqlite", "write+fdatasync"
PUT, GET, GET_OF_CONVERSATION, CONVERSATION = "put", "get", "get of a conversation's", "conversation"
NEWEST_10, LIST_50, BESIDE = "newest 10 steps", "newest 50 messages", "{} beside writers"
LONG, LONG_STEPS, OPERATION = "long", 10_000, 20
FILL_SECONDS = 30.0
BUDGET = 120.0
"""Seconds, where the machine is not quiet."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    return compare(bench) | records_stored.run(bench) | record_lists.run(bench) | record_scans.run(bench)


def compare(bench: Bench) -> dict[str, Figure]:
    """Calls of one client that find everything in memory, in interleaved slices."""
    raw, remora = Raw(bench.directory), RemoraRecords(bench.directory, bench.load)
    fastapi = FastapiSqlite(bench.directory, bench.load)
    engines = started((raw, fastapi, remora), bench.console)
    try:
        _fill(remora)
        cells = [Cell(RAW, PUT, lambda seconds: raw.append(1, seconds)), *_cells(remora)]
        if fastapi in engines:
            fastapi.call(FILL_SECONDS, http_puts(USERS), turns=1, settle=True)
            cells += [_cell(fastapi, PUT, http_puts(USERS), settle=True), _cell(fastapi, GET, http_gets(USERS))]
        rows = measure(replace(bench, budget=min(bench.budget, BUDGET)), cells, "records")
    finally:
        for engine in engines:
            engine.stop()
    show(bench.console, "records of 600 bytes by key, 1 client", rows)
    return figures(rows)


def _fill(server: RemoraRecords) -> None:
    server.fill_hot()
    server.list50(1, 0.1)
    server.fill_steps(LONG, LONG_STEPS, OPERATION)
    server.checkpointed()
    server.check_user(USERS[0])
    server.check_steps(newest_steps(LONG, 10), 10)


def _cells(server: RemoraRecords) -> list[Cell]:
    one, conversation = gets(USERS), conversation_gets(CONVERSATIONS)
    return [
        _cell(server, PUT, puts(USERS), settle=True),
        _cell(server, GET, one),
        _cell(server, CONVERSATION, conversation),
        _cell(server, GET_OF_CONVERSATION, gets_of_conversations(CONVERSATIONS)),
        _cell(server, NEWEST_10, newest_steps(LONG, 10)),
        _cell(server, LIST_50, newest_messages("conversation-0", 50)),
        Cell(server.name, BESIDE.format(GET), partial(server.beside_writers, one)),
        Cell(server.name, BESIDE.format(CONVERSATION), partial(server.beside_writers, conversation)),
    ]


def _cell(server: Server, load: str, calls: Calls, *, settle: bool = False) -> Cell:
    return Cell(server.name, load, lambda seconds: server.call(seconds, calls, settle=settle))


def figures(rows: list[Row]) -> dict[str, Figure]:
    """How records compare with what has been fast before."""

    def of_remora(load: str, other: str, share: float) -> Figure | None:
        return ratio(rows, (REMORA, load), (REMORA, other), latency(share))

    return present(
        {
            "record_put_c1_p50_over_fdatasync": ratio(rows, (REMORA, PUT), (RAW, PUT), latency(0.5)),
            "record_get_hot_p50_over_get_conversation": of_remora(GET, CONVERSATION, 0.5),
            "record_get_of_conversation_hot_p50_over_get_conversation": of_remora(
                GET_OF_CONVERSATION, CONVERSATION, 0.5
            ),
            "record_newest10_hot_p50_over_list50": of_remora(NEWEST_10, LIST_50, 0.5),
            "record_get_p99_over_get_conversation_p99_while_writing": of_remora(
                BESIDE.format(GET), BESIDE.format(CONVERSATION), 0.99
            ),
            "record_put_get_cpu_over_sqlite": _put_get_cpu(rows),
        }
    )


def _put_get_cpu(rows: list[Row]) -> Figure | None:
    """The server's CPU of a put and a get over that of the FastAPI server."""
    put, get = row(rows, REMORA, PUT), row(rows, REMORA, GET)
    other_put, other_get = row(rows, FASTAPI, PUT), row(rows, FASTAPI, GET)
    if put is None or get is None or other_put is None or other_get is None:
        return None
    return over(beside(put, get), beside(other_put, other_get), _together)


def _together(both: tuple[Measured, Measured]) -> float:
    return sum(map(cpu, both))
