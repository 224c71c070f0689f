"""The model's entries of agents' history and their steps: dicts of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.store.workflow_model import (
    Books,
    Parts,
    Row,
    TenantWithWorkflows,
    date,
    last_of_each,
    merged,
    micros,
    order,
    page_of,
    stored,
)

from remora.v1.history_entry_pb2 import EntryStep, HistoryEntry
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import (
    EntryStepNotFound,
    HistoryEntryExists,
    HistoryEntryNotFound,
    RequestTooLarge,
)
from remora_server.domain.history import EntryDraft, EntryPage, EntryQuery
from remora_server.domain.workflows import PartDraft, PartPosition

MOST_BYTES = 4_128_768


class HistoryEntries:
    def __init__(self, books: Books) -> None:
        self._books = books

    def save(self, write: Write, draft: EntryDraft) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            before = tenant.workflows.tables["history_entry"].get((draft.id, ""))
            entry = HistoryEntry.FromString(draft.body)
            if before is not None and before.message.user_id != entry.user_id:
                raise HistoryEntryExists(draft.id)
            return self._put(tenant, entry, before, revision, now)

        return self._books.write(write, change)

    def update(self, write: Write, draft: EntryDraft, mask: frozenset[str]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            before = tenant.workflows.tables["history_entry"].get((draft.id, ""))
            if before is None:
                raise HistoryEntryNotFound(draft.id)
            entry = merged(before.message, HistoryEntry.FromString(draft.body), mask | {"update_time"})
            if "update_time" not in mask:
                entry.ClearField("update_time")
            return self._put(tenant, entry, before, revision, now)

        return self._books.write(write, change)

    @staticmethod
    def _put(tenant: TenantWithWorkflows, entry: Any, before: Row | None, revision: int, now: int) -> Outcome:  # noqa: ANN401
        date(entry, now, "update_time")
        date(entry, micros(before.message, "create_time") if before else now, "create_time")
        date(entry, micros(entry, "create_time"), "start_time")
        if entry.ByteSize() > MOST_BYTES:
            raise RequestTooLarge(MOST_BYTES)
        tenant.workflows.tables["history_entry"][entry.id, ""] = Row(entry, revision)
        return Outcome(0, time=micros(entry, "update_time"))

    def get(self, read: Read, entry_id: str) -> tuple[bytes, int]:
        tenant, revision = self._books.read(read)
        row = tenant.workflows.tables["history_entry"].get((entry_id, ""))
        if row is None:
            raise HistoryEntryNotFound(entry_id)
        return stored(row), revision

    def list(self, read: Read, query: EntryQuery) -> EntryPage:
        tenant, revision = self._books.read(read)
        places = [
            (PartPosition((micros(row.message, "start_time"),), row.revision, row.ordinal), row)
            for row in tenant.workflows.tables["history_entry"].values()
            if query.agent_id in {"", row.message.agent_id} and query.user_id in {"", row.message.user_id}
        ]
        ordered = sorted(places, key=order, reverse=True)
        if query.after is not None:
            ordered = [each for each in ordered if order(each) < order((query.after, each[1]))]
        return EntryPage(page_of(ordered[query.skip :], query.limit, revision, stored), len(places))

    def delete(self, write: Write, entry_id: str) -> Outcome:
        def change(tenant: TenantWithWorkflows, _revision: int, _now: int) -> Outcome | None:
            if (entry_id, "") not in tenant.workflows.tables["history_entry"]:
                return None
            tenant.workflows.drop(entry_id, ("history_entry", "entry_step", "timeline_event"))
            return Outcome(0, deleted=True)

        return self._books.write(write, change)


class EntrySteps(Parts):
    table, not_found = "entry_step", EntryStepNotFound

    def position(self, row: Row) -> PartPosition:
        return PartPosition((row.message.step_index, micros(row.message, "create_time")), row.revision, row.ordinal)

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            tables = tenant.workflows.tables
            last = last_of_each([(draft.name, EntryStep.FromString(draft.body)) for draft in drafts])
            for step in last:
                if (step.entry_id, "") not in tables["history_entry"]:
                    raise HistoryEntryNotFound(step.entry_id)
            for ordinal, step in enumerate(last):
                before = tables[self.table].get((step.entry_id, step.id))
                date(step, micros(before.message, "create_time") if before else now + ordinal, "create_time")
                date(step, now, "update_time")
                tables[self.table][step.entry_id, step.id] = Row(step, revision, ordinal)
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            key = self.find(tenant, draft.name)
            if key is None:
                raise self.not_found(draft.name.id)
            rows = tenant.workflows.tables[self.table]
            step = merged(rows[key].message, EntryStep.FromString(draft.body), mask)
            if "update_time" not in mask:
                step.ClearField("update_time")
            date(step, micros(rows[key].message, "create_time"), "create_time")
            date(step, now, "update_time")
            rows[key] = Row(step, revision)
            return Outcome(0, time=now)

        return self._books.write(write, change)
