"""The model's runs of workflows, their steps and timeline events, and what agents' history shares with them: dicts of
messages.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tests.store.memory_item_model import holds

from remora.v1 import (
    history_entry_pb2,
    log_record_pb2,
    span_pb2,
    timeline_event_pb2,
    transfer_service_pb2,
    workflow_pb2,
)
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import (
    InvalidField,
    RecordConflict,
    RequestTooLarge,
    RevisionConflict,
    TimelineEventExists,
    TimelineEventNotFound,
    WorkflowRunNotFound,
    WorkflowStepNotFound,
)
from remora_server.domain.json_members import digests
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.transfers import ImportedRecord
from remora_server.domain.workflows import (
    PartDraft,
    PartName,
    PartPage,
    PartPosition,
    PartQuery,
    RunDraft,
    RunQuery,
    WorkflowStats,
)

TABLES: Mapping[str, tuple[int, Any]] = {
    "workflow_run": (8, workflow_pb2.WorkflowRun),
    "workflow_step": (9, workflow_pb2.WorkflowStep),
    "timeline_event": (10, timeline_event_pb2.TimelineEvent),
    "history_entry": (11, history_entry_pb2.HistoryEntry),
    "entry_step": (12, history_entry_pb2.EntryStep),
    "span": (15, span_pb2.SpanRecord),
    "log_record": (16, log_record_pb2.LogRecord),
}
"""By what an export calls them: their place in it, and what they are."""

PARTS = ("workflow_step", "timeline_event")
WHOLE_RUN = ("workflow_run", "workflow_step", "timeline_event")
MOST_BYTES = 4_128_768

Key: TypeAlias = tuple[str, str]
"""The id of a run or an entry and that of a part; empty of the run or the entry itself."""


@dataclass
class Row:
    """A stored message, the revision that wrote it, and its place among what that wrote."""

    message: Any
    revision: int
    ordinal: int = 0


Rows: TypeAlias = dict[Key, Row]


@dataclass
class Workflows:
    """A tenant's runs, entries and their parts."""

    tables: dict[str, Rows] = field(default_factory=lambda: {name: {} for name in TABLES})

    @property
    def runs(self) -> Rows:
        return self.tables["workflow_run"]

    def user_of(self, run_id: str) -> str:
        rows = (self.tables[name].get((run_id, "")) for name in ("workflow_run", "history_entry"))
        return next((row.message.user_id for row in rows if row and row.message.user_id), "")

    def owner(self, name: str, key: Key) -> str:
        """Whose a row is: of a step of an entry, the entry's."""
        found = self.tables["history_entry"][key[0], ""] if name == "entry_step" else self.tables[name][key]
        return str(found.message.user_id)

    def forget(self, user_id: str) -> None:
        self.tables = {
            name: {key: row for key, row in rows.items() if self._goes_with(name, key) != user_id}
            for name, rows in self.tables.items()
        }

    def _goes_with(self, name: str, key: Key) -> str:
        """The user with whom a row goes: its own or, of a part that came before its run or its entry, that one's."""
        return self.owner(name, key) or (self.user_of(key[0]) if name in PARTS else "")

    def drop(self, run_id: str, names: Sequence[str]) -> None:
        """Drop a run or an entry and what belongs to it, by their tables."""
        for name in names:
            self.tables[name] = {key: row for key, row in self.tables[name].items() if key[0] != run_id}

    def exported(self) -> Iterator[tuple[int, bytes, str, bytes]]:
        for name, rows in self.tables.items():
            for key, row in rows.items():
                record = transfer_service_pb2.Record(**{name: row.message})
                place = "\0".join(key).encode()
                if name == "timeline_event":  # it never changes, so that its version is a place
                    place = row.revision.to_bytes(8) + row.ordinal.to_bytes(4)
                yield TABLES[name][0], place, self.owner(name, key), record.SerializeToString()

    def fresh(self, records: Sequence[ImportedRecord]) -> list[tuple[str, Any]]:
        """The given records that are not there. Raises RecordConflict, InvalidField."""
        found: list[tuple[str, Any]] = []
        for record in records:
            if record.kind in TABLES:
                message = TABLES[record.kind][1].FromString(record.body)
                before = self.tables[record.kind].get(key_of(message))
                entries = [(message.id, "") for kind, message in found if kind == "history_entry"]
                if before is None:
                    if record.kind == "entry_step" and (message.entry_id, "") not in [
                        *self.tables["history_entry"],
                        *entries,
                    ]:
                        raise InvalidField("records", "the entry is not there")
                    found.append((record.kind, message))
                elif before.message != message:
                    raise RecordConflict(record.field)
        return found

    def take(self, revision: int, records: Sequence[tuple[str, Any]]) -> None:
        for ordinal, (name, message) in enumerate(records):
            self.tables[name][key_of(message)] = Row(message, revision, ordinal)


