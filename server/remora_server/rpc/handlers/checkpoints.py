"""The RPCs of checkpoints and threads."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from remora.v1 import checkpoint_service_pb2 as pb
from remora_server import wire
from remora_server.domain import json_members
from remora_server.domain.checkpoints import (
    ChannelQuery,
    ChannelValueName,
    CheckpointDraft,
    CheckpointName,
    CheckpointPosition,
    CheckpointQuery,
    CheckpointStore,
    HistoryPosition,
    PartDraft,
    TaskDraft,
    ThreadQuery,
    ThreadStore,
    ThreadSummary,
    UploadName,
    ValueDraft,
    WriteDraft,
    WriteValueName,
)
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class CheckpointHandlers(Struct, frozen=True):
    """Answers the RPCs of checkpoints."""

    checkpoints: CheckpointStore
    threads: ThreadStore
    page_tokens: PageTokens

    @quick
    def save_checkpoints(self, call: Call, request: pb.SaveCheckpointsRequest) -> pb.SaveCheckpointsResponse:
        write = call.write(request)
        outcome = self.checkpoints.save(
            write, [*map(checkpoint_draft, request.checkpoints)], [*map(task_draft, request.writes)]
        )
        return pb.SaveCheckpointsResponse(revision=outcome.revision)

    @quick
    def get_checkpoints(self, call: Call, request: pb.GetCheckpointsRequest) -> bytes:
        encoded, revision = self.checkpoints.get(call.read(request), [*map(_name, request.names)])
        return encoded + pb.GetCheckpointsResponse(revision=revision).SerializeToString()

    def list_checkpoints(self, call: Call, request: pb.ListCheckpointsRequest) -> bytes:
        query = CheckpointQuery(
            thread_id=request.thread_id,
            checkpoint_ns=request.checkpoint_ns if request.HasField("checkpoint_ns") else None,
            checkpoint_id=request.checkpoint_id,
            before_id=request.before_id,
            members=tuple(json_members.digests(request.metadata)),
            user_id=request.user_id,
            run_id=request.run_id,
            limit=decode.page_size(request.page_size),
            after=self.page_tokens.position(call, request, CheckpointPosition),
        )
        page = self.checkpoints.list(call.read(request), query)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListCheckpointsResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    def list_channel_history(self, call: Call, request: pb.ListChannelHistoryRequest) -> bytes:
        after = self.page_tokens.position(call, request, HistoryPosition)
        query = ChannelQuery(
            _name(request.name), tuple(dict.fromkeys(request.channels)), decode.page_size(request.page_size), after
        )
        page = self.checkpoints.history(call.read(request), query)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListChannelHistoryResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    def upload_checkpoint_part(
        self, call: Call, request: pb.UploadCheckpointPartRequest
    ) -> pb.UploadCheckpointPartResponse:
        part = PartDraft(
            request.thread_id,
            request.checkpoint_ns,
            request.upload_id,
            request.index,
            request.data,
            request.user_id,
        )
        return pb.UploadCheckpointPartResponse(revision=self.checkpoints.upload(call.write(request), part).revision)

    def read_checkpoint_value(
        self, call: Call, request: pb.ReadCheckpointValueRequest
    ) -> pb.ReadCheckpointValueResponse:
        found = self.checkpoints.read_value(call.read(request), _value_name(request), request.offset)
        return pb.ReadCheckpointValueResponse(
            type=found.type,
            data=found.data,
            size=found.size,
            value_revision=found.value_revision,
            revision=found.revision,
        )

    def list_threads(self, call: Call, request: pb.ListThreadsRequest) -> pb.ListThreadsResponse:
        size, after = decode.page_size(request.page_size), self.page_tokens.position(call, request, str)
        query = ThreadQuery(
            user_id=request.user_id,
            updated_before=wire.optional_micros(request, "updated_before"),
            after=after or "",
            limit=size + 1,
        )
        found, revision = self.threads.list(call.read(request), query)
        token = self.page_tokens.make(call, request, found[size - 1].id) if len(found) > size else ""
        threads = [_thread(each) for each in found[:size]]
        return pb.ListThreadsResponse(threads=threads, next_page_token=token, revision=revision)

    @quick
    def delete_thread(self, call: Call, request: pb.DeleteThreadRequest) -> pb.DeleteThreadResponse:
        return pb.DeleteThreadResponse(revision=self.threads.delete(call.write(request), request.thread_id).revision)

    def delete_runs(self, call: Call, request: pb.DeleteRunsRequest) -> pb.DeleteRunsResponse:
        outcome = self.threads.delete_runs(call.write(request), tuple(dict.fromkeys(request.run_ids)))
        return pb.DeleteRunsResponse(deleted_checkpoints=outcome.deleted_records, revision=outcome.revision)

    def copy_thread(self, call: Call, request: pb.CopyThreadRequest) -> pb.CopyThreadResponse:
        outcome = self.threads.copy(call.write(request), request.source_thread_id, request.target_thread_id)
        return pb.CopyThreadResponse(copied_checkpoints=outcome.imported_records, revision=outcome.revision)

    def prune_threads(self, call: Call, request: pb.PruneThreadsRequest) -> pb.PruneThreadsResponse:
        keep_latest = request.strategy != pb.PRUNE_STRATEGY_DELETE
        outcome = self.threads.prune(call.write(request), tuple(request.thread_ids), keep_latest=keep_latest)
        return pb.PruneThreadsResponse(deleted_checkpoints=outcome.deleted_records, revision=outcome.revision)


def checkpoint_draft(given: pb.CheckpointDraft) -> CheckpointDraft:
    """A checkpoint of a write."""
    checkpoint = given.checkpoint
    return CheckpointDraft(
        name=CheckpointName(checkpoint.thread_id, checkpoint.checkpoint_ns, checkpoint.id),
        body=checkpoint.SerializeToString(),
        values={each.channel: _value(each.value) for each in given.values},
        user_id=checkpoint.user_id,
    )


def task_draft(given: pb.TaskWrites) -> TaskDraft:
    """What a task wrote."""
    return TaskDraft(
        name=_name(given.name),
        task_id=given.task_id,
        task_path=given.task_path,
        writes=tuple(_writes(given.writes)),
        replace=given.replace,
        user_id=given.user_id,
    )


def _writes(given: Iterable[pb.Write]) -> Iterable[WriteDraft]:
    return (WriteDraft(each.channel, each.index, _value(each.value)) for each in given)


def _value(given: pb.Value) -> ValueDraft:
    upload = UploadName(given.upload.id, given.upload.parts) if given.HasField("upload") else None
    return ValueDraft(given.type, b"" if upload else given.data, upload)


def _name(given: pb.CheckpointName) -> CheckpointName:
    return CheckpointName(given.thread_id, given.checkpoint_ns, given.checkpoint_id)


def _value_name(request: pb.ReadCheckpointValueRequest) -> ChannelValueName | WriteValueName:
    if request.HasField("write"):
        name = request.write
        return WriteValueName(request.thread_id, request.checkpoint_ns, name.checkpoint_id, name.task_id, name.index)
    channel = request.channel
    version = decode.version(channel.version)
    return ChannelValueName(request.thread_id, request.checkpoint_ns, channel.channel, version, channel.fork)


def _thread(given: ThreadSummary) -> pb.ThreadSummary:
    return pb.ThreadSummary(
        thread_id=given.id,
        checkpoints=given.checkpoints,
        create_time=wire.timestamp(given.create_time),
        update_time=wire.timestamp(given.update_time),
    )
