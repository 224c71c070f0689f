"""What a tenant has in its store: something of everything, and all of it read again."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message as AnyMessage
from tests.input.callers import Caller, ask

from remora.v1 import admin_service_pb2 as admin
from remora.v1 import checkpoint_service_pb2 as checkpoints
from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import history_service_pb2 as history
from remora.v1 import memory_service_pb2 as memory
from remora.v1 import store_service_pb2 as store
from remora.v1 import vector_service_pb2 as vectors
from remora.v1 import workflow_service_pb2 as workflows
from remora.v1.conversation_pb2 import Conversation
from remora.v1.fact_pb2 import FactTimes, StaticFact
from remora.v1.working_memory_pb2 import WorkingMemoryScope

USERS = ("u", "v", "default")


def write_something_of_everything(caller: Caller) -> None:
    """Two conversations of two users, with messages of both, steps and working memory; a run of a workflow, an entry of
    an agent's history and a trace of each; vectors of each and of nobody, memory items of each.
    """
    for user in ("u", "v"):
        _write_facts(caller, user)
    for conversation, user in (("c", "u"), ("d", "v")):
        write_a_conversation(caller, conversation, user)
    _write_what_is_of_no_conversation(caller)
    ask(caller, "ListReceipts", memory.ListReceiptsRequest())  # which waits until they are written


def write_a_conversation(caller: Caller, conversation: str, user: str) -> None:
    """With messages of both users, steps, a summary and receipts; and its user's working memory."""
    given: Any = {
        "conversation": {
            "id": conversation,
            "user_id": user,
            "title": "A trip",
            "metadata": b"\xff\0",
            "attributes": {"k": {"integer": 7}},
        }
    }
    ask(caller, "CreateConversation", pb.CreateConversationRequest(**given))
    for speaker in ("u", "v"):
        said: Any = [
            {
                "id": f"m{number}",
                "role": "user",
                "text": f"night train {number}",
                "attributes": {"k": {"integer": 1}},
            }
            for number in range(5)
        ]
        ask(
            caller,
            "AppendMessages",
            pb.AppendMessagesRequest(conversation_id=conversation, user_id=speaker, messages=said),
        )
    steps: Any = [{"id": f"s{number}", "conversation_id": conversation, "type": 1} for number in range(3)]
    ask(caller, "SaveSteps", history.SaveStepsRequest(steps=steps))
    for scope in ({"conversation_id": conversation}, {"user_id": user}):
        held: Any = {"scope": scope, "content": b"\0held\xff"}
        ask(caller, "SetWorkingMemory", memory.SetWorkingMemoryRequest(**held))
    _write_a_summary(caller, conversation)
    _leave_receipts(caller, conversation)


def _write_a_summary(caller: Caller, conversation: str) -> None:
    """A summary of the first messages, which leave the window with it."""
    plan: Any = ask(caller, "PlanSummary", pb.PlanSummaryRequest(conversation_id=conversation, keep_messages=2))
    ask(
        caller,
        "CommitSummary",
        pb.CommitSummaryRequest(conversation_id=conversation, cover=plan.cover, text="Night trains.", model="m"),
    )


def _leave_receipts(caller: Caller, conversation: str) -> None:
    """Those of two contexts, which are written behind the replies."""
    for most in (1_000, 2_000):
        ask(
            caller,
            "AssembleContext",
            memory.AssembleContextRequest(
                conversation_id=conversation, max_tokens=most, facts=memory.ContextFacts(), static_facts=True
            ),
        )


def _write_what_is_of_no_conversation(caller: Caller) -> None:
    for run, workflow, user in (("r", "w", "u"), ("q", "x", "v")):
        _write_a_run(caller, run, workflow, user)
    for entry, agent, user in (("h", "a", "u"), ("g", "b", "v")):
        _write_an_entry(caller, entry, agent, user)
    for collection in ("k", "l"):
        for user in ("", "u", "v"):
            _write_vectors(caller, collection, user)
    for user in ("u", "v"):
        _write_memory_items(caller, user)
    ask(caller, "SetStaticFacts", memory.SetStaticFactsRequest(facts=[StaticFact(id="f", content="night train")]))
    for trace, thread, user in (("t", "t", "u"), ("k", "s", "v")):
        _write_a_thread(caller, thread, user)
        _write_a_trace(caller, trace, user)
    for user in ("", "u", "v"):
        _write_items(caller, user)


def _write_a_run(caller: Caller, run_id: str, workflow_id: str, user: str) -> None:
    """A suspended run of a workflow with steps and events."""
    run: Any = {"id": run_id, "workflow_id": workflow_id, "status": 2, "user_id": user, "metadata": b'{"plan": "pro"}'}
    ask(caller, "SaveWorkflowRun", workflows.SaveWorkflowRunRequest(run=run))
    steps: Any = [{"id": f"s{number}", "run_id": run_id, "status": 1, "input": b"\0in"} for number in range(2)]
    ask(caller, "SaveWorkflowSteps", workflows.SaveWorkflowStepsRequest(steps=steps))
    events: Any = [{"id": f"e{number}", "run_id": run_id, "name": "began"} for number in range(2)]
    ask(caller, "AddTimelineEvents", history.AddTimelineEventsRequest(events=events))


