"""Records that are alone in their partitions, saved whole or changed by masks: workflow runs, entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from remora.v1.history_entry_pb2 import HistoryEntry
from remora.v1.workflow_pb2 import WorkflowRun
from remora_server import wire
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.errors import RemoraError
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.run_parts import RUN_KEY, answered
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Put
from remora_server.storage.schema.kinds import Kind

M = TypeVar("M", HistoryEntry, WorkflowRun)


class LoneRecords(Generic[M]):
    """Saves and changes the records of a kind."""

    def __init__(self, context: StoreContext, kind: Kind, message: type[M]) -> None:
        self._commands = context.commands
        self._records = context.records
        self._kind = kind
        self._message: type[M] = message

    def save(
        self,
        write: Write,
        place: Partition,
        body: bytes,
        *,
        expected: int | None = None,
        allow: Callable[[M, M | None], None] | None = None,
    ) -> Outcome:
        """Save a record, in place of the one before. `allow` sees both, and raises if that must not be."""

        def plan(_: None, now: int) -> Planned:
            record = self._message.FromString(body)
            before = self._accepted(write, place) if allow or not record.HasField("create_time") else None
            if allow:
                allow(record, before)
            return self._planned(write, record, before, now, expected)

        return self._run(write, place, plan)

    def update(
        self,
        write: Write,
        place: Partition,
        body: bytes,
        mask: frozenset[str],
        *,
        missing: RemoraError,
        expected: int | None = None,
    ) -> Outcome:
        """Take the fields in the mask from `body`; the others stay. Raises `missing` where there is no record."""

        def plan(_: None, now: int) -> Planned:
            before = self._accepted(write, place)
            if before is None:
                raise missing
            record = self._message()
            record.CopyFrom(before)
            wire.merge(self._message.FromString(body), record, mask)
            if "update_time" not in mask:
                record.ClearField("update_time")
            return self._planned(write, record, before, now, expected)

        return self._run(write, place, plan)

    def _accepted(self, write: Write, place: Partition) -> M | None:
        """A record as writers build on it, under its lock."""
        found = self._records.accepted(write, place, [RUN_KEY])
        return self._message.FromString(found[0].body) if found else None

    def _planned(self, write: Write, record: M, before: M | None, now: int, expected: int | None) -> Planned:
        _date(record, before, now)
        put = Put(self._kind, 0, record, expected=expected)
        outcome = Outcome(revision=0, time=wire.micros(record.update_time))
        return Planned(self._records.changes(write, [put]), outcome, record.user_id)

    def _run(self, write: Write, place: Partition, plan: Callable[[None, int], Planned]) -> Outcome:
        with answered():
            return self._commands.run(write, self._records.held_place(write, place), plan)


def _date(record: M, before: M | None, now: int) -> None:
    """Set the times that a record has in any case."""
    if not record.HasField("update_time"):
        record.update_time.CopyFrom(wire.timestamp(now))
    if not record.HasField("create_time"):
        record.create_time.CopyFrom(wire.timestamp(now) if before is None else before.create_time)
    if not record.HasField("start_time"):
        record.start_time.CopyFrom(record.create_time)
