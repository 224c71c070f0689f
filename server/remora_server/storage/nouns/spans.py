"""Spans of the local store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from remora.v1.span_pb2 import SpanRecord
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import SpanNotFound
from remora_server.domain.traces import Trace, TracePage, TraceQuery
from remora_server.domain.workflows import PartDraft
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.pruning import Pruning
from remora_server.storage.nouns.run_parts import RunParts, answered, last_of_each
from remora_server.storage.records.records import Put
from remora_server.storage.schema import keys
from remora_server.storage.schema.kinds import SPANS


class Spans(RunParts):
    """Saves, changes, reads and deletes spans. Their runs are their traces."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context, SPANS, SpanNotFound)
        self._pruning = Pruning(context, SPANS, "start_nanos")

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        last = last_of_each((draft.name, draft) for draft in drafts)
        puts = [Put(SPANS, 0, SpanRecord.FromString(draft.body)) for draft in last]

        def plan(_: None, now: int) -> Planned:
            return Planned(self._records.changes(write, puts), Outcome(revision=0, time=now))

        with answered():
            return self._commands.run(write, self._records.held(write, puts), plan)

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        place = self._place(write, draft.name)

        def plan(_: None, now: int) -> Planned:
            span = SpanRecord.FromString(self._accepted(write, place, draft.name.id))
            wire.merge(SpanRecord.FromString(draft.body), span, mask)
            return Planned(self._records.changes(write, [Put(SPANS, 0, span)]), Outcome(revision=0, time=now))

        with answered():
            return self._commands.run(write, self._records.held_place(write, place), plan)

    def traces(self, read: Read, query: TraceQuery) -> TracePage:
        revision = self._commits.begin_query_of(read, SPANS.number)
        sql, values = _traces_query(read.tenant_id, query)
        rows = self._database.rows(sql, values)
        traces = tuple(Trace(_trace_id(partition), start_time, spans) for partition, start_time, spans in rows)
        return TracePage(traces[: query.limit], len(traces) > query.limit, revision)

    def prune(self, write: Write, before: int) -> Outcome:
        return self._pruning.before(write, before)


def _trace_id(partition: bytes) -> str:
    [trace_id] = keys.decode(SPANS.partition_types, partition)
    return str(trace_id)


def _traces_query(tenant_id: str, query: TraceQuery) -> tuple[str, list[Any]]:
    """The query for traces with their starts and spans, one more than asked for where there is one."""
    conditions, values = ["tenant_id = ?"], [tenant_id]
    wanted = list(_span_conditions(query))
    if wanted:
        spans = " AND ".join(["tenant_id = ?", *(condition for condition, _ in wanted)])
        conditions.append(f"partition IN (SELECT partition FROM {SPANS.name} WHERE {spans})")  # noqa: S608 - ours
        values += [tenant_id, *(value for _, value in wanted)]
    behind, position = "", []
    if query.after is not None:
        behind = "HAVING (min(start_nanos), partition) < (?, ?)"
        position = [query.after.start_time, SPANS.encode_partition(query.after.trace_id)]
    sql = f"""SELECT partition, min(start_nanos) AS began, count(*) FROM {SPANS.name} WHERE {" AND ".join(conditions)}
        GROUP BY partition {behind} ORDER BY began DESC, partition DESC LIMIT ? OFFSET ?"""  # noqa: S608 - a table of ours
    return sql, [*values, *position, query.limit + 1, query.skip]


def _span_conditions(query: TraceQuery) -> Iterator[tuple[str, str]]:
    if query.user_id:
        yield "user_id = ?", query.user_id
    for digest in query.members:
        yield "contains(attribute_members, ?)", digest
