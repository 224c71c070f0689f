"""Every error of the domain, provoked on the real server and seen by a caller with its code, reason and details.

The disk's two errors come from a limit on the length of files that the running server gets (RLIMIT_FSIZE), which needs
no privilege and no device of its own: one byte less than a journal's segment, and no further segment can be allocated,
as on a full disk, which is STORE_FULL; shorter than what is written already, and the next write into an allocated
segment fails, which is STORE_FAILED.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import grpc
import pytest
from google.protobuf.message import Message as AnyMessage
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from tests.faults.changed_server import WAITING
from tests.faults.served_store import refused
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually
from tests.tokens import token_file

from remora import Remora
from remora.v1 import (
    admin_service_pb2,
    checkpoint_pb2,
    checkpoint_service_pb2,
    conversation_pb2,
    history_entry_pb2,
    history_service_pb2,
    memory_service_pb2,
    message_pb2,
    store_item_pb2,
    store_service_pb2,
    text_service_pb2,
    timeline_event_pb2,
    transfer_service_pb2,
    vector_pb2,
    vector_service_pb2,
    workflow_pb2,
    workflow_service_pb2,
)
from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain import errors
from remora_server.failpoints import JOURNAL_VARIABLE
from remora_server.rpc.errors import ANSWERS

SEGMENT_BYTES = 1 << 20
TOKEN = "secret"
WAIT = PATIENCE

M = TypeVar("M", bound=AnyMessage)
Provoke: TypeAlias = "Callable[[Remora, Sidecar], object]"


@dataclass(frozen=True)
class Fault:
    """A way to an error: what is done to a server with these arguments, and what the caller then sees.

    A metadata value of None may be anything.
    """

    error: type[errors.RemoraError]
    provoke: Provoke
    code: grpc.StatusCode
    reason: str
    metadata: dict[str, str | None] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    token: str | None = None
    changes: tuple[str, ...] = ()
    failpoints: dict[str, str] = field(default_factory=dict)

    @property
    def is_of_any_server(self) -> bool:
        """Whether it needs no server of its own, only a tenant."""
        return not (self.arguments or self.changes or self.failpoints)


def append(memory: Remora, parts: bytes = b"", *, count: int = 1, request_id: str = "", text: str = "t") -> None:
    request = pb.AppendMessagesRequest(
        conversation_id="held",
        messages=[message_pb2.Message(role="user", text=text, parts=parts) for _ in range(count)],
        create_if_missing=conversation_pb2.Conversation(user_id="sarah"),
        request_id=request_id,
    )
    memory.stubs.conversations.AppendMessages(request, timeout=WAIT)


def get(memory: Remora, conversation_id: str, min_revision: int = 0) -> None:
    request = pb.GetConversationRequest(conversation_id=conversation_id, min_revision=min_revision)
    memory.stubs.conversations.GetConversation(request, timeout=WAIT)


def list_with_a_made_up_token(memory: Remora, _: Sidecar) -> None:
    memory.stubs.conversations.ListConversations(pb.ListConversationsRequest(page_token="made up"), timeout=WAIT)


def assemble_within_two_tokens(memory: Remora, _: Sidecar) -> None:
    append(memory)
    request = memory_service_pb2.AssembleContextRequest(conversation_id="held", max_tokens=2)
    memory.stubs.memory.AssembleContext(request, timeout=WAIT)


def assemble_what_no_reply_holds(memory: Remora, _: Sidecar) -> None:
    append(memory, parts=bytes(2 << 20), text="t" * (1 << 20))
    request = memory_service_pb2.AssembleContextRequest(conversation_id="held", max_tokens=10_000_000)
    memory.stubs.memory.AssembleContext(request, timeout=WAIT)


def remove_what_is_not_there(memory: Remora, _: Sidecar) -> None:
    append(memory)
    request = pb.EditMessagesRequest(conversation_id="held", edits=[pb.Edit(remove="lost")])
    memory.stubs.conversations.EditMessages(request, timeout=WAIT)


def create_twice(memory: Remora, _: Sidecar) -> None:
    request = pb.CreateConversationRequest(conversation=conversation_pb2.Conversation(id="twice"))
    for _attempt in range(2):
        memory.stubs.conversations.CreateConversation(request, timeout=WAIT)


def name_an_upload_that_is_not_there(memory: Remora, _: Sidecar, upload_id: str = "lost") -> None:
    checkpoint = checkpoint_pb2.Checkpoint(thread_id="t", id="c")
    checkpoint.channels.add(channel="a", version=checkpoint_pb2.Version(text="1"))
    draft = checkpoint_service_pb2.CheckpointDraft(checkpoint=checkpoint)
    upload = checkpoint_service_pb2.Upload(id=upload_id, parts=1)
    draft.values.add(channel="a", value=checkpoint_service_pb2.Value(upload=upload))
    request = checkpoint_service_pb2.SaveCheckpointsRequest(checkpoints=[draft])
    memory.stubs.checkpoints.SaveCheckpoints(request, timeout=WAIT)


def upload_to_a_named_upload(memory: Remora, sidecar: Sidecar) -> None:
    request = checkpoint_service_pb2.UploadCheckpointPartRequest(thread_id="t", upload_id="u", data=b"part")
    memory.stubs.checkpoints.UploadCheckpointPart(request, timeout=WAIT)
    name_an_upload_that_is_not_there(memory, sidecar, "u")
    memory.stubs.checkpoints.UploadCheckpointPart(request, timeout=WAIT)


def read_a_value_of_a_channel(memory: Remora, _: Sidecar) -> None:
    channel = checkpoint_pb2.ChannelVersion(channel="lost", version=checkpoint_pb2.Version(text="1"))
    request = checkpoint_service_pb2.ReadCheckpointValueRequest(thread_id="t", channel=channel)
    memory.stubs.checkpoints.ReadCheckpointValue(request, timeout=WAIT)


def get_a_run(memory: Remora, _: Sidecar) -> None:
    memory.stubs.workflows.GetWorkflowRun(workflow_service_pb2.GetWorkflowRunRequest(run_id="lost"), timeout=WAIT)


def get_a_step(memory: Remora, _: Sidecar) -> None:
    request = workflow_service_pb2.GetWorkflowStepRequest(step_id="lost", run_id="r")
    memory.stubs.workflows.GetWorkflowStep(request, timeout=WAIT)


def store_vectors(memory: Remora, *dimensions: int) -> None:
    vectors = [vector_pb2.Vector(id=f"v{index}", values=bytes(4 * size)) for index, size in enumerate(dimensions)]
    request = vector_service_pb2.UpsertVectorsRequest(collection_id="k", vectors=vectors)
    memory.stubs.vectors.UpsertVectors(request, timeout=WAIT)


def get_an_item(memory: Remora, _: Sidecar) -> None:
    request = memory_service_pb2.GetMemoryItemRequest(user_id="sarah", item_id="lost")
    memory.stubs.memory.GetMemoryItem(request, timeout=WAIT)


def get_a_fact(memory: Remora, _: Sidecar) -> None:
    request = memory_service_pb2.GetFactRequest(user_id="sarah", fact_id="lost")
    memory.stubs.memory.GetFact(request, timeout=WAIT)


def get_a_collection(memory: Remora, _: Sidecar) -> None:
    request = vector_service_pb2.GetCollectionRequest(collection_id="lost")
    memory.stubs.vectors.GetCollection(request, timeout=WAIT)


def create_a_collection_twice(memory: Remora, _: Sidecar) -> None:
    request = vector_service_pb2.CreateCollectionRequest(collection=vector_pb2.VectorCollection(id="k"))
    for _attempt in range(2):
        memory.stubs.vectors.CreateCollection(request, timeout=WAIT)


def store_vectors_of_two_dimensions(memory: Remora, _: Sidecar) -> None:
    store_vectors(memory, 2, 3)


def search_many_vectors(memory: Remora, _: Sidecar) -> None:
    store_vectors(memory, *[4_096] * 64)
    request = vector_service_pb2.SearchVectorsRequest(collection_id="k", vector=bytes(4 * 4_096))
    memory.stubs.vectors.SearchVectors(request, timeout=WAIT)


def list_large_namespaces(memory: Remora, sidecar: Sidecar) -> None:
    """The items are loaded after a start: what grows in memory stays there until something else needs the room."""
    items = [store_item_pb2.StoreItem(namespace=["n"], key="k", value=b'"%s"' % (b"x" * (1 << 20)))]
    memory.stubs.store.PutItems(store_service_pb2.PutItemsRequest(items=items), timeout=WAIT)
    sidecar.stop()
    sidecar.start()
    memory.status()
    memory.stubs.store.ListNamespaces(store_service_pb2.ListNamespacesRequest(), timeout=WAIT)


def get_an_event(memory: Remora, _: Sidecar) -> None:
    request = history_service_pb2.GetTimelineEventRequest(event_id="lost", run_id="r")
    memory.stubs.history.GetTimelineEvent(request, timeout=WAIT)


def change_an_event(memory: Remora, _: Sidecar) -> None:
    for name in ("one", "another"):
        event = timeline_event_pb2.TimelineEvent(id="e", run_id="r", name=name)
        memory.stubs.history.AddTimelineEvents(
            history_service_pb2.AddTimelineEventsRequest(events=[event]), timeout=WAIT
        )


def get_an_entry(memory: Remora, _: Sidecar) -> None:
    memory.stubs.history.GetHistoryEntry(history_service_pb2.GetHistoryEntryRequest(entry_id="lost"), timeout=WAIT)


def get_a_step_of_an_entry(memory: Remora, _: Sidecar) -> None:
    request = history_service_pb2.GetEntryStepRequest(step_id="lost", entry_id="h")
    memory.stubs.history.GetEntryStep(request, timeout=WAIT)


def get_a_span(memory: Remora, _: Sidecar) -> None:
    memory.stubs.history.GetSpan(history_service_pb2.GetSpanRequest(span_id="lost", trace_id="t"), timeout=WAIT)


def take_the_entry_of_another_user(memory: Remora, _: Sidecar) -> None:
    for user in ("ann", "bob"):
        entry = history_entry_pb2.HistoryEntry(id="h", agent_id="a", user_id=user)
        memory.stubs.history.SaveHistoryEntry(history_service_pb2.SaveHistoryEntryRequest(entry=entry), timeout=WAIT)


def save_a_run_that_another_saved(memory: Remora, _: Sidecar) -> None:
    run = workflow_pb2.WorkflowRun(id="r", workflow_id="w", status=workflow_pb2.WORKFLOW_STATUS_RUNNING)
    request = workflow_service_pb2.SaveWorkflowRunRequest(run=run, expected_revision=0)
    for _attempt in range(2):
        memory.stubs.workflows.SaveWorkflowRun(request, timeout=WAIT)


def get_a_receipt(memory: Remora, _: Sidecar) -> None:
    memory.stubs.memory.GetReceipt(memory_service_pb2.GetReceiptRequest(receipt_id="lost"), timeout=WAIT)


def commit_a_summary_of_what_has_changed(memory: Remora, _: Sidecar) -> None:
    for number in range(2):
        append(memory, text=f"message {number}")
    plan = memory.stubs.conversations.PlanSummary(
        pb.PlanSummaryRequest(conversation_id="held", keep_messages=1), timeout=WAIT
    )
    memory.stubs.conversations.ClearMessages(pb.ClearMessagesRequest(conversation_id="held"), timeout=WAIT)
    request = pb.CommitSummaryRequest(conversation_id="held", cover=plan.cover, text="Too late.")
    memory.stubs.conversations.CommitSummary(request, timeout=WAIT)


def reuse_a_request_id(memory: Remora, _: Sidecar) -> None:
    for text in ("one", "another"):
        append(memory, request_id="r", text=text)


def embed(memory: Remora, _: Sidecar) -> None:
    memory.stubs.text.Embed(text_service_pb2.EmbedRequest(texts=["t"]), timeout=WAIT)


def search_a_long_conversation(memory: Remora, _: Sidecar) -> None:
    for _number in range(4):
        append(memory, count=5, text="word " * 20_000)
    request = memory_service_pb2.SearchMessagesRequest(user_id="sarah", text="word")
    memory.stubs.memory.SearchMessages(request, timeout=WAIT)


def come_without_a_token(_: Remora, sidecar: Sidecar) -> None:
    with Remora(sidecar.endpoint, timeout=WAIT) as stranger:
        get(stranger, "held")


def name_another_tenant(memory: Remora, _: Sidecar) -> None:
    metadata = (("authorization", f"Bearer {TOKEN}"), ("remora-tenant", "globex"))
    memory.stubs.conversations.GetConversation(
        pb.GetConversationRequest(conversation_id="held"), metadata=metadata, timeout=WAIT
    )


def call_while_another_waits(memory: Remora, sidecar: Sidecar) -> None:
    """One of two calls waits, and there is no room for the other."""
    file = sidecar.directory / "held"
    file.touch()
    request = pb.CountConversationsRequest(user_id=f"{WAITING}{file}")
    first_to_end([memory.stubs.conversations.CountConversations.future(request, timeout=WAIT) for _call in range(2)])


def first_to_end(calls: Sequence[grpc.Future[Any]]) -> None:
    """Raises what one of some calls ends with, while others may be under way."""
    eventually(lambda: any(call.done() for call in calls))
    next(call for call in calls if call.done()).result()


def write_without_a_deadline(memory: Remora, _: Sidecar) -> None:
    """The server gives such a call no time, and the disk is slow."""
    wanted = conversation_pb2.Conversation(id="late")
    memory.stubs.conversations.CreateConversation(pb.CreateConversationRequest(conversation=wanted))


def append_more_than_a_record_holds(memory: Remora, _: Sidecar) -> None:
    append(memory, parts=bytes(2 << 20), count=21)


def limit_files(sidecar: Sidecar, length: int) -> None:
    """Let the server's files be no longer than this."""
    resource.prlimit(sidecar.pid, resource.RLIMIT_FSIZE, (length, resource.RLIM_INFINITY))


