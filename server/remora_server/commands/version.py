"""`remora version`."""

from __future__ import annotations

import argparse
from typing import Any

from remora_server.commands import standard_output
from remora_server.engine.model_files import MODEL, WEIGHTS
from remora_server.release import version


def fill(_parser: argparse.ArgumentParser) -> None:
    """It has no arguments."""


def run(_given: dict[str, Any]) -> None:
    """Show the version, and which model is the built-in one."""
    standard_output.write(f"{version()}\nmodel: {MODEL} sha256:{WEIGHTS}\n")
