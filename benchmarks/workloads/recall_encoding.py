"""The encoder beside onnxruntime, in the environment that `make bench` makes for it: one thread each, CPU time."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

from benchmarks.engines.fastapi_sqlite import PYTHON
from benchmarks.engines.remora import MODEL
from benchmarks.interleaving import Bench
from benchmarks.slices import Figure
from benchmarks.talks import questions
from benchmarks.texts import texts

import remora_server

REFERENCE = Path(__file__).resolve().parents[1] / "encoder_reference.py"
SERVER = Path(remora_server.__file__).resolve().parents[1]
QUERIES, TEXTS = 20, 160
SHORTEST, LONGEST = 40, 240
"""Bytes of a text: what people write in a chat."""


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name, none where onnxruntime is not installed."""
    if not PYTHON.exists():
        bench.console.print(f"[dim]without onnxruntime: {PYTHON} is missing: `make bench` makes it[/dim]")
        return {}
    content, found = bench.directory / "texts.json", bench.directory / "encoding.json"
    content.write_text(json.dumps({"queries": questions(QUERIES), "texts": _texts()}))
    command = [*map(str, (PYTHON, REFERENCE, MODEL, content)), "--out", str(found), "--rounds", str(bench.rounds)]
    with bench.console.status("the encoder beside onnxruntime"):
        done = subprocess.run(
            command, check=True, env={**os.environ, "PYTHONPATH": str(SERVER)}, stdout=subprocess.PIPE
        )
    bench.console.print(done.stdout.decode(), highlight=False, end="")
    return {name: Figure.unprobed(value) for name, value in json.loads(found.read_text()).items()}


def _texts() -> list[str]:
    chance = random.Random(4)
    return [text[: chance.randint(SHORTEST, LONGEST)] for text in texts(4, TEXTS)]
