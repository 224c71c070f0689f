"""Runs of workflows through the client, sync and async, and the server that it is for."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.patience import PATIENCE

from remora import (
    Cancellation,
    PathCondition,
    Remora,
    Suspension,
    WorkflowRun,
    WorkflowStats,
    WorkflowStep,
    errors,
    testing,
)
from remora.workflows import WorkflowStatus

remora_server, remora_tenant = testing.remora_server, testing.remora_tenant

NOON = datetime(2026, 11, 21, 12, 0, 0, 250_001, tzinfo=UTC)
SUSPENSION = Suspension(
    suspend_time=NOON,
    reason="waits for Ana",
    step_index=2,
    last_event_sequence=7,
    checkpoint={"at": 2},
    suspend_data=b"\xff",
)
RUN = WorkflowRun(
    "r1",
    "orders",
    "suspended",
    workflow_name="Orders",
    user_id="ana",
    conversation_id="c",
    input={"order": 5},
    output=[1, 2],
    context={"locale": "de"},
    workflow_state={"paid": False},
    suspension=SUSPENSION,
    events=[{"type": "start"}],
    cancellation=Cancellation(cancel_time=NOON, reason="no stock"),
    replayed_from_run_id="r0",
    replay_from_step_id="pay",
    metadata={"shop": "Rome", "tries": 1},
    start_time=NOON,
    end_time=NOON + timedelta(seconds=3),
    create_time=NOON,
    update_time=NOON,
)


@pytest.fixture
def memory(connect: Callable[..., Remora], remora_server: str, remora_tenant: str) -> Iterator[Remora]:
    made = connect(remora_server, tenant=remora_tenant, timeout=PATIENCE)
    yield made
    made.close()


def ids(runs: list[WorkflowRun]) -> list[str]:
    return [run.id for run in runs]


def test_every_field_of_a_run_comes_back(memory: Remora) -> None:
    revision = memory.workflows.save_run(RUN)

    assert memory.workflows.get_run("r1") == replace(RUN, revision=revision)


def test_an_update_replaces_what_it_names_and_nothing_else(memory: Remora) -> None:
    memory.workflows.save_run(RUN)

    revision = memory.workflows.update_run(
        "r1", status="completed", output={"ok": True}, suspension=None, metadata=None, update_time=NOON
    )

    expected = replace(RUN, status="completed", output={"ok": True}, suspension=None, metadata=None, revision=revision)
    assert memory.workflows.get_run("r1") == expected


def test_an_update_without_fields_only_sets_the_time(memory: Remora) -> None:
    memory.workflows.save_run(RUN)

    revision = memory.workflows.update_run("r1")

    found = memory.workflows.get_run("r1")
    assert found.update_time is not None
    assert found.update_time > NOON
    assert found == replace(RUN, update_time=found.update_time, revision=revision)


def test_of_several_workers_that_resume_a_run_one_gets_it(remora_server: str, remora_tenant: str) -> None:
    with Remora(remora_server, tenant=remora_tenant, timeout=PATIENCE) as memory:
        revision = memory.workflows.save_run(RUN)

        def resumes(_worker: int) -> bool:
            try:
                memory.workflows.resume_run("r1", expected_revision=revision)
            except errors.RevisionMismatchError:
                return False
            return True

        with ThreadPoolExecutor(8) as workers:
            resumed = list(workers.map(resumes, range(16)))

        assert resumed.count(True) == 1
        assert memory.workflows.get_run("r1").status == "running"
        assert memory.workflows.get_run("r1").suspension is None


def test_a_run_is_created_once_where_none_is_expected(memory: Remora) -> None:
    memory.workflows.save_run(RUN, expected_revision=0)

    with pytest.raises(errors.RevisionMismatchError):
        memory.workflows.save_run(RUN, expected_revision=0)


def test_runs_are_listed_by_what_they_are(memory: Remora) -> None:
    statuses: list[WorkflowStatus] = ["running", "suspended", "completed"]
    for index, status in enumerate(statuses):
        time = NOON + timedelta(minutes=index)
        memory.workflows.save_run(
            replace(RUN, id=f"r{index}", status=status, create_time=time, start_time=NOON, metadata={"index": index})
        )
    memory.workflows.save_run(WorkflowRun("other", "returns", user_id="ben"))

    listed = memory.workflows.list_runs
    assert ids(listed(workflow_id="orders")) == ["r2", "r1", "r0"]
    assert ids(listed(status="suspended")) == ["r1"]
    assert ids(listed(user_id="ben")) == ["other"]
    assert ids(listed(created_from=NOON, created_to=NOON + timedelta(minutes=1))) == ["r1", "r0"]
    assert ids(listed(metadata={"index": 2.0})) == ["r2"]
    assert ids(listed(where={"index": 2})) == ["r2"]
    assert ids(listed(where=PathCondition(["index"], "<", 2))) == ["r1", "r0"]
    assert ids(listed(workflow_id="orders", limit=1, skip=1)) == ["r1"]
    assert ids(listed(order_by="start_time", limit=1)) == ["other"]
    assert len(listed(limit=None)) == 4
    with pytest.raises(errors.InvalidFieldError, match="skip cannot be used with where"):
        listed(where={"index": 2}, skip=1)
    assert memory.workflows.list_workflow_ids() == ["orders", "returns"]
    assert memory.workflows.list_workflow_ids(limit=1) == ["orders"]


def test_the_statistics_of_a_workflow(memory: Remora) -> None:
    memory.workflows.save_run(replace(RUN, status="completed"))
    memory.workflows.save_run(
        WorkflowRun("r2", "orders", "error", start_time=NOON, end_time=NOON + timedelta(seconds=1))
    )
    memory.workflows.save_run(WorkflowRun("r3", "orders", start_time=NOON + timedelta(hours=1)))

    assert memory.workflows.get_stats("orders") == WorkflowStats(
        3, 1, 1, timedelta(seconds=2), NOON + timedelta(hours=1)
    )
    assert memory.workflows.get_stats("none") == WorkflowStats(0, 0, 0, None, None)


def test_steps_come_back_in_order_and_with_every_field(memory: Remora) -> None:
    step = WorkflowStep(
        "s1",
        "r1",
        "error",
        user_id="ana",
        step_id="pay",
        name="Pay",
        type="agent",
        step_index=1,
        input={"sum": 5},
        output=None,
        error={"message": "declined"},
        agent_execution_id="e1",
        parallel_index=0,
        parallel_parent_step_id="all",
        metadata={"a": 1},
        start_time=NOON,
        end_time=NOON,
        create_time=NOON,
        update_time=NOON,
    )
    waiting = WorkflowStep("s2", "r1", "other", other_status="waiting", step_index=2)
    memory.workflows.save_steps([step, WorkflowStep("s0", "r1"), waiting])

    assert [found.id for found in memory.workflows.list_steps("r1")] == ["s0", "s1", "s2"]
    assert memory.workflows.get_step("s2").other_status == "waiting"
    assert memory.workflows.get_step("s1") == step
    assert memory.workflows.get_step("s0", run_id="r1").parallel_index is None


def test_a_run_is_as_far_as_its_caller_says(memory: Remora) -> None:
    memory.workflows.save_run(WorkflowRun("r1", "w", "other", other_status="paused"))
    memory.workflows.save_run(WorkflowRun("r2", "w"))

    [found] = memory.workflows.list_runs(status="other")
    assert (found.id, found.status, found.other_status) == ("r1", "other", "paused")
    memory.workflows.update_run("r1", status="other", other_status="waiting")
    assert memory.workflows.get_run("r1").other_status == "waiting"


def test_a_step_is_updated_and_deleted(memory: Remora) -> None:
    memory.workflows.save_steps([WorkflowStep("s1", "r1", "running", name="Pay", input=1)])

    memory.workflows.update_step("s1", run_id="r1", status="completed", output=2)

    found = memory.workflows.get_step("s1", run_id="r1")
    assert (found.status, found.name, found.input, found.output) == ("completed", "Pay", 1, 2)
    assert memory.workflows.delete_step("s1", run_id="r1")
    assert not memory.workflows.delete_step("s1")
    with pytest.raises(errors.WorkflowStepNotFoundError):
        memory.workflows.get_step("s1")


def test_a_deleted_run_takes_its_steps_along_unless_they_are_kept(memory: Remora) -> None:
    for run in ("r1", "r2"):
        memory.workflows.save_run(WorkflowRun(run, "orders"))
        memory.workflows.save_steps([WorkflowStep("s", run)])

    assert memory.workflows.delete_run("r1")
    assert memory.workflows.delete_run("r2", keep_related=True)

    assert memory.workflows.list_steps("r1") == []
    assert len(memory.workflows.list_steps("r2")) == 1
    assert not memory.workflows.delete_run("r1", allow_missing=True)
    with pytest.raises(errors.WorkflowRunNotFoundError):
        memory.workflows.delete_run("r1")


def test_the_newest_runs_stay_when_a_workflow_is_pruned(memory: Remora) -> None:
    for index in range(4):
        memory.workflows.save_run(WorkflowRun(f"r{index}", "orders", create_time=NOON + timedelta(seconds=index)))

    assert memory.workflows.prune_runs("orders", keep_newest=1) == 3
    assert ids(memory.workflows.list_runs()) == ["r3"]


def test_metadata_that_is_json_of_another_form_comes_back_as_a_dict(memory: Remora) -> None:
    run = RUN.to_proto()
    run.metadata = b'{ "shop" : "Rome" }'

    assert WorkflowRun.from_proto(run).metadata == {"shop": "Rome"}
