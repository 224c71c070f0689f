"""A file of another store that a test fills with plain SQL, and imports of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest
from tests.patience import PATIENCE

from remora import Remora
from remora_server.main import main


class Moving:
    """Imports a file as one tenant."""

    source: ClassVar[str]
    schema: ClassVar[str]

    def __init__(self, endpoint: str, tenant: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.memory = Remora(endpoint, tenant=tenant, timeout=PATIENCE)
        self.file = file
        self._server = ["--endpoint", endpoint, "--tenant", tenant]
        self._capsys = capsys
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(self.schema)

    def execute(self, statement: str, given: Sequence[object] = ()) -> None:
        """Change the file."""
        with closing(sqlite3.connect(self.file)) as connection:
            connection.execute(statement, given)
            connection.commit()

    def insert(self, table: str, **columns: object) -> None:
        """Add a row."""
        names, places = ", ".join(columns), ", ".join("?" * len(columns))
        self.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(columns.values()))

    def run(self, *arguments: str) -> tuple[int, list[str]]:
        """The exit code of an import of the file, and what it says."""
        return self.run_with(["import", str(self.file), "--from", self.source, *arguments])

    def run_with(self, command: list[str]) -> tuple[int, list[str]]:
        """The same of any command."""
        self._capsys.readouterr()
        code = main([*command, *self._server])
        said = self._capsys.readouterr().err.splitlines()
        return code, [line.replace(f"{self.file}: ", "").replace(str(self.file), "{file}") for line in said]