def key_of(message: Any) -> Key:  # noqa: ANN401 - a message of any kind
    own = getattr(message, "id", "") or message.span_id
    for name in ("run_id", "entry_id", "trace_id"):
        if name in message.DESCRIPTOR.fields_by_name:
            return getattr(message, name), own
    return own, ""


class TenantWithWorkflows(Protocol):
    """What of a tenant is needed here."""

    workflows: Workflows


class Books(Protocol):
    """What of the books is needed here."""

    def write(self, write: Write, change: Any) -> Outcome: ...  # noqa: ANN401 - see tests.store.model

    def read(self, read: Read) -> tuple[Any, int]: ...

    def new_id(self) -> str: ...


def last_of_each(named: Sequence[tuple[Any, Any]]) -> list[Any]:
    """The last of each name, where it comes."""
    names = [name for name, _ in named]
    return [each for number, (name, each) in enumerate(named) if name not in names[number + 1 :]]


def date(message: Any, now: int, *names: str) -> None:  # noqa: ANN401 - a message of any kind
    for name in names:
        if not message.HasField(name):
            getattr(message, name).CopyFrom(wire.timestamp(now))


def micros(message: Any, name: str) -> int:  # noqa: ANN401 - a message of any kind
    return int(getattr(message, name).ToMicroseconds())