def _write_an_entry(caller: Caller, entry_id: str, agent_id: str, user: str) -> None:
    """An entry of an agent's history with steps and an event."""
    entry: Any = {"id": entry_id, "agent_id": agent_id, "user_id": user, "input": b"\0in", "status": "working"}
    ask(caller, "SaveHistoryEntry", history.SaveHistoryEntryRequest(entry=entry))
    steps: Any = [{"id": f"s{number}", "entry_id": entry_id, "content": b"\0said"} for number in range(2)]
    ask(caller, "SaveEntrySteps", history.SaveEntryStepsRequest(steps=steps))
    event: Any = {"id": "e", "run_id": entry_id, "name": "began"}
    ask(caller, "AddTimelineEvents", history.AddTimelineEventsRequest(events=[event]))


def _write_vectors(caller: Caller, collection: str, user: str) -> None:
    """Vectors of a user in a collection."""
    given: Any = [
        {"id": f"v{number}", "values": struct.pack("<2f", 1, number), "content": "night train", "metadata": b"\0\xff"}
        for number in range(3)
    ]
    request = vectors.UpsertVectorsRequest(collection_id=collection, user_id=user, vectors=given)
    ask(caller, "UpsertVectors", request)


def _write_memory_items(caller: Caller, user: str) -> None:
    """Memory items of a user."""
    items: Any = [
        {"id": f"i{number}", "text": f"night train {number}", "tags": ["trip"], "metadata": b'{"seat": 7}'}
        for number in range(3)
    ]
    ask(caller, "AddMemoryItems", memory.AddMemoryItemsRequest(user_id=user, items=items))


def _write_facts(caller: Caller, user: str) -> None:
    """Facts of a user, one of which has ended."""
    given: Any = [
        {"subject": "s", "predicate": predicate, "object": f"night train {number}", "exclusive": True}
        | {"valid_from": {"seconds": number + 1}}
        for number, predicate in enumerate("ppq")
    ]
    ask(caller, "AddFacts", memory.AddFactsRequest(user_id=user, facts=given))


def _write_a_thread(caller: Caller, thread_id: str, user: str) -> None:
    """A thread of three checkpoints, of whose values one is uploaded, with a write of a task."""
    part: Any = {"thread_id": thread_id, "upload_id": "u", "data": b"\0part", "user_id": user}
    ask(caller, "UploadCheckpointPart", checkpoints.UploadCheckpointPartRequest(**part))
    uploaded: Any = {"channel": "b", "value": {"upload": {"id": "u", "parts": 1}}}
    for number in range(3):
        checkpoint: Any = {
            "thread_id": thread_id,
            "id": f"c{number}",
            "parent_id": f"c{number - 1}" if number else "",
            "user_id": user,
            "run_id": "r",
            "metadata": b'{"step": 1}',
            "channels": [{"channel": name, "version": {"integer": number}} for name in ("a", "b")],
        }
        values: Any = [{"channel": "a", "value": {"type": "t", "data": b"night train " * (number + 5)}}]
        draft: Any = {"checkpoint": checkpoint, "values": values if number else [*values, uploaded]}
        name: Any = {"thread_id": thread_id, "checkpoint_id": f"c{number}"}
        task: Any = {
            "name": name,
            "task_id": "k",
            "user_id": user,
            "writes": [
                {"channel": "a", "value": {"data": b"w"}},
                {"channel": "d", "index": 1, "value": {"data": b"w"}},
            ],
        }
        ask(caller, "SaveCheckpoints", checkpoints.SaveCheckpointsRequest(checkpoints=[draft], writes=[task]))


def _write_a_trace(caller: Caller, trace_id: str, user: str) -> None:
    """A trace of two spans, and a log record of it."""
    attributes = b'{"entity.id": "a"}'
    span: Any = {"trace_id": trace_id, "start_time": {"seconds": 1}, "attributes": attributes, "user_id": user}
    spans: Any = [{**span, "span_id": f"s{number}"} for number in range(2)]
    ask(caller, "SaveSpans", history.SaveSpansRequest(spans=spans))
    record: Any = {"id": "l", "trace_id": trace_id, "body": b"\0said", "user_id": user}
    ask(caller, "SaveLogRecords", history.SaveLogRecordsRequest(records=[record]))


def _write_items(caller: Caller, user: str) -> None:
    """Items of a user, with vectors, in a namespace."""
    given: Any = [
        {
            "namespace": ["items", f"of {user}"],
            "key": f"k{number}",
            "value": b'{"n": [1, null]}',
            "user_id": user,
            "vectors": [{"values": struct.pack("<2f", 1, number)}],
        }
        for number in range(3)
    ]
    ask(caller, "PutItems", store.PutItemsRequest(items=given))


def digest(caller: Caller) -> str:
    """A digest of all that can be read, with the revisions that replies show."""
    found = hashlib.blake2b(digest_size=16)
    for reply in everything(caller):
        found.update(reply.SerializeToString(deterministic=True))
    return found.hexdigest()


