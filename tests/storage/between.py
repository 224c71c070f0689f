"""Writes between a command's question of the database and its locks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from remora_server.storage.commit.applier import Applier
from remora_server.storage.database.database import Database


@contextmanager
def writing_behind(question: str, write: Callable[[], object]) -> Iterator[None]:
    """Write once the database has answered a query that has this text in it, before the locks are taken. Nothing of it
    is applied until somebody waits for that.
    """
    may_apply = threading.Event()
    may_apply.set()
    writes = [write]
    apply_next, wait, rows = Applier._apply_next, Applier.wait, Database.rows

    def applied_next(self: Applier, *, may_checkpoint: bool = True) -> bool:
        return may_apply.is_set() and apply_next(self, may_checkpoint=may_checkpoint)

    def waited(self: Applier, revision: int, timeout: float | None) -> bool:
        may_apply.set()
        return wait(self, revision, timeout)

    def asked(self: Database, sql: str, parameters: object = None) -> list[tuple[object, ...]]:
        found = rows(self, sql, parameters)
        if question in sql and writes:
            may_apply.clear()
            writes.pop()()
        return found

    with (
        patch.object(Applier, "_apply_next", applied_next),
        patch.object(Applier, "wait", waited),
        patch.object(Database, "rows", asked),
    ):
        yield
        assert not writes
