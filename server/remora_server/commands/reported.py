"""Reports single lines or rows on standard error, without flooding it."""

from __future__ import annotations

from remora._printable import printable
from remora_server.commands.numbers import counted
from remora_server.commands.output import diagnostics

MOST_REPORTED = 20


class Reported:
    """Says on standard error what is wrong with a file or left out of it. Only the first reports are shown."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.count = 0

    def __call__(self, text: str) -> None:
        self.count += 1
        if self.count <= MOST_REPORTED:
            diagnostics().print(printable(f"{self._name}: {text}"))

    def end(self) -> None:
        """Say how many were not shown."""
        if self.count > MOST_REPORTED:
            left = counted(self.count - MOST_REPORTED, "more line like these is", "more lines like these are")
            diagnostics().print(f"{left} left out")
