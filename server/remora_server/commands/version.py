"""`remora version`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from remora_server.release import version


def fill(_parser: argparse.ArgumentParser) -> None:
    """It has no arguments."""


def run(_given: dict[str, Any]) -> None:
    """Show the version."""
    sys.stdout.write(f"{version()}\n")
