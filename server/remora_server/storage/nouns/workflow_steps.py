"""Steps of runs of workflows of the local store."""

from __future__ import annotations

from collections.abc import Sequence

from remora.v1.workflow_pb2 import WorkflowStep
from remora_server import wire
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.errors import WorkflowStepNotFound
from remora_server.domain.workflows import PartDraft
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.run_parts import RunParts, answered, last_of_each
from remora_server.storage.records.records import Put
from remora_server.storage.schema.kinds import WORKFLOW_STEPS


class WorkflowSteps(RunParts):
    """Saves, changes, reads and deletes steps."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context, WORKFLOW_STEPS, WorkflowStepNotFound)

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        steps = last_of_each((draft.name, WorkflowStep.FromString(draft.body)) for draft in drafts)
        puts = [Put(WORKFLOW_STEPS, 0, step) for step in steps]

        def plan(_: None, now: int) -> Planned:
            self._fill_user(write, steps)
            for step in steps:
                _date(step, now)
            return Planned(self._records.changes(write, puts), Outcome(revision=0, time=now))

        with answered():
            return self._commands.run(write, self._records.held(write, puts), plan)

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        place = self._place(write, draft.name)

        def plan(_: None, now: int) -> Planned:
            step = WorkflowStep.FromString(self._accepted(write, place, draft.name.id))
            wire.merge(WorkflowStep.FromString(draft.body), step, mask)
            if "update_time" not in mask:
                step.ClearField("update_time")
            _date(step, now)
            put = Put(WORKFLOW_STEPS, 0, step)
            return Planned(self._records.changes(write, [put]), Outcome(revision=0, time=now), step.user_id)

        with answered():
            return self._commands.run(write, self._records.held_place(write, place), plan)


def _date(step: WorkflowStep, now: int) -> None:
    """Give a step the times that it has in any case."""
    for name in ("create_time", "update_time"):
        if not step.HasField(name):
            getattr(step, name).CopyFrom(wire.timestamp(now))