class WorkflowRuns:
    def __init__(self, books: Books) -> None:
        self._books = books

    def save(self, write: Write, draft: RunDraft) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            before = tenant.workflows.runs.get((draft.id, ""))
            run = workflow_pb2.WorkflowRun.FromString(draft.body)
            if before is not None and not run.HasField("create_time"):
                run.create_time.CopyFrom(before.message.create_time)
            date(run, now, "update_time")
            return self._put(tenant, draft, run, before, revision, now)

        return self._books.write(write, change)

    def update(self, write: Write, draft: RunDraft, mask: frozenset[str]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            before = tenant.workflows.runs.get((draft.id, ""))
            if before is None:
                raise WorkflowRunNotFound(draft.id)
            run = merged(before.message, workflow_pb2.WorkflowRun.FromString(draft.body), mask | {"update_time"})
            if "update_time" not in mask:
                run.ClearField("update_time")
            if not run.HasField("create_time"):
                run.create_time.CopyFrom(before.message.create_time)
            date(run, now, "update_time")
            return self._put(tenant, draft, run, before, revision, now)

        return self._books.write(write, change)

    @staticmethod
    def _put(  # noqa: PLR0917 - what a write knows
        tenant: TenantWithWorkflows,
        draft: RunDraft,
        run: workflow_pb2.WorkflowRun,
        before: Row | None,
        revision: int,
        now: int,
    ) -> Outcome:
        found = 0 if before is None else before.revision
        if draft.expected not in {None, found}:
            raise RevisionConflict(draft.expected or 0, found)
        if run.ByteSize() > MOST_BYTES:
            raise RequestTooLarge(MOST_BYTES)
        date(run, now, "create_time")
        date(run, micros(run, "create_time"), "start_time")
        tenant.workflows.runs[draft.id, ""] = Row(run, revision)
        return Outcome(0, time=micros(run, "update_time"))

    def get(self, read: Read, run_id: str) -> tuple[bytes, int]:
        tenant, revision = self._books.read(read)
        if (run_id, "") not in tenant.workflows.runs:
            raise WorkflowRunNotFound(run_id)
        return _served(tenant.workflows.runs[run_id, ""]), revision

    def list(self, read: Read, query: RunQuery) -> PartPage:
        tenant, revision = self._books.read(read)
        time = "start_time" if query.by_start else "create_time"
        places = [
            (PartPosition((micros(row.message, time),), row.revision, 0), row)
            for row in tenant.workflows.runs.values()
            if _passes(row.message, query)
        ]
        ordered = sorted(places, key=order, reverse=True)
        if query.after is not None:
            ordered = [each for each in ordered if order(each) < order((query.after, each[1]))]
        return page_of(ordered[query.skip :], query.limit, revision, _served)

    def delete(self, write: Write, run_id: str, *, keep_related: bool, allow_missing: bool) -> Outcome:
        def change(tenant: TenantWithWorkflows, _revision: int, _now: int) -> Outcome | None:
            if (run_id, "") not in tenant.workflows.runs:
                if allow_missing:
                    return None
                raise WorkflowRunNotFound(run_id)
            tenant.workflows.drop(run_id, ("workflow_run",) if keep_related else WHOLE_RUN)
            return Outcome(0, deleted=True)

        return self._books.write(write, change)

    def prune(self, write: Write, workflow_id: str, keep_newest: int) -> Outcome:
        def change(tenant: TenantWithWorkflows, _revision: int, _now: int) -> Outcome | None:
            rows = [row for row in tenant.workflows.runs.values() if row.message.workflow_id == workflow_id]
            rows.sort(key=lambda row: (micros(row.message, "create_time"), row.revision), reverse=True)
            for row in rows[keep_newest:]:
                tenant.workflows.drop(row.message.id, WHOLE_RUN)
            gone = len(rows[keep_newest:])
            return Outcome(0, deleted_records=gone) if gone else None

        return self._books.write(write, change)

    def workflows(self, read: Read, after: str, limit: int) -> tuple[Sequence[str], int]:
        tenant, revision = self._books.read(read)
        found = sorted({row.message.workflow_id for row in tenant.workflows.runs.values()})
        return [workflow_id for workflow_id in found if workflow_id > after][:limit], revision

    def stats(self, read: Read, workflow_id: str) -> WorkflowStats:
        tenant, revision = self._books.read(read)
        runs = [row.message for row in tenant.workflows.runs.values() if row.message.workflow_id == workflow_id]
        ended = [micros(run, "end_time") - micros(run, "start_time") for run in runs if run.HasField("end_time")]
        return WorkflowStats(
            runs=len(runs),
            completed=sum(run.status == workflow_pb2.WORKFLOW_STATUS_COMPLETED for run in runs),
            failed=sum(run.status == workflow_pb2.WORKFLOW_STATUS_ERROR for run in runs),
            mean_duration=round(sum(ended) / len(ended)) if ended else None,
            last_start_time=max((micros(run, "start_time") for run in runs), default=None),
            revision=revision,
        )


def merged(before: Any, given: Any, mask: frozenset[str]) -> Any:  # noqa: ANN401 - a message of any kind
    """A message with some fields of another, and no trace of those that are not set there."""
    kept = {name.name: value for name, value in before.ListFields() if name.name not in mask}
    named = {name.name: value for name, value in given.ListFields() if name.name in mask}
    return type(before)(**kept, **named)


def _passes(run: Any, query: RunQuery) -> bool:  # noqa: ANN401 - a run
    created = micros(run, "create_time")
    return (
        query.workflow_id in {"", run.workflow_id}
        and query.status in {0, run.status}
        and query.user_id in {"", run.user_id}
        and (query.created_from is None or created >= query.created_from)
        and (query.created_to is None or created <= query.created_to)
        and set(query.members) <= set(digests(run.metadata))
        and (query.filter is None or holds(query.filter, json.loads(run.metadata or b"{}")))
    )


def order(place: tuple[PartPosition, Row]) -> tuple[tuple[int, ...], int, int]:
    position, _ = place
    return position.order, position.revision, position.ordinal


def _served(row: Row) -> bytes:
    run = workflow_pb2.WorkflowRun()
    run.CopyFrom(row.message)
    run.revision = row.revision
    return run.SerializeToString()


def stored(row: Row) -> bytes:
    encoded: bytes = row.message.SerializeToString()
    return encoded


def page_of(places: Sequence[tuple[PartPosition, Row]], limit: int, revision: int, encode: Any) -> PartPage:  # noqa: ANN401
    page: list[tuple[PartPosition, bytes]] = []
    for position, row in places[:limit]:
        encoded = encode(row)
        if page and sum(len(each) for _, each in page) + len(encoded) > REPLY_BYTES:
            break
        page.append((position, encoded))
    following = page[-1][0] if len(page) < len(places) else None
    return PartPage(wire.elements(wire.LIST_FIELD, (each for _, each in page)), following, revision)


class Parts:
    """Steps, or events."""

    table: str
    not_found: Any

    def __init__(self, books: Books) -> None:
        self._books = books

    def position(self, row: Row) -> PartPosition:
        raise NotImplementedError

    def find(self, tenant: TenantWithWorkflows, name: PartName) -> Key | None:
        rows = tenant.workflows.tables[self.table]
        found = [key for key in rows if key[1] == name.id and name.run_id in {"", key[0]}]
        return max(found, key=lambda key: (rows[key].revision, rows[key].ordinal), default=None)

    def get(self, read: Read, name: PartName) -> tuple[bytes, int]:
        tenant, revision = self._books.read(read)
        key = self.find(tenant, name)
        if key is None:
            raise self.not_found(name.id)
        return stored(tenant.workflows.tables[self.table][key]), revision

    def list(self, read: Read, query: PartQuery) -> PartPage:
        tenant, revision = self._books.read(read)
        rows = [row for key, row in tenant.workflows.tables[self.table].items() if key[0] == query.run_id]
        ordered = sorted(((self.position(row), row) for row in rows), key=order)
        if query.after is not None:
            ordered = [each for each in ordered if order(each) > order((query.after, each[1]))]
        return page_of(ordered, query.limit, revision, stored)

    def delete(self, write: Write, name: PartName) -> Outcome:
        def change(tenant: TenantWithWorkflows, _revision: int, _now: int) -> Outcome | None:
            key = self.find(tenant, name)
            if key is None:
                return None
            del tenant.workflows.tables[self.table][key]
            return Outcome(0, deleted=True)

        return self._books.write(write, change)


class WorkflowSteps(Parts):
    table, not_found = "workflow_step", WorkflowStepNotFound

    def position(self, row: Row) -> PartPosition:
        return PartPosition((row.message.step_index,), row.revision, row.ordinal)

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            for ordinal, draft in enumerate(last_of_each([(draft.name, draft) for draft in drafts])):
                step = workflow_pb2.WorkflowStep.FromString(draft.body)
                step.user_id = step.user_id or tenant.workflows.user_of(step.run_id)
                date(step, now, "create_time", "update_time")
                tenant.workflows.tables[self.table][key_of(step)] = Row(step, revision, ordinal)
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            key = self.find(tenant, draft.name)
            if key is None:
                raise self.not_found(draft.name.id)
            rows = tenant.workflows.tables[self.table]
            step = merged(rows[key].message, workflow_pb2.WorkflowStep.FromString(draft.body), mask)
            if "update_time" not in mask:
                step.ClearField("update_time")
            date(step, now, "create_time", "update_time")
            rows[key] = Row(step, revision)
            return Outcome(0, time=now)

        return self._books.write(write, change)


class TimelineEvents(Parts):
    table, not_found = "timeline_event", TimelineEventNotFound

    def position(self, row: Row) -> PartPosition:
        return PartPosition((row.message.sequence, micros(row.message, "start_time")), row.revision, row.ordinal)

    def add(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome | None:
            fresh: Rows = {}
            ordinals = itertools.count()
            for draft in drafts:
                event = timeline_event_pb2.TimelineEvent.FromString(draft.body)
                before = {**tenant.workflows.tables[self.table], **fresh}.get(key_of(event))
                if before is None:
                    event.user_id = event.user_id or tenant.workflows.user_of(event.run_id)
                    date(event, now, "create_time")
                    date(event, micros(event, "create_time"), "start_time")
                    fresh[key_of(event)] = Row(event, revision, next(ordinals))
                elif merged(before.message, event, frozenset(field.name for field, _ in event.ListFields())) != (
                    before.message
                ):
                    raise TimelineEventExists(event.run_id, event.id)
            tenant.workflows.tables[self.table].update(fresh)
            return Outcome(0, time=now) if fresh else None

        return self._books.write(write, change)