def fill_the_disk(memory: Remora, sidecar: Sidecar) -> None:
    append(memory)
    limit_files(sidecar, SEGMENT_BYTES - 1)
    for _attempt in range(8):
        append(memory, parts=os.urandom(SEGMENT_BYTES // 4))


def fill_the_memory(memory: Remora, sidecar: Sidecar) -> None:
    """The database refuses what it cannot take; until then the server may have more to do than it can.

    DuckDB ends a database for good where a commit finds no memory, which is rare: then another is filled.
    """
    while True:
        try:
            append(memory, parts=os.urandom(SEGMENT_BYTES // 4))
        except grpc.RpcError as error:
            if "the store has failed" in str(error):
                sidecar.stop()
                sidecar.start()
            elif "more work than it can do" not in str(error):
                raise
            time.sleep(0.1)


def damage_the_database(memory: Remora, sidecar: Sidecar) -> None:
    """Texts fill blocks of their own: opening the store reads none of them."""
    for _attempt in range(8):
        append(memory, text=os.urandom(SEGMENT_BYTES // 4).hex())
    sidecar.stop()
    file = sidecar.directory / "data" / "remora.duckdb"
    content = bytearray(file.read_bytes())
    for eighth in range(2, 8):
        content[eighth * len(content) // 8] ^= 1
    file.write_bytes(content)
    sidecar.start()
    request = pb.ListMessagesRequest(conversation_id="held", user_id="sarah")
    memory.stubs.conversations.ListMessages(request, timeout=WAIT)


def break_the_disk(memory: Remora, sidecar: Sidecar) -> None:
    append(memory)
    limit_files(sidecar, 1)
    append(memory)


def import_another_record(memory: Remora, _: Sidecar) -> None:
    for title in ("one", "another"):
        wanted = conversation_pb2.Conversation(id="held", user_id="sarah", title=title)
        wanted.create_time.FromSeconds(1)
        wanted.update_time.FromSeconds(1)
        record = transfer_service_pb2.Record(conversation=transfer_service_pb2.ConversationRecord(conversation=wanted))
        request = transfer_service_pb2.ImportRecordsRequest(records=[record])
        memory.stubs.transfer.ImportRecords(request, timeout=WAIT)


def back_up_as_anybody(memory: Remora, _: Sidecar) -> None:
    memory.stubs.admin.CreateBackup(admin_service_pb2.CreateBackupRequest(), timeout=WAIT)


def read_a_backup_that_is_not_there(memory: Remora, sidecar: Sidecar) -> None:
    request = admin_service_pb2.ReadBackupRequest(backup_id="lost")
    memory.stubs.admin.ReadBackup(request, timeout=WAIT, metadata=as_operator(sidecar))


def back_up_from_all_sides(memory: Remora, sidecar: Sidecar) -> None:
    """One is made after the other, and the first does not end: whoever comes meanwhile is refused."""
    request, metadata = admin_service_pb2.CreateBackupRequest(), as_operator(sidecar)
    create = memory.stubs.admin.CreateBackup
    first_to_end([create.future(request, timeout=WAIT, metadata=metadata) for _call in range(2)])


def as_operator(sidecar: Sidecar) -> tuple[tuple[str, str | bytes], ...]:
    token = (sidecar.directory / "data" / "operator.token").read_text()
    return (("authorization", f"Bearer {token}"),)


def send_two_messages(_: Remora, sidecar: Sidecar) -> None:
    """In a call that takes one."""
    request = pb.GetConversationRequest(conversation_id="held").SerializeToString()
    with grpc.insecure_channel(sidecar.endpoint) as channel:
        ask: Any = channel.stream_unary("/remora.v1.ConversationService/GetConversation")
        ask(iter([request, request]), timeout=WAIT)


def call_no_method(_: Remora, sidecar: Sidecar) -> None:
    with grpc.insecure_channel(sidecar.endpoint) as channel:
        ask: Any = channel.unary_unary("/remora.v1.ConversationService/ForgetEverything")
        ask(b"", timeout=WAIT)


ELSEWHERE: dict[type[errors.RemoraError], str] = {
    errors.ServerStopping: "transport/test_streams.py",
    errors.PeerOverloaded: "transport/test_streams.py",
    errors.SlowReader: "transport/test_streams.py",
    errors.StreamUnsupported: "transport/test_streams.py",
    errors.CompressionUnknown: "network/test_bodies.py",
}
"""What only calls that stream end with, or no client of gRPC provokes: by what it is."""

FAULTS = [
    Fault(
        errors.InvalidField,
        lambda memory, _: get(memory, ""),
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_FIELD",
        {"field": "conversation_id"},
    ),
    Fault(
        errors.InvalidPageToken,
        list_with_a_made_up_token,
        grpc.StatusCode.INVALID_ARGUMENT,
        "PAGE_TOKEN_INVALID",
        {"field": "page_token"},
    ),
    Fault(
        errors.BudgetTooSmall,
        assemble_within_two_tokens,
        grpc.StatusCode.INVALID_ARGUMENT,
        "BUDGET_TOO_SMALL",
        {"field": "max_tokens", "least_max_tokens": "8"},
    ),
    Fault(
        errors.ContextTooLarge,
        assemble_what_no_reply_holds,
        grpc.StatusCode.FAILED_PRECONDITION,
        "CONTEXT_TOO_LARGE",
        {"limit_bytes": str(3 << 20)},
    ),
    Fault(
        errors.RequestTooLarge,
        append_more_than_a_record_holds,
        grpc.StatusCode.INVALID_ARGUMENT,
        "REQUEST_TOO_LARGE",
        {"limit_bytes": str(40 << 20)},
        ("--receive-limit-bytes=64MiB",),
    ),
    Fault(
        errors.ConversationNotFound,
        lambda memory, _: get(memory, "lost"),
        grpc.StatusCode.NOT_FOUND,
        "CONVERSATION_NOT_FOUND",
        {"conversation_id": "lost"},
    ),
    Fault(
        errors.MessageNotFound,
        remove_what_is_not_there,
        grpc.StatusCode.NOT_FOUND,
        "MESSAGE_NOT_FOUND",
        {"field": "edits[0].remove", "message_id": "lost"},
    ),
    Fault(
        errors.ConversationExists,
        create_twice,
        grpc.StatusCode.ALREADY_EXISTS,
        "CONVERSATION_EXISTS",
        {"conversation_id": "twice"},
    ),
    Fault(
        errors.RequestIdReused,
        reuse_a_request_id,
        grpc.StatusCode.ALREADY_EXISTS,
        "REQUEST_ID_REUSED",
        {"request_id": "r"},
    ),
    Fault(
        errors.RecordConflict,
        import_another_record,
        grpc.StatusCode.ALREADY_EXISTS,
        "RECORD_CONFLICT",
        {"field": "records[0].conversation"},
    ),
    Fault(errors.OperatorOnly, back_up_as_anybody, grpc.StatusCode.PERMISSION_DENIED, "OPERATOR_ONLY"),
    Fault(
        errors.BackupNotFound,
        read_a_backup_that_is_not_there,
        grpc.StatusCode.NOT_FOUND,
        "BACKUP_NOT_FOUND",
        {"backup_id": "lost"},
    ),
    Fault(
        errors.BackupUnavailable,
        back_up_from_all_sides,
        grpc.StatusCode.FAILED_PRECONDITION,
        "BACKUP_UNAVAILABLE",
        changes=("sync_no_snapshot",),
    ),
    Fault(
        errors.RevisionUnknown,
        lambda memory, _: get(memory, "held", min_revision=1 << 40),
        grpc.StatusCode.OUT_OF_RANGE,
        "REVISION_UNKNOWN",
        {"min_revision": str(1 << 40), "newest_revision": None},
    ),
    Fault(errors.ModelUnavailable, embed, grpc.StatusCode.FAILED_PRECONDITION, "MODEL_UNAVAILABLE"),
    Fault(
        errors.SearchTooLarge,
        search_a_long_conversation,
        grpc.StatusCode.FAILED_PRECONDITION,
        "SEARCH_TOO_LARGE",
        {"needed_bytes": None, "limit_bytes": str(1 << 20), "setting": "search_bytes"},
        arguments=("--search-bytes=1MiB",),
    ),
    Fault(
        errors.ModelUnreachable,
        embed,
        grpc.StatusCode.UNAVAILABLE,
        "MODEL_UNREACHABLE",
        arguments=("--model=auto", "--embedding-url=http://127.0.0.1:1/v1", "--embedding-model=nobody"),
    ),
    Fault(
        errors.Unauthenticated,
        come_without_a_token,
        grpc.StatusCode.UNAUTHENTICATED,
        "UNAUTHENTICATED",
        arguments=("--token-file={directory}/tokens",),
        token=TOKEN,
    ),
    Fault(
        errors.ReceiptNotFound,
        get_a_receipt,
        grpc.StatusCode.NOT_FOUND,
        "RECEIPT_NOT_FOUND",
        {"receipt_id": "lost"},
    ),
    Fault(
        errors.SummaryOutdated,
        commit_a_summary_of_what_has_changed,
        grpc.StatusCode.ABORTED,
        "SUMMARY_OUTDATED",
        {"conversation_id": "held"},
    ),
    Fault(
        errors.WorkflowRunNotFound,
        get_a_run,
        grpc.StatusCode.NOT_FOUND,
        "WORKFLOW_RUN_NOT_FOUND",
        {"run_id": "lost"},
    ),
    Fault(
        errors.WorkflowStepNotFound,
        get_a_step,
        grpc.StatusCode.NOT_FOUND,
        "WORKFLOW_STEP_NOT_FOUND",
        {"step_id": "lost"},
    ),
    Fault(
        errors.TimelineEventNotFound,
        get_an_event,
        grpc.StatusCode.NOT_FOUND,
        "TIMELINE_EVENT_NOT_FOUND",
        {"event_id": "lost"},
    ),
    Fault(
        errors.TimelineEventExists,
        change_an_event,
        grpc.StatusCode.ALREADY_EXISTS,
        "TIMELINE_EVENT_EXISTS",
        {"run_id": "r", "event_id": "e"},
    ),
    Fault(
        errors.HistoryEntryNotFound,
        get_an_entry,
        grpc.StatusCode.NOT_FOUND,
        "HISTORY_ENTRY_NOT_FOUND",
        {"entry_id": "lost"},
    ),
    Fault(
        errors.EntryStepNotFound,
        get_a_step_of_an_entry,
        grpc.StatusCode.NOT_FOUND,
        "ENTRY_STEP_NOT_FOUND",
        {"step_id": "lost"},
    ),
    Fault(
        errors.UploadIncomplete,
        name_an_upload_that_is_not_there,
        grpc.StatusCode.FAILED_PRECONDITION,
        "UPLOAD_INCOMPLETE",
        {"upload_id": "lost", "part": "0"},
    ),
    Fault(
        errors.UploadNamed,
        upload_to_a_named_upload,
        grpc.StatusCode.FAILED_PRECONDITION,
        "UPLOAD_NAMED",
        {"upload_id": "u"},
    ),
    Fault(
        errors.CheckpointValueNotFound,
        read_a_value_of_a_channel,
        grpc.StatusCode.NOT_FOUND,
        "CHECKPOINT_VALUE_NOT_FOUND",
        {"value_of": "the channel 'lost'"},
    ),
    Fault(
        errors.SpanNotFound,
        get_a_span,
        grpc.StatusCode.NOT_FOUND,
        "SPAN_NOT_FOUND",
        {"span_id": "lost"},
    ),
    Fault(
        errors.HistoryEntryExists,
        take_the_entry_of_another_user,
        grpc.StatusCode.ALREADY_EXISTS,
        "HISTORY_ENTRY_EXISTS",
        {"entry_id": "h"},
    ),
    Fault(
        errors.MemoryItemNotFound,
        get_an_item,
        grpc.StatusCode.NOT_FOUND,
        "MEMORY_ITEM_NOT_FOUND",
        {"item_id": "lost"},
    ),
    Fault(
        errors.FactNotFound,
        get_a_fact,
        grpc.StatusCode.NOT_FOUND,
        "FACT_NOT_FOUND",
        {"fact_id": "lost"},
    ),
    Fault(
        errors.CollectionNotFound,
        get_a_collection,
        grpc.StatusCode.NOT_FOUND,
        "COLLECTION_NOT_FOUND",
        {"collection_id": "lost"},
    ),
    Fault(
        errors.CollectionExists,
        create_a_collection_twice,
        grpc.StatusCode.ALREADY_EXISTS,
        "COLLECTION_EXISTS",
        {"collection_id": "k"},
    ),
    Fault(
        errors.DimensionMismatch,
        store_vectors_of_two_dimensions,
        grpc.StatusCode.INVALID_ARGUMENT,
        "DIMENSION_MISMATCH",
        {"field": "vectors[1].values", "expected_dimension": "2", "found_dimension": "3"},
    ),
    Fault(
        errors.VectorsTooLarge,
        search_many_vectors,
        grpc.StatusCode.FAILED_PRECONDITION,
        "VECTORS_TOO_LARGE",
        {"needed_bytes": None, "limit_bytes": str(1 << 20), "setting": "vector_bytes"},
        arguments=("--vector-bytes=1MiB",),
    ),
    Fault(
        errors.ItemsTooLarge,
        list_large_namespaces,
        grpc.StatusCode.FAILED_PRECONDITION,
        "ITEMS_TOO_LARGE",
        {"needed_bytes": None, "limit_bytes": str(1 << 20), "setting": "vector_bytes"},
        arguments=("--vector-bytes=1MiB",),
    ),
    Fault(
        errors.RevisionConflict,
        save_a_run_that_another_saved,
        grpc.StatusCode.ABORTED,
        "REVISION_MISMATCH",
        {"expected_revision": "0", "found_revision": None},
    ),
    Fault(
        errors.TenantMismatch,
        name_another_tenant,
        grpc.StatusCode.PERMISSION_DENIED,
        "TENANT_MISMATCH",
        arguments=("--token-file={directory}/tokens",),
        token=TOKEN,
    ),
    Fault(errors.CallMalformed, send_two_messages, grpc.StatusCode.INTERNAL, "CALL_MALFORMED"),
    Fault(errors.MethodUnknown, call_no_method, grpc.StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN"),
    Fault(
        errors.MessageTooLarge,
        lambda memory, _: append(memory, text="x" * SEGMENT_BYTES),
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "MESSAGE_TOO_LARGE",
        {"limit_bytes": str(64 << 10), "setting": "receive_limit_bytes"},
        arguments=("--receive-limit-bytes=64KiB",),
    ),
    Fault(
        errors.Overloaded,
        call_while_another_waits,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "OVERLOADED",
        arguments=("--threads=1", "--waiting-calls=0"),
        changes=("counts_wait",),
    ),
    Fault(
        errors.DeadlineExceeded,
        write_without_a_deadline,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "DEADLINE_EXCEEDED",
        arguments=("--default-timeout=0.000001",),
        failpoints={JOURNAL_VARIABLE: "before_sync=delay:500"},
    ),
    Fault(
        errors.StoreFull,
        fill_the_disk,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "STORE_FULL",
        arguments=(f"--segment-bytes={SEGMENT_BYTES}",),
    ),
    Fault(
        errors.MemoryExhausted,
        fill_the_memory,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "MEMORY_EXHAUSTED",
        arguments=("--data=:memory:", "--database-bytes=32MiB"),
    ),
    Fault(
        errors.StoreDamaged,
        damage_the_database,
        grpc.StatusCode.DATA_LOSS,
        "STORE_DAMAGED",
        arguments=(f"--segment-bytes={SEGMENT_BYTES}",),
    ),
    Fault(
        errors.StoreFailed,
        break_the_disk,
        grpc.StatusCode.UNAVAILABLE,
        "STORE_FAILED",
        arguments=(f"--segment-bytes={SEGMENT_BYTES}",),
    ),
]
OF = {fault.error: fault for fault in FAULTS}


def started(directory: Path, fault: Fault) -> Sidecar:
    token_file(directory / "tokens", f"{TOKEN} acme")
    arguments = [argument.format(directory=directory) for argument in fault.arguments]
    sidecar = Sidecar(directory, "--model", "none", *arguments, token=fault.token)
    sidecar.changes, sidecar.failpoints = fault.changes, fault.failpoints
    sidecar.start()
    return sidecar


@pytest.fixture(scope="module")
def shared() -> Iterator[Sidecar]:
    """The server of the faults that need none of their own."""
    with tempfile.TemporaryDirectory(prefix="remora-") as name:
        server = Sidecar(Path(name), "--model", "none")
        server.start()
        yield server
        server.kill()


@pytest.fixture
def sidecar(request: pytest.FixtureRequest, fault: Fault, directory: Path) -> Iterator[Sidecar]:
    if fault.is_of_any_server:
        yield request.getfixturevalue("shared")
        return
    server = started(directory, fault)
    yield server
    server.kill()


@pytest.fixture
def memory(fault: Fault, sidecar: Sidecar) -> Iterator[Remora]:
    tenant = uuid.uuid4().hex if fault.is_of_any_server else None
    with Remora(sidecar.endpoint, tenant=tenant, token=sidecar.token, timeout=WAIT) as client:
        yield client


def provoked(fault: Fault, memory: Remora, sidecar: Sidecar) -> Status:
    """The status that the fault's call ends with."""
    with pytest.raises(grpc.RpcError) as raised:
        fault.provoke(memory, sidecar)
    status: Status | None = rpc_status.from_call(cast("grpc.Call", raised.value))
    assert status is not None, raised.value
    return status


def detail(status: Status, kind: type[M]) -> M | None:
    found = kind()
    return found if any(packed.Unpack(found) for packed in status.details) else None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.reason)
def test_a_fault_has_its_code_reason_and_details(fault: Fault, memory: Remora, sidecar: Sidecar) -> None:
    status = provoked(fault, memory, sidecar)

    assert status.code == fault.code.value[0]
    info = detail(status, ErrorInfo)
    assert info is not None
    assert (info.reason, info.domain) == (fault.reason, "remora.dev")
    assert set(info.metadata) == set(fault.metadata)
    assert dict(info.metadata).items() >= {(name, value) for name, value in fault.metadata.items() if value is not None}
    invalid = detail(status, BadRequest)
    assert [violation.field for violation in invalid.field_violations] == [fault.metadata["field"]] if invalid else True
    assert (invalid is not None) == issubclass(fault.error, errors.InvalidField)
    passes = fault.code.name in {"RESOURCE_EXHAUSTED", "UNAVAILABLE"} and fault.error is not errors.MessageTooLarge
    assert (detail(status, RetryInfo) is not None) == passes


@pytest.mark.parametrize("fault", [OF[errors.StoreFull]], ids=["STORE_FULL"])
def test_a_full_disk_lets_reads_through_and_writes_again_when_there_is_room(
    fault: Fault, memory: Remora, sidecar: Sidecar
) -> None:
    provoked(fault, memory, sidecar)

    held = len(memory.conversation("held").messages())
    limit_files(sidecar, resource.RLIM_INFINITY)
    eventually(lambda: refused(lambda: append(memory)), until=lambda refusal: refusal is None)
    assert len(memory.conversation("held").messages()) == held + 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", [OF[errors.StoreFailed]], ids=["STORE_FAILED"])
def test_a_failed_disk_leaves_a_store_that_reads_and_a_restart_one_that_writes(
    fault: Fault, memory: Remora, sidecar: Sidecar
) -> None:
    provoked(fault, memory, sidecar)

    limit_files(sidecar, resource.RLIM_INFINITY)
    with pytest.raises(grpc.RpcError):
        append(memory)
    assert not memory.status().store.writable
    assert len(memory.conversation("held").messages()) == 1
    sidecar.kill()
    sidecar.start()
    append(memory)
    assert 2 <= len(memory.conversation("held").messages()) <= 3, "the write that failed is there whole or not at all"


def test_every_error_with_an_answer_is_provoked() -> None:
    tests = Path(__file__).parent.parent
    assert ANSWERS
    assert {fault.error for fault in FAULTS} | set(ELSEWHERE) == set(ANSWERS)
    assert all(ANSWERS[error].reason in (tests / file).read_text("utf-8") for error, file in ELSEWHERE.items())
    assert [(fault.code.value[0], fault.reason) for fault in FAULTS] == [
        (ANSWERS[fault.error].code, ANSWERS[fault.error].reason) for fault in FAULTS
    ]
