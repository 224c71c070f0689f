"""Appends while DuckDB checkpoints behind them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench
from benchmarks.slices import Figure, Slice, joined, quantile, split
from benchmarks.texts import texts
from rich.progress import Progress

ROUNDS, MOST_ROUNDS = 5, 10
"""How many are measured that meet a checkpoint, and how many are made for that: in some it comes later."""
ALMOST_DUE_BYTES = 62 << 20
"""Just below the size of the write-ahead log at which the server checkpoints."""

NEAR_BYTES = 56 << 20
LOAD_SECONDS = 5.0
POLL_SECONDS = 0.002
GAP_SECONDS = 0.3
COARSE, FINE = 200, 20


@dataclass(frozen=True, slots=True)
class Met:
    """The latencies of appends that met a checkpoint, and of those that met none, in seconds."""

    inside: list[float]
    outside: list[float]

    def slower(self, share: float) -> float:
        """The one latency that this share of the appends stays below over the other."""
        return quantile(self.inside, share) / quantile(self.outside, share)


def run(bench: Bench) -> dict[str, Figure]:
    """The latency of appends that meet a checkpoint over that of those that meet none, at the median and at 99 %."""
    server = Remora(bench.directory / "checkpoints", bench.load)
    server.start()
    met: list[Slice[Met]] = []
    with Progress(console=bench.console, transient=True, refresh_per_second=1) as progress:
        for _ in progress.track(range(MOST_ROUNDS), description="checkpoints"):
            _fill(server)
            one = bench.slice_of(partial(_append, server))
            met += [one] if one.measured.inside else []
            if len(met) == ROUNDS:
                break
    server.stop()
    for one in met:
        met_one, met_none = len(one.measured.inside), len(one.measured.outside)
        bench.console.print(f"checkpoint: {met_one:,} appends met it, {met_none:,} did not", highlight=False)
    if not met:
        return {}
    return {
        "append_p50_in_checkpoint_over_without": Figure.of(met, lambda one: one.slower(0.5)),
        "append_p99_in_checkpoint_over_without": Figure.of(met, lambda one: one.slower(0.99)),
    }


def _fill(server: Remora) -> None:
    """Fill DuckDB's write-ahead log until a checkpoint is near."""
    while server.wal_bytes() < ALMOST_DUE_BYTES:
        fine = server.wal_bytes() > NEAR_BYTES
        request = server.append_request("filled", "filler", texts(0, FINE if fine else COARSE))
        server.load.run(
            server.socket, server.wire, server.append_path, [[request]], seconds=0.1 if fine else 0.5, streams=1
        )
        time.sleep(0.3)  # until the database has it


def _append(server: Remora) -> Met:
    """Append and see the checkpoint come.

    The conversation is in memory before: what filled the log may have pushed it out, and to load it again is a read of
    DuckDB, which waits for the whole checkpoint.
    """
    server.drive(server.append_path, [server.append_requests(0)[:1]], 1.0, turns=1, settle=False)
    with Watch(server.database) as watch:
        measured = server.append(1, LOAD_SECONDS)
    return Met(*split(measured.spans, joined(watch.writes, GAP_SECONDS)))


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
