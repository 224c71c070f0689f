"""LangGraph's long-term memory and its checkpoints."""

from __future__ import annotations

from benchmarks.interleaving import Bench
from benchmarks.slices import Figure
from benchmarks.workloads import langgraph_saver, langgraph_store


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    return langgraph_store.run(bench) | langgraph_saver.run(bench)
