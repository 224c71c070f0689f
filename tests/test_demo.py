"""The demonstration shows what it promises; it fails by itself where an answer is missing."""

from __future__ import annotations

import os
import shutil
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


@pytest.mark.slow
def test_without_the_embedding_model_the_demo_says_at_once_how_to_install_it(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(DEMO.parent, clone / "demo")
    nothing = os.environ | {"XDG_DATA_HOME": str(tmp_path)}
    nothing.pop("REMORA_MODEL_DIR", None)

    done = subprocess.run(
        [sys.executable, clone / "demo" / "demo.py"], capture_output=True, text=True, check=False, timeout=PATIENCE,
        env=nothing,
    )  # fmt: skip

    assert done.returncode == 1
    assert "FAILED: this needs the embedding model: run `make demo`" in done.stdout
    assert "`remora model install`" in " ".join(done.stdout.split())
    assert "messages in" not in done.stdout
