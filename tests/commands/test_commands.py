"""The table of commands, and what loading one costs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from remora_server import commands
from remora_server.commands import COMMANDS, module_of
from remora_server.main import main

FURNITURE = {
    "__init__", "connecting", "failures", "machine", "manifest", "messages", "numbers", "output", "parsing", "records",
    "setting_flags", "unfinished",
}  # fmt: skip
"""Modules beside the commands."""


def test_every_command_has_a_module_that_fills_its_parser_and_runs() -> None:
    assert COMMANDS
    for name in COMMANDS:
        module = import_module(module_of(name))
        assert callable(module.fill)
        assert callable(module.run)


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


def test_serving_imports_no_terminal_no_grpcio_and_no_client_of_http() -> None:
    imported = modules_after("import remora_server.main, remora_server.commands.serve")

    assert "duckdb" in imported
    assert not imported & {"rich", "grpc", "urllib3"}


def test_serving_imports_nothing_that_installs_models_reads_yaml_or_mends_names() -> None:
    imported = modules_after("import remora_server.main, remora_server.commands.serve")

    assert {"remora_server.engine.model_files", "remora_server.yaml_text", "remora_server.spelling"} <= imported
    assert not imported & {"remora_server.engine.model_installation", "yaml", "difflib"}


def test_the_command_line_alone_imports_nothing_of_the_server() -> None:
    imported = modules_after("import remora_server.main")

    assert "argparse" in imported
    assert not {"grpc", "duckdb", "rich", "remora_server.application"} & imported
