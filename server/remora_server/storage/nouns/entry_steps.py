"""Steps of history entries of the local store."""

from __future__ import annotations

from collections.abc import Sequence

from remora.v1.history_entry_pb2 import EntryStep
from remora_server import wire
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.errors import EntryStepNotFound, HistoryEntryNotFound
from remora_server.domain.workflows import PartDraft
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.run_parts import RUN_KEY, RunParts, answered, last_of_each, place_of_entry
from remora_server.storage.records.records import Put
from remora_server.storage.schema import keys
from remora_server.storage.schema.kinds import ENTRY_STEPS


class EntrySteps(RunParts):
    """Saves, changes, reads and deletes steps."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context, ENTRY_STEPS, EntryStepNotFound)

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        steps = last_of_each((draft.name, EntryStep.FromString(draft.body)) for draft in drafts)
        puts = [Put(ENTRY_STEPS, 0, step) for step in steps]

        def plan(_: None, now: int) -> Planned:
            self._require_entries(write, steps)
            self._keep_create_times(write, steps)
            for ordinal, step in enumerate(steps):
                _date(step, now, created=now + ordinal)
            return Planned(self._records.changes(write, puts), Outcome(revision=0, time=now))

        with answered():
            return self._commands.run(write, self._records.held(write, puts), plan)

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        place = self._place(write, draft.name)
        [entry_id] = keys.decode(ENTRY_STEPS.partition_types, place.partition)
        held = Put(ENTRY_STEPS, 0, EntryStep(entry_id=str(entry_id), id=draft.name.id))

        def plan(_: None, now: int) -> Planned:
            before = EntryStep.FromString(self._accepted(write, place, draft.name.id))
            step = EntryStep.FromString(before.SerializeToString())
            wire.merge(EntryStep.FromString(draft.body), step, mask)
            if "update_time" not in mask:
                step.ClearField("update_time")
            _date(step, now, created=wire.micros(before.create_time))
            return Planned(self._records.changes(write, [Put(ENTRY_STEPS, 0, step)]), Outcome(revision=0, time=now))

        with answered():
            return self._commands.run(write, self._records.held(write, [held]), plan)

    def _require_entries(self, write: Write, steps: Sequence[EntryStep]) -> None:
        """Raise HistoryEntryNotFound if an entry is not there."""
        for entry_id in dict.fromkeys(step.entry_id for step in steps):
            if self._records.stored(write, place_of_entry(entry_id), RUN_KEY) is None:
                raise HistoryEntryNotFound(entry_id)

    def _keep_create_times(self, write: Write, steps: Sequence[EntryStep]) -> None:
        """Give those that replace others their create times, unless they have their own."""
        undated = [step for step in steps if not step.HasField("create_time")]
        known = self._known(write, undated)
        for step in undated:
            if (body := known.get(self._name_of(step))) is not None:
                step.create_time.CopyFrom(EntryStep.FromString(body).create_time)


def _date(step: EntryStep, now: int, *, created: int) -> None:
    """Give a step the times that it has in any case."""
    if not step.HasField("create_time"):
        step.create_time.CopyFrom(wire.timestamp(created))
    if not step.HasField("update_time"):
        step.update_time.CopyFrom(wire.timestamp(now))
