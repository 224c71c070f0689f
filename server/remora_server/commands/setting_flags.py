"""The settings as flags of a command."""

from __future__ import annotations

import argparse
import os
from typing import Any

from remora_server.commands.failures import Misused
from remora_server.commands.parsing import filled
from remora_server.domain.sizes import size
from remora_server.settings import settings


def add_setting_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each setting, and one for the file of settings. The result has only those that are given."""
    parser.usage = "%(prog)s [OPTION ...]"
    parser.add_argument(
        "--config", type=filled, metavar="FILE", default=None, help="a YAML file of settings (default: $REMORA_CONFIG)"
    )
    for key in settings.KEYS:
        _add_flag(parser, key)


def _add_flag(parser: argparse.ArgumentParser, key: settings.Key) -> None:
    text = f"{key.help}{default_of(key)}".replace("%", "%%")
    if isinstance(key.default, bool):
        parser.add_argument(key.flag, dest=key.name, action="store_true", default=argparse.SUPPRESS, help=text)
    else:
        action = "append" if key.repeated else "store"
        parser.add_argument(
            key.flag,
            dest=key.name,
            action=action,
            default=argparse.SUPPRESS,
            choices=key.choices or None,
            metavar=None if key.choices else key.placeholder,
            help=text,
        )


def default_of(key: settings.Key) -> str:
    """The default of a setting for its help; empty if it is unset or off."""
    if key.default_in_words:
        return f" (default: {key.default_in_words})"
    if not key.default:
        return ""
    default = size(key.default) if key.placeholder == settings.SIZE and isinstance(key.default, int) else key.default
    unit = " s" if key.placeholder == settings.SECONDS else ""
    return f" (default: {default:g}{unit})" if isinstance(default, float) else f" (default: {default})"


def load_settings(given: dict[str, Any]) -> settings.Loaded:
    """The effective settings of a command whose arguments are the flags of `add_setting_flags`. Raises Misused."""
    flags = dict(given)
    config = flags.pop("config", None)
    try:
        return settings.load(flags, os.environ, config)
    except settings.SettingsError as error:
        raise Misused(str(error)) from error
