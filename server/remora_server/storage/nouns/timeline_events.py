"""Timeline events of the local store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.v1.timeline_event_pb2 import TimelineEvent
from remora_server import wire
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.errors import TimelineEventExists, TimelineEventNotFound
from remora_server.domain.workflows import PartDraft, PartName
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.run_parts import RunParts, answered
from remora_server.storage.records.records import Put
from remora_server.storage.schema.kinds import TIMELINE_EVENTS


class TimelineEvents(RunParts):
    """Adds, reads and deletes events."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context, TIMELINE_EVENTS, TimelineEventNotFound)

    def add(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        events = [TimelineEvent.FromString(draft.body) for draft in drafts]
        puts = [Put(TIMELINE_EVENTS, 0, event) for event in events]

        def plan(_: None, now: int) -> Planned | None:
            known = self._known(write, events)
            fresh = _fresh(events, {name: TimelineEvent.FromString(body) for name, body in known.items()})
            if not fresh:
                return None
            self._fill_user(write, fresh)
            for event in fresh:
                _date(event, now)
            changes = self._records.changes(write, [Put(TIMELINE_EVENTS, 0, event) for event in fresh])
            return Planned(changes, Outcome(revision=0, time=now))

        with answered():
            return self._commands.run(write, self._records.held(write, puts), plan)


def _fresh(events: Sequence[TimelineEvent], known: Mapping[PartName, TimelineEvent]) -> list[TimelineEvent]:
    """The events that are not there. Raises TimelineEventExists."""
    seen, fresh = dict(known), []
    for event in events:
        before = seen.setdefault(PartName(event.id, event.run_id), event)
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
