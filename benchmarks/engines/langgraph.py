"""LangGraph's stores and checkpointers, each engine's in a Python process with LangGraph's packages, which calls as it
is told.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.engines.voltagent import Adapters, RemoraAdapters

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".cache" / "suites" / "langgraph"
SYSTEM = "/usr/bin/python3"
_CHECK = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)"


def interpreter() -> str:
    """One that runs the packages, and lets SQLite load extensions if there is one: its search by vector needs that."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    version = f"import sys; assert sys.version_info[:2] == tuple(map(int, '{own}'.split('.')))"
    checked = subprocess.run([SYSTEM, "-c", f"{version}; {_CHECK}"], capture_output=True, check=False)
    return SYSTEM if checked.returncode == 0 else str(PACKAGES / "bin" / "python")


class Stores(Adapters):
    """The stores of an engine in files."""

    program = ROOT / "benchmarks" / "langgraph_stores.py"

    def start(self) -> None:
        """Start Python."""
        self._directory.mkdir(parents=True, exist_ok=True)
        log = self._running.enter_context(self._log.open("w"))
        [packages] = PACKAGES.glob("lib/python3*/site-packages")
        path = os.pathsep.join([str(ROOT / "clients" / "python"), str(packages)])
        self._process = subprocess.Popen(
            [interpreter(), self.program, self.name, self.place],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
        self._running.callback(self._end)


class RemoraStores(RemoraAdapters, Stores):
    """Remora's, with a server that runs only while they call."""


class Savers(Stores):
    """The checkpointer of an engine in files."""

    program = ROOT / "benchmarks" / "langgraph_savers.py"

    def stored_bytes(self) -> int:
        """What the files have."""
        return sum(file.stat().st_size for file in self._directory.glob("*.db*"))


class RemoraSavers(RemoraAdapters, Savers):
    """Remora's, with a server that runs only while it calls."""

    def stored_bytes(self) -> int:
        """The database, once all is in its file, and what is written of the journal."""
        with self._server.resumed():
            self._server.applied()
            self._server.checkpointed()
        return self._server.database.stat().st_size + self._server.wal_bytes() + self._server.journal_bytes()
