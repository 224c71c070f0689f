"""The parser of the whole command line: `remora` and its commands."""

from __future__ import annotations

from remora_server.commands import COMMANDS, module_of
from remora_server.commands.parsing import CommandParser, Parser, ShowVersion


def root_parser() -> Parser:
    """The parser of `remora`. A command's own arguments are added when it is parsed, or by `CommandParser.load`."""
    parser = Parser(
        prog="remora",
        description="A memory sidecar for AI agents.",
        epilog="`remora serve` starts a server. `remora COMMAND --help` describes a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=ShowVersion, help="show the version and exit")
    parser.set_defaults(run=parser.show_help)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=CommandParser)
    for name, summary in COMMANDS.items():
        description = f"{summary[0].upper()}{summary[1:]}."
        commands.add_parser(name, help=summary, description=description, module=module_of(name))
    return parser
