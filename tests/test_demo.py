"""The demonstration shows what it promises; it fails by itself where an answer is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.patience import PATIENCE

DEMO = Path(__file__).resolve().parents[1] / "demo" / "demo.py"


@pytest.mark.slow
def test_the_demo_keeps_its_promises_and_draws_what_it_shows(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"

    done = subprocess.run(
        [sys.executable, DEMO, "--svg", picture], capture_output=True, text=True, check=False, timeout=PATIENCE
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing acknowledged was lost" in done.stdout
    assert picture.read_text("utf-8").startswith("<svg")
