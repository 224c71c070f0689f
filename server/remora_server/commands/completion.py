"""`remora completion`: a script that completes the command line in a shell, made from the parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import shtab

from remora_server.commands import standard_output
from remora_server.commands.parsing import CommandParser
from remora_server.commands.root import root_parser

SHELLS = ("bash", "zsh", "fish")
FILES = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "NEWDIR": shtab.DIRECTORY, "BACKUP": shtab.DIRECTORY}
"""What completes a value, by its placeholder."""


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        'bash:  eval "$(remora completion bash)"   in ~/.bashrc\n'
        "zsh:   remora completion zsh > DIR/_remora  in a DIR of $fpath\n"
        "fish:  remora completion fish > ~/.config/fish/completions/remora.fish"
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(given: dict[str, Any]) -> None:
    """Print the script."""
    parser = root_parser()
    for each in _parsers(parser):
        _complete_files(each)
    standard_output.write(shtab.complete(parser, shell=given["shell"]) + "\n")


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and the parsers of its commands, all with their arguments."""
    if isinstance(parser, CommandParser):
        parser.load()
    yield parser
    for action in parser._actions:  # noqa: SLF001 - argparse lists what a parser has nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                yield from _parsers(command)


def _complete_files(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:  # noqa: SLF001
        if action.metavar in FILES:
            action.complete = FILES[action.metavar]  # type: ignore[attr-defined]  # shtab reads it
