"""Appends while DuckDB checkpoints behind them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench
from benchmarks.slices import joined, quantile, split
from benchmarks.texts import texts
from rich.progress import Progress

ROUNDS = 5
ALMOST_DUE_BYTES = 62 << 20
"""Just below the size of the write-ahead log at which the server checkpoints."""

NEAR_BYTES = 56 << 20
LOAD_SECONDS = 5.0
POLL_SECONDS = 0.002
GAP_SECONDS = 0.3
COARSE, FINE = 200, 20


def run(bench: Bench) -> dict[str, float]:
    """The latency of appends that meet a checkpoint over that of those that meet none, at the median and at 99 %."""
    server = Remora(bench.directory / "checkpoints", bench.load)
    server.start()
    inside: list[float] = []
    outside: list[float] = []
    with Progress(console=bench.console, transient=True, refresh_per_second=1) as progress:
        for _ in progress.track(range(ROUNDS), description="checkpoints"):
            within, without = _round(server)
            inside += within
            outside += without
    server.stop()
    bench.console.print(f"checkpoints: {len(inside)} appends met one, {len(outside)} met none")
    if not inside:
        return {}
    return {
        "append_p50_in_checkpoint_over_without": quantile(inside, 0.5) / quantile(outside, 0.5),
        "append_p99_in_checkpoint_over_without": quantile(inside, 0.99) / quantile(outside, 0.99),
    }


def _round(server: Remora) -> tuple[list[float], list[float]]:
    """Fill DuckDB's write-ahead log until a checkpoint is near, then append and see it come."""
    while server.wal_bytes() < ALMOST_DUE_BYTES:
        fine = server.wal_bytes() > NEAR_BYTES
        request = server.append_request("filled", "filler", texts(0, FINE if fine else COARSE))
        server.load.run(
            server.socket, server.wire, server.append_path, [[request]], seconds=0.1 if fine else 0.5, streams=1
        )
        time.sleep(0.3)  # until the database has it
    with Watch(server.database) as watch:
        measured = server.append(1, LOAD_SECONDS)
    return split(measured.spans, joined(watch.writes, GAP_SECONDS))


class Watch:
    """Sees when a file is written to, which DuckDB's is by checkpoints alone: `writes` holds the moments."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.writes: list[float] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _look(self) -> None:
        before = self._path.stat().st_mtime_ns
        while not self._stopping.wait(POLL_SECONDS):
            now = self._path.stat().st_mtime_ns
            if now != before:
                self.writes.append(time.monotonic())
            before = now
