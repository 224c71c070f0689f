"""What a shell may hand to a command by mistake: nothing where a name should be, or bytes that are no text."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from importlib import import_module

import pytest

from remora_server.commands import COMMANDS, module_of
from remora_server.commands.parsing import Parser
from remora_server.main import main

NO_TEXT = os.fsdecode(b"\xff")


def arguments_of(command: str) -> Iterator[tuple[str, list[str]]]:
    """The name of each argument that takes a value, and a command line with `VALUE` where it stands."""
    parser = Parser()
    import_module(module_of(command)).fill(parser)
    for action in parser._actions:
        if action.nargs == 0 or isinstance(action, argparse._SubParsersAction):
            continue
        if action.option_strings:
            yield action.option_strings[-1], [command, *_required(parser), f"{action.option_strings[-1]}=VALUE"]
        else:
            yield str(action.metavar or action.dest), [command, "VALUE"]


def _required(parser: argparse.ArgumentParser) -> list[str]:
    return ["x" for action in parser._actions if action.required and not action.option_strings]


COMMANDS_OF_CALLERS = sorted(COMMANDS.keys() - {"serve", "config", "doctor"})
"""Those whose arguments are not settings."""

CASES = [
    pytest.param(name, line, id=f"{command} {name}")
    for command in COMMANDS_OF_CALLERS
    for name, line in arguments_of(command)
]

TEXTS = {"--user", "--conversation", "CONVERSATION", "QUERY", "--tenant", "--token", "--endpoint", "--table-prefix"}
"""Arguments that travel; the others may be paths, which are any bytes."""


def refusal(line: list[str], value: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of a command line that is not taken."""
    with pytest.raises(SystemExit) as ended:
        main([part.replace("VALUE", value) for part in line])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_there_are_arguments_to_try() -> None:
    assert {case.values[0] for case in CASES} >= TEXTS | {"FILE", "DEST", "--data", "--to", "--limit"}


@pytest.mark.parametrize(("name", "line"), CASES)
def test_an_empty_argument_is_not_taken_for_one_that_was_left_out(
    name: str, line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert name in refusal(line, "", capsys)


@pytest.mark.parametrize(("name", "line"), [case for case in CASES if case.values[0] in TEXTS])
def test_bytes_that_no_name_can_have_are_said_to_be_none(
    name: str, line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"argument {name}: is not UTF-8" in refusal(line, NO_TEXT, capsys)


def test_a_label_that_is_no_number_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["import", "x", "--from", "langgraph-store", "--user-label", "VALUE"]

    assert "argument --user-label: one is not a whole number" in refusal(line, "one", capsys)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (["lgo"], "log"),
        (["sevre", "--data", "x"], "serve"),
        (["context", "shwo", "x"], "show"),
        (["model", "instal"], "install"),
    ],
)
def test_a_misspelt_command_is_told_which_is_meant(
    line: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"; did you mean {meant}?" in refusal(line, "", capsys)


@pytest.mark.parametrize("line", [["start"], ["conversations"], ["user"], ["context", "get"]])
def test_a_word_like_no_command_gets_the_list_of_commands(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    error = refusal(line, "", capsys)

    assert "did you mean" not in error
    assert "choose from" in error


@pytest.mark.parametrize(
    "line",
    [
        ["restore", "/backup", "--data=VALUE"],
        ["restore", "VALUE", "--data=/data"],
        ["repair", "--data=VALUE", "--to=/to"],
        ["repair", "--data=/data", "--to=VALUE"],
    ],
)
def test_a_store_whose_name_is_not_utf8_is_refused(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "must have a name in UTF-8" in refusal(line, f"/{NO_TEXT}", capsys)
