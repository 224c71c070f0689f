"""The model's spans and log records: dicts of messages."""

from __future__ import annotations

import json
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
    order,
    page_of,
    stored,
)

from remora.v1.log_record_pb2 import LogRecord
from remora.v1.span_pb2 import SpanRecord
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import RequestTooLarge, SpanNotFound
from remora_server.domain.json_members import digests
from remora_server.domain.traces import LogQuery, LogRecordDraft, Trace, TracePage, TraceQuery
from remora_server.domain.workflows import PartDraft, PartPage, PartPosition

MOST_BYTES = 4_128_768
PRUNED_AT_ONCE = 1_000


def _has(attributes: bytes, members: Sequence[str]) -> bool:
    return set(members) <= set(digests(attributes))


def _require_room(message: Any) -> None:  # noqa: ANN401 - a message of any kind
    if message.ByteSize() > MOST_BYTES:
        raise RequestTooLarge(MOST_BYTES)


def _prune(tenant: TenantWithWorkflows, table: str, field: str, before: int) -> Outcome | None:
    rows = tenant.workflows.tables[table]
    times = {key: wire.nanos(getattr(row.message, field)) for key, row in rows.items()}
    old = [key for key in rows if times[key] < before]
    old.sort(key=lambda key: (times[key], rows[key].revision, rows[key].ordinal))
    del old[PRUNED_AT_ONCE:]
    for key in old:
        del rows[key]
    return Outcome(0, deleted_records=len(old)) if old else None


class Spans(Parts):
    table, not_found = "span", SpanNotFound

    def position(self, row: Row) -> PartPosition:
        return PartPosition((wire.nanos(row.message.start_time),), row.revision, row.ordinal)

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            last = last_of_each([(draft.name, SpanRecord.FromString(draft.body)) for draft in drafts])
            for span in last:
                _require_room(span)
            for ordinal, span in enumerate(last):
                tenant.workflows.tables[self.table][span.trace_id, span.span_id] = Row(span, revision, ordinal)
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            key = self.find(tenant, draft.name)
            if key is None:
                raise self.not_found(draft.name.id)
            rows = tenant.workflows.tables[self.table]
            span = merged(rows[key].message, SpanRecord.FromString(draft.body), mask)
            _require_room(span)
            rows[key] = Row(span, revision)
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def traces(self, read: Read, query: TraceQuery) -> TracePage:
        tenant, revision = self._books.read(read)
        spans: dict[str, list[Any]] = {}
        for (trace_id, _), row in tenant.workflows.tables[self.table].items():
            spans.setdefault(trace_id, []).append(row.message)
        found = [
            Trace(trace_id, min(wire.nanos(span.start_time) for span in of), len(of))
            for trace_id, of in spans.items()
            if any(_passes(span, query) for span in of)
        ]
        found.sort(key=lambda trace: (trace.start_time, trace.trace_id.encode()), reverse=True)
        if query.after is not None:
            behind = (query.after.start_time, query.after.trace_id.encode())
            found = [one for one in found if (one.start_time, one.trace_id.encode()) < behind]
        left = found[query.skip :]
        return TracePage(tuple(left[: query.limit]), len(left) > query.limit, revision)

    def prune(self, write: Write, before: int) -> Outcome:
        return self._books.write(write, lambda tenant, _revision, _now: _prune(tenant, "span", "start_time", before))


def _passes(span: Any, query: TraceQuery) -> bool:  # noqa: ANN401 - a span
    return query.user_id in {"", span.user_id} and _has(span.attributes, query.members)


class LogRecords:
    def __init__(self, books: Books) -> None:
        self._books = books

    def save(self, write: Write, drafts: Sequence[LogRecordDraft]) -> Outcome:
        def change(tenant: TenantWithWorkflows, revision: int, now: int) -> Outcome:
            records = []
            for draft in drafts:
                record = LogRecord.FromString(draft.body)
                record.id = draft.id or self._books.new_id()
                if record.HasField("observed_time") and not record.HasField("time"):
                    record.time.CopyFrom(record.observed_time)
                date(record, now, "time")
                _require_room(record)
                records.append(record)
            for ordinal, record in enumerate(last_of_each([((one.trace_id, one.id), one) for one in records])):
                tenant.workflows.tables["log_record"][record.trace_id, record.id] = Row(record, revision, ordinal)
            return Outcome(0, time=now)

        return self._books.write(write, change)

    def list(self, read: Read, query: LogQuery) -> PartPage:
        tenant, revision = self._books.read(read)
        places = [
            (PartPosition((wire.nanos(row.message.time),), row.revision, row.ordinal), row)
            for row in tenant.workflows.tables["log_record"].values()
            if _is_wanted(row.message, query)
        ]
        ordered = sorted(places, key=order, reverse=query.newest_first)
        if query.after is not None:
            at = [order(each) for each in ordered].index(order((query.after, ordered[0][1])))
            ordered = ordered[at + 1 :]
        return page_of(ordered[query.skip :], query.limit, revision, stored)

    def prune(self, write: Write, before: int) -> Outcome:
        return self._books.write(write, lambda tenant, _revision, _now: _prune(tenant, "log_record", "time", before))


def _is_wanted(record: LogRecord, query: LogQuery) -> bool:
    time = wire.nanos(record.time)
    return (
        query.trace_id in {"", record.trace_id}
        and query.span_id in {"", record.span_id}
        and query.user_id in {"", record.user_id}
        and query.severity_text in {"", record.severity_text}
        and query.scope_name in {"", record.scope.name}
        and query.min_severity <= record.severity_number <= (query.max_severity or 24)
        and (query.from_time is None or query.from_time <= time)
        and (query.to_time is None or time <= query.to_time)
        and _has(record.attributes, query.members)
        and query.body_contains in _said(record.body)
    )


def _said(body: bytes) -> str:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    return found if isinstance(found, str) else body.decode("utf-8", "replace")
