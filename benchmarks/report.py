"""What a person and a program read: the table of rows, the figures and the machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.slices import Row, Spread
from rich.console import Console
from rich.table import Table


def show(console: Console, title: str, rows: Sequence[Row], tail: float = 0.99) -> None:
    """The rows as a table: the median of the slices, the smallest and the largest behind it."""
    table = Table(title=title, title_justify="left")
    table.add_column("engine")
    for heading in (
        "load",
        "ops/s",
        "p50 ms",
        f"p{tail:.0%} ms".replace("%", ""),
        "CPU us/op",
        "fdatasync ms",
        "quiet",
        "failed",
    ):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.engine,
            row.load,
            _spread(row.rate(), 1, ".0f"),
            _spread(row.quantile(0.5), 1e3, ".3f"),
            _spread(row.quantile(tail), 1e3, ".2f"),
            _spread(row.cpu(), 1e6, ".0f"),
            _spread(Spread.of(one.probe for one in row.slices), 1e3, ".3f"),
            str(row.quiet),
            str(row.failed()),
        )
    console.print(table)


def show_figures(console: Console, figures: Mapping[str, float]) -> None:
    """The figures by name."""
    for name, value in figures.items():
        console.print(f"{name:44} {value:,.4g}", highlight=False)


def write(path: Path, workload: str, figures: Mapping[str, float]) -> None:
    """The figures as JSON, in one step."""
    report = {"workload": workload, "machine": machine(), "figures": figures}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(report, indent=2) + "\n")
    part.replace(path)


def machine() -> dict[str, str | int]:
    """What the figures were measured on."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count() or 0,
        "memory": _first("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _first(path: str, key: str) -> str:
    lines = Path(path).read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "unknown")


def _spread(spread: Spread, scale: float, form: str) -> str:
    middle, low, high = (format(value * scale, form) for value in (spread.median, spread.low, spread.high))
    return f"{middle} ({low}-{high})"
