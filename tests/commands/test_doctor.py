"""`remora doctor` where it can see little: what it cannot read is a finding, never its own end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remora_server.main import main

NOBODY = 65534


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and what it says for scripts."""
    capsys.readouterr()
    code = main(["doctor", "--json", "--model=none", "--listen=unix:/nowhere/socket", *arguments])
    return code, json.loads(capsys.readouterr().out)


def findings(said: dict[str, Any]) -> list[str]:
    return [finding["what"] for finding in said["findings"]]


def test_an_empty_directory_and_none_at_all_are_as_they_should_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = tmp_path / "a new file system"
    (fresh / "lost+found").mkdir(parents=True)
    (empty := tmp_path / "empty").mkdir()
    for data in (fresh, empty, tmp_path / "none"):
        code, said = doctor(capsys, f"--data={data}")

        assert (code, said["findings"]) == (0, [])
        assert any("there is none in" in note["what"] for note in said["notes"])


def test_a_file_in_the_place_of_the_directory_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "file"
    data.write_text("words")

    code, said = doctor(capsys, f"--data={data}")

    assert (code, findings(said)) == (1, [f"{data} cannot be read: Not a directory"])


def test_a_directory_of_another_user_is_found(tmp_path: Path) -> None:
    data = tmp_path / "theirs"
    (data / "deeper").mkdir(parents=True)
    data.chmod(0 if os.getuid() else 0o700)
    look = (
        "import os, sys; from remora_server.commands import doctor; from remora_server.main import main;"
        f"os.getuid() or os.setuid({NOBODY}); sys.exit(main(sys.argv[1:]))"
    )
    for directory in (data, data / "deeper"):
        command = ["doctor", "--json", "--model=none", "--listen=unix:/nowhere/socket", f"--data={directory}"]
        done = subprocess.run([sys.executable, "-c", look, *command], capture_output=True, text=True, check=False)

        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert any("cannot be read: Permission denied" in what for what in findings(json.loads(done.stdout)))


@pytest.mark.parametrize(
    ("content", "what"), [(None, "cannot be read as a token file"), ("alone\n", "line 1 is not a new token")]
)
def test_a_token_file_that_no_server_takes_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, what: str
) -> None:
    file = tmp_path / "tokens"
    if content is not None:
        file.write_text(content)

    code, said = doctor(capsys, f"--data={tmp_path / 'none'}", f"--token-file={file}")

    assert code == 1
    assert [what in found and str(file) in found for found in findings(said)] == [True]