def everything(caller: Caller) -> Iterator[AnyMessage]:
    """The replies to reads of everything."""
    listed = pb.ListConversationsRequest(page_size=1000, order_by=pb.CONVERSATION_ORDER_CREATE_TIME)
    conversations: Any = ask(caller, "ListConversations", listed)
    yield conversations
    yield ask(caller, "CountConversations", pb.CountConversationsRequest())
    for conversation in conversations.conversations:
        yield from _of_conversation(caller, conversation)
    for user in USERS:
        yield ask(caller, "GetWorkingMemory", memory.GetWorkingMemoryRequest(scope=WorkingMemoryScope(user_id=user)))
    runs: Any = ask(caller, "ListWorkflowRuns", workflows.ListWorkflowRunsRequest(page_size=1000))
    yield runs
    for run in runs.runs:
        yield ask(caller, "ListWorkflowSteps", workflows.ListWorkflowStepsRequest(run_id=run.id, page_size=1000))
        yield ask(caller, "ListTimelineEvents", history.ListTimelineEventsRequest(run_id=run.id, page_size=1000))
    entries: Any = ask(caller, "ListHistoryEntries", history.ListHistoryEntriesRequest(page_size=1000))
    yield entries
    for entry in entries.entries:
        whole = history.GetHistoryEntryRequest(entry_id=entry.id, with_related=True)
        yield ask(caller, "GetHistoryEntry", whole)
    threads: Any = ask(caller, "ListThreads", checkpoints.ListThreadsRequest(page_size=1000))
    yield threads
    yield ask(caller, "ListCheckpoints", checkpoints.ListCheckpointsRequest(page_size=1000))
    collections: Any = ask(caller, "ListCollections", vectors.ListCollectionsRequest(page_size=1000))
    yield collections
    for collection in collections.collections:
        yield ask(caller, "GetCollection", vectors.GetCollectionRequest(collection_id=collection.id))
        values = struct.pack("<f", 1) * max(1, collection.current_dimension)
        for user in ("", *USERS):
            query = vectors.SearchVectorsRequest(collection_id=collection.id, user_id=user, vector=values, k=1000)
            yield ask(caller, "SearchVectors", query)
    yield from _items(caller)
    yield from _memory_items(caller)
    yield from _facts(caller)
    traces: Any = ask(caller, "ListTraces", history.ListTracesRequest(page_size=1000))
    yield traces
    for trace in traces.traces:
        yield ask(caller, "ListSpans", history.ListSpansRequest(trace_id=trace.trace_id, page_size=1000))
    yield ask(caller, "ListLogRecords", history.ListLogRecordsRequest(page_size=1000))
    options = memory.SearchOptions(k=1000, profile=memory.PROFILE_LEXICAL)
    yield ask(
        caller,
        "SearchMessages",
        memory.SearchMessagesRequest(
            tenant=memory.TenantScope(), text="night train", options=options, explain=True, without_receipt=True
        ),
    )


def _items(caller: Caller) -> Iterator[AnyMessage]:
    """The namespaces, and what they hold."""
    yield ask(caller, "ListNamespaces", store.ListNamespacesRequest(page_size=1000))
    for wanted in ({}, {"vector": struct.pack("<2f", 1, 0)}):
        searched: Any = {"limit": 1000, **wanted}
        yield ask(caller, "SearchItems", store.SearchItemsRequest(search=searched))


def _memory_items(caller: Caller) -> Iterator[AnyMessage]:
    for user in USERS:
        yield ask(caller, "ListMemoryItems", memory.ListMemoryItemsRequest(user_id=user, page_size=1000))
        night = memory.SearchMemoryItemsRequest(user_id=user, query="night train", k=1000)
        yield ask(caller, "SearchMemoryItems", night)


def _facts(caller: Caller) -> Iterator[AnyMessage]:
    always = FactTimes(at_any_time=True)
    for user in USERS:
        yield ask(caller, "ListFacts", memory.ListFactsRequest(user_id=user, times=always, page_size=1000))
        yield ask(caller, "SearchFacts", memory.SearchFactsRequest(user_id=user, query="night", times=always, k=1000))
    yield ask(caller, "GetStaticFacts", memory.GetStaticFactsRequest())


def _of_conversation(caller: Caller, conversation: Conversation) -> Iterator[AnyMessage]:
    for user in USERS:
        for method, kind in (("ListMessages", pb.ListMessagesRequest), ("ListSteps", history.ListStepsRequest)):
            yield ask(caller, method, kind(conversation_id=conversation.id, user_id=user, page_size=1000))
    yield ask(caller, "GetWindow", pb.GetWindowRequest(conversation_id=conversation.id))
    scope = WorkingMemoryScope(conversation_id=conversation.id)
    yield ask(caller, "GetWorkingMemory", memory.GetWorkingMemoryRequest(scope=scope))


def journal_records(caller: Caller) -> int:
    """How many records the server's process has written."""
    status: Any = ask(caller, "GetStatus", admin.GetStatusRequest())
    return int(status.journal.records)
