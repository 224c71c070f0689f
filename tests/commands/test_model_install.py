"""`remora model install`: what it says of what it did."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from remora_server.engine import model_files
from remora_server.main import main

CONTENTS = {"tokenizer.json": b"{}", "model.safetensors": b"weights"}


@pytest.fixture(autouse=True)
def _small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}
    monkeypatch.setattr(model_files, "SHA256", digests)


def test_a_model_that_is_there_is_said_to_be_there_and_its_source_not_to_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, nowhere = tmp_path / "source", tmp_path / "model", tmp_path / "nowhere"
    source.mkdir()
    for name, content in CONTENTS.items():
        (source / name).write_bytes(content)

    for arguments in (["--from-dir", str(source)], ["--from-dir", str(nowhere)], []):
        assert main(["model", "install", "--dir", str(target), *arguments]) == 0

    there = f"the model is in {target} already: its files have the published digests"
    assert capsys.readouterr().out.splitlines() == [
        f"the model is in {target}",
        f"{there}, {nowhere} was not read",
        there,
    ]
