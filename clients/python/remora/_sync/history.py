# Derived from remora/_async/history.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""What agents did: entries with their steps, timeline events, traces and logs."""

from collections.abc import Collection
from typing import Annotated, TypeAlias, Unpack

from remora._arguments import checked
from remora._bounds import OF_CLIENT, Between, Count, Id, Items, Limit, Name, RequestId, Size, Time, Timeout
from remora._records import Members, members
from remora._sync.calls import LARGEST_PAGE, Calls, page_size
from remora._times import to_timestamp
from remora.history import (
    EntryStep,
    EntryStepFields,
    EntryWithRelated,
    HistoryEntry,
    HistoryEntryFields,
    LogRecord,
    Span,
    TimelineEvent,
    Trace,
    changed_entry,
    changed_step,
)
from remora.v1 import history_service_pb2 as wire

SpanId: TypeAlias = Annotated[str, Name(128)]
"""The id of a span or of a trace, 1 to 128 bytes."""
Severity: TypeAlias = Annotated[int, Between(1, 24)]


@checked
class History:
    """What the agents of the tenant did. `timeout` is in seconds; left out: the client's.

    The steps of an entry are an agent's on its way to one answer; those of a conversation are `Conversation.steps`.
    Spans and log records are read here; what exports them writes them through `stubs`, to the nanosecond.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def save_entry(
        self, entry: HistoryEntry, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> None:
        """Saves an `entry`; one with a known id is replaced, and keeps its steps.

        Raises HistoryEntryExistsError if the id is that of another user's entry.
        """
        request = wire.SaveHistoryEntryRequest(entry=entry.to_proto())
        self._calls.write(self._calls.stubs.history.SaveHistoryEntry, request, timeout, request_id)

    def update_entry(
        self,
        entry_id: Id,
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
        **changes: Unpack[HistoryEntryFields],
    ) -> None:
        """Replaces the given fields of the entry `entry_id`, and no others; with none, only sets update_time.

        A missing entry raises HistoryEntryNotFoundError.
        """
        request = wire.UpdateHistoryEntryRequest(entry=changed_entry(entry_id, changes))
        request.update_mask.paths.extend(changes)
        self._calls.write(self._calls.stubs.history.UpdateHistoryEntry, request, timeout, request_id)

    def get_entry(self, entry_id: Id, *, timeout: Timeout = OF_CLIENT) -> HistoryEntry:
        """The entry `entry_id`. A missing one raises HistoryEntryNotFoundError."""
        request = wire.GetHistoryEntryRequest(entry_id=entry_id)
        response = self._calls.read(self._calls.stubs.history.GetHistoryEntry, request, timeout)
        return HistoryEntry.from_proto(response.entry)

    def get_entry_with_related(self, entry_id: Id, *, timeout: Timeout = OF_CLIENT) -> EntryWithRelated:
        """The entry `entry_id` with its steps and its timeline events, which are those whose run is the entry.

        A missing entry raises HistoryEntryNotFoundError.
        """
        request = wire.GetHistoryEntryRequest(entry_id=entry_id, with_related=True)
        return EntryWithRelated.from_proto(
            self._calls.read(self._calls.stubs.history.GetHistoryEntry, request, timeout)
        )

    def list_entries(
        self,
        *,
        agent_id: Id | None = None,
        user_id: Id | None = None,
        limit: Limit | None = 100,
        skip: Count = 0,
        timeout: Timeout = OF_CLIENT,
    ) -> list[HistoryEntry]:
        """Entries by start_time, the newest first: at most `limit` (None: all).

        Only those of the agent `agent_id`, of `user_id`. `skip` of them are left out. Each page of 1,000 has the
        timeout.
        """
        request = wire.ListHistoryEntriesRequest(
            agent_id=agent_id or "", user_id=user_id or "", page_size=page_size(limit), skip=skip
        )
        method = self._calls.stubs.history.ListHistoryEntries
        entries = self._calls.items(method, request, lambda page: page.entries, limit=limit, timeout=timeout)
        return list(map(HistoryEntry.from_proto, entries))

    def count_entries(
        self, *, agent_id: Id | None = None, user_id: Id | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """How many entries there are: all, or those of the agent `agent_id`, of `user_id`."""
        request = wire.ListHistoryEntriesRequest(agent_id=agent_id or "", user_id=user_id or "", page_size=1)
        response = self._calls.read(self._calls.stubs.history.ListHistoryEntries, request, timeout)
        return response.total_size

    def delete_entry(self, entry_id: Id, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> bool:
        """Deletes the entry `entry_id` with its steps and its timeline events; returns whether there was one."""
        request = wire.DeleteHistoryEntryRequest(entry_id=entry_id)
        response = self._calls.write(self._calls.stubs.history.DeleteHistoryEntry, request, timeout, request_id)
        return response.deleted

    def save_entry_steps(
        self,
        steps: Annotated[Collection[EntryStep], Items(1000, least=1)],
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> None:
        """Saves up to 1,000 `steps` of existing entries, all or none; one whose id is known in its entry is replaced.

        A missing entry raises HistoryEntryNotFoundError.
        """
        request = wire.SaveEntryStepsRequest(steps=[step.to_proto() for step in steps])
        self._calls.write(self._calls.stubs.history.SaveEntrySteps, request, timeout, request_id)

    def update_entry_step(
        self,
        step_id: Id,
        *,
        entry_id: Id | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
        **changes: Unpack[EntryStepFields],
    ) -> None:
        """Replaces the given fields of the step `step_id` of the entry `entry_id`, and no others.

        Without an entry the step is looked for in all, which takes longer. A missing step raises
        EntryStepNotFoundError.
        """
        request = wire.UpdateEntryStepRequest(step=changed_step(step_id, entry_id or "", changes))
        request.update_mask.paths.extend(changes)
        self._calls.write(self._calls.stubs.history.UpdateEntryStep, request, timeout, request_id)

    def get_entry_step(self, step_id: Id, *, entry_id: Id | None = None, timeout: Timeout = OF_CLIENT) -> EntryStep:
        """The step `step_id` of the entry `entry_id`; without an entry it is looked for in all, which takes longer.

        A missing step raises EntryStepNotFoundError.
        """
        request = wire.GetEntryStepRequest(step_id=step_id, entry_id=entry_id or "")
        response = self._calls.read(self._calls.stubs.history.GetEntryStep, request, timeout)
        return EntryStep.from_proto(response.step)

    def list_entry_steps(self, entry_id: Id, *, timeout: Timeout = OF_CLIENT) -> list[EntryStep]:
        """The steps of the entry `entry_id`, by step_index, then by create_time. Each page of 1,000 has the timeout."""
        request = wire.ListEntryStepsRequest(entry_id=entry_id, page_size=LARGEST_PAGE)
        method = self._calls.stubs.history.ListEntrySteps
        steps = self._calls.items(method, request, lambda page: page.steps, limit=None, timeout=timeout)
        return list(map(EntryStep.from_proto, steps))

    def delete_entry_step(
        self,
        step_id: Id,
        *,
        entry_id: Id | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> bool:
        """Deletes the step `step_id` of the entry `entry_id`; returns whether there was one.

        Without an entry it is looked for in all, which takes longer.
        """
        request = wire.DeleteEntryStepRequest(step_id=step_id, entry_id=entry_id or "")
        response = self._calls.write(self._calls.stubs.history.DeleteEntryStep, request, timeout, request_id)
        return response.deleted

    def add_events(
        self,
        events: Annotated[Collection[TimelineEvent], Items(1000, least=1)],
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> None:
        """Adds up to 1,000 timeline `events`, of any runs, all or none. One that is there already is skipped.

        Raises TimelineEventExistsError if another event has the same id in the same run.
        """
        request = wire.AddTimelineEventsRequest(events=[event.to_proto() for event in events])
        self._calls.write(self._calls.stubs.history.AddTimelineEvents, request, timeout, request_id)

    def get_event(self, event_id: Id, *, run_id: Id | None = None, timeout: Timeout = OF_CLIENT) -> TimelineEvent:
        """The timeline event `event_id` of the run `run_id`; without a run it is looked for in all.

        A missing event raises TimelineEventNotFoundError.
        """
        request = wire.GetTimelineEventRequest(event_id=event_id, run_id=run_id or "")
        response = self._calls.read(self._calls.stubs.history.GetTimelineEvent, request, timeout)
        return TimelineEvent.from_proto(response.event)

    def list_events(self, run_id: Id, *, timeout: Timeout = OF_CLIENT) -> list[TimelineEvent]:
        """The timeline events of the run or the entry `run_id`: by sequence, then by start_time.

        Each page of 1,000 has the timeout.
        """
        request = wire.ListTimelineEventsRequest(run_id=run_id, page_size=LARGEST_PAGE)
        method = self._calls.stubs.history.ListTimelineEvents
        events = self._calls.items(method, request, lambda page: page.events, limit=None, timeout=timeout)
        return list(map(TimelineEvent.from_proto, events))

    def delete_event(
        self,
        event_id: Id,
        *,
        run_id: Id | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> bool:
        """Deletes the timeline event `event_id` of the run `run_id`; returns whether there was one.

        Without a run it is looked for in all, which takes longer.
        """
        request = wire.DeleteTimelineEventRequest(event_id=event_id, run_id=run_id or "")
        response = self._calls.write(self._calls.stubs.history.DeleteTimelineEvent, request, timeout, request_id)
        return response.deleted

    def get_span(self, span_id: SpanId, *, trace_id: SpanId | None = None, timeout: Timeout = OF_CLIENT) -> Span:
        """The span `span_id` of the trace `trace_id`; without a trace it is looked for in all, which takes longer.

        A missing span raises SpanNotFoundError.
        """
        request = wire.GetSpanRequest(span_id=span_id, trace_id=trace_id or "")
        response = self._calls.read(self._calls.stubs.history.GetSpan, request, timeout)
        return Span.from_proto(response.span)

    def list_spans(self, trace_id: SpanId, *, timeout: Timeout = OF_CLIENT) -> list[Span]:
        """The spans of the trace `trace_id`, by start_time, then as they were saved.

        Each page of 1,000 has the timeout.
        """
        request = wire.ListSpansRequest(trace_id=trace_id, page_size=LARGEST_PAGE)
        method = self._calls.stubs.history.ListSpans
        spans = self._calls.items(method, request, lambda page: page.spans, limit=None, timeout=timeout)
        return list(map(Span.from_proto, spans))

    def list_traces(
        self,
        *,
        attributes: Members | None = None,
        user_id: Id | None = None,
        limit: Limit | None = 100,
        skip: Count = 0,
        timeout: Timeout = OF_CLIENT,
    ) -> list[Trace]:
        """Traces by the start of their first span, the newest first: at most `limit` (None: all).

        Only those with a span whose attributes have each member of `attributes` with an equal value, and with a span of
        `user_id`. `skip` of them are left out. Each page of 1,000 has the timeout.
        """
        request = wire.ListTracesRequest(
            attributes=members(attributes, "attributes"), user_id=user_id or "", page_size=page_size(limit), skip=skip
        )
        method = self._calls.stubs.history.ListTraces
        traces = self._calls.items(method, request, lambda page: page.traces, limit=limit, timeout=timeout)
        return list(map(Trace.from_proto, traces))

    def prune_spans(
        self, *, started_before: Time, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """Deletes the oldest spans that began before `started_before`; returns how many.

        At most 1,000 are deleted at a time: repeat the call while it returns that.
        """
        request = wire.PruneSpansRequest(started_before=to_timestamp(started_before))
        response = self._calls.write(self._calls.stubs.history.PruneSpans, request, timeout, request_id)
        return response.deleted_spans

    def list_log_records(
        self,
        *,
        trace_id: SpanId | None = None,
        span_id: SpanId | None = None,
        user_id: Id | None = None,
        min_severity_number: Severity | None = None,
        max_severity_number: Severity | None = None,
        severity_text: Annotated[str, Name(64)] | None = None,
        scope_name: Id | None = None,
        from_time: Time | None = None,
        to_time: Time | None = None,
        attributes: Members | None = None,
        body_contains: Annotated[str, Size(1024)] = "",
        newest_first: bool = False,
        limit: Limit | None = 100,
        skip: Count = 0,
        timeout: Timeout = OF_CLIENT,
    ) -> list[LogRecord]:
        """Log records by time, the oldest first or the newest (`newest_first`): at most `limit` (None: all).

        Only those of the trace `trace_id`, the span `span_id`, of `user_id`, from `min_severity_number` to
        `max_severity_number` (1 to 24), with this `severity_text`, of the library `scope_name`, at or between
        `from_time` and `to_time`, whose attributes have each member of `attributes` with an equal value, and with
        `body_contains` in the body. `skip` of them are left out. Each page of 1,000 has the timeout.
        """
        request = wire.ListLogRecordsRequest(
            trace_id=trace_id or "",
            span_id=span_id or "",
            user_id=user_id or "",
            min_severity_number=min_severity_number or 0,
            max_severity_number=max_severity_number or 0,
            severity_text=severity_text or "",
            scope_name=scope_name or "",
            from_time=to_timestamp(from_time) if from_time else None,
            to_time=to_timestamp(to_time) if to_time else None,
            attributes=members(attributes, "attributes"),
            body_contains=body_contains,
            newest_first=newest_first,
            page_size=page_size(limit),
            skip=skip,
        )
        method = self._calls.stubs.history.ListLogRecords
        records = self._calls.items(method, request, lambda page: page.records, limit=limit, timeout=timeout)
        return list(map(LogRecord.from_proto, records))

    def prune_log_records(
        self, *, recorded_before: Time, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """Deletes the oldest log records from before `recorded_before`; returns how many.

        At most 1,000 are deleted at a time: repeat the call while it returns that.
        """
        request = wire.PruneLogRecordsRequest(recorded_before=to_timestamp(recorded_before))
        response = self._calls.write(self._calls.stubs.history.PruneLogRecords, request, timeout, request_id)
        return response.deleted_records
