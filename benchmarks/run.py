"""Runs the benchmarks: `python -m benchmarks.run [--workload append|window|client|overload|search|…] [--out FILE] …`.

Without a workload: a short run of those that need no data of others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.interleaving import Bench
from benchmarks.loading import Load
from benchmarks.probe import Probe
from benchmarks.slices import Figure
from benchmarks.workloads import (
    append,
    backlog,
    client,
    context,
    facts,
    floor,
    langgraph,
    overload,
    pod,
    queries,
    recall,
    records,
    scale,
    search,
    short_term,
    vectors,
    voltagent,
    window,
)
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "bench"
LOAD = ROOT / "target" / "release" / "remora-load"

WORKLOADS: dict[str, Callable[[Bench], dict[str, Figure]]] = {
    "append": append.run,
    "window": window.run,
    "client": client.run,
    "overload": overload.run,
    "search": search.run,
    "backlog": backlog.run,
    "recall": recall.run,
    "queries": queries.run,
    "floor": floor.run,
    "scale": scale.run,
    "records": records.run,
    "vectors": vectors.run,
    "voltagent": voltagent.run,
    "langgraph": langgraph.run,
    "short_term": short_term.run,
    "context": context.run,
    "facts": facts.run,
    "pod": pod.run,
}
BRIEF = ("append", "window")
MESSAGES = 100_000
SECONDS, ROUNDS, BUDGET = 1.5, 5, 180.0
LENGTHS = {"pod": 300.0, "voltagent": 1.0}
"""Seconds of a slice where they are other ones: pod has one long slice, voltagent has many cells."""
SHORT_SECONDS, SHORT_ROUNDS, SHORT_BUDGET = 0.3, 2, 20.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and write the figures."""
    options = _parser().parse_args(arguments)
    short = not options.workload
    names = list(BRIEF) if short else [options.workload]
    console = Console(width=None if sys.stdout.isatty() else 150)
    figures: dict[str, Figure] = {}
    for name in names:
        figures |= _run(name, options, console, short=short)
    report.show_figures(console, figures)
    if options.out:
        report.write(options.out, "+".join(names), figures)
    return 0


def _run(name: str, options: argparse.Namespace, console: Console, *, short: bool) -> dict[str, Figure]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="data-", dir=options.directory) as directory:
        Path(directory).chmod(0o755)  # PostgreSQL runs as another user
        probe = Probe(Path(directory))
        bench = Bench(
            directory=Path(directory),
            load=Load(options.load, Path(directory)),
            probe=probe,
            seconds=options.seconds or (SHORT_SECONDS if short else LENGTHS.get(name, SECONDS)),
            rounds=SHORT_ROUNDS if short else ROUNDS,
            budget=SHORT_BUDGET if short else BUDGET,
            short=short,
            messages=options.messages,
            console=console,
        )
        try:
            return WORKLOADS[name](bench)
        finally:
            probe.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--workload", choices=list(WORKLOADS), help=f"default: {' and '.join(BRIEF)}, briefly")
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--seconds", type=float, help="how long a slice takes")
    parser.add_argument("--messages", type=int, default=MESSAGES, help="how many messages the backlog has")
    parser.add_argument("--directory", type=Path, default=CACHE, help="where the data goes: on the disk to be measured")
    parser.add_argument("--load", type=Path, default=LOAD, help="the compiled load")
    return parser


if __name__ == "__main__":
    sys.exit(main())
