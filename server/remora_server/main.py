"""The command `remora`.

Exit codes: 0 done, 1 it could not be done, 2 the command line or a setting is wrong, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from remora_server.commands import COMMANDS, module_of
from remora_server.commands.failures import DONE, FAILED, INTERRUPTED, CommandFailed
from remora_server.commands.parsing import CommandParser, Parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    with _without_collecting():
        given = vars(_parser().parse_args(arguments))
    run = given.pop("run")
    try:
        run(given)
        sys.stdout.flush()
    except CommandFailed as error:
        sys.stderr.write(f"remora: {error}\n")
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return FAILED
    return DONE


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Imports make objects that stay: to look again and again for what is garbage takes a twentieth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _parser() -> Parser:
    parser = Parser(prog="remora", description="A memory sidecar for AI agents.", allow_abbrev=False)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=CommandParser)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary, description=summary, module=module_of(name))
    return parser


def _abandon_output() -> None:
    """Nobody reads standard output any more: what is still to be flushed when Python ends goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
