"""What a person and a program read: the table of rows, the figures with their spreads, and the machine."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.slices import Figure, Row, cpu, latency, quiet, rate
from rich.console import Console
from rich.table import Table


def show(console: Console, title: str, rows: Sequence[Row], tail: float = 0.99) -> None:
    """The rows as a table: the median of the slices, the quartiles behind it."""
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
            _spread(row.figure(rate), ".0f"),
            _spread(row.figure(latency(0.5)).times(1e3), ".3f"),
            _spread(row.figure(latency(tail)).times(1e3), ".2f"),
            _spread(row.figure(cpu).times(1e6), ".0f"),
            _spread(row.probe().times(1e3), ".3f"),
            f"{quiet(row.slices)}/{len(row.slices)}",
            str(row.failed()),
        )
    console.print(table)


def show_figures(console: Console, figures: Mapping[str, Figure]) -> None:
    """The figures by name, those that were measured several times with their quartiles."""
    width = max(map(len, figures), default=0)
    for name, figure in figures.items():
        spread = f"({figure.low:,.4g}-{figure.high:,.4g})" if figure.slices > 1 else ""
        console.print(f"{name:{width}} {figure.median:<9,.4g} {spread}", highlight=False)


def write(path: Path, workload: str, figures: Mapping[str, Figure]) -> None:
    """The figures as JSON, in one step; beside them, by the same names, their quartiles and what they rest on."""
    report = {
        "workload": workload,
        "machine": machine(),
        "figures": {name: figure.median for name, figure in figures.items()},
        "spread": {name: [figure.low, figure.high] for name, figure in figures.items()},
        "slices": {name: {"quiet": figure.quiet, "all": figure.slices} for name, figure in figures.items()},
    }
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


def _spread(figure: Figure, form: str) -> str:
    if math.isnan(figure.median):
        return "-"
    middle, low, high = (format(value, form) for value in (figure.median, figure.low, figure.high))
    return f"{middle} ({low}-{high})"
