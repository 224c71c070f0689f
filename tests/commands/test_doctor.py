"""`remora doctor` where it can see little: what it cannot read is a finding, never its own end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.commands.another_user import open_to_all, remora_of_another
from tests.storage.opening import open_store
from tests.tokens import token_file

from remora_server.main import main


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


def test_a_directory_of_something_else_is_not_taken_for_a_damaged_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "readme.txt").write_text("words")

    code, said = doctor(capsys, f"--data={tmp_path}")

    assert (code, findings(said)) == (1, [f"{tmp_path} is not empty and is not a data directory of Remora"])
    assert said["findings"][0]["remedy"] == "name the data directory (--data)"
    assert said["store"]["present"] is False


@pytest.mark.slow
def test_a_directory_of_another_user_is_found() -> None:
    with open_to_all() as folder:
        data = folder / "theirs"
        (data / "deeper").mkdir(parents=True)
        data.chmod(0 if os.getuid() else 0o700)
        for directory in (data, data / "deeper"):
            done = remora_of_another("doctor", "--json", "--model=none", f"--data={directory}")

            assert done.returncode == 1, done.stderr
            assert "Traceback" not in done.stderr
            assert any("cannot be read: Permission denied" in what for what in findings(json.loads(done.stdout)))
        data.chmod(0o700)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FORMAT", "remora.duckdb", "journal", "journal/reach", "LOCK"])
def test_what_another_user_may_not_read_is_not_taken_for_damage(name: str) -> None:
    """A start would not mend it, and a repair without it would lose what is whole."""
    with open_to_all() as folder:
        data, target = folder / "data", folder / "new"
        open_store(data).close()
        for part in (data, *data.rglob("*")):
            part.chmod(0o777 if part.is_dir() else 0o666)
        (data / name).chmod(0)

        looked = remora_of_another("doctor", "--json", "--model=none", f"--data={data}")
        repaired = remora_of_another("repair", f"--data={data}", f"--to={target}")
        (data / name).chmod(0o777)

        found = [finding for finding in json.loads(looked.stdout)["findings"] if finding["part"] == "store"]
        assert [finding["what"] for finding in found] == [f"{data / name} cannot be read: Permission denied"]
        assert "as the user who serves it" in found[0]["remedy"]
        assert (repaired.returncode, repaired.stderr.count("\n")) == (1, 1), repaired.stderr
        assert f"{data / name}" in repaired.stderr
        assert "Permission denied" in repaired.stderr
        assert not target.exists()


@pytest.mark.parametrize(
    ("content", "mode", "what"),
    [
        (None, 0o600, "cannot be read as a token file"),
        ("alone", 0o600, "line 1 is not a new token"),
        ("secret acme", 0o644, "every user of this machine can read or change"),
    ],
)
def test_a_token_file_that_no_server_takes_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, mode: int, what: str
) -> None:
    file = tmp_path / "tokens"
    if content is not None:
        token_file(file, content).chmod(mode)

    code, said = doctor(capsys, f"--data={tmp_path / 'none'}", f"--token-file={file}")

    assert code == 1
    assert [what in found and str(file) in found for found in findings(said)] == [True]
