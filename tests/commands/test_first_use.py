"""The command line as a newcomer types it: help, the version, completion, and mistakes that everybody makes."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.terminal import begin, remora
from tests.patience import PATIENCE
from tests.storage.opening import open_store

from remora_server.commands import COMMANDS, connecting
from remora_server.commands.completion import SHELLS
from remora_server.commands.parsing import CommandParser
from remora_server.commands.root import root_parser
from remora_server.domain.sizes import size
from remora_server.engine.model_files import MODEL, SHA256
from remora_server.main import main
from remora_server.settings.settings import KEYS


def parsers() -> Iterator[argparse.ArgumentParser]:
    """The parser of every command, with its arguments."""
    waiting: list[argparse.ArgumentParser] = [root_parser()]
    while waiting:
        parser = waiting.pop()
        if isinstance(parser, CommandParser):
            parser.load()
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()


def ended(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of a command line, and its output."""
    try:
        code = main(arguments)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    return code, capsys.readouterr().out


def test_the_version_is_shown_for_the_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = ended(["version"], capsys)

    assert ended(["--version"], capsys) == (0, f"remora {shown.splitlines()[0]}\n")


def test_the_version_comes_with_the_digest_of_the_model_that_is_built_in(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = ended(["version"], capsys)

    assert shown.splitlines()[1] == f"model: {MODEL} sha256:{SHA256['model.safetensors']}"


@pytest.mark.parametrize("arguments", [[], ["model"]])
def test_a_command_that_needs_another_shows_its_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(arguments, capsys) == ended([*arguments, "--help"], capsys)


def test_the_first_help_names_every_command_and_how_to_start_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = ended([], capsys)

    assert all(f"\n    {name} " in shown or f"\n    {name}\n" in shown for name in COMMANDS)
    assert "`remora serve` starts a server" in shown


def test_every_option_says_its_default() -> None:
    optional = [
        (parser.prog, action)
        for parser in parsers()
        for action in parser._actions
        if action.option_strings and action.nargs != 0 and not action.required
    ]
    unset = {"--user", "--conversation", "--from-wheel", "--lease"} | {key.flag for key in KEYS if not key.default}
    said = {
        (program, action.option_strings[-1])
        for program, action in optional
        if "(default" not in str(action.help) and action.option_strings[-1] not in unset
    }

    assert len(optional) > 50
    assert said == set()


def test_every_choice_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = ended(["serve", "--help"], capsys)

    chosen = [key for key in KEYS if key.choices]
    assert len(chosen) >= 6
    for key in chosen:
        assert f"{key.flag} {{{','.join(key.choices)}}}" in shown
    assert "(default: 64 MiB)" in shown
    assert "(default: 30 s)" in shown


@pytest.mark.parametrize(("count", "shown"), [
    (0, "0 bytes"), (1023, "1,023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"), ((1 << 20) - 1, "1 MiB"),
    (64 << 20, "64 MiB"), (5 << 40, "5 TiB"), (5 << 60, "5,120 PiB"),
])  # fmt: skip
def test_a_size_is_shown_with_its_unit(count: int, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_knows_every_command_and_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, script = ended(["completion", shell], capsys)

    options = [option for parser in parsers() for action in parser._actions for option in action.option_strings]
    assert code == 0
    assert len(options) > 50
    assert all(name in script for name in COMMANDS)
    assert all(option.lstrip("-") in script for option in options)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["remora", "doc"], ["doctor"]),
        (["remora", "serve", "--precision", ""], ["f32", "int8"]),
        (["remora", "search", "--conv"], ["--conversation"]),
    ],
)
def test_bash_completes(words: list[str], found: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    _, script = ended(["completion", "bash"], capsys)
    (tmp_path / "script").write_text(script)
    typed = " ".join(f"'{word}'" for word in words)
    asked = f"""
        source '{tmp_path}/script'
        COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}
        _shtab_remora
        echo ${{COMPREPLY[@]}}
    """

    done = subprocess.run([bash, "-c", asked], capture_output=True, text=True, check=True, timeout=PATIENCE)

    assert done.stdout.split() == found


@pytest.mark.parametrize("kind", ["no socket", "a socket that nobody serves", "no port"])
def test_where_no_server_is_a_command_says_how_to_start_one_without_waiting(
    kind: str, directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint = f"unix:{directory / 's'}"
    if kind == "a socket that nobody serves":
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(directory / "s"))
    if kind == "no port":
        with socket.create_server(("127.0.0.1", 0)) as taken:
            endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setattr(connecting, "_require_answer", lambda _: pytest.fail("it waits for an answer"))

    code = main(["log", "--endpoint", endpoint])

    error = capsys.readouterr().err
    assert code == 1
    assert error.startswith(f"remora: no Remora server answers at {endpoint} (")
    assert "start one with `remora serve`" in error
    assert error.count("\n") == 1


def served_and_refused(data: Path, endpoint: str, **variables: str) -> str:
    code, _, error = remora(endpoint, "serve", "--model=none", f"--data={data}", variables=variables)
    assert code == 1
    return error


def test_a_directory_of_something_else_stays_as_it_is(directory: Path) -> None:
    data = directory / "photos"
    data.mkdir()
    (data / "cat.jpg").write_text("cat")
    before = data.stat().st_mtime_ns

    error = served_and_refused(data, f"unix:{directory / 's'}")

    assert "is not a data directory of Remora" in error
    assert list(data.iterdir()) == [data / "cat.jpg"]
    assert data.stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_model_that_is_not_there_is_a_warning_that_says_what_to_do(directory: Path) -> None:
    missing = directory / "models"
    process = begin(
        f"unix:{directory / 's'}", "serve", "--data=:memory:", f"--model-dir={missing}", "--log-level=warning"
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline().decode()
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert " warning no embedding model" in line
    assert f"remora model install --dir {missing}" in line


def test_doctor_says_what_it_could_not_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REMORA_MODEL_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    data = tmp_path / "none"

    code, shown = ended(["doctor", f"--data={data}"], capsys)

    assert code == 0
    assert shown.splitlines()[-1] == (
        f"nothing wrong was found; not checked: the embedding model (it is not installed), the store (there is none in "
        f"{data})"
    )


@pytest.mark.parametrize("chosen", ["--model-dir={}/models", "--model=builtin"])
def test_doctor_fails_if_a_model_that_was_chosen_is_not_there(
    chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REMORA_MODEL_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    code, shown = ended(["doctor", "--json", "--data=:memory:", chosen.format(tmp_path)], capsys)

    [finding] = json.loads(shown)["findings"]
    assert code == 1
    assert finding["part"] == "model"
    assert finding["what"].startswith("no embedding model is installed in ")
    assert finding["remedy"].startswith("`remora model install --dir ")


@pytest.mark.slow
def test_doctor_says_that_all_is_well_where_it_checked_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_store(tmp_path / "data").close()
    arguments = ["doctor", f"--data={tmp_path / 'data'}", "--model=none", "--listen=unix:/nowhere/s"]

    _, shown = ended(arguments, capsys)
    _, said = ended([*arguments, "--json"], capsys)

    assert shown.splitlines()[-1] == "everything was checked, and nothing is wrong"
    assert json.loads(said)["unchecked"] == []


def test_doctor_shows_sizes_and_times_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = ended(["doctor", f"--data={tmp_path}", "--model=none", "--listen=unix:/nowhere/s"], capsys)

    assert re.search(r"memory set +[\d.]+ [MG]iB", shown)
    assert re.search(r"free +[\d.]+ [MGT]iB", shown)
    assert not any(word.isdigit() and len(word) > 6 for word in shown.split())
