"""How much evidence recall finds, what the encoder takes beside onnxruntime, and what a search takes."""

from __future__ import annotations

from benchmarks import recall, recall_sets
from benchmarks.interleaving import Bench
from benchmarks.slices import Figure
from benchmarks.workloads import recall_encoding, recall_latency

WAYS = {"hybrid": recall.Way({"profile": "hybrid"}), "hybrid_late": recall.Way({"profile": "hybrid_late"})}


def run(bench: Bench) -> dict[str, Figure]:
    """Measure all of it and show it; the figures by name."""
    return recall_encoding.run(bench) | recall_latency.run(bench) | quality(bench)


def quality(bench: Bench) -> dict[str, Figure]:
    """The default set, by profile; no figures where it is not there."""
    if not recall.DATA.is_file():
        bench.console.print(f"[dim]without quality: {recall.DATA} is missing, where LoCoMo's JSON belongs[/dim]")
        return {}
    figures: dict[str, Figure] = {}
    found = recall_sets.load(recall.DATA)
    for name, result in recall.measure(bench.console, found.talks, WAYS, left_out=found.left_out).items():
        recall.show(bench.console, result, name)
        figures |= {key: Figure.unprobed(value) for key, value in result.figures(f"{found.name}_{name}").items()}
    return figures
