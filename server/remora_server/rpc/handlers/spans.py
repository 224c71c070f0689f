"""The RPCs of spans and their traces."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import history_service_pb2 as pb
from remora_server import wire
from remora_server.domain import json_members
from remora_server.domain.traces import SpanStore, Trace, TracePosition, TraceQuery
from remora_server.domain.workflows import PartName, PartPosition, PartQuery
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class SpanHandlers(Struct, frozen=True):
    """Answers the RPCs of spans."""

    spans: SpanStore
    page_tokens: PageTokens

    @quick
    def save_spans(self, call: Call, request: pb.SaveSpansRequest) -> pb.SaveSpansResponse:
        outcome = self.spans.save(call.write(request), [decode.span(span) for span in request.spans])
        return pb.SaveSpansResponse(revision=outcome.revision)

    @quick
    def update_span(self, call: Call, request: pb.UpdateSpanRequest) -> pb.UpdateSpanResponse:
        write, mask = call.write(request), frozenset(request.update_mask.paths)
        outcome = self.spans.update(write, decode.span(request.span), mask)
        return pb.UpdateSpanResponse(revision=outcome.revision)

    @quick
    def get_span(self, call: Call, request: pb.GetSpanRequest) -> bytes:
        span, revision = self.spans.get(call.read(request), PartName(request.span_id, request.trace_id))
        rest = pb.GetSpanResponse(revision=revision)
        return wire.elements(pb.GetSpanResponse.SPAN_FIELD_NUMBER, [span]) + rest.SerializeToString()

    @quick
    def list_spans(self, call: Call, request: pb.ListSpansRequest) -> bytes:
        size, after = decode.page_size(request.page_size), self.page_tokens.position(call, request, PartPosition)
        page = self.spans.list(call.read(request), PartQuery(request.trace_id, size, after))
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListSpansResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    def list_traces(self, call: Call, request: pb.ListTracesRequest) -> pb.ListTracesResponse:
        after = self.page_tokens.position(call, request, TracePosition)
        query = TraceQuery(
            members=tuple(json_members.digests(request.attributes)),
            user_id=request.user_id,
            limit=decode.page_size(request.page_size),
            skip=request.skip if after is None else 0,
            after=after,
        )
        page = self.spans.traces(call.read(request), query)
        token = self.page_tokens.make(call, request, _position(page.traces[-1])) if page.more else ""
        traces = [_summary(trace) for trace in page.traces]
        return pb.ListTracesResponse(traces=traces, next_page_token=token, revision=page.revision)

    def prune_spans(self, call: Call, request: pb.PruneSpansRequest) -> pb.PruneSpansResponse:
        outcome = self.spans.prune(call.write(request), wire.nanos(request.started_before))
        return pb.PruneSpansResponse(deleted_spans=outcome.deleted_records, revision=outcome.revision)


def _position(trace: Trace) -> TracePosition:
    return TracePosition(trace.start_time, trace.trace_id)


def _summary(trace: Trace) -> pb.TraceSummary:
    start_time = wire.timestamp_of_nanos(trace.start_time)
    return pb.TraceSummary(trace_id=trace.trace_id, start_time=start_time, span_count=trace.spans)
