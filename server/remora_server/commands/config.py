"""`remora config`: the effective settings, and where each value comes from."""

from __future__ import annotations

import argparse
from typing import Any

from remora_server.commands import standard_output
from remora_server.commands.setting_flags import add_setting_flags, load_settings
from remora_server.settings import settings


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_setting_flags(parser)


def run(given: dict[str, Any]) -> None:
    """Show the settings as a YAML file."""
    standard_output.write(settings.describe(load_settings(given)))
