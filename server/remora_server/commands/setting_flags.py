"""The settings as flags of a command."""

from __future__ import annotations

import argparse
import os
from typing import Any

from remora_server.commands.failures import Misused
from remora_server.commands.parsing import filled
from remora_server.settings import settings


def add_setting_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each setting, and one for the file of settings. What is not given is not in the result."""
    parser.add_argument("--config", type=filled, metavar="FILE", default=None, help="a YAML file of settings")
    for key in settings.KEYS:
        _add_flag(parser, key)


def _add_flag(parser: argparse.ArgumentParser, key: settings.Key) -> None:
    if isinstance(key.default, bool):
        parser.add_argument(key.flag, dest=key.name, action="store_true", default=argparse.SUPPRESS, help=key.help)
    else:
        action = "append" if key.repeated else "store"
        parser.add_argument(
            key.flag, dest=key.name, action=action, default=argparse.SUPPRESS, metavar="VALUE", help=key.help
        )


def load_settings(given: dict[str, Any]) -> settings.Loaded:
    """The effective settings of a command whose arguments are the flags of `add_setting_flags`. Raises Misused."""
    flags = dict(given)
    config = flags.pop("config", None)
    try:
        return settings.load(flags, os.environ, config)
    except settings.SettingsError as error:
        raise Misused(str(error)) from error
