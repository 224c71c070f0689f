"""Parses the command line: errors in one line, and a command's module is imported only when it is given."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from remora_server.commands import standard_output
from remora_server.commands.failures import MISUSED
from remora_server.settings import paths, spelling

LIKENESS = 0.7
"""How like a flag must be to be suggested for another, from 0 to 1."""

COMMAND_LIKENESS = 0.75
"""The same for commands: `conversations` is 0.7 like `version`, which nobody who writes it means."""


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, and suggests a flag or a command for a misspelt one."""

    def error(self, message: str) -> NoReturn:
        self.exit(MISUSED, f"{self.prog}: {message}\n")

    # typeshed has overloads for namespaces of other types.
    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        args = sys.argv[1:] if args is None else args
        self._require_flags_known(args)
        return super().parse_known_args(args, namespace)

    def _require_flags_known(self, args: Sequence[str]) -> None:
        """Before argparse, which would rather name what is missing because of it."""
        for argument in args:
            flag, _, _ = argument.partition("=")
            if flag == "--" or (self._subparsers is not None and not flag.startswith("-")):
                return  # what follows is no flag, or that of a command
            if flag.startswith("--") and " " not in flag and flag not in self._option_string_actions:
                self.error(f"unrecognized arguments: {flag}{spelling.hint(flag, self._flags(), LIKENESS)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - argparse's own
        """Before argparse, which names every command where one is misspelt."""
        if action.nargs == argparse.PARSER and value not in (names := list(action.choices or ())):
            suggestion = spelling.hint(value, names, COMMAND_LIKENESS)
            if suggestion:
                raise argparse.ArgumentError(None, f"there is no command {value!r}{suggestion}")
        super()._check_value(action, value)

    def _flags(self) -> list[str]:
        """The flags that the help shows."""
        actions = self._option_string_actions.items()
        return [flag for flag, action in actions if action.help != argparse.SUPPRESS and flag.startswith("--")]

    def show_help(self, _given: dict[str, Any]) -> None:
        """Run as a command: show the help."""
        standard_output.write(self.format_help())


class ShowVersion(argparse.Action):
    """Shows the version and ends. The version is looked up only then, because that reads files."""

    def __init__(self, option_strings: Sequence[str], **options: Any) -> None:  # noqa: ANN401 - argparse's own
        unset = {"dest": argparse.SUPPRESS, "default": argparse.SUPPRESS}
        super().__init__(option_strings, nargs=0, **(options | unset))

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from remora_server.release import version  # noqa: PLC0415 - it costs every other command 20 ms

        standard_output.write(f"{parser.prog} {version()}\n")
        parser.exit()


class CommandParser(Parser):
    """The parser of one command, which imports the command's module when it has something to parse."""

    def __init__(self, *, module: str, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(allow_abbrev=False, **options)
        self._module = module

    def load(self) -> None:
        """Add the command's arguments."""
        command = import_module(self._module)
        self.set_defaults(run=command.run)
        command.fill(self)

    # typeshed has overloads for namespaces of other types.
    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.load()
        return super().parse_known_args(args, namespace)


def filled(text: str) -> str:
    """Text that is not empty. With an unset variable of the shell, a command would otherwise act on too much."""
    if not text:
        raise argparse.ArgumentTypeError("is empty: is a variable not set?")
    return text


def name(text: str) -> str:
    """A name or an id: not empty, and UTF-8."""
    try:
        filled(text).encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError("is not UTF-8") from error
    return text


def path(text: str) -> Path:
    """A path, absolute, `~` expanded."""
    return _path(text, paths.absolute)


def store_path(text: str) -> Path:
    """The path of a data directory, or of a backup, absolute, `~` expanded."""
    return _path(text, paths.of_store)


def _path(text: str, made: Callable[[str], Path]) -> Path:
    try:
        return made(filled(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
