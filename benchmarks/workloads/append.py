"""Durable appends of one message of 500 bytes, beside what others need for them."""

from __future__ import annotations

from benchmarks.engines.duckdb import Duckdb
from benchmarks.engines.engine import Engine
from benchmarks.engines.fastapi_sqlite import FastapiSqlite, FastapiTuned
from benchmarks.engines.grpc_go import RemoraByGrpcGo
from benchmarks.engines.postgres import Postgres
from benchmarks.engines.raw import Raw
from benchmarks.engines.remora import Remora
from benchmarks.engines.sqlite import Sqlite
from benchmarks.interleaving import Bench, measure, started
from benchmarks.report import show
from benchmarks.slices import Figure, Row, cpu, latency, rate
from benchmarks.workloads import checkpoints, growth
from benchmarks.workloads.comparison import cells, present, ratio

REMORA, GRPC_GO, FASTAPI, TUNED = "remora", "remora+grpc-go", "fastapi+sqlite", "fastapi-tuned"
RAW, IN_PLACE = "write+fdatasync", "write+fdatasync in place"


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    figures = compare(bench)
    if bench.short:
        return figures
    return figures | growth.bytes_written(bench) | checkpoints.run(bench) | growth.slope(bench)


def compare(bench: Bench) -> dict[str, Figure]:
    """Appends of 1 and of 32 clients to every engine, in interleaved slices."""
    everyone: list[Engine] = [
        Raw(bench.directory),
        Raw(bench.directory, in_place=True),
        Sqlite(bench.directory),
        Duckdb(bench.directory),
        Postgres(bench.directory),
        FastapiSqlite(bench.directory, bench.load),
        FastapiTuned(bench.directory, bench.load),
        Remora(bench.directory, bench.load),
        RemoraByGrpcGo(bench.directory, bench.load),
    ]
    engines = started(everyone, bench.console)
    try:
        rows = measure(
            bench, cells(engines, lambda engine, clients, seconds: engine.append(clients, seconds)), "append"
        )
    finally:
        for engine in engines:
            engine.stop()
    show(bench.console, "append: one message of 500 bytes, durable when it is acknowledged", rows)
    return figures(rows)


def figures(rows: list[Row]) -> dict[str, Figure]:
    """How Remora's appends compare."""
    return present(
        {
            "append_c1_p50_over_fdatasync": ratio(rows, (REMORA, "c1"), (RAW, "c1"), latency(0.5)),
            "append_c1_p50_over_fdatasync_in_place": ratio(rows, (REMORA, "c1"), (IN_PLACE, "c1"), latency(0.5)),
            "append_go_c1_p50_over_fdatasync": ratio(rows, (GRPC_GO, "c1"), (RAW, "c1"), latency(0.5)),
            "append_go_c1_p50_over_fdatasync_in_place": ratio(rows, (GRPC_GO, "c1"), (IN_PLACE, "c1"), latency(0.5)),
            "append_c1_cpu_over_fastapi_sqlite": ratio(rows, (REMORA, "c1"), (FASTAPI, "c1"), cpu),
            "append_c32_rate_over_fastapi_sqlite": ratio(rows, (REMORA, "c32"), (FASTAPI, "c32"), rate),
            "append_c32_rate_over_tuned": ratio(rows, (REMORA, "c32"), (TUNED, "c32"), rate),
        }
    )
