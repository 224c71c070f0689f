"""The RPCs of windows and of the summaries before them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import short_term_pb2
from remora_server import wire
from remora_server.domain.chat_models import Completion
from remora_server.domain.summarizing import MOST_TOKENS, Summarizing, SummaryRequest
from remora_server.domain.windows import Cover, Summary, WindowStore
from remora_server.rpc.calls import Call
from remora_server.rpc.methods import quick


class WindowHandlers(Struct, frozen=True):
    """Answers the RPCs of windows. `failure_of` says why the window of a tenant's conversation cannot be moved."""

    windows: WindowStore
    summarizing: Summarizing
    failure_of: Callable[[str, str], str]

    @quick
    def get_window(self, call: Call, request: pb.GetWindowRequest) -> pb.GetWindowResponse:
        read = call.read(request)
        found, summary, revision = self.windows.current(read, request.conversation_id, request.user_id)
        window = short_term_pb2.Window(
            first_sequence=found.first_sequence,
            system_sequence=found.system_sequence,
            window_revision=found.revision,
            move_time=wire.timestamp(found.move_time) if found.revision else None,
            failure=self.failure_of(read.tenant_id, request.conversation_id),
        )
        return pb.GetWindowResponse(
            window=window,
            revision=revision,
            summary=None if summary is None else _summary(request.conversation_id, summary),
        )

    def plan_summary(self, call: Call, request: pb.PlanSummaryRequest) -> pb.PlanSummaryResponse:
        asked = SummaryRequest(
            request.conversation_id,
            request.user_id,
            keep_messages=request.keep_messages,
            max_tokens=request.max_tokens or MOST_TOKENS,
            if_over=request.if_over,
        )
        plan, revision = self.summarizing.plan(call.read(request), asked)
        if plan is None:
            return pb.PlanSummaryResponse(revision=revision)
        prompt, cover = plan.prompt, plan.cover
        return pb.PlanSummaryResponse(
            cover=short_term_pb2.SummaryCover(
                window_revision=cover.window_revision, through_sequence=cover.through, revision=cover.revision
            ),
            instruction=prompt.instruction,
            text=prompt.text,
            max_summary_tokens=plan.max_summary_tokens,
            message_count=len(plan.messages),
            earlier=None if plan.earlier is None else _summary(request.conversation_id, plan.earlier),
            more=plan.more,
            revision=revision,
        )

    def commit_summary(self, call: Call, request: pb.CommitSummaryRequest) -> pb.CommitSummaryResponse:
        cover = Cover(request.cover.window_revision, request.cover.through_sequence, request.cover.revision)
        outcome = self.summarizing.commit(
            call.write(request),
            request.conversation_id,
            request.user_id,
            cover,
            Completion(request.text, request.model),
        )
        return pb.CommitSummaryResponse(revision=outcome.revision, create_time=wire.timestamp(outcome.time))


def _summary(conversation_id: str, summary: Summary) -> short_term_pb2.ConversationSummary:
    return short_term_pb2.ConversationSummary(
        conversation_id=conversation_id,
        user_id=summary.user_id,
        covers_through_sequence=summary.covers_through,
        text=summary.text,
        model=summary.model,
        token_count=summary.token_count,
        system_sequence=summary.system_sequence,
        create_time=wire.timestamp(summary.create_time),
        window_revision=summary.revision,
    )
