"""Loading vectors by rowid: a checkpoint changes these, also for a transaction that is open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from remora_server.storage.database import arrow, parsed
from remora_server.storage.recall import stored

MODEL = "m"


class MovingTable:
    """Embeddings whose rows move down by one after the first read of values, as a checkpoint closes a gap."""

    def __init__(self, values: Iterable[bytes]) -> None:
        self.values = list(values)
        self.first_place = 3
        self.reads = 0
        self._answer: list[tuple[Any, ...]] = []

    def extract_statements(self, query: str) -> list[str]:
        return [query]

    def execute(self, _query: str, _parameters: dict[str, object]) -> MovingTable:
        self._answer = [(self.first_place + at, 1, at, 7, MODEL, True) for at in range(len(self.values))]
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._answer

    def sql(self, _query: str, params: dict[str, list[int]]) -> list[bytes]:
        self.reads += 1
        if self.reads == 1:
            self.first_place -= 1
        there = dict(enumerate(self.values, self.first_place))
        return [there[rowid] for rowid in params["rowids"] if rowid in there]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_rows_that_move_between_two_reads_are_read_again(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(arrow, "vectors", list)
    monkeypatch.setattr(parsed, "_statements", {})
    values = [bytes([number]) for number in range(count)]
    table = MovingTable(values)
    found = stored._vectors(table, {}, late=False)  # type: ignore[arg-type]
    assert found == {(1, at, 7): [(MODEL, value, True, b"")] for at, value in enumerate(values)}
    assert table.reads == 2
