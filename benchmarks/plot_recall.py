"""Draws the evidence inside budgets of tokens: `plot_recall.py FIGURES.json CURVE.png`. Needs matplotlib alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure


def main(source: Path, target: Path) -> None:
    """One line, a point for each budget, on a logarithmic axis."""
    curve = {int(budget): share for budget, share in json.loads(source.read_text())["curve"].items()}
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.semilogx(list(curve), list(curve.values()), base=2, marker="o")
    axes.set_xticks(list(curve), [f"{budget:,}" for budget in curve])
    axes.set(xlabel="budget, tokens (o200k_base)", ylabel="evidence in the context, %", ylim=(0, 100))
    axes.grid(alpha=0.3)
    figure.savefig(target, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
