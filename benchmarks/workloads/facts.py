"""How well patterns find facts: precision and recall on both parts of the statements in `benchmarks/facts`; and what
facts add to the evidence in a context.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import fact_evidence
from benchmarks.facts.scoring import PARTS, Part, Quality, measure, statements
from benchmarks.interleaving import Bench
from benchmarks.slices import Figure
from rich.console import Console
from rich.table import Table


def run(bench: Bench) -> dict[str, Figure]:
    """Find the facts of both parts and show how many are right; the mistakes of the development part."""
    qualities = {part: measure(statements(part)) for part in PARTS}
    _show(bench.console, qualities)
    found = {
        f"facts_{part}_{name}": Figure.unprobed(value)
        for part, quality in qualities.items()
        for name, value in (("precision", quality.precision), ("recall", quality.recall))
    }
    return found | fact_evidence.run(bench.console)


def _show(console: Console, qualities: Mapping[Part, Quality]) -> None:
    table = Table(title="facts found by patterns", title_justify="left")
    table.add_column("part")
    for heading in ("statements", "facts stated", "found", "right", "precision", "recall"):
        table.add_column(heading, justify="right")
    for part, quality in qualities.items():
        counts = (quality.statements, quality.stated, quality.found, quality.right)
        table.add_row(part, *map(str, counts), f"{quality.precision:.3f}", f"{quality.recall:.3f}")
    console.print(table)
    for mistake in qualities["development"].mistakes:
        console.print(f"{mistake.text}\n    wrong: {sorted(mistake.wrong)}\n    missed: {sorted(mistake.missed)}")
