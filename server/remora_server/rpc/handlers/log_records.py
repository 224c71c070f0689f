"""The RPCs of log records."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import history_service_pb2 as pb
from remora.v1.log_record_pb2 import LogRecord
from remora_server import wire
from remora_server.domain import json_members
from remora_server.domain.traces import LogQuery, LogRecordDraft, LogRecordStore
from remora_server.domain.workflows import PartPosition
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class LogRecordHandlers(Struct, frozen=True):
    """Answers the RPCs of log records."""

    records: LogRecordStore
    page_tokens: PageTokens

    @quick
    def save_log_records(self, call: Call, request: pb.SaveLogRecordsRequest) -> pb.SaveLogRecordsResponse:
        outcome = self.records.save(call.write(request), [_draft(record) for record in request.records])
        return pb.SaveLogRecordsResponse(revision=outcome.revision)

    def list_log_records(self, call: Call, request: pb.ListLogRecordsRequest) -> bytes:
        after = self.page_tokens.position(call, request, PartPosition)
        query = LogQuery(
            trace_id=request.trace_id,
            span_id=request.span_id,
            user_id=request.user_id,
            min_severity=request.min_severity_number,
            max_severity=request.max_severity_number,
            severity_text=request.severity_text,
            scope_name=request.scope_name,
            from_time=decode.optional_nanos(request, "from_time"),
            to_time=decode.optional_nanos(request, "to_time"),
            members=tuple(json_members.digests(request.attributes)),
            body_contains=request.body_contains,
            newest_first=request.newest_first,
            limit=decode.page_size(request.page_size),
            skip=request.skip if after is None else 0,
            after=after,
        )
        page = self.records.list(call.read(request), query)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListLogRecordsResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    def prune_log_records(self, call: Call, request: pb.PruneLogRecordsRequest) -> pb.PruneLogRecordsResponse:
        outcome = self.records.prune(call.write(request), wire.nanos(request.recorded_before))
        return pb.PruneLogRecordsResponse(deleted_records=outcome.deleted_records, revision=outcome.revision)


def _draft(given: LogRecord) -> LogRecordDraft:
    return LogRecordDraft(given.id, given.trace_id, decode.exact_record(given))
