"""Pruning the records of the local store, while others write: what is not old any more stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.storage.between import writing_behind
from tests.storage.opening import READ, WRITE, open_store

from remora.v1.span_pb2 import SpanRecord
from remora.v1.workflow_pb2 import WorkflowRun, WorkflowStep
from remora_server.domain.workflows import PartDraft, PartName, PartQuery, RunDraft
from remora_server.storage.local_store import LocalStore

OLD, BEFORE, NEW = 1, 2, 3
"""In seconds."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = open_store(tmp_path / "data")
    yield opened
    opened.close()


def save_span(store: LocalStore, span_id: str, seconds: int) -> None:
    body = SpanRecord(trace_id="t", span_id=span_id, start_time=Timestamp(seconds=seconds)).SerializeToString()
    store.spans.save(WRITE, [PartDraft(PartName(span_id, "t"), body)])


def save_run(store: LocalStore, run_id: str, seconds: int, workflow_id: str = "w") -> None:
    run = WorkflowRun(id=run_id, workflow_id=workflow_id, create_time=Timestamp(seconds=seconds))
    store.workflow_runs.save(WRITE, RunDraft(run_id, run.SerializeToString(), None))
    step = WorkflowStep(id="s", run_id=run_id).SerializeToString()
    store.workflow_steps.save(WRITE, [PartDraft(PartName("s", run_id), step)])


def test_a_span_that_is_saved_anew_meanwhile_stays(store: LocalStore) -> None:
    for span_id in ("old", "anew", "same"):
        save_span(store, span_id, OLD)

    def write() -> None:
        save_span(store, "anew", NEW)
        save_span(store, "same", OLD)

    with writing_behind("FROM spans", write):
        pruned = store.spans.prune(WRITE, BEFORE * 1_000_000_000).deleted_records

    assert pruned == 2
    assert SpanRecord.FromString(store.spans.get(READ, PartName("anew", "t"))[0]).start_time.seconds == NEW


@pytest.mark.parametrize(("seconds", "workflow"), [(NEW, "w"), (OLD, "another")])
def test_a_run_that_is_saved_anew_meanwhile_stays_with_its_steps(
    store: LocalStore, seconds: int, workflow: str
) -> None:
    for run_id in ("old", "anew", "same"):
        save_run(store, run_id, OLD)

    def write() -> None:
        save_run(store, "anew", seconds, workflow)
        save_run(store, "same", OLD)

    with writing_behind("FROM workflow_runs", write):
        pruned = store.workflow_runs.prune(WRITE, "w", 0).deleted_records

    assert pruned == 2
    assert WorkflowRun.FromString(store.workflow_runs.get(READ, "anew")[0]).workflow_id == workflow
    assert store.workflow_steps.list(READ, PartQuery("anew", 10)).encoded != b""
