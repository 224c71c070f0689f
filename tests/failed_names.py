"""Keeps the names of tests that failed in the file $NAMES, from which `tools/run_parts.sh` shows them in the end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """A hook of pytest's, for a conftest."""
    reports = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
    if reports and (names := os.environ.get("NAMES")):
        Path(names).write_text("".join(f"    {report.nodeid}\n" for report in reports), "utf-8")
