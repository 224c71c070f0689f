"""The RPCs of the entries of agents' history and of their steps."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import history_service_pb2 as pb
from remora_server import wire
from remora_server.domain.calls import Read
from remora_server.domain.history import EntryDraft, EntryQuery, EntryStepStore, HistoryEntryStore
from remora_server.domain.replies import REPLY_BYTES, fitting
from remora_server.domain.workflows import PartName, PartPage, PartPosition, PartQuery, TimelineEventStore
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class _Parts(Struct, frozen=True):
    """The first parts of an entry, each in wire form, and whether there are more."""

    encoded: list[bytes]
    more: bool


class HistoryEntryHandlers(Struct, frozen=True):
    """Answers the RPCs of entries and their steps."""

    entries: HistoryEntryStore
    steps: EntryStepStore
    events: TimelineEventStore
    page_tokens: PageTokens

    @quick
    def save_history_entry(self, call: Call, request: pb.SaveHistoryEntryRequest) -> pb.SaveHistoryEntryResponse:
        write = call.write(request)
        outcome = self.entries.save(write, EntryDraft(request.entry.id, decode.encoded_record(request.entry)))
        return pb.SaveHistoryEntryResponse(update_time=wire.timestamp(outcome.time), revision=outcome.revision)

    @quick
    def update_history_entry(self, call: Call, request: pb.UpdateHistoryEntryRequest) -> pb.UpdateHistoryEntryResponse:
        write, mask = call.write(request), frozenset(request.update_mask.paths)
        outcome = self.entries.update(write, EntryDraft(request.entry.id, decode.encoded_record(request.entry)), mask)
        return pb.UpdateHistoryEntryResponse(update_time=wire.timestamp(outcome.time), revision=outcome.revision)

    @quick
    def get_history_entry(self, call: Call, request: pb.GetHistoryEntryRequest) -> bytes:
        read = call.read(request)
        entry, revision = self.entries.get(read, request.entry_id)
        steps, events = _Parts([], more=False), _Parts([], more=False)
        if request.with_related:
            steps, events = self._related(read, request.entry_id, REPLY_BYTES - len(entry))
        rest = pb.GetHistoryEntryResponse(more_steps=steps.more, more_events=events.more, revision=revision)
        return (
            wire.elements(pb.GetHistoryEntryResponse.ENTRY_FIELD_NUMBER, [entry])
            + wire.elements(pb.GetHistoryEntryResponse.STEPS_FIELD_NUMBER, steps.encoded)
            + wire.elements(pb.GetHistoryEntryResponse.EVENTS_FIELD_NUMBER, events.encoded)
            + rest.SerializeToString()
        )

    def _related(self, read: Read, entry_id: str, room: int) -> tuple[_Parts, _Parts]:
        query = PartQuery(entry_id, decode.MAX_PAGE)
        steps = _first(self.steps.list(read, query), room)
        return steps, _first(self.events.list(read, query), room - sum(map(len, steps.encoded)))

    def list_history_entries(self, call: Call, request: pb.ListHistoryEntriesRequest) -> bytes:
        after = self.page_tokens.position(call, request, PartPosition)
        query = EntryQuery(
            agent_id=request.agent_id,
            user_id=request.user_id,
            limit=decode.page_size(request.page_size),
            skip=request.skip if after is None else 0,
            after=after,
        )
        found = self.entries.list(call.read(request), query)
        page = found.page
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListHistoryEntriesResponse(next_page_token=token, total_size=found.total, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    @quick
    def delete_history_entry(self, call: Call, request: pb.DeleteHistoryEntryRequest) -> pb.DeleteHistoryEntryResponse:
        outcome = self.entries.delete(call.write(request), request.entry_id)
        return pb.DeleteHistoryEntryResponse(deleted=outcome.deleted, revision=outcome.revision)

    @quick
    def save_entry_steps(self, call: Call, request: pb.SaveEntryStepsRequest) -> pb.SaveEntryStepsResponse:
        write = call.write(request)
        outcome = self.steps.save(write, [decode.entry_step(step) for step in request.steps])
        return pb.SaveEntryStepsResponse(revision=outcome.revision)

    @quick
    def update_entry_step(self, call: Call, request: pb.UpdateEntryStepRequest) -> pb.UpdateEntryStepResponse:
        write, mask = call.write(request), frozenset(request.update_mask.paths)
        outcome = self.steps.update(write, decode.entry_step(request.step), mask)
        return pb.UpdateEntryStepResponse(revision=outcome.revision)

    @quick
    def get_entry_step(self, call: Call, request: pb.GetEntryStepRequest) -> bytes:
        step, revision = self.steps.get(call.read(request), PartName(request.step_id, request.entry_id))
        rest = pb.GetEntryStepResponse(revision=revision)
        return wire.elements(pb.GetEntryStepResponse.STEP_FIELD_NUMBER, [step]) + rest.SerializeToString()

    @quick
    def list_entry_steps(self, call: Call, request: pb.ListEntryStepsRequest) -> bytes:
        size, after = decode.page_size(request.page_size), self.page_tokens.position(call, request, PartPosition)
        page = self.steps.list(call.read(request), PartQuery(request.entry_id, size, after))
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListEntryStepsResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    @quick
    def delete_entry_step(self, call: Call, request: pb.DeleteEntryStepRequest) -> pb.DeleteEntryStepResponse:
        outcome = self.steps.delete(call.write(request), PartName(request.step_id, request.entry_id))
        return pb.DeleteEntryStepResponse(deleted=outcome.deleted, revision=outcome.revision)


def _first(page: PartPage, room: int) -> _Parts:
    """As many parts of a page as there is room for."""
    parts = list(wire.split_elements(wire.LIST_FIELD, page.encoded))
    held = fitting(parts, len, room=room, least=0)
    return _Parts(held, more=len(held) < len(parts) or page.following is not None)
