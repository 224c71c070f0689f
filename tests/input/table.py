"""For every field of every request, what it may be and what it may not be.

Most of it follows from the contract's options (`stated`). The tables here hold what they cannot say: what a request
needs at least, what depends on other fields, and which fields have no limit. `test_fields` fails where a field is
nowhere.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message as AnyMessage
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from tests.input.places import Place, holder, inner, places, put, step
from tests.input.stated import LARGE, Values, masked, most_of, stated, texts

from remora.v1.filter_pb2 import Operator
from remora.v1.memory_service_pb2 import Weights
from remora_server.domain.status import ModelStatus
from remora_server.rpc.server import SERVICES

KIB = 1024
MODEL = ModelStatus("all-MiniLM-L6-v2/f32", dimension=384, precision="f32")
METHODS = {method.name: method for service in SERVICES for method in service.methods}
REQUESTS: dict[str, Descriptor] = {method.input_type.name: method.input_type for method in METHODS.values()}

Json: TypeAlias = "dict[str, Any]"


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


ANYTHING = Values(())
ONE = {"integer": 1}
STEP: Json = {"id": "s", "conversation_id": "c", "type": 1}
CONDITION: Json = {"key": "k", "operator": Operator.OPERATOR_EQ, "values": [ONE]}
CALL: Json = {"id": "i", "name": "n"}
EMBEDDING: Json = {"model": "another", "values": vector(1)}
USER: Json = {"user_id": "u"}
SAID: Json = {"role": "user"}
EPOCH = Timestamp()
WRITTEN: Json = {"user_id": "u", "create_time": EPOCH, "update_time": EPOCH}
RUN: Json = {"id": "r", "workflow_id": "w", "status": 1}
RUN_STEP: Json = {"id": "s", "run_id": "r", "status": 1}
EVENT: Json = {"id": "e", "run_id": "r"}
ENTRY: Json = {"id": "h", "agent_id": "a"}
ENTRY_STEP: Json = {"id": "s", "entry_id": "h"}
STORED: Json = {"id": "v", "values": vector(1)}
OF_VECTORS: Json = {"collection_id": "c"}
FACT: Json = {"subject": "s", "predicate": "p", "object": "o"}
FACT_ID = "ba3534c382b20eed-a03051b7b7ab66a8-1"
MEMORY_ITEM: Json = {"id": "i", "user_id": "u", "create_time": EPOCH, "update_time": EPOCH}
ITEM_KEY: Json = {"namespace": ["n"], "key": "k"}
ITEM: Json = {**ITEM_KEY, "value": b"1"}
OF_VALUE: Json = {"path": {"steps": ["a"]}, "operator": Operator.OPERATOR_EQ, "values": [ONE]}
SPAN: Json = {"trace_id": "t", "span_id": "s", "start_time": EPOCH}
CHECKPOINT: Json = {"thread_id": "t", "id": "c"}
CHANNEL: Json = {"channel": "a", "version": {"text": "1"}}
BLOB: Json = {"thread_id": "t", "channel": "a", "version": "1"}
DIFFERENCE: Json = {"depth": 1, "data": b"xx", "size": 7, "base_version": "0", "pieces": [2, 0, 5]}
TASK_WRITE: Json = {"thread_id": "t", "checkpoint_id": "c", "task_id": "k", "channel": "a"}
PART: Json = {"thread_id": "t", "upload_id": "u"}
TASK: Json = {
    "name": {"thread_id": "t", "checkpoint_id": "c"},
    "task_id": "k",
    "writes": [{"channel": "a", "value": {}}],
}
SUMMARY: Json = {
    "conversation_id": "c",
    "user_id": "u",
    "covers_through_sequence": 1,
    "text": "t",
    "create_time": EPOCH,
}
KEPT: Json = {"scope": USER, "update_time": EPOCH}

LEAST: dict[str, Json] = {
    "CreateConversationRequest": {"conversation": {}},
    "GetConversationRequest": {"conversation_id": "c"},
    "GetWindowRequest": {"conversation_id": "c"},
    "ListConversationsRequest": {},
    "CountConversationsRequest": {},
    "UpdateConversationRequest": {"conversation": {"id": "c"}},
    "DeleteConversationRequest": {"conversation_id": "c"},
    "AppendMessagesRequest": {"conversation_id": "c", "messages": [SAID]},
    "ListMessagesRequest": {"conversation_id": "c"},
    "DeleteMessagesRequest": {"conversation_id": "c"},
    "ClearMessagesRequest": {"conversation_id": "c"},
    "DeleteUserRequest": {"user_id": "u"},
    "EditMessagesRequest": {"conversation_id": "c", "edits": [{"remove": "m"}]},
    "PlanSummaryRequest": {"conversation_id": "c"},
    "CommitSummaryRequest": {"conversation_id": "c", "cover": {}, "text": "t"},
    "SaveStepsRequest": {"steps": [STEP]},
    "ListStepsRequest": {"conversation_id": "c"},
    "AddTimelineEventsRequest": {"events": [EVENT]},
    "GetTimelineEventRequest": {"event_id": "e"},
    "ListTimelineEventsRequest": {"run_id": "r"},
    "DeleteTimelineEventRequest": {"event_id": "e"},
    "SaveHistoryEntryRequest": {"entry": ENTRY},
    "UpdateHistoryEntryRequest": {"entry": ENTRY},
    "GetHistoryEntryRequest": {"entry_id": "h"},
    "ListHistoryEntriesRequest": {},
    "DeleteHistoryEntryRequest": {"entry_id": "h"},
    "SaveEntryStepsRequest": {"steps": [ENTRY_STEP]},
    "UpdateEntryStepRequest": {"step": ENTRY_STEP},
    "GetEntryStepRequest": {"step_id": "s"},
    "ListEntryStepsRequest": {"entry_id": "h"},
    "DeleteEntryStepRequest": {"step_id": "s"},
    "SaveSpansRequest": {"spans": [SPAN]},
    "UpdateSpanRequest": {"span": SPAN, "update_mask": {"paths": ["name"]}},
    "GetSpanRequest": {"span_id": "s"},
    "ListSpansRequest": {"trace_id": "t"},
    "ListTracesRequest": {},
    "PruneSpansRequest": {"started_before": EPOCH},
    "SaveLogRecordsRequest": {"records": [{}]},
    "ListLogRecordsRequest": {},
    "PruneLogRecordsRequest": {"recorded_before": EPOCH},
    "SaveWorkflowRunRequest": {"run": RUN},
    "UpdateWorkflowRunRequest": {"run": RUN},
    "GetWorkflowRunRequest": {"run_id": "r"},
    "ListWorkflowRunsRequest": {},
    "DeleteWorkflowRunRequest": {"run_id": "r"},
    "PruneWorkflowRunsRequest": {"workflow_id": "w"},
    "ListWorkflowIdsRequest": {},
    "GetWorkflowStatsRequest": {"workflow_id": "w"},
    "SaveWorkflowStepsRequest": {"steps": [RUN_STEP]},
    "UpdateWorkflowStepRequest": {"step": RUN_STEP},
    "GetWorkflowStepRequest": {"step_id": "s"},
    "ListWorkflowStepsRequest": {"run_id": "r"},
    "DeleteWorkflowStepRequest": {"step_id": "s"},
    "SaveCheckpointsRequest": {"checkpoints": [{"checkpoint": CHECKPOINT}]},
    "GetCheckpointsRequest": {"names": [{"thread_id": "t"}]},
    "ListCheckpointsRequest": {},
    "ListChannelHistoryRequest": {"name": {"thread_id": "t"}, "channels": ["d"]},
    "UploadCheckpointPartRequest": {**PART, "data": b"x"},
    "ReadCheckpointValueRequest": {"thread_id": "t", "channel": CHANNEL},
    "ListThreadsRequest": {},
    "DeleteThreadRequest": {"thread_id": "t"},
    "DeleteRunsRequest": {"run_ids": ["r"]},
    "CopyThreadRequest": {"source_thread_id": "t", "target_thread_id": "s"},
    "PruneThreadsRequest": {"thread_ids": ["t"]},
    "UpsertVectorsRequest": {**OF_VECTORS, "vectors": [STORED]},
    "SearchVectorsRequest": {**OF_VECTORS, "vector": vector(1)},
    "GetVectorsRequest": {**OF_VECTORS, "ids": ["v"]},
    "DeleteVectorsRequest": {**OF_VECTORS, "ids": {"ids": ["v"]}},
    "CountVectorsRequest": OF_VECTORS,
    "CreateCollectionRequest": {"collection": {"id": "c"}},
    "GetCollectionRequest": OF_VECTORS,
    "ListCollectionsRequest": {},
    "ClearCollectionRequest": OF_VECTORS,
    "DeleteCollectionRequest": {**OF_VECTORS, "allow_missing": True},
    "ExecuteOperationsRequest": {"operations": [{"delete": ITEM_KEY}]},
    "PutItemsRequest": {"items": [ITEM]},
    "GetItemsRequest": {"keys": [ITEM_KEY]},
    "SearchItemsRequest": {"search": {}},
    "ListNamespacesRequest": {},
    "DeleteItemsRequest": {"keys": [ITEM_KEY]},
    "DeleteNamespacesRequest": {"namespace_prefix": ["n"]},
    "DeleteExpiredItemsRequest": {},
    "AddMemoryItemsRequest": {"user_id": "u", "items": [{}]},
    "SearchMemoryItemsRequest": {"user_id": "u", "query": "q"},
    "GetMemoryItemRequest": {"user_id": "u", "item_id": "i"},
    "ListMemoryItemsRequest": {"user_id": "u"},
    "DeleteMemoryItemsRequest": {"user_id": "u", "ids": {"ids": ["i"]}},
    "AddFactsRequest": {"user_id": "u", "facts": [FACT]},
    "ExtractFactsRequest": {"user_id": "u", "text": {"text": "t"}},
    "GetFactRequest": {"user_id": "u", "fact_id": "f"},
    "ListFactsRequest": {"user_id": "u"},
    "SearchFactsRequest": {"user_id": "u", "query": "q"},
    "CorrectFactRequest": {"user_id": "u", "fact_id": "f", "fact": FACT},
    "RetractFactsRequest": {"user_id": "u", "facts": {"ids": ["f"]}},
    "ForgetFactsRequest": {"user_id": "u", "ids": {"ids": ["f"]}},
    "SetStaticFactsRequest": {},
    "GetStaticFactsRequest": {},
    "GetReceiptRequest": {"receipt_id": "r"},
    "ListReceiptsRequest": {},
    "ReplayContextRequest": {"receipt_id": "r"},
    "DiffContextsRequest": {"before_receipt_id": "r", "after_receipt_id": "r"},
    "GetWorkingMemoryRequest": {"scope": USER},
    "SetWorkingMemoryRequest": {"scope": USER},
    "EditWorkingMemoryRequest": {"scope": USER, "content": "{}"},
    "DeleteWorkingMemoryRequest": {"scope": USER},
    "SearchMessagesRequest": {"user_id": "u", "text": "t", "index_wait": Duration(), "without_receipt": True},
    "AssembleContextRequest": {
        "conversation_id": "c",
        "max_tokens": 100,
        "index_wait": Duration(),
        "without_receipt": True,
    },
    "ReadConversationRequest": {"conversation_id": "c", "text": "t", "index_wait": Duration()},
    "CountTokensRequest": {},
    "EmbedRequest": {"texts": ["t"]},
    "TrimMessagesRequest": {"max_tokens": 9},
    "ValidateHistoryRequest": {},
    "ClearToolUsesRequest": {},
    "GetStatusRequest": {},
    "ExportRecordsRequest": {},
    "ImportRecordsRequest": {"records": [{"working_memory": KEPT}]},
    "CreateBackupRequest": {},
    "ReadBackupRequest": {"backup_id": "b"},
    "DeleteBackupRequest": {"backup_id": "b"},
}
"""The least that each request needs."""

TEMPLATES: dict[str, Json] = {
    "remora.v1.Message": SAID,
    "remora.v1.ToolCall": CALL,
    "remora.v1.Scalar": ONE,
    "remora.v1.Embedding": EMBEDDING,
    "remora.v1.Condition": CONDITION,
    "remora.v1.Filter": {"condition": CONDITION},
    "remora.v1.Filters": {"filters": [{"condition": CONDITION}]},
    "remora.v1.Path": {"steps": ["a"]},
    "remora.v1.Step": STEP,
    "remora.v1.ShortTermPolicy": {"max_tokens": 100_000_000, "trim": {}},
    "remora.v1.SearchOptions": {"profile": 4},
    "remora.v1.SectionShare": {"section": 2},
    "remora.v1.Edit": {"remove": "m"},
    "remora.v1.Edit.replace": {**SAID, "id": "m"},
    "remora.v1.ConversationScope": {"conversation_id": "c"},
    "remora.v1.Record": {"working_memory": KEPT},
    "remora.v1.ConversationRecord": {"conversation": {**WRITTEN, "id": "c"}},
    "remora.v1.MessageRecord": {"conversation_id": "c", "message": {**SAID, **WRITTEN, "id": "m", "sequence": 1}},
    "remora.v1.Record.step": {**STEP, "user_id": "u", "create_time": EPOCH},
    "remora.v1.WorkingMemoryRecord": KEPT,
    "remora.v1.ConversationSummary": SUMMARY,
    "remora.v1.WorkflowRun": RUN,
    "remora.v1.WorkflowStep": RUN_STEP,
    "remora.v1.TimelineEvent": EVENT,
    "remora.v1.HistoryEntry": ENTRY,
    "remora.v1.EntryStep": ENTRY_STEP,
    "remora.v1.SpanRecord": SPAN,
    "remora.v1.Record.log_record": {"id": "l", "time": EPOCH},
    "remora.v1.Record.history_entry": {**ENTRY, "start_time": EPOCH, "create_time": EPOCH, "update_time": EPOCH},
    "remora.v1.Record.entry_step": {**ENTRY_STEP, "create_time": EPOCH, "update_time": EPOCH},
    "remora.v1.StoreItem": ITEM,
    "remora.v1.ItemKey": ITEM_KEY,
    "remora.v1.ItemVector": {"values": vector(1)},
    "remora.v1.ItemRead": {"key": ITEM_KEY},
    "remora.v1.Operation": {"delete": ITEM_KEY},
    "remora.v1.NamespaceMatch": {"prefix": {}},
    "remora.v1.Record.store_item": {**ITEM, "create_time": EPOCH, "update_time": EPOCH},
    "remora.v1.Checkpoint": CHECKPOINT,
    "remora.v1.CheckpointDraft": {"checkpoint": CHECKPOINT},
    "remora.v1.ChannelVersion": CHANNEL,
    "remora.v1.Version": {"text": "1"},
    "remora.v1.ChannelValue": {"channel": "a", "value": {}},
    "remora.v1.Upload": {"id": "u", "parts": 1},
    "remora.v1.TaskWrites": TASK,
    "remora.v1.TaskWrites.name": {"thread_id": "t", "checkpoint_id": "c"},
    "remora.v1.Write": {"channel": "a", "value": {}},
    "remora.v1.CheckpointName": {"thread_id": "t"},
    "remora.v1.WriteName": {"checkpoint_id": "c", "task_id": "k"},
    "remora.v1.Record.checkpoint": {**CHECKPOINT, "create_time": EPOCH},
    "remora.v1.ChannelBlob": BLOB,
    "remora.v1.CheckpointWrite": TASK_WRITE,
    "remora.v1.CheckpointPart": PART,
    "remora.v1.Vector": STORED,
    "remora.v1.VectorIds": {"ids": ["v"]},
    "remora.v1.VectorCollection": {"id": "c"},
    "remora.v1.MemoryItemIds": {"ids": ["i"]},
    "remora.v1.FactIds": {"ids": ["f"]},
    "remora.v1.SaidText": {"text": "t"},
    "remora.v1.SaidMessages": {"conversation_id": "c"},
    "remora.v1.Fact": FACT,
    "remora.v1.StaticFact": {"content": "c"},
    "remora.v1.Record.fact": {
        **FACT,
        "id": FACT_ID,
        "user_id": "u",
        "valid_from": EPOCH,
        "record_time": EPOCH,
        "mentions": 2_000,
        "confidence": 1.0,
        "text": "t",
    },
    "remora.v1.StaticFacts.facts": {"id": "f", "content": "c"},
    "remora.v1.Record.static_facts": {"update_time": EPOCH},
    "remora.v1.Record.memory_item": MEMORY_ITEM,
    "remora.v1.Record.vector_collection": {"id": "c", "create_time": EPOCH},
    "remora.v1.Record.vector": {**STORED, **OF_VECTORS, "update_time": EPOCH},
    "remora.v1.Record.workflow_run": {**RUN, "start_time": EPOCH, "create_time": EPOCH, "update_time": EPOCH},
    "remora.v1.Record.workflow_step": {**RUN_STEP, "create_time": EPOCH, "update_time": EPOCH},
    "remora.v1.Record.timeline_event": {**EVENT, "start_time": EPOCH, "create_time": EPOCH},
}
"""The least that messages within requests need, where that is not nothing: by the message or a field that has it."""


def _static_facts(count: int) -> list[Json]:
    """So many static facts."""
    return [{"id": str(number), "content": "c"} for number in range(count)]


def _kept_by(count: int) -> list[Json]:
    """Working memories of so many users."""
    return [{"working_memory": {**KEPT, "scope": {"user_id": f"u{number}"}}} for number in range(count)]


OF_JSON = ("ExecuteOperationsRequest", "SearchItemsRequest", "ListWorkflowRunsRequest")
"""Requests whose filters take paths."""

REQUIRED_WITHIN: dict[str, tuple[str, ...]] = {
    "UpdateConversationRequest.conversation": ("id",),
    "EditMessagesRequest.edits.replace": ("id",),
    "ImportRecordsRequest.records.conversation.conversation": ("id", "user_id", "create_time", "update_time"),
    "ImportRecordsRequest.records.message.message": ("id", "user_id", "sequence", "create_time", "update_time"),
    "ImportRecordsRequest.records.step": ("user_id", "create_time"),
    "ImportRecordsRequest.records.workflow_run": (
        "workflow_id",
        "status",
        "start_time",
        "create_time",
        "update_time",
    ),
    "ImportRecordsRequest.records.workflow_step": ("run_id", "status", "create_time", "update_time"),
    "ImportRecordsRequest.records.timeline_event": ("start_time", "create_time"),
    "ImportRecordsRequest.records.history_entry": ("agent_id", "start_time", "create_time", "update_time"),
    "ImportRecordsRequest.records.entry_step": ("entry_id", "create_time", "update_time"),
    "ImportRecordsRequest.records.span": ("trace_id", "start_time"),
    "ImportRecordsRequest.records.log_record": ("id", "time"),
    "ImportRecordsRequest.records.checkpoint": ("create_time",),
    "SaveCheckpointsRequest.writes.name": ("checkpoint_id",),
    "SaveSpansRequest.spans": ("trace_id", "start_time"),
    "SaveHistoryEntryRequest.entry": ("agent_id",),
    "SaveEntryStepsRequest.steps": ("entry_id",),
    "ImportRecordsRequest.records.vector_collection": ("create_time",),
    "ImportRecordsRequest.records.vector": ("collection_id", "values", "update_time"),
    "ImportRecordsRequest.records.store_item": ("create_time", "update_time"),
    "UpsertVectorsRequest.vectors": ("values",),
    "ImportRecordsRequest.records.memory_item": ("id", "user_id", "create_time", "update_time"),
    "ImportRecordsRequest.records.fact": (
        "id",
        "user_id",
        "subject",
        "predicate",
        "object",
        "text",
        "valid_from",
        "record_time",
    ),
    "ImportRecordsRequest.records.static_facts": ("update_time",),
    "AddFactsRequest.facts": ("subject", "predicate", "object"),
    "CorrectFactRequest.fact": ("subject", "predicate", "object"),
    "SaveWorkflowRunRequest.run": ("workflow_id", "status"),
    "SaveWorkflowStepsRequest.steps": ("run_id", "status"),
}
"""What must be set in these places and may be missing elsewhere."""


def _deep(levels: int) -> bytes:
    """An object with so many arrays within each other."""
    return b'{"a":' + b"[" * levels + b"]" * levels + b"}"


def _braces(size: int) -> str:
    """An object without members, of so many bytes."""
    return "{" + " " * (size - 2) + "}"


def _events(count: int) -> list[Json]:
    return [{**EVENT, "id": f"e{number}"} for number in range(count)]


_MOST_RECORDS = most_of("ImportRecordsRequest.records")
_MOST_SCHEMA = most_of("EditWorkingMemoryRequest.json_schema")
_MOST_TEXTS = most_of("EmbedRequest.texts")
_MOST_EVENTS = most_of("AddTimelineEventsRequest.events")
_MOST_OF_ID = most_of("ClearMessagesRequest.conversation_id")
_MOST_VALUES = most_of("Condition.values")

BY_PLACE: dict[str, Values] = {
    "ClearMessagesRequest.conversation_id": Values(texts(1, _MOST_OF_ID).accepted, texts(0, _MOST_OF_ID).refused),
    "ImportRecordsRequest.records": Values((_kept_by(1), _kept_by(_MOST_RECORDS)), ([], _kept_by(_MOST_RECORDS + 1))),
    "EditWorkingMemoryRequest.json_schema": Values(
        ("", "{}", _braces(_MOST_SCHEMA)), (_braces(_MOST_SCHEMA + 1), "é" * (_MOST_SCHEMA // 2 + 1))
    ),
    "EditWorkingMemoryRequest.mode": Values((0, 1), (3, -1, 2**31 - 1)),  # text is not appended to JSON
    "ImportRecordsRequest.records.fact.id": Values((FACT_ID,), ("", "f", FACT_ID[:-1], f"{FACT_ID}x", FACT_ID[1:])),
    "ImportRecordsRequest.records.fact.mentions": Values((1, 2**31 - 1), (0, -1)),
    "ImportRecordsRequest.records.fact.confidence": Values((5e-324, 0.5, 1.0), (0.0, -1.0, 1.1, math.nan)),
    "ImportRecordsRequest.records.conversation_summary.user_id": Values(("u",), texts(1, 512).refused),
    "ImportRecordsRequest.records.store_item.vectors.text": Values((), ("", "t")),
    "ImportRecordsRequest.records.fact.valid_to.seconds": Values((0, 253_402_300_799), (253_402_300_800,)),
    "ImportRecordsRequest.records.static_facts.facts": Values(
        ([], _static_facts(1), _static_facts(1_000)), (_static_facts(1_001),)
    ),
    "ImportRecordsRequest.records.static_facts.facts.id": Values(texts(1, 512).accepted, texts(1, 512).refused),
    "ImportRecordsRequest.records.fact.cease_time.seconds": Values((0, 253_402_300_799), (253_402_300_800,)),
    "ImportRecordsRequest.records.fact.subject": Values((), texts(1, 512).refused),
    "ImportRecordsRequest.records.fact.predicate": Values((), texts(1, 512).refused),
    "ImportRecordsRequest.records.fact.object": Values((), texts(1, 4096).refused),
    "ImportRecordsRequest.records.fact.values": Values((b"",), (bytes(16_385),)),
    "ImportRecordsRequest.records.memory_item.values": Values((b"",), (bytes(16_385),)),
    **{
        f"ImportRecordsRequest.records.{kind}.{name}": values
        for kind in ("channel_blob", "checkpoint_write")
        for name, values in (
            ("data", Values((b"",), (bytes((3 << 20) + 1),))),
            ("upload_id", Values(("",), ("u" * 129,))),
            ("upload_parts", Values((0,), (-1, 1, 10_001))),
            ("size", Values((0,), (-1, 1))),
        )
    },
    "ImportRecordsRequest.records.channel_blob.base_version": Values(("",), ("v", "v" * 1_025)),
    "ImportRecordsRequest.records.channel_blob.base_fork": Values((0,), (-1, 1)),
    "ImportRecordsRequest.records.channel_blob.pieces": Values(([],), ([1, 2, 3], [0] * 3_001)),
    "ImportRecordsRequest.records.vector_collection.current_dimension": Values((0, 4_096), (-1, 4_097)),
    "EmbedRequest.texts": Values((["t"] * _MOST_TEXTS, [""]), ([], ["t"] * (_MOST_TEXTS + 1))),
    "UpdateWorkflowRunRequest.update_mask.paths": Values(([], ["input", "input"], ["status", "suspension"])),
    "UpdateWorkflowStepRequest.update_mask.paths": Values(([], ["input", "input"], ["status", "parallel_index"])),
    "UpdateHistoryEntryRequest.update_mask.paths": Values(([], ["input", "input"], ["status", "end_time"])),
    "UpdateSpanRequest.update_mask.paths": Values((["name", "name"], ["start_time", "user_id"])),
    "UpdateEntryStepRequest.update_mask.paths": Values(([], ["name", "name"], ["status", "step_index"])),
    "AddTimelineEventsRequest.events": Values((_events(1), _events(_MOST_EVENTS)), ([], _events(_MOST_EVENTS + 1))),
}
"""What depends on other fields of the request, or would be refused for another reason."""


def _vectors(field: str, *, zero: bool) -> Values:
    """Vectors of up to the most dimensions of a field, and too long ones. `zero`: whether all numbers may be zero."""
    most = most_of(field) // len(vector(1))
    of_zeros = (vector(0, -0.0),)
    accepted = (vector(1), vector(0, -1), vector(*[1.0] * most), vector(3e38, 3e38), vector(1e-45))
    refused = (
        b"",
        b"\0\0\0",
        b"12345",
        vector(*[1.0] * (most + 1)),
        vector(1, math.nan),
        vector(math.inf),
        vector(math.inf, -math.inf),
    )
    return Values((*accepted, *of_zeros), refused) if zero else Values(accepted, (*refused, *of_zeros))


def _json_objects(most: int, longest: int | None = None) -> Values:
    """Objects of up to so many bytes, and with members of up to so many."""
    longest = longest or most
    return Values(
        (
            b"",
            b"{}",
            b' {"a": {"b": [null, 1.0, 1e999, "\\ud800"]}} ',
            b"{" + b" " * (most - 2) + b"}",
            b'{"a":"' + b"x" * (longest - 8) + b'"}',
            _deep(99),
        ),
        (
            b"[]",
            b"null",
            b"1",
            b"{",
            b"\xff",
            b'{"a":NaN}',
            b'{"a":' + b"9" * 5_000 + b"}",
            b"{" + b" " * (most - 1) + b"}",
            b'{"a":"' + b"x" * (longest - 7) + b'"}',
            _deep(100),
            b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        ),
    )


_MOST_VALUE = most_of("StoreItem.value")
_MOST_PIECES = most_of("ChannelBlob.pieces")

BY_MESSAGE: dict[str, Values] = {
    "Fact.earlier_sources": Values(([], [0, 2**64 - 1] * 500), ([1] * 1_001,)),
    "Embedding.values": _vectors("Embedding.values", zero=False),
    **{
        field: _vectors(field, zero=True)
        for field in ("Vector.values", "SearchVectorsRequest.vector", "ItemVector.values", "ItemSearch.vector")
    },
    "StoreItem.value": Values(
        (
            b"0",
            b' {"a": [null, -1.5e-3, "\\u00e9"]} ',
            b'"' + b"x" * (_MOST_VALUE - 2) + b'"',
            _deep(99),
        ),
        (
            b"",
            b"{",
            b"\xff",
            b"[NaN]",
            b"1e999",
            b"9" * 400,
            b'"\\ud800"',
            b'"' + b"x" * (_MOST_VALUE - 1) + b'"',
            _deep(100),
            b"[" * 10_000 + b"]" * 10_000,
        ),
    ),
    "SectionShare.section": Values((1, 2, 4, 5, 6, 7), (0, 3, 8, -1, 2**31 - 1)),
    "AssembleContextRequest.shares": Values(
        ([], [{"section": number} for number in (7, 6, 5, 4, 2, 1)]),
        ([{"section": number} for number in (7, 6, 5, 4, 2, 1, 3)],),
    ),
    "Condition.operator": Values((1, 2, 3, 4, 5, 6, 7), (0, 10, -1, 2**31 - 1)),
    "Condition.values": Values(([ONE],), ([], [ONE, ONE])),
    **{
        field: _json_objects(most_of(field))
        for field in (
            "WorkflowRun.metadata",
            "MemoryItem.metadata",
            "ListWorkflowRunsRequest.metadata",
            "Checkpoint.metadata",
            "ListCheckpointsRequest.metadata",
            "SpanRecord.attributes",
            "LogRecord.attributes",
        )
    },
    **{
        field: _json_objects(most_of(field), 1_024)
        for field in ("ListTracesRequest.attributes", "ListLogRecordsRequest.attributes")
    },
    "ChannelBlob.pieces": Values(([], [1, 2, 3], [0] * _MOST_PIECES), ([0] * (_MOST_PIECES + 1),)),
    "Timestamp.seconds": Values(
        (0, -62_135_596_800, 253_402_300_799), (-62_135_596_801, 253_402_300_800, 2**63 - 1, -(2**63))
    ),
    "Timestamp.nanos": Values((0, 999_999_999), (-1, 1_000_000_000, 2**31 - 1, -(2**31))),
}
"""What the options do not say, or not all of: vectors, conditions, times."""

INTEGERS = Values((0, -1, -(2**63), *LARGE))
NATURALS = Values((0, 1, *LARGE, 2**63, 2**64 - 1))

PARTS = ("resource_id", "title", "metadata", "attributes", "storage_limit", "short_term")

UNLIMITED: dict[str, Values] = {
    "page_token": Values(),
    "min_revision": Values(),
    "after_sequence": NATURALS,
    "before_sequence": NATURALS,
    "Scalar.integer": INTEGERS,
    "Slice.from": INTEGERS,
    "Slice.to": INTEGERS,
    "FieldMask.paths": Values(([], ["title", "title"], list(PARTS))),
    "CountTokensRequest.texts": Values(("", "\0", "a" * KIB)),
    "EmbedRequest.texts": Values(("", "\0", "a" * KIB)),
    "Conversation.uid": NATURALS,
    "Conversation.revision": NATURALS,
    "Conversation.message_count": INTEGERS,
    "Message.revision": NATURALS,
    "Message.token_count": Values((0, -1, 2**31 - 1)),
    "ConversationSummary.token_count": Values((0, 2**31 - 1), (-1,)),
    "Fact.mentions": Values((0, -1, 2**31 - 1)),
    "Fact.earlier_sources": NATURALS,
    "ConversationSummary.system_sequence": Values((0, 1), (2, 2**64 - 1)),
    "ConversationSummary.window_revision": NATURALS,
    "SummaryCover.window_revision": NATURALS,
    "SummaryCover.revision": NATURALS,
    "WorkflowRun.revision": NATURALS,
    "WorkflowSuspension.step_index": Values((0, -1, 2**31 - 1)),
    "WorkflowSuspension.last_event_sequence": INTEGERS,
    "TimelineEvent.sequence": INTEGERS,
    "expected_revision": NATURALS,
    "StoreItem.revision": NATURALS,
    "Vector.revision": NATURALS,
    "Version.integer": INTEGERS,
    "Value.size": INTEGERS,
    "Write.index": Values((0, -1, 2**31 - 1, -(2**31))),
    "WriteName.index": Values((0, -1, 2**31 - 1, -(2**31))),
    "CheckpointWrite.index": Values((0, -1, 2**31 - 1, -(2**31))),
    "ChannelBlob.pieces": ANYTHING,
    "VectorCollection.current_dimension": Values((0, -1, 2**31 - 1)),
}
"""Fields that may be anything, or whose values have tests of their own: by name, or by message and name."""


def values_of(place: Place) -> Values:
    """What a place may be. KeyError where neither the options nor the tables say it."""
    named, of_message = f"{place.request.name}.{place.names}", f"{place.holder.name}.{place.field.name}"
    if not place.of_element:
        for table, key in ((BY_PLACE, named), (BY_MESSAGE, of_message)):
            if key in table:
                return table[key]
    if place.of_element and place.field.full_name == "google.protobuf.FieldMask.paths":
        return masked(place.fields[-2])
    found = stated(place, _element(place.field), required=_is_required(place))
    if found is not None and place.holder.name == "Path" and place.request.name not in OF_JSON:
        return Values((), found.refused)  # of what filters of messages have none
    return _unlimited(place, of_message) if found is None else found


def _is_required(place: Place) -> bool:
    above = ".".join(field.name for field in place.fields[:-1])
    return place.field.name in REQUIRED_WITHIN.get(f"{place.request.name}.{above}", ())


def _element(field: FieldDescriptor) -> object:
    """What an element of a list or a map may be."""
    within = inner(field)
    return "i" if within is None else TEMPLATES.get(within.full_name, {})


def _unlimited(place: Place, of_message: str) -> Values:
    field = place.field
    if field.type == FieldDescriptor.TYPE_BOOL:
        return Values((False, True))
    if field.message_type is not None:
        return Values()
    return UNLIMITED[of_message] if of_message in UNLIMITED else UNLIMITED[field.name]


@dataclass(frozen=True)
class Case:
    """A request with a value, and the path by which it is refused; None where it is accepted."""

    request: AnyMessage
    path: str | None
    what: str


def cases(request: str) -> Iterator[Case]:
    """The cases of a request, by its name."""
    for place in places(REQUESTS[request]):
        values = values_of(place)
        for value in values.accepted:
            yield Case(_with(place, value), None, f"{place} = {_short(value)}")
        for value in values.refused:
            yield Case(_with(place, value), place.path, f"{place} = {_short(value)}")
    yield from _of_oneofs(request)
    for path, built in COMBINED.get(request, ()):
        yield Case(cast("Any", GetMessageClass(REQUESTS[request]))(**built), path, f"{request} {path} {_short(built)}")


def _with(place: Place, value: Any) -> AnyMessage:  # noqa: ANN401
    return put(least(place.request.name), place, value, TEMPLATES)


def least(request: str) -> AnyMessage:
    """The least request of a name. KeyError where the table has none."""
    return cast("AnyMessage", cast("Any", GetMessageClass(REQUESTS[request]))(**LEAST[request]))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:40]}... ({len(text)} characters)"


REQUIRED_ONEOFS = {
    "Filter.kind",
    "Condition.subject",
    "Scalar.kind",
    "Edit.action",
    "WorkingMemoryScope.owner",
    "SearchMessagesRequest.scope",
    "SearchMessagesRequest.query",
    "Record.kind",
    "SearchVectorsRequest.query",
    "Version.kind",
    "ReadCheckpointValueRequest.value",
    "DeleteVectorsRequest.selection",
    "DeleteMemoryItemsRequest.selection",
    "ExtractFactsRequest.from",
    "ForgetFactsRequest.selection",
    "Operation.kind",
    "ItemVector.content",
    "NamespaceMatch.kind",
}


def _of_oneofs(request: str) -> Iterator[Case]:
    """Requests in which a oneof that is required has nothing set."""
    seen: set[str] = set()
    for place in places(REQUESTS[request]):
        one_of = place.field.containing_oneof
        if one_of is None or f"{place.holder.name}.{one_of.name}" not in REQUIRED_ONEOFS:
            continue
        path = ".".join([*map(step, place.fields[:-1]), one_of.name])
        if path not in seen:
            seen.add(path)
            emptied = least(request)
            holder(emptied, place, TEMPLATES).ClearField(one_of.name)
            yield Case(emptied, path, f"{request} without {path}")


def _searched(**fields: object) -> Json:
    return {"user_id": "u", "text": "t", **fields}


def _by_vector(**options: object) -> Json:
    return {"user_id": "u", "embedding": EMBEDDING, "options": options}


def _filtered(where: Json) -> Json:
    return _searched(options={"filter": {"where": where}})


def _either(other: Json) -> Json:
    return {"any_of": {"filters": [{"condition": CONDITION}, other]}}


def _on(operator: int, values: list[Any]) -> Json:
    condition = {"key": "k", "operator": operator, "values": [one if isinstance(one, dict) else ONE for one in values]}
    return _filtered({"condition": condition})


def _created(short_term: Json) -> Json:
    return {"conversation": {"short_term": short_term}}


def _of_model(dimensions: int) -> Json:
    return {"model": MODEL.name, "values": vector(*[1.0] * dimensions)}


def _said_with(dimensions: int) -> Json:
    return {**SAID, "embedding": _of_model(dimensions)}


def _imported(kind: str, **fields: object) -> Json:
    """A record of a conversation or a message."""
    least = TEMPLATES[f"remora.v1.{kind.title()}Record"]
    return {kind: {**least, kind: {**least[kind], **fields}}}


_WHERE = "options.filter.where"
_VALUES = f"{_WHERE}.condition.values"
_OF_PATH = {"condition": {"path": {"steps": ["a"]}, "operator": Operator.OPERATOR_PRESENT}}
_IN: Json = {"key": "k", "operator": Operator.OPERATOR_IN}
_TOO_MANY = [ONE] * (_MOST_VALUES + 1)
_WITHOUT_VALUE = {"condition": {"key": "k", "operator": Operator.OPERATOR_EQ}}
_DEEP = [{"condition": CONDITION}]
while len(_DEEP) < 9:
    _DEEP.append({"negated": _DEEP[-1]})
_MANY = [{"any_of": {"filters": [{"condition": CONDITION}] * count}} for count in (60, 4, 5)]
_ORDERED = range(Operator.OPERATOR_LT, Operator.OPERATOR_IN)
_DIMENSIONS = (1, MODEL.dimension - 1, MODEL.dimension + 1)
_NO_WEIGHTS = {field.name: 0.0 for field in Weights.DESCRIPTOR.fields if field.name != "late"}
_PASSED_ON: list[Json] = [{}, {"answer": 1.0, "next": 1.0}, {"session": 1.0, "nearby": 1.0}]
_TOGETHER_IN_SEARCH: list[tuple[str | None, Json]] = [
    *((None, _by_vector(profile=profile)) for profile in (0, 2)),
    *(("options.profile", _by_vector(profile=profile)) for profile in (1, 3, 4)),
    ("options.recency_half_life", _by_vector(recency_half_life=Duration(seconds=86_400))),
    *(
        (
            "options.recency_half_life",
            _searched(options={"profile": profile, "recency_half_life": Duration(seconds=86_400)}),
        )
        for profile in (2, 3)
    ),
    *(
        (None, _searched(options={"profile": profile, "recency_half_life": Duration(seconds=86_400)}))
        for profile in (0, 1, 4)
    ),
    ("options.recency_half_life", _searched(options={"recency_half_life": Duration(nanos=999_999)})),
    (None, _by_vector(weights={})),
    ("options.weights", _by_vector(weights={"cosine": 1.0})),
    *((None, _searched(options={"profile": profile, "weights": {"bm25": 1.0}})) for profile in (0, 1, 4)),
    (None, _searched(options={"profile": 4, "weights": {"late": 1.0}})),
    *(("options.weights", _searched(options={"weights": {**_NO_WEIGHTS, **left}})) for left in _PASSED_ON),
    ("options.weights", _searched(options={"profile": 4, "weights": {**_NO_WEIGHTS, "late": 0.0}})),
    *((None, _searched(options={"weights": {**_NO_WEIGHTS, name: 1.0}})) for name in ("cosine", "speaker", "passage")),
    (None, _searched(options={"profile": 4, "weights": _NO_WEIGHTS})),
    *(
        ("options.weights.late", _searched(options={"profile": profile, "weights": {"late": 1.0}}))
        for profile in (0, 1)
    ),
    *(("options.weights", _searched(options={"profile": profile, "weights": {"bm25": 1.0}})) for profile in (2, 3)),
    *((_VALUES, _on(operator, values)) for operator in range(1, 7) for values in ([], [1, 1])),
    *((None, _on(operator, [one])) for operator in _ORDERED for one in ({"number": 0.5}, {"text": ""})),
    *(
        (f"{_VALUES}[0]", _on(operator, [one]))
        for operator in _ORDERED
        for one in ({"boolean": True}, {"null_value": 0})
    ),
    *((None, _on(Operator.OPERATOR_IN, [1] * count)) for count in (1, _MOST_VALUES)),
    *((_VALUES, _on(Operator.OPERATOR_IN, [1] * count)) for count in (0, _MOST_VALUES + 1)),
    *((None, _on(operator, [])) for operator in (Operator.OPERATOR_PRESENT, Operator.OPERATOR_ABSENT)),
    *((_VALUES, _on(operator, [1])) for operator in (Operator.OPERATOR_PRESENT, Operator.OPERATOR_ABSENT)),
    (f"{_WHERE}.condition.path", _filtered(_OF_PATH)),
    (f"{_WHERE}.any_of.filters[1].negated.condition.path", _filtered(_either({"negated": _OF_PATH}))),
    *(
        (f"{_WHERE}.{path}.condition.values", _filtered(where))
        for path, where in (
            ("negated", {"negated": _WITHOUT_VALUE}),
            ("any_of.filters[1]", _either(_WITHOUT_VALUE)),
            ("all_of.filters[0]", {"all_of": {"filters": [_WITHOUT_VALUE]}}),
        )
    ),
    (None, _filtered(_DEEP[7])),
    (f"{_WHERE}{'.negated' * 8}", _filtered(_DEEP[8])),
    (None, _filtered({"all_of": {"filters": _MANY[:2]}})),
    (_WHERE, _filtered({"all_of": {"filters": _MANY[::2]}})),
    (None, {"user_id": "u", "embedding": _of_model(MODEL.dimension)}),
    *(("embedding.values", {"user_id": "u", "embedding": _of_model(count)}) for count in _DIMENSIONS),
]


def _nested_names(length: int) -> bytes:
    """Objects within each other under names of this length, and an array of many values within the innermost."""
    opened = b"".join(b'{"' + b"n" * length + b'":' for _ in range(8))
    return opened + b"[" + b",".join([b"1"] * 500) + b"]" + b"}" * 8


def _object(count: int) -> bytes:
    """A JSON object with so many members."""
    return json.dumps({str(number): number for number in range(count)}).encode()


COMBINED: Mapping[str, list[tuple[str | None, Json]]] = {
    "SearchMessagesRequest": _TOGETHER_IN_SEARCH,
    "AssembleContextRequest": [
        ("search.weights", {**LEAST["AssembleContextRequest"], "search": {"profile": 3, "weights": {"next": 0.0}}}),
        ("search.weights", {**LEAST["AssembleContextRequest"], "search": {"weights": _NO_WEIGHTS}}),
        *(
            (path, {**LEAST["AssembleContextRequest"], "query_embedding": EMBEDDING, "search": search})
            for path, search in (
                (None, {}),
                (None, {"profile": 2}),
                ("search.profile", {"profile": 1}),
                ("search.weights", {"weights": {"cosine": 1.0}}),
            )
        ),
        *(
            ("query_embedding.values", {**LEAST["AssembleContextRequest"], "query_embedding": _of_model(count)})
            for count in _DIMENSIONS
        ),
        ("query", {**LEAST["AssembleContextRequest"], "query": "q", "query_embedding": EMBEDDING}),
        *(
            (path, {**LEAST["AssembleContextRequest"], "facts": {}, "static_facts": True, "shares": shares})
            for path, shares in (
                (None, []),
                (None, [{"section": 1, "share": 0.5}, {"section": 6, "share": 0.0}]),
                ("shares[0].section", [{"section": 3}]),
                ("shares[1].section", [{"section": 1}, {"section": 1}]),
            )
        ),
        (
            "facts.times.valid_at",
            {**LEAST["AssembleContextRequest"], "facts": {"times": {"valid_at": EPOCH, "at_any_time": True}}},
        ),
    ],
    "ReadConversationRequest": [
        *(
            (path, {"conversation_id": "c", "embedding": EMBEDDING, "index_wait": Duration(), "options": options})
            for path, options in (
                (None, {"profile": 2}),
                ("options.profile", {"profile": 1}),
                ("options.weights", {"weights": {"cosine": 1.0}}),
            )
        ),
    ],
    "AppendMessagesRequest": [
        (None, {"conversation_id": "c", "messages": [_said_with(MODEL.dimension)]}),
        *(
            ("messages[1].embedding.values", {"conversation_id": "c", "messages": [SAID, _said_with(count)]})
            for count in _DIMENSIONS
        ),
    ],
    "EditMessagesRequest": [
        (
            "edits[1].append.embedding.values",
            {
                "conversation_id": "c",
                "edits": [{"remove": "m"}, {"append": _said_with(count)}],
            },
        )
        for count in _DIMENSIONS
    ],
    "ClearMessagesRequest": [("user_id", {}), (None, {"user_id": "u"})],
    "UpdateWorkflowRunRequest": [("run.status", {"run": {"id": "r"}, "update_mask": {"paths": ["status"]}})],
    "UpdateSpanRequest": [
        ("update_mask", {"span": SPAN}),
        ("span.start_time", {"span": {"trace_id": "t", "span_id": "s"}, "update_mask": {"paths": ["start_time"]}}),
        (None, {"span": {"trace_id": "t", "span_id": "s"}, "update_mask": {"paths": ["end_time"]}}),
        (None, {"span": {"span_id": "s"}, "update_mask": {"paths": ["end_time"]}}),
    ],
    "SaveSpansRequest": [
        (None, {"spans": [{**SPAN, "attributes": _object(1_024)}]}),
        ("spans[0].attributes", {"spans": [{**SPAN, "attributes": _object(1_025)}]}),
    ],
    "SaveLogRecordsRequest": [
        (None, {"records": [{"attributes": _object(1_024)}]}),
        ("records[0].attributes", {"records": [{"attributes": _object(1_025)}]}),
    ],
    "ListTracesRequest": [(None, {"attributes": _object(16)}), ("attributes", {"attributes": _object(17)})],
    "ListLogRecordsRequest": [(None, {"attributes": _object(16)}), ("attributes", {"attributes": _object(17)})],
    "CreateConversationRequest": [
        ("conversation.short_term.overflow", _created({"max_tokens": 1})),
        (None, _created({"max_tokens": 7, "trim": {"keep_tokens": 7}})),
        ("conversation.short_term.trim.keep_tokens", _created({"max_tokens": 7, "trim": {"keep_tokens": 8}})),
        (None, {"conversation": {"without_short_term": True}}),
        (
            "conversation.short_term",
            {"conversation": {"short_term": {"max_tokens": 7, "trim": {}}, "without_short_term": True}},
        ),
    ],
    "UpdateWorkflowStepRequest": [("step.status", {"step": {"id": "s"}, "update_mask": {"paths": ["status"]}})],
    **{
        request: [
            (None, {**query, "filter": {"condition": CONDITION}}),
            ("filter.condition.path", {**query, "filter": _OF_PATH}),
            ("filter.condition.values", {**query, "filter": {"condition": {**_IN, "values": _TOO_MANY}}}),
            ("filter.negated.condition.values", {**query, "filter": {"negated": _WITHOUT_VALUE}}),
            ("filter.any_of.filters[1].condition.values", {**query, "filter": _either(_WITHOUT_VALUE)}),
            (f"filter{'.negated' * 8}", {**query, "filter": _DEEP[8]}),
            ("filter", {**query, "filter": {"all_of": {"filters": _MANY[::2]}}}),
        ]
        for request, query in (
            ("SearchVectorsRequest", {**OF_VECTORS, "vector": vector(1)}),
            ("ListMessagesRequest", {"conversation_id": "c"}),
            ("CountVectorsRequest", OF_VECTORS),
            ("DeleteVectorsRequest", OF_VECTORS),
        )
    },
    "AddMemoryItemsRequest": [
        ("items[0].ttl", {"user_id": "u", "items": [{"ttl": Duration(seconds=1), "expire_time": EPOCH}]}),
        (None, {"user_id": "u", "items": [{"metadata": _object(1_000)}]}),
        ("items[0].metadata", {"user_id": "u", "items": [{"metadata": _object(1_001)}]}),
        ("items[0].metadata", {"user_id": "u", "items": [{"metadata": _nested_names(256)}]}),
    ],
    **{
        request: [
            (None, {"user_id": "u", **query, "filter": {"where": {"condition": CONDITION}}}),
            (None, {"user_id": "u", **query, "filter": {"where": _OF_PATH}}),
            (f"filter.where{'.negated' * 8}", {"user_id": "u", **query, "filter": {"where": _DEEP[8]}}),
            ("filter.where", {"user_id": "u", **query, "filter": {"where": {"all_of": {"filters": _MANY[::2]}}}}),
        ]
        for request, query in (
            ("SearchMemoryItemsRequest", {"query": "q"}),
            ("ListMemoryItemsRequest", {}),
        )
    },
    "EditWorkingMemoryRequest": [
        (None, {"scope": USER, "content": "{}", "format": 2, "json_schema": "{}"}),
        ("json_schema", {"scope": USER, "content": "{}", "format": 1, "json_schema": "{}"}),
    ],
    "DeleteMemoryItemsRequest": [
        (None, {"ids": {"ids": ["i"]}}),
        ("user_id", {"filter": {}}),
    ],
    **{
        request: [
            (None, {"user_id": "u", **query, "times": {"at_any_time": True}}),
            (None, {"user_id": "u", **query, "times": {"valid_at": EPOCH, "recorded_at": EPOCH}}),
            ("times.valid_at", {"user_id": "u", **query, "times": {"valid_at": EPOCH, "at_any_time": True}}),
        ]
        for request, query in (("SearchFactsRequest", {"query": "q"}), ("ListFactsRequest", {}))
    },
    "SetStaticFactsRequest": [
        (None, {"facts": [{"content": "c"}, {"content": "c"}]}),
        ("facts[1].id", {"facts": [{"id": "f", "content": "c"}, {"id": "f", "content": "d"}]}),
        ("facts", {"facts": [{"content": "x" * 8_192}] * 129}),
    ],
    "CopyThreadRequest": [("target_thread_id", {"source_thread_id": "t", "target_thread_id": "t"})],
    "ListCheckpointsRequest": [(None, {"metadata": _object(16)}), ("metadata", {"metadata": _object(17)})],
    "ListWorkflowRunsRequest": [
        (None, {"metadata": _object(16)}),
        ("metadata", {"metadata": _object(17)}),
        (None, {"filter": {"condition": CONDITION}}),
        (None, {"filter": _OF_PATH}),
        ("skip", {"filter": _OF_PATH, "skip": 1}),
        (f"filter{'.negated' * 8}", {"filter": _DEEP[8]}),
        ("filter", {"filter": {"all_of": {"filters": _MANY[::2]}}}),
    ],
    "ImportRecordsRequest": [
        *(
            (
                f"records[0].{kind}.{kind}.{name}.seconds",
                {"records": [_imported(kind, **{name: Timestamp(seconds=1 << 60)})]},
            )
            for kind in ("conversation", "message")
            for name in ("create_time", "update_time")
        ),
        *(
            (f"records[0].{kind}.{wrong}" if wrong else None, {"records": [{kind: {**least, **fields}}]})
            for kind, least in (("channel_blob", BLOB), ("checkpoint_write", TASK_WRITE))
            for wrong, fields in (
                ("", {"data": b"most" * (3 << 18), "size": 3 << 20}),
                ("", {"upload_id": "u" * 128, "upload_parts": 10_000, "size": 2**63 - 1}),
                ("size", {"data": b"xx", "size": 3}),
                ("size", {"data": b"xx"}),
                ("data", {"upload_id": "u", "upload_parts": 1, "data": b"xx", "size": 2}),
                ("upload_parts", {"upload_id": "u"}),
                ("upload_parts", {"upload_parts": 1}),
                ("upload_parts", {"upload_id": "u", "upload_parts": 10_001}),
                ("upload_parts", {"upload_id": "u", "upload_parts": -1}),
                ("upload_id", {"upload_id": "u" * 129, "upload_parts": 1}),
                ("size", {"upload_id": "u", "upload_parts": 1, "size": -1}),
                ("data", {"data": bytes((3 << 20) + 1), "size": (3 << 20) + 1}),
            )
        ),
        *(
            (f"records[0].channel_blob.{wrong}" if wrong else None, {"records": [{"channel_blob": {**BLOB, **fields}}]})
            for wrong, fields in (
                ("", {**DIFFERENCE, "base_version": "v" * 1_024, "base_fork": 2**31 - 1}),
                ("", {**DIFFERENCE, "pieces": [2, 0, 5, *[0] * 2_997]}),
                ("base_version", {**DIFFERENCE, "base_version": "v" * 1_025}),
                ("base_fork", {**DIFFERENCE, "base_fork": -1}),
                ("pieces", {**DIFFERENCE, "pieces": [2, 0, 5, *[0] * 3_000]}),
                ("size", {**DIFFERENCE, "size": 8}),
                ("pieces", {**DIFFERENCE, "pieces": [2, 0, 5, 0]}),
                ("pieces", {**DIFFERENCE, "pieces": [1, 0, 6]}),
                ("upload_id", {**DIFFERENCE, "data": b"", "upload_id": "u", "upload_parts": 1}),
                ("pieces", {"pieces": [0, 0, 0]}),
                ("base_version", {"base_version": "v"}),
                ("base_fork", {"base_fork": 1}),
            )
        ),
    ],
    "PutItemsRequest": [
        (None, {"items": [{**ITEM, "vectors": [{"values": vector(1, 2)}, {"values": vector(1), "model": "m"}]}]}),
        (
            "items[0].vectors[1].values",
            {"items": [{**ITEM, "vectors": [{"values": vector(1, 2)}, {"values": vector(1)}]}]},
        ),
    ],
    "SearchItemsRequest": [
        (None, {"search": {"filter": {"condition": OF_VALUE}}}),
        (None, {"search": {"filter": {"condition": CONDITION}}}),
        (f"search.filter{'.negated' * 8}", {"search": {"filter": _DEEP[8]}}),
        ("search.filter", {"search": {"filter": {"all_of": {"filters": _MANY[::2]}}}}),
    ],
    "CountTokensRequest": [
        ("messages", {"texts": ["t"], "messages": [SAID]}),
        *(("messages[0].embedding.values", {"messages": [_said_with(count)]}) for count in _DIMENSIONS),
    ],
    "TrimMessagesRequest": [
        (None, {"max_tokens": 9, "strategy": 1, "start_on": ["user"], "include_system": False}),
        (None, {"max_tokens": 9, "strategy": 2, "end_on": ["user"]}),
        ("start_on", {"max_tokens": 9, "strategy": 2, "start_on": ["user"]}),
        ("include_system", {"max_tokens": 9, "strategy": 2, "include_system": False}),
        *(
            ("messages[0].embedding.values", {"max_tokens": 9, "messages": [_said_with(count)]})
            for count in _DIMENSIONS
        ),
    ],
    **{
        request: [("messages[0].embedding.values", {"messages": [_said_with(count)]}) for count in _DIMENSIONS]
        for request in ("ValidateHistoryRequest", "ClearToolUsesRequest")
    },
}
"""Fields that are right alone and wrong together: the path that is named, None where they are accepted; the request."""
