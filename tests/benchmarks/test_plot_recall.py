"""The curve as a picture: what matplotlib is handed, and the picture itself where matplotlib is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import recall

CURVE = {"256": 41.5, "512": 60.0, "1024": 87.25}
STAND_IN = """
import json, pathlib

class Axes:
    calls = {}
    def __getattr__(self, name):
        return lambda *given, **named: self.calls.update({name: [given, named]})

class Figure:
    def __init__(self, **_): self.axes = Axes()
    def subplots(self): return self.axes
    def savefig(self, target, **_): pathlib.Path(target).write_text(json.dumps(self.axes.calls))
"""


@pytest.fixture
def figures(tmp_path: Path) -> Path:
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"workload": "recall", "figures": {}, "curve": CURVE}))
    return path


def draw(python: str | Path, figures: Path, **environment: str) -> bytes:
    target = figures.with_name("curve.png")
    subprocess.run([python, recall.PLOT, figures, target], check=True, env=os.environ | environment)
    return target.read_bytes()


def test_matplotlib_is_handed_the_curve(figures: Path, tmp_path: Path) -> None:
    package = tmp_path / "stand-in" / "matplotlib"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "figure.py").write_text(STAND_IN)

    calls = json.loads(draw(sys.executable, figures, PYTHONPATH=str(package.parent)))

    assert calls["semilogx"][0] == [[256, 512, 1024], [41.5, 60.0, 87.25]]
    assert calls["set_xticks"][0] == [[256, 512, 1024], ["256", "512", "1,024"]]
    assert calls["set"][1]["ylim"] == [0, 100]


@pytest.mark.skipif(not recall.PLOT_PYTHON.exists(), reason="no matplotlib: `make bench` installs it")
def test_the_picture_is_a_png(figures: Path) -> None:
    assert draw(recall.PLOT_PYTHON, figures).startswith(b"\x89PNG\r\n")
