"""Timeline events of the local store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from remora.v1.timeline_event_pb2 import TimelineEvent
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import TimelineEventExists, TimelineEventNotFound
from remora_server.domain.workflows import PartDraft
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.run_parts import RunParts, answered
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Put
from remora_server.storage.schema.kinds import TIMELINE_EVENTS

_Known: TypeAlias = dict[tuple[str, str], TimelineEvent]
"""Events by their runs and ids."""


class TimelineEvents(RunParts):
    """Adds, reads and deletes events."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context, TIMELINE_EVENTS, TimelineEventNotFound)

    def add(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        events = [TimelineEvent.FromString(draft.body) for draft in drafts]
        puts = [Put(TIMELINE_EVENTS, 0, event) for event in events]

        def plan(_: None, now: int) -> Planned | None:
            fresh = _fresh(events, self._known(write, events))
            if not fresh:
                return None
            self._fill_user(write, fresh)
            for event in fresh:
                _date(event, now)
            changes = self._records.changes(write, [Put(TIMELINE_EVENTS, 0, event) for event in fresh])
            return Planned(changes, Outcome(revision=0, time=now))

        with answered():
            return self._commands.run(write, self._records.held(write, puts), plan)

    def _known(self, write: Write, events: Sequence[TimelineEvent]) -> _Known:
        """The events that are there under these ids."""
        keys: dict[Partition, list[bytes]] = {}
        for event in events:
            keys.setdefault(self._of_run(event.run_id), []).append(TIMELINE_EVENTS.encode_key(event.id))
        found: _Known = {}
        for place, wanted in keys.items():
            # Has all keys of the run loaded at once: the next events then ask the database for none.
            self._records.count(Read(write.tenant_id, deadline=write.deadline), place)
            for record in self._records.accepted(write, place, wanted):
                event = TimelineEvent.FromString(record.body)
                found[event.run_id, event.id] = event
        return found


def _fresh(events: Sequence[TimelineEvent], known: Mapping[tuple[str, str], TimelineEvent]) -> list[TimelineEvent]:
    """The events that are not there. Raises TimelineEventExists."""
    seen, fresh = dict(known), []
    for event in events:
        before = seen.setdefault((event.run_id, event.id), event)
        if before is event:
            fresh.append(event)
        elif not _is_same(before, event):
            raise TimelineEventExists(event.run_id, event.id)
    return fresh


def _is_same(before: TimelineEvent, again: TimelineEvent) -> bool:
    """Whether an event is the one that was added before, whatever was filled in then."""
    filled = TimelineEvent()
    filled.CopyFrom(again)
    filled.user_id = again.user_id or before.user_id
    for name in ("create_time", "start_time"):
        if before.HasField(name) and not again.HasField(name):
            getattr(filled, name).CopyFrom(getattr(before, name))
    return filled == before


def _date(event: TimelineEvent, now: int) -> None:
    """Give an event the times that it has in any case."""
    if not event.HasField("create_time"):
        event.create_time.CopyFrom(wire.timestamp(now))
    if not event.HasField("start_time"):
        event.start_time.CopyFrom(event.create_time)
