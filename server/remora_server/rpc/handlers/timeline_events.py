"""The RPCs of timeline events."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import history_service_pb2 as pb
from remora_server import wire
from remora_server.domain.workflows import PartName, TimelineEventStore
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.handlers.workflows import part_query
from remora_server.rpc.methods import quick


class TimelineEventHandlers(Struct, frozen=True):
    """Answers the RPCs of timeline events."""

    events: TimelineEventStore
    page_tokens: PageTokens

    @quick
    def add_timeline_events(self, call: Call, request: pb.AddTimelineEventsRequest) -> pb.AddTimelineEventsResponse:
        write = call.write(request)
        outcome = self.events.add(write, [decode.part(event) for event in request.events])
        return pb.AddTimelineEventsResponse(revision=outcome.revision)

    @quick
    def get_timeline_event(self, call: Call, request: pb.GetTimelineEventRequest) -> bytes:
        event, revision = self.events.get(call.read(request), PartName(request.event_id, request.run_id))
        rest = pb.GetTimelineEventResponse(revision=revision)
        return wire.elements(pb.GetTimelineEventResponse.EVENT_FIELD_NUMBER, [event]) + rest.SerializeToString()

    @quick
    def list_timeline_events(self, call: Call, request: pb.ListTimelineEventsRequest) -> bytes:
        page = self.events.list(call.read(request), part_query(self.page_tokens, call, request))
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListTimelineEventsResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    @quick
    def delete_timeline_event(
        self, call: Call, request: pb.DeleteTimelineEventRequest
    ) -> pb.DeleteTimelineEventResponse:
        outcome = self.events.delete(call.write(request), PartName(request.event_id, request.run_id))
        return pb.DeleteTimelineEventResponse(deleted=outcome.deleted, revision=outcome.revision)
