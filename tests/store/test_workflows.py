"""Runs of workflows, their steps and timeline events, as any store keeps them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.store.asking import Tenant

from remora.v1 import history_service_pb2, workflow_service_pb2
from remora.v1.timeline_event_pb2 import TimelineEvent
from remora.v1.transfer_service_pb2 import Record
from remora.v1.workflow_pb2 import (
    WORKFLOW_STATUS_COMPLETED,
    WORKFLOW_STATUS_ERROR,
    WORKFLOW_STATUS_RUNNING,
    WORKFLOW_STATUS_SUSPENDED,
    WORKFLOW_STEP_STATUS_COMPLETED,
    WorkflowRun,
    WorkflowStep,
    WorkflowSuspension,
)
from remora_server.domain.calls import Outcome
from remora_server.domain.conversations import AttributeValue
from remora_server.domain.errors import (
    RequestTooLarge,
    RevisionConflict,
    TimelineEventExists,
    WorkflowRunNotFound,
    WorkflowStepNotFound,
)
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator, path_key
from remora_server.domain.json_members import digests
from remora_server.domain.transfers import ExportQuery, Import, ImportedRecord
from remora_server.domain.workflows import PartDraft, PartName, PartPosition, PartQuery, RunDraft, RunQuery

WORKERS = 16
RUNS = 1_000


def at(seconds: float) -> Timestamp:
    return Timestamp(seconds=int(seconds), nanos=round(seconds % 1 * 1e6) * 1_000)


def draft(run_id: str = "r", expected: int | None = None, **fields: Any) -> RunDraft:  # noqa: ANN401 - of any type
    given = {"workflow_id": "w", "status": WORKFLOW_STATUS_RUNNING, **fields}
    return RunDraft(run_id, WorkflowRun(id=run_id, **given).SerializeToString(), expected)


def save(tenant: Tenant, run_id: str = "r", **fields: Any) -> int:  # noqa: ANN401 - of any type
    return tenant.store.workflow_runs.save(tenant.write, draft(run_id, **fields)).revision


def update(tenant: Tenant, run_id: str, *mask: str, expected: int | None = None, **fields: Any) -> int:  # noqa: ANN401
    wanted = RunDraft(run_id, WorkflowRun(id=run_id, **fields).SerializeToString(), expected)
    return tenant.store.workflow_runs.update(tenant.write, wanted, frozenset(mask or fields)).revision


def run(tenant: Tenant, run_id: str = "r") -> WorkflowRun:
    return WorkflowRun.FromString(tenant.store.workflow_runs.get(tenant.read, run_id)[0])


def listed(tenant: Tenant, **wanted: Any) -> list[str]:  # noqa: ANN401 - of any type
    """The ids of the runs of a query, page by page."""
    found: list[str] = []
    after: PartPosition | None = None
    skip = wanted.pop("skip", 0)
    while True:
        query = RunQuery(**{"limit": 2, **wanted}, after=after, skip=0 if after else skip)
        page = tenant.store.workflow_runs.list(tenant.read, query)
        found += [one.id for one in workflow_service_pb2.ListWorkflowRunsResponse.FromString(page.encoded).runs]
        after = page.following
        if after is None:
            return found


def step(step_id: str, index: int = 0, run_id: str = "r", **fields: Any) -> PartDraft:  # noqa: ANN401 - of any type
    given = {"status": WORKFLOW_STEP_STATUS_COMPLETED, "step_index": index, **fields}
    body = WorkflowStep(id=step_id, run_id=run_id, **given).SerializeToString()
    return PartDraft(PartName(step_id, run_id), body)


def save_steps(tenant: Tenant, *steps: PartDraft) -> None:
    tenant.store.workflow_steps.save(tenant.write, steps)


def steps(tenant: Tenant, run_id: str = "r") -> list[WorkflowStep]:
    page = tenant.store.workflow_steps.list(tenant.read, PartQuery(run_id))
    return list(workflow_service_pb2.ListWorkflowStepsResponse.FromString(page.encoded).steps)


def event(event_id: str, sequence: int | None = None, run_id: str = "r", **fields: Any) -> PartDraft:  # noqa: ANN401
    body = TimelineEvent(id=event_id, run_id=run_id, sequence=sequence, **fields).SerializeToString()
    return PartDraft(PartName(event_id, run_id), body)


def add(tenant: Tenant, *events: PartDraft) -> int:
    return tenant.store.timeline_events.add(tenant.write, events).revision


def events(tenant: Tenant, run_id: str = "r", limit: int = 100) -> list[TimelineEvent]:
    found: list[TimelineEvent] = []
    after: PartPosition | None = None
    while True:
        page = tenant.store.timeline_events.list(tenant.read, PartQuery(run_id, limit, after))
        found += history_service_pb2.ListTimelineEventsResponse.FromString(page.encoded).events
        after = page.following
        if after is None:
            return found


def ids(parts: Sequence[WorkflowStep] | Sequence[TimelineEvent]) -> list[str]:
    return [part.id for part in parts]


def test_a_run_comes_back_whole_with_its_times(tenant: Tenant) -> None:
    suspension = WorkflowSuspension(suspend_time=at(3.25), reason="why", step_index=2, last_event_sequence=0)
    given: dict[str, Any] = {
        "user_id": "sarah",
        "context": b"\0\xff",
        "suspension": suspension,
        "replayed_from_run_id": "r0",
        "replay_from_step_id": "s0",
        "start_time": at(1.000001),
        "create_time": at(2.5),
        "update_time": at(4),
    }

    revision = save(tenant, **given)

    wanted = WorkflowRun(id="r", workflow_id="w", status=WORKFLOW_STATUS_RUNNING, revision=revision, **given)
    assert run(tenant) == wanted


def test_times_that_are_not_given_are_the_stores_and_stay(tenant: Tenant) -> None:
    save(tenant)
    before = run(tenant)

    save(tenant, workflow_name="again")

    after = run(tenant)
    assert before.start_time == before.create_time == after.create_time
    assert after.update_time.ToMicroseconds() >= before.update_time.ToMicroseconds() > 0


def test_an_update_loses_no_field_that_it_does_not_name(tenant: Tenant) -> None:
    save(tenant, input=b"in", user_id="sarah", suspension=WorkflowSuspension(step_index=1), end_time=at(9))
    before = run(tenant)

    update(tenant, "r", "output", "suspension", "end_time", output=b"out", status=WORKFLOW_STATUS_ERROR)

    after = run(tenant)
    assert (after.input, after.output, after.user_id, after.status) == (b"in", b"out", "sarah", WORKFLOW_STATUS_RUNNING)
    assert not after.HasField("suspension")
    assert not after.HasField("end_time")
    assert after.create_time == before.create_time
    assert after.revision > before.revision


def test_an_update_sets_the_time_unless_it_is_named(tenant: Tenant) -> None:
    save(tenant, update_time=at(1))

    update(tenant, "r", output=b"1")
    assert run(tenant).update_time != at(1)

    update(tenant, "r", update_time=at(7))
    assert run(tenant).update_time == at(7)


def test_a_run_that_is_not_there_is_not_found(tenant: Tenant) -> None:
    with pytest.raises(WorkflowRunNotFound):
        run(tenant)
    with pytest.raises(WorkflowRunNotFound):
        update(tenant, "r", output=b"")
    with pytest.raises(WorkflowRunNotFound):
        tenant.store.workflow_runs.delete(tenant.write, "r", keep_related=False, allow_missing=False)
    assert not tenant.store.workflow_runs.delete(tenant.write, "r", keep_related=False, allow_missing=True).deleted


def test_a_write_that_expects_another_revision_changes_nothing(tenant: Tenant) -> None:
    first = save(tenant, expected=0)
    second = update(tenant, "r", output=b"1", expected=first)

    for expected in (0, first):
        with pytest.raises(RevisionConflict):
            save(tenant, expected=expected)
        with pytest.raises(RevisionConflict):
            update(tenant, "r", output=b"2", expected=expected)

    assert (run(tenant).output, run(tenant).revision) == (b"1", second)
    with pytest.raises(RevisionConflict):
        save(tenant, "another", expected=second)


def test_a_run_that_grows_too_long_is_refused(tenant: Tenant) -> None:
    save(tenant)
    for name in ("input", "output", "context"):
        update(tenant, "r", name, **{name: bytes(1 << 20)})  # type: ignore[arg-type]

    with pytest.raises(RequestTooLarge):
        update(tenant, "r", workflow_state=bytes(1 << 20))


@pytest.mark.slow
def test_of_many_workers_that_resume_a_run_one_gets_it(tenant: Tenant) -> None:
    names = [f"r{number}" for number in range(RUNS)]
    for name in names:
        save(tenant, name, status=WORKFLOW_STATUS_SUSPENDED, create_time=at(1))
    resumed: dict[str, list[int]] = {name: [] for name in names}
    beginning = threading.Barrier(WORKERS)

    def work(worker: int) -> None:
        beginning.wait()
        for name in names:
            found = run(tenant, name)
            if found.status == WORKFLOW_STATUS_SUSPENDED:
                try:
                    update(tenant, name, status=WORKFLOW_STATUS_RUNNING, expected=found.revision)
                except RevisionConflict:
                    continue
                resumed[name].append(worker)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, range(WORKERS)))

    assert {len(workers) for workers in resumed.values()} == {1}
    assert listed(tenant, status=WORKFLOW_STATUS_SUSPENDED) == []


def test_runs_are_listed_by_what_is_asked_the_newest_first(tenant: Tenant) -> None:
    save(tenant, "a", create_time=at(1), start_time=at(9), user_id="sarah")
    save(tenant, "b", create_time=at(3), start_time=at(3), workflow_id="x", user_id="tom")
    save(tenant, "c", create_time=at(2), start_time=at(4), status=WORKFLOW_STATUS_SUSPENDED, user_id="sarah")

    assert listed(tenant) == ["b", "c", "a"]
    assert listed(tenant, by_start=True) == ["a", "c", "b"]
    assert listed(tenant, workflow_id="w") == ["c", "a"]
    assert listed(tenant, status=WORKFLOW_STATUS_SUSPENDED) == ["c"]
    assert listed(tenant, user_id="sarah") == ["c", "a"]
    assert listed(tenant, created_from=2_000_000) == ["b", "c"]
    assert listed(tenant, created_to=2_000_000) == ["c", "a"]
    assert listed(tenant, created_from=2_000_000, created_to=2_000_000) == ["c"]
    assert listed(tenant, skip=1) == ["c", "a"]
    assert listed(tenant, limit=1, skip=2) == ["a"]


def test_runs_of_one_time_are_listed_by_their_writes(tenant: Tenant) -> None:
    for number in range(5):
        save(tenant, str(number), create_time=at(1))

    assert listed(tenant) == ["4", "3", "2", "1", "0"]


def test_metadata_is_compared_member_by_member(tenant: Tenant) -> None:
    save(tenant, "a", create_time=at(1), metadata=b'{"tags": {"plan": "pro", "seats": [1, 2.0]}, "n": null}')
    save(tenant, "b", create_time=at(2), metadata=b'{"tags": {"plan": "free"}, "m": "n"}')
    save(tenant, "c", create_time=at(3))

    def found(metadata: bytes) -> list[str]:
        return listed(tenant, members=tuple(digests(metadata)))

    assert found(b'{"tags": {"seats": [1.0, 2], "plan": "pro"}}') == ["a"]
    assert found(b'{"tags": {"plan": "pro"}}') == []
    assert found(b'{"tags": {"plan": "free"}, "m": "n"}') == ["b"]
    assert found(b'{"tags": {"plan": "free"}, "m": "x"}') == []
    assert found(b'{"n": null}') == ["a"]
    assert found(b'{"none": null}') == []
    assert found(b"{}") == ["c", "b", "a"]


def at_path(*steps: str, operator: Operator = Operator.EQ, value: AttributeValue = None) -> Condition:
    values = () if operator in {Operator.PRESENT, Operator.ABSENT} else (value,)
    return Condition(path_key(steps), operator, values)


def test_metadata_is_asked_by_conditions_on_paths(tenant: Tenant) -> None:
    save(tenant, "a", create_time=at(1), metadata=b'{"tags": {"plan": "pro", "seats": [1, 2.0]}, "n": null}')
    save(tenant, "b", create_time=at(2), metadata=b'{"tags": {"plan": "free"}, "age": 30}')
    save(tenant, "c", create_time=at(3))

    def found(where: Filter) -> list[str]:
        return listed(tenant, filter=where)

    assert found(at_path("tags", "plan", value="pro")) == ["a"]
    assert found(at_path("tags", "seats", "1", operator=Operator.GTE, value=2)) == ["a"]
    assert found(at_path("n")) == ["a"]
    assert found(at_path("tags", operator=Operator.PRESENT)) == ["b", "a"]
    assert found(Negated(at_path("tags", operator=Operator.PRESENT))) == ["c"]
    assert found(AnyOf((at_path("age", operator=Operator.LT, value=30.5), at_path("n", operator=Operator.ABSENT)))) == [
        "c",
        "b",
    ]
    assert found(AllOf((at_path("tags", operator=Operator.NE, value="x"), at_path("age", value=31)))) == []


def test_pages_of_runs_that_pass_have_them_all_in_order(tenant: Tenant) -> None:
    for number in range(20):
        save(tenant, f"r{number}", create_time=at(number), metadata=b'{"odd": %d}' % (number % 2))

    assert listed(tenant, filter=at_path("odd", value=1)) == [f"r{number}" for number in range(19, 0, -2)]
    assert listed(tenant, filter=at_path("odd", value=1), limit=10) == [f"r{number}" for number in range(19, 0, -2)]
    assert listed(tenant, filter=at_path("odd", value=1), created_to=4_000_000) == ["r3", "r1"]


def test_a_run_goes_with_its_steps_and_events_unless_they_are_kept(tenant: Tenant) -> None:
    for name, keep in (("r", False), ("q", True)):
        save(tenant, name)
        save_steps(tenant, step("s", run_id=name))
        add(tenant, event("e", run_id=name))
        assert tenant.store.workflow_runs.delete(tenant.write, name, keep_related=keep, allow_missing=False).deleted

    assert listed(tenant) == []
    assert (steps(tenant, "r"), events(tenant, "r")) == ([], [])
    assert (ids(steps(tenant, "q")), ids(events(tenant, "q"))) == (["s"], ["e"])


def test_the_oldest_runs_of_a_workflow_are_pruned(tenant: Tenant) -> None:
    for number in range(5):
        save(tenant, str(number), create_time=at(number))
        save_steps(tenant, step("s", run_id=str(number)))
    save(tenant, "other", workflow_id="x", create_time=at(0))

    assert tenant.store.workflow_runs.prune(tenant.write, "w", 2).deleted_records == 3

    assert listed(tenant) == ["4", "3", "other"]
    assert (steps(tenant, "0"), ids(steps(tenant, "4"))) == ([], ["s"])
    assert tenant.store.workflow_runs.prune(tenant.write, "w", 2).deleted_records == 0


def test_the_workflows_that_have_runs_are_listed(tenant: Tenant) -> None:
    for name in ("x", "a", "é", "x"):
        save(tenant, f"of {name}", workflow_id=name)

    assert tenant.store.workflow_runs.workflows(tenant.read, "", 2)[0] == ["a", "x"]
    assert tenant.store.workflow_runs.workflows(tenant.read, "x", 2)[0] == ["é"]


def test_the_runs_of_a_workflow_are_counted(tenant: Tenant) -> None:
    save(tenant, "a", start_time=at(1), end_time=at(2), status=WORKFLOW_STATUS_COMPLETED)
    save(tenant, "b", start_time=at(5), end_time=at(8), status=WORKFLOW_STATUS_ERROR)
    save(tenant, "c", start_time=at(7))
    save(tenant, "d", workflow_id="x", start_time=at(9))

    stats = tenant.store.workflow_runs.stats(tenant.read, "w")

    assert (stats.runs, stats.completed, stats.failed) == (3, 1, 1)
    assert (stats.mean_duration, stats.last_start_time) == (2_000_000, 7_000_000)
    none = tenant.store.workflow_runs.stats(tenant.read, "none")
    assert (none.runs, none.mean_duration, none.last_start_time) == (0, None, None)


def test_steps_are_listed_by_index_then_in_the_order_of_saving(tenant: Tenant) -> None:
    save_steps(tenant, step("a", 2), step("b", 1), step("c", 1), step("a", 0, name="last"))
    save_steps(tenant, step("b", 1))

    assert ids(steps(tenant)) == ["a", "c", "b"]
    assert steps(tenant)[0].name == "last"


def test_a_step_is_found_by_its_id_alone_the_newest_of_several(tenant: Tenant) -> None:
    save_steps(tenant, step("s", run_id="r"))
    save_steps(tenant, step("s", run_id="q"))
    read, write, store = tenant.read, tenant.write, tenant.store.workflow_steps

    assert WorkflowStep.FromString(store.get(read, PartName("s"))[0]).run_id == "q"
    store.update(write, PartDraft(PartName("s"), WorkflowStep(output=b"o").SerializeToString()), frozenset({"output"}))
    assert [one.output for one in (*steps(tenant, "q"), *steps(tenant, "r"))] == [b"o", b""]
    assert store.delete(write, PartName("s")).deleted
    assert (ids(steps(tenant, "q")), ids(steps(tenant, "r"))) == ([], ["s"])


def test_an_updated_step_keeps_what_the_mask_does_not_name(tenant: Tenant) -> None:
    save_steps(tenant, step("s", 1, input=b"in", parallel_index=0, create_time=at(1), update_time=at(1)))
    name = PartName("s", "r")

    given = PartDraft(name, WorkflowStep(output=b"out").SerializeToString())
    tenant.store.workflow_steps.update(tenant.write, given, frozenset({"output", "parallel_index"}))

    [found] = steps(tenant)
    assert (found.input, found.output, found.step_index, found.create_time) == (b"in", b"out", 1, at(1))
    assert not found.HasField("parallel_index")
    assert found.update_time != at(1)


def test_a_step_that_is_not_there_is_not_found(tenant: Tenant) -> None:
    for name in (PartName("s"), PartName("s", "r")):
        with pytest.raises(WorkflowStepNotFound):
            tenant.store.workflow_steps.get(tenant.read, name)
        with pytest.raises(WorkflowStepNotFound):
            tenant.store.workflow_steps.update(tenant.write, PartDraft(name, b""), frozenset())
        assert not tenant.store.workflow_steps.delete(tenant.write, name).deleted


def test_a_step_that_a_request_has_twice_counts_as_saved_where_it_comes_last(tenant: Tenant) -> None:
    save_steps(tenant, step("a", 1), step("b", 1), step("a", 1, name="last"))

    assert [(one.id, one.name) for one in steps(tenant)] == [("b", ""), ("a", "last")]


def test_events_are_listed_by_sequence_then_by_time(tenant: Tenant) -> None:
    add(tenant, event("d", 2), event("c", 1, start_time=at(5)), event("b", 1, start_time=at(4)))
    add(tenant, event("a", start_time=at(9)))

    assert ids(events(tenant, limit=1)) == ids(events(tenant)) == ["a", "b", "c", "d"]
    assert [one.HasField("sequence") for one in events(tenant)] == [False, True, True, True]


def test_events_without_a_sequence_come_where_those_at_0_do(tenant: Tenant) -> None:
    add(tenant, event("d", 1), event("c", start_time=at(6)), event("b", 0, start_time=at(5)), event("a", -1))

    assert ids(events(tenant, limit=1)) == ids(events(tenant)) == ["a", "b", "c", "d"]


def test_an_event_never_changes(tenant: Tenant) -> None:
    given = event("e", 1, name="began")
    first = add(tenant, given)
    [before] = events(tenant)

    again = add(tenant, given, given)
    with pytest.raises(TimelineEventExists):
        add(tenant, event("f"), event("e", 1, name="ended"))
    with pytest.raises(TimelineEventExists):
        add(tenant, event("g", 1), event("g", 2))

    assert again == first
    assert events(tenant) == [before]


def test_what_comes_before_its_run_is_there(tenant: Tenant) -> None:
    add(tenant, event("e"))
    save_steps(tenant, step("s"))
    save(tenant, user_id="sarah")

    assert (ids(events(tenant)), ids(steps(tenant))) == (["e"], ["s"])


def test_parts_of_a_run_go_with_its_user(tenant: Tenant) -> None:
    for user in ("sarah", "tom"):
        save(tenant, user, user_id=user)
        save_steps(tenant, step("s", run_id=user))
        add(tenant, event("e", run_id=user))

    tenant.store.users.delete(tenant.write, "sarah")

    assert listed(tenant) == ["tom"]
    assert (steps(tenant, "sarah"), events(tenant, "sarah")) == ([], [])
    assert [step.user_id for step in steps(tenant, "tom")] == ["tom"]
    assert [event.user_id for event in events(tenant, "tom")] == ["tom"]


def test_runs_of_another_tenant_are_not_seen(tenant: Tenant, other: Tenant) -> None:
    save(tenant)
    save_steps(tenant, step("s"))
    add(tenant, event("e"))

    assert (listed(other), steps(other), events(other)) == ([], [], [])
    with pytest.raises(WorkflowStepNotFound):
        other.store.workflow_steps.get(other.read, PartName("s"))


def test_a_repeated_update_is_answered_as_the_first(tenant: Tenant) -> None:
    revision = save(tenant)
    wanted = RunDraft("r", WorkflowRun(output=b"o").SerializeToString(), revision)
    write = tenant.request("resume")

    first = tenant.store.workflow_runs.update(write, wanted, frozenset({"output"}))

    assert tenant.store.workflow_runs.update(write, wanted, frozenset({"output"})) == first


def test_runs_leave_and_arrive_as_they_are(tenant: Tenant, other: Tenant) -> None:
    save(tenant, user_id="sarah", conversation_id="not a conversation", metadata=b'{"a": 1}')
    save_steps(tenant, step("s"))
    add(tenant, event("e"))
    records = tenant.exported()

    outcomes = [imported(other, records).imported_records for _ in range(2)]

    assert [record.WhichOneof("kind") for record in records] == ["workflow_run", "workflow_step", "timeline_event"]
    assert not any(record.workflow_run.revision for record in records)
    assert other.exported() == records
    assert outcomes == [3, 0]
    assert listed(other, members=tuple(digests(b'{"a": 1.0}'))) == ["r"]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_events_without_another_order_arrive_in_the_order_in_which_they_were_added(
    tenant: Tenant, other: Tenant, limit: int
) -> None:
    add(tenant, *(event(each) for each in "zbqa"), event("x", run_id="earlier"))
    add(tenant, event("k", start_time=at(0)), event("c"), event("y", run_id="earlier"))

    records = tenant.exported(ExportQuery(limit=limit))
    for record in records:
        imported(other, [record])

    assert records == tenant.exported()
    for run_id in ("r", "earlier"):
        assert ids(events(other, run_id)) == ids(events(tenant, run_id))
    assert ids(events(other)) == [*"kzbqac"]
    assert other.exported() == records
    assert imported(other, records).imported_records == 0


def imported(tenant: Tenant, records: Sequence[Record]) -> Outcome:
    given = []
    for number, record in enumerate(records):
        kind = str(record.WhichOneof("kind"))
        given.append(ImportedRecord(f"records[{number}]", kind, getattr(record, kind).SerializeToString()))
    return tenant.store.imports.store(tenant.write, Import("", records=tuple(given)))
