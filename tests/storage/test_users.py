"""Deleting a user of the local store, while others write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.storage.opening import READ, WRITE, open_store

from remora.v1.workflow_pb2 import WorkflowRun, WorkflowStep
from remora_server.domain.errors import WorkflowRunNotFound
from remora_server.domain.workflows import PartDraft, PartName, PartQuery, RunDraft
from remora_server.storage.commit.applier import Applier
from remora_server.storage.database.database import Database
from remora_server.storage.local_store import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = open_store(tmp_path / "data")
    yield opened
    opened.close()


def save_run(store: LocalStore, user_id: str) -> None:
    body = WorkflowRun(id="r", workflow_id="w", user_id=user_id).SerializeToString()
    store.workflow_runs.save(WRITE, RunDraft("r", body, None))


def save_step(store: LocalStore) -> None:
    """A step that names no user; it comes before its run."""
    body = WorkflowStep(id="s", run_id="r").SerializeToString()
    store.workflow_steps.save(WRITE, [PartDraft(PartName("s", "r"), body)])


@contextmanager
def writing_between(write: Callable[[], object]) -> Iterator[None]:
    """Write once the database has said where a user has a part, before the locks are taken. Nothing of it is applied
    until somebody waits for that.
    """
    may_apply = threading.Event()
    may_apply.set()
    apply_next, wait, rows = Applier._apply_next, Applier.wait, Database.rows

    def applied_next(self: Applier, *, may_checkpoint: bool = True) -> bool:
        return may_apply.is_set() and apply_next(self, may_checkpoint=may_checkpoint)

    def waited(self: Applier, revision: int, timeout: float | None) -> bool:
        may_apply.set()
        return wait(self, revision, timeout)

    def asked(self: Database, sql: str, parameters: object = None) -> list[tuple[object, ...]]:
        found = rows(self, sql, parameters)
        if sql.startswith("SELECT id FROM conversations"):
            may_apply.clear()
            write()
        return found

    with (
        patch.object(Applier, "_apply_next", applied_next),
        patch.object(Applier, "wait", waited),
        patch.object(Database, "rows", asked),
    ):
        yield


def test_what_is_saved_meanwhile_goes_with_its_run(store: LocalStore) -> None:
    def write() -> None:
        save_step(store)
        save_run(store, "sarah")

    with writing_between(write):
        store.users.delete(WRITE, "sarah")

    with pytest.raises(WorkflowRunNotFound):
        store.workflow_runs.get(READ, "r")
    assert store.workflow_steps.list(READ, PartQuery("r", 10)).encoded == b""


def test_what_is_of_another_users_run_meanwhile_stays(store: LocalStore) -> None:
    save_step(store)
    save_run(store, "sarah")

    with writing_between(lambda: save_run(store, "tom")):
        store.users.delete(WRITE, "sarah")

    assert WorkflowRun.FromString(store.workflow_runs.get(READ, "r")[0]).user_id == "tom"
    assert store.workflow_steps.list(READ, PartQuery("r", 10)).encoded != b""
