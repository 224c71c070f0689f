"""The table of commands, and what loading one costs."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest
from tests.commands.another_user import open_to_all, remora_of_another
from tests.commands.terminal import REMORA
from tests.patience import PATIENCE

from remora import Message, Remora
from remora.testing import serve
from remora_server import commands
from remora_server.commands import COMMANDS, module_of
from remora_server.main import main

FURNITURE = {
    "__init__", "chat_lines", "connecting", "failures", "health_check", "lease", "machine", "manifest", "messages",
    "numbers", "operator_token", "output", "parsing", "record_groups", "records", "reported", "root",
    "setting_flags", "standard_output", "unfinished",
}  # fmt: skip
"""Modules beside the commands."""


def test_every_command_has_a_module_that_fills_its_parser_and_runs() -> None:
    assert COMMANDS
    for name in COMMANDS:
        module = import_module(module_of(name))
        assert callable(module.fill)
        assert callable(module.run)


def under_shell(command: str) -> tuple[int, str]:
    """The exit code and the standard error of a line of a shell in which `remora` is the command."""
    line = command.replace("remora", f"'{sys.executable}' -m remora_server.main", 1)
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=PATIENCE)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("redirection", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
@pytest.mark.parametrize("command", ["version", "doctor --model=none --data=:memory:"])
def test_output_that_cannot_be_written_is_said_in_one_line(
    command: str, redirection: str, why: str, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)

    ended = under_shell(f"remora {command} {redirection}")

    assert ended == (1, f"remora: standard output cannot be written: {why}\n")


@pytest.mark.slow
def test_every_line_for_scripts_and_for_people_is_written_or_the_command_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with serve("--model=none") as endpoint, Remora(endpoint, timeout=PATIENCE) as memory:
        memory.conversation("c").append(Message("user", "hello"))
        for arguments in (["log"], ["log", "c"], ["search", "hello", "--all-users"]):
            for form in ([], ["--json"]):
                with monkeypatch.context() as patched:
                    patched.setattr("sys.stdout.write", full)
                    assert main([*arguments, *form, "--endpoint", endpoint]) == 1
                said = capsys.readouterr().err
                assert said == "remora: standard output cannot be written: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_a_path_that_the_terminal_cannot_show_is_shown_escaped(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    file, directory = tmp_path / os.fsdecode("d\xe9".encode() + b"\xff"), tmp_path / "d\xe9"
    file.write_text("model: none\n")
    doctor = ["doctor", "--model=none", "--data", str(directory)]

    settings, shown, lines = (
        subprocess.run([*REMORA, *line], capture_output=True, check=False, timeout=PATIENCE)
        for line in (["config", "--config", str(file)], doctor, [*doctor, "--json"])
    )

    assert (settings.returncode, shown.returncode, lines.returncode) == (0, 0, 0)
    assert b"\\udcff" in settings.stdout
    assert (b"d\\xe9" if encoding == "ascii" else str(directory).encode()) in shown.stdout
    assert json.loads(lines.stdout)["store"]["directory"] == str(directory)


def test_a_closed_stream_is_given_to_no_file_of_the_store(tmp_path: Path) -> None:
    program = (
        "import os, remora_server.main as m; m.main(['version'])\n"
        "with open('file', 'w') as file: os.write(3, str(file.fileno()).encode())"
    )
    line = f"'{sys.executable}' -c \"{program}\" 3>number <&- >&- 2>&-"

    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True, timeout=PATIENCE)

    assert int((tmp_path / "number").read_text()) > 2


def test_an_interrupt_while_a_command_is_loaded_ends_it_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("remora_server.commands.parsing.import_module", interrupted)

    assert main(["version"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "command", ["serve --data", "doctor --data", "repair --to=/none --data", "restore /none --data", "backup"]
)
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("remora {} '~no-such-user/data'", "names a home directory that is not known: '~no-such-user/data'"),
        (
            "mkdir gone && cd gone && rmdir ../gone && remora {} data",
            "relative to the current directory, which cannot be used",
        ),
    ],
    ids=["home", "current"],
)
def test_a_path_that_leads_nowhere_is_refused_in_one_line(
    command: str, line: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    code, said = under_shell(line.format(command))

    assert code == 2
    assert why in said
    assert said.count("\n") == 1


def test_standard_input_that_is_closed_is_read_as_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve("--model=none") as endpoint:
        monkeypatch.setenv("REMORA_ENDPOINT", endpoint)

        code, said = under_shell("remora import - <&-")

    assert code == 1
    assert said.startswith("remora: standard input is empty")


def test_a_file_that_may_not_be_looked_at_is_named_with_the_reason() -> None:
    with open_to_all() as folder:
        (folder / "own").mkdir(mode=0o700 if os.geteuid() == 0 else 0)

        ended = remora_of_another("export", str(folder / "own" / "file"))
        (folder / "own").chmod(0o700)

    assert (ended.returncode, ended.stderr) == (
        1,
        f"remora: {folder / 'own' / 'file'} cannot be written: Permission denied\n",
    )


@pytest.mark.parametrize(
    ("names", "said"), [(("a",), "remora: a: Too many open files\n"), ((), "remora: Too many open files\n")]
)
def test_what_the_system_refuses_is_said_in_one_line(
    names: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), *names)

    monkeypatch.setattr(import_module(module_of("version")), "run", refused)

    assert main(["version"]) == 1
    assert capsys.readouterr().err == said


def test_every_module_is_a_command_or_serves_them() -> None:
    [folder] = commands.__path__

    assert {file.stem for file in Path(folder).glob("*.py")} == FURNITURE | {
        module_of(name).rpartition(".")[2] for name in COMMANDS
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])

    assert exit_.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: remora {name}")


def modules_after(statement: str) -> set[str]:
    """What a fresh process has imported after a statement."""
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    return set(done.stdout.split())


SERVING = "import remora_server.main, remora_server.commands.serve, remora_server.application"


def test_serving_imports_no_terminal_no_grpcio_and_no_client_of_http() -> None:
    imported = modules_after(SERVING)

    assert "duckdb" in imported
    assert not imported & {"rich", "grpc", "urllib3"}


def test_serving_imports_nothing_that_installs_models_reads_yaml_or_mends_names() -> None:
    imported = modules_after(SERVING)

    assert {
        "remora_server.engine.model_files",
        "remora_server.settings.yaml_text",
        "remora_server.settings.spelling",
    } <= imported
    assert not imported & {"remora_server.engine.model_installation", "yaml", "difflib"}


def test_the_command_line_alone_imports_nothing_of_the_server() -> None:
    imported = modules_after("import remora_server.main")

    assert "argparse" in imported
    assert not {"grpc", "duckdb", "rich", "remora_server.application"} & imported
