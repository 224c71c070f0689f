"""The RPCs of steps."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import history_service_pb2 as pb
from remora_server.domain.steps import StepCursor, StepQuery, StepStore
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class StepHandlers(Struct, frozen=True):
    """Answers the RPCs of steps."""

    steps: StepStore
    page_tokens: PageTokens

    @quick
    def save_steps(self, call: Call, request: pb.SaveStepsRequest) -> pb.SaveStepsResponse:
        write = call.write(request)
        outcome = self.steps.save(write, [decode.step(step) for step in request.steps])
        return pb.SaveStepsResponse(revision=outcome.revision)

    @quick
    def list_steps(self, call: Call, request: pb.ListStepsRequest) -> bytes:
        query = StepQuery(
            conversation_id=request.conversation_id,
            user_id=request.user_id,
            operation_id=request.operation_id,
            last=request.limit or None,
            limit=decode.page_size(request.page_size),
            skip=request.skip,
            after=self.page_tokens.position(call, request, StepCursor),
        )
        page = self.steps.list(call.read(request), query)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListStepsResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()
