"""Log records of the local store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remora.v1.log_record_pb2 import LogRecord
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.traces import LogQuery, LogRecordDraft
from remora_server.domain.workflows import PartPage
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.pruning import Pruning
from remora_server.storage.nouns.run_parts import answered, last_of_each, position_of, stored_position
from remora_server.storage.records.queries import CONTAINS, Condition, RecordsQuery
from remora_server.storage.records.records import Put
from remora_server.storage.schema.kinds import IN_ORDER, LOG_RECORDS


class LogRecords:
    """Saves, lists and deletes log records."""

    def __init__(self, context: StoreContext) -> None:
        self._commands = context.commands
        self._records = context.records
        self._new_id = context.new_id
        self._pruning = Pruning(context, LOG_RECORDS, "time_nanos")

    def save(self, write: Write, drafts: Sequence[LogRecordDraft]) -> Outcome:
        records = [self._identified(draft) for draft in drafts]
        last = last_of_each(((record.trace_id, record.id), record) for record in records)
        puts = [Put(LOG_RECORDS, 0, record) for record in last]

        def plan(_: None, now: int) -> Planned:
            for record in records:
                _date(record, now)
            return Planned(self._records.changes(write, puts), Outcome(revision=0, time=now))

        with answered():
            return self._commands.run(write, self._records.held(write, puts), plan)

    def list(self, read: Read, query: LogQuery) -> PartPage:
        found = self._records.query(read, _records_query(query))
        encoded = wire.elements(wire.LIST_FIELD, (each.record.body for each in found.records))
        following = position_of(found.records[-1].position) if found.more and found.records else None
        return PartPage(encoded, following, found.revision)

    def prune(self, write: Write, before: int) -> Outcome:
        return self._pruning.before(write, before)

    def _identified(self, draft: LogRecordDraft) -> LogRecord:
        record = LogRecord.FromString(draft.body)
        record.id = draft.id or self._new_id()
        return record


def _date(record: LogRecord, now: int) -> None:
    """Give a record the time that it has in any case."""
    if not record.HasField("time"):
        record.time.CopyFrom(record.observed_time if record.HasField("observed_time") else wire.timestamp(now))


def _records_query(query: LogQuery) -> RecordsQuery:
    return RecordsQuery(
        LOG_RECORDS,
        prefix=LOG_RECORDS.encode_partition(query.trace_id) if query.trace_id else b"",
        user_id=query.user_id or None,
        where=tuple(_conditions(query)),
        order=IN_ORDER,
        descending=query.newest_first,
        after=stored_position(query.after),
        skip=query.skip,
        limit=query.limit,
    )


def _conditions(query: LogQuery) -> Iterator[Condition]:
    equal = {"span_id": query.span_id, "severity_text": query.severity_text, "scope_name": query.scope_name}
    yield from (Condition(column, "=", value) for column, value in equal.items() if value)
    if query.min_severity:
        yield Condition("severity_number", ">=", query.min_severity)
    if query.max_severity:
        yield Condition("severity_number", "<=", query.max_severity)
    if query.from_time is not None:
        yield Condition("time_nanos", ">=", query.from_time)
    if query.to_time is not None:
        yield Condition("time_nanos", "<=", query.to_time)
    for digest in query.members:
        yield Condition("attribute_members", CONTAINS, digest)
    if query.body_contains:
        yield Condition("body_text", CONTAINS, query.body_contains)
