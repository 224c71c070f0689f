"""Reads of the newest 50 messages, and what the server costs while it does nothing."""

from __future__ import annotations

from benchmarks.engines.duckdb import Duckdb
from benchmarks.engines.engine import Engine
from benchmarks.engines.fastapi_sqlite import FastapiSqlite, FastapiTuned
from benchmarks.engines.postgres import Postgres
from benchmarks.engines.remora import Remora
from benchmarks.engines.sqlite import Sqlite
from benchmarks.interleaving import Bench, measure, started
from benchmarks.report import show
from benchmarks.slices import Figure, Row, cpu, rate
from benchmarks.workloads import footprint
from benchmarks.workloads.comparison import cells, present, ratio

REMORA, FASTAPI, TUNED = "remora", "fastapi+sqlite", "fastapi-tuned"


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    figures = compare(bench) | footprint.empty(bench)
    return figures if bench.short else figures | footprint.after_kill(bench) | footprint.filled(bench)


def compare(bench: Bench) -> dict[str, Figure]:
    """Reads of 1 and of 32 clients from every engine, in interleaved slices."""
    everyone: list[Engine] = [
        Sqlite(bench.directory),
        Duckdb(bench.directory),
        Postgres(bench.directory),
        FastapiSqlite(bench.directory, bench.load),
        FastapiTuned(bench.directory, bench.load),
        Remora(bench.directory, bench.load),
    ]
    engines = started(everyone, bench.console)
    try:
        rows = measure(
            bench, cells(engines, lambda engine, clients, seconds: engine.list50(clients, seconds)), "window"
        )
    finally:
        for engine in engines:
            engine.stop()
    show(bench.console, "window: the newest 50 messages of a conversation, 500 bytes each", rows)
    return figures(rows)


def figures(rows: list[Row]) -> dict[str, Figure]:
    """How Remora's reads compare."""
    return present(
        {
            "list50_c32_rate_over_fastapi_sqlite": ratio(rows, (REMORA, "c32"), (FASTAPI, "c32"), rate),
            "list50_c32_rate_over_tuned": ratio(rows, (REMORA, "c32"), (TUNED, "c32"), rate),
            "list50_c1_cpu_over_fastapi_sqlite": ratio(rows, (REMORA, "c1"), (FASTAPI, "c1"), cpu),
        }
    )
