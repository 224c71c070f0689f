"""Deleting a user of the local store, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.storage.between import writing_behind
from tests.storage.opening import READ, WRITE, open_store

from remora.v1.workflow_pb2 import WorkflowRun, WorkflowStep
from remora_server.domain.errors import WorkflowRunNotFound
from remora_server.domain.transfers import Import, ImportedRecord
from remora_server.domain.workflows import PartDraft, PartName, PartQuery, RunDraft
from remora_server.storage.local_store import LocalStore

WHERE_A_USER_HAS_A_PART = "SELECT id FROM conversations"


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


def test_what_is_saved_meanwhile_goes_with_its_run(store: LocalStore) -> None:
    def write() -> None:
        save_step(store)
        save_run(store, "sarah")

    with writing_behind(WHERE_A_USER_HAS_A_PART, write):
        store.users.delete(WRITE, "sarah")

    with pytest.raises(WorkflowRunNotFound):
        store.workflow_runs.get(READ, "r")
    assert store.workflow_steps.list(READ, PartQuery("r", 10)).encoded == b""


def test_what_is_imported_meanwhile_goes_with_its_run(store: LocalStore) -> None:
    now = Timestamp(seconds=1)
    step = WorkflowStep(id="s", run_id="r", create_time=now).SerializeToString()
    run = WorkflowRun(id="r", workflow_id="w", user_id="sarah", create_time=now, start_time=now).SerializeToString()
    parts = ImportedRecord("records[0]", "workflow_step", step), ImportedRecord("records[1]", "workflow_run", run)

    with writing_behind(WHERE_A_USER_HAS_A_PART, lambda: store.imports.store(WRITE, Import("", records=parts))):
        store.users.delete(WRITE, "sarah")

    with pytest.raises(WorkflowRunNotFound):
        store.workflow_runs.get(READ, "r")
    assert store.workflow_steps.list(READ, PartQuery("r", 10)).encoded == b""


def test_what_is_of_another_users_run_meanwhile_stays(store: LocalStore) -> None:
    save_step(store)
    save_run(store, "sarah")

    with writing_behind(WHERE_A_USER_HAS_A_PART, lambda: save_run(store, "tom")):
        store.users.delete(WRITE, "sarah")

    assert WorkflowRun.FromString(store.workflow_runs.get(READ, "r")[0]).user_id == "tom"
    assert store.workflow_steps.list(READ, PartQuery("r", 10)).encoded != b""
