"""The RPCs of workflows' runs and their steps."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from msgspec import Struct

from remora.v1 import workflow_service_pb2 as pb
from remora.v1.history_service_pb2 import ListTimelineEventsRequest
from remora_server import wire
from remora_server.domain import json_members
from remora_server.domain.workflows import (
    PartName,
    PartPosition,
    PartQuery,
    RunDraft,
    RunQuery,
    WorkflowRunStore,
    WorkflowStepStore,
)
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class WorkflowHandlers(Struct, frozen=True):
    """Answers the RPCs of workflows."""

    runs: WorkflowRunStore
    steps: WorkflowStepStore
    page_tokens: PageTokens

    @quick
    def save_workflow_run(self, call: Call, request: pb.SaveWorkflowRunRequest) -> pb.SaveWorkflowRunResponse:
        write = call.write(request)
        outcome = self.runs.save(write, _draft(request))
        return pb.SaveWorkflowRunResponse(update_time=wire.timestamp(outcome.time), revision=outcome.revision)

    @quick
    def update_workflow_run(self, call: Call, request: pb.UpdateWorkflowRunRequest) -> pb.UpdateWorkflowRunResponse:
        write, mask = call.write(request), frozenset(request.update_mask.paths)
        outcome = self.runs.update(write, _draft(request), mask)
        return pb.UpdateWorkflowRunResponse(update_time=wire.timestamp(outcome.time), revision=outcome.revision)

    @quick
    def get_workflow_run(self, call: Call, request: pb.GetWorkflowRunRequest) -> bytes:
        run, revision = self.runs.get(call.read(request), request.run_id)
        rest = pb.GetWorkflowRunResponse(revision=revision)
        return wire.elements(pb.GetWorkflowRunResponse.RUN_FIELD_NUMBER, [run]) + rest.SerializeToString()

    def list_workflow_runs(self, call: Call, request: pb.ListWorkflowRunsRequest) -> bytes:
        after = self.page_tokens.position(call, request, PartPosition)
        query = RunQuery(
            workflow_id=request.workflow_id,
            status=request.status,
            user_id=request.user_id,
            created_from=wire.optional_micros(request, "created_from"),
            created_to=wire.optional_micros(request, "created_to"),
            members=tuple(json_members.digests(request.metadata)),
            filter=decode.value_filter(request.filter) if request.HasField("filter") else None,
            by_start=request.order_by == pb.WORKFLOW_RUN_ORDER_START_TIME,
            limit=decode.page_size(request.page_size),
            skip=request.skip if after is None else 0,
            after=after,
        )
        page = self.runs.list(call.read(request), query)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListWorkflowRunsResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    @quick
    def delete_workflow_run(self, call: Call, request: pb.DeleteWorkflowRunRequest) -> pb.DeleteWorkflowRunResponse:
        outcome = self.runs.delete(
            call.write(request),
            request.run_id,
            keep_related=request.keep_related,
            allow_missing=request.allow_missing,
        )
        return pb.DeleteWorkflowRunResponse(deleted=outcome.deleted, revision=outcome.revision)

    def prune_workflow_runs(self, call: Call, request: pb.PruneWorkflowRunsRequest) -> pb.PruneWorkflowRunsResponse:
        outcome = self.runs.prune(call.write(request), request.workflow_id, request.keep_newest)
        return pb.PruneWorkflowRunsResponse(deleted_runs=outcome.deleted_records, revision=outcome.revision)

    def list_workflow_ids(self, call: Call, request: pb.ListWorkflowIdsRequest) -> pb.ListWorkflowIdsResponse:
        size, after = decode.page_size(request.page_size), self.page_tokens.position(call, request, str)
        found, revision = self.runs.workflows(call.read(request), after or "", size + 1)
        token = self.page_tokens.make(call, request, found[size - 1]) if len(found) > size else ""
        return pb.ListWorkflowIdsResponse(workflow_ids=found[:size], next_page_token=token, revision=revision)

    def get_workflow_stats(self, call: Call, request: pb.GetWorkflowStatsRequest) -> pb.GetWorkflowStatsResponse:
        stats = self.runs.stats(call.read(request), request.workflow_id)
        reply = pb.GetWorkflowStatsResponse(
            runs=stats.runs, completed_runs=stats.completed, failed_runs=stats.failed, revision=stats.revision
        )
        if stats.mean_duration is not None:
            reply.mean_duration.CopyFrom(_duration(stats.mean_duration))
        if stats.last_start_time is not None:
            reply.last_start_time.CopyFrom(wire.timestamp(stats.last_start_time))
        return reply

    @quick
    def save_workflow_steps(self, call: Call, request: pb.SaveWorkflowStepsRequest) -> pb.SaveWorkflowStepsResponse:
        write = call.write(request)
        outcome = self.steps.save(write, [decode.part(step) for step in request.steps])
        return pb.SaveWorkflowStepsResponse(revision=outcome.revision)

    @quick
    def update_workflow_step(self, call: Call, request: pb.UpdateWorkflowStepRequest) -> pb.UpdateWorkflowStepResponse:
        write, mask = call.write(request), frozenset(request.update_mask.paths)
        outcome = self.steps.update(write, decode.part(request.step), mask)
        return pb.UpdateWorkflowStepResponse(revision=outcome.revision)

    @quick
    def get_workflow_step(self, call: Call, request: pb.GetWorkflowStepRequest) -> bytes:
        step, revision = self.steps.get(call.read(request), PartName(request.step_id, request.run_id))
        rest = pb.GetWorkflowStepResponse(revision=revision)
        return wire.elements(pb.GetWorkflowStepResponse.STEP_FIELD_NUMBER, [step]) + rest.SerializeToString()

    @quick
    def list_workflow_steps(self, call: Call, request: pb.ListWorkflowStepsRequest) -> bytes:
        page = self.steps.list(call.read(request), part_query(self.page_tokens, call, request))
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListWorkflowStepsResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    @quick
    def delete_workflow_step(self, call: Call, request: pb.DeleteWorkflowStepRequest) -> pb.DeleteWorkflowStepResponse:
        outcome = self.steps.delete(call.write(request), PartName(request.step_id, request.run_id))
        return pb.DeleteWorkflowStepResponse(deleted=outcome.deleted, revision=outcome.revision)


def part_query(
    page_tokens: PageTokens, call: Call, request: pb.ListWorkflowStepsRequest | ListTimelineEventsRequest
) -> PartQuery:
    """The requested page of a run's parts."""
    size, after = decode.page_size(request.page_size), page_tokens.position(call, request, PartPosition)
    return PartQuery(request.run_id, size, after)


def _draft(request: pb.SaveWorkflowRunRequest | pb.UpdateWorkflowRunRequest) -> RunDraft:
    expected = request.expected_revision if request.HasField("expected_revision") else None
    return RunDraft(request.run.id, decode.without_revision(request.run), expected)


def _duration(micros: int) -> Duration:
    duration = Duration()
    duration.FromMicroseconds(micros)
    return duration
