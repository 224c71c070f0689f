"""Runs, steps and events of any store against a dict that does the same, with restarts where it keeps what it has."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.examples import examples
from tests.store.asking import Tenant
from tests.store.implementations import IMPLEMENTATIONS, KEEPING
from tests.store.test_workflows import add, at, event, events, listed, run, save, save_steps, step, steps, update

from remora.v1.workflow_pb2 import WorkflowRun, WorkflowStatus
from remora_server.domain.errors import RevisionConflict, TimelineEventExists, WorkflowRunNotFound
from remora_server.domain.json_members import digests
from remora_server.domain.workflows import PartName

RUNS = st.sampled_from(["r1", "r2", "r3"])
USERS = st.sampled_from(["", "sarah", "tom"])
STATUSES = st.sampled_from(WorkflowStatus.values()[1:])
TIMES = st.integers(0, 4)
METADATA = st.sampled_from([b"", b'{"a": 1}', b'{"a": {"b": [1, 2]}, "c": null}', b'{"c": "x"}'])
PARTS = st.sampled_from(["p1", "p2", "p3"])


class WorkflowMachine(RuleBasedStateMachine):
    """Does each thing to the store and to dicts, and compares what both show."""

    implementation: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="remora-model-"))
        self.open()
        self.runs: dict[str, WorkflowRun] = {}
        self.steps: dict[tuple[str, str], tuple[int, str]] = {}
        """The index and the user, in the order of saving."""
        self.events: dict[tuple[str, str], tuple[int, str]] = {}
        """The sequence and the user, in the order of adding."""

    def open(self) -> None:
        self.store = IMPLEMENTATIONS[self.implementation](self.directory / "data")
        self.tenant = Tenant(self.store, "acme")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    @rule(name=RUNS, status=STATUSES, user=USERS, created=TIMES, metadata=METADATA)
    def save(self, name: str, status: WorkflowStatus.ValueType, user: str, created: int, metadata: bytes) -> None:
        given = WorkflowRun(
            id=name,
            workflow_id="w",
            status=status,
            user_id=user,
            create_time=at(created),
            metadata=metadata,
        )
        fields = {field.name: value for field, value in given.ListFields() if field.name != "id"}
        given.revision = save(self.tenant, name, **fields)
        given.start_time.CopyFrom(given.create_time)
        self.runs[name] = given

    @rule(name=RUNS, output=st.binary(max_size=4), status=STATUSES, stale=st.booleans())
    def resume(self, name: str, output: bytes, status: int, stale: bool) -> None:
        before = self.runs.get(name)
        expected = (before.revision if before else 0) + stale
        try:
            revision = update(self.tenant, name, "output", "status", output=output, status=status, expected=expected)
        except WorkflowRunNotFound:
            assert before is None
        except RevisionConflict:
            assert stale
        else:
            assert before is not None
            assert not stale
            before.output, before.status, before.revision = output, status, revision  # type: ignore[assignment]

    @rule(name=RUNS, keep=st.booleans())
    def delete(self, name: str, keep: bool) -> None:
        outcome = self.store.workflow_runs.delete(self.tenant.write, name, keep_related=keep, allow_missing=True)
        assert outcome.deleted == (name in self.runs)
        if outcome.deleted:
            self.drop(name, keep=keep)

    @rule(keep=st.integers(0, 3))
    def prune(self, keep: int) -> None:
        gone = self.newest_first()[keep:]
        assert self.store.workflow_runs.prune(self.tenant.write, "w", keep).deleted_records == len(gone)
        for name in gone:
            self.drop(name)

    def drop(self, name: str, *, keep: bool = False) -> None:
        del self.runs[name]
        if not keep:
            self.steps = {key: value for key, value in self.steps.items() if key[0] != name}
            self.events = {key: value for key, value in self.events.items() if key[0] != name}

    def newest_first(self) -> list[str]:
        def place(name: str) -> tuple[int, int]:
            return self.runs[name].create_time.ToMicroseconds(), self.runs[name].revision

        return sorted(self.runs, key=place, reverse=True)

    def user_of(self, name: str) -> str:
        return self.runs[name].user_id if name in self.runs else ""

    @rule(name=RUNS, parts=st.lists(st.tuples(PARTS, st.integers(0, 2)), min_size=1, max_size=3))
    def save_steps(self, name: str, parts: list[tuple[str, int]]) -> None:
        save_steps(self.tenant, *(step(part, index, name) for part, index in parts))
        for part, index in parts:  # what one request saves twice is in the place of the last
            self.steps.pop((name, part), None)
            self.steps[name, part] = (index, self.user_of(name))

    @rule(name=RUNS, part=PARTS)
    def delete_step(self, name: str, part: str) -> None:
        outcome = self.store.workflow_steps.delete(self.tenant.write, PartName(part, name))
        assert outcome.deleted == (self.steps.pop((name, part), None) is not None)

    @rule(name=RUNS, part=PARTS, sequence=st.integers(0, 2))
    def add_event(self, name: str, part: str, sequence: int) -> None:
        before = self.events.get((name, part))
        try:
            add(self.tenant, event(part, sequence, name))
        except TimelineEventExists:
            assert before is not None
            assert before[0] != sequence
        else:
            self.events.setdefault((name, part), (sequence, self.user_of(name)))
            assert self.events[name, part][0] == sequence

    @rule(user=st.sampled_from(["sarah", "tom"]))
    def delete_user(self, user: str) -> None:
        self.store.users.delete(self.tenant.write, user)
        self.steps = {key: value for key, value in self.steps.items() if user != (value[1] or self.user_of(key[0]))}
        self.events = {key: value for key, value in self.events.items() if user != (value[1] or self.user_of(key[0]))}
        self.runs = {name: run for name, run in self.runs.items() if run.user_id != user}

    @precondition(lambda self: self.implementation in KEEPING)
    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def runs_are_the_dicts(self) -> None:
        for name, wanted in self.runs.items():
            found = run(self.tenant, name)
            found.ClearField("update_time")
            assert found == wanted

    @invariant()
    def lists_are_the_dicts(self) -> None:
        assert listed(self.tenant) == self.newest_first()
        assert listed(self.tenant, members=tuple(digests(b'{"c": null}'))) == [
            name for name in self.newest_first() if b"null" in self.runs[name].metadata
        ]

    @invariant()
    def parts_are_the_dicts(self) -> None:
        for name in ("r1", "r2", "r3"):
            assert [part.id for part in steps(self.tenant, name)] == self.ordered(self.steps, name)
            assert [part.id for part in events(self.tenant, name)] == self.ordered(self.events, name)

    def ordered(self, parts: dict[tuple[str, str], tuple[int, str]], name: str) -> list[str]:
        own = [(index, part) for (run_id, part), (index, _) in parts.items() if run_id == name]
        return [part for _, part in sorted(own, key=lambda each: each[0])]


class OnDisk(WorkflowMachine):
    implementation = "disk"


class InMemory(WorkflowMachine):
    implementation = "memory"


class OfTheModel(WorkflowMachine):
    implementation = "model"


SETTINGS = settings(
    max_examples=examples(12), stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestOnDisk, TestInMemory, TestOfTheModel = OnDisk.TestCase, InMemory.TestCase, OfTheModel.TestCase
TestOnDisk.settings = TestInMemory.settings = TestOfTheModel.settings = SETTINGS
