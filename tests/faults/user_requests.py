"""Random writes of one user, of every kind that the contract has, from a seed."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from tests.faults.fact_model import FactRequests
from tests.faults.user_model import UPLOADED

from remora.v1 import checkpoint_service_pb2 as checkpoints
from remora.v1 import conversation_pb2, message_pb2, step_pb2
from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import history_service_pb2 as history
from remora.v1 import memory_service_pb2 as memory
from remora.v1 import store_service_pb2 as store
from remora.v1 import transfer_service_pb2 as transfer
from remora.v1 import user_service_pb2 as users
from remora.v1 import vector_service_pb2 as vectors
from remora.v1 import workflow_service_pb2 as workflows
from remora.v1.checkpoint_pb2 import Checkpoint, Version
from remora.v1.filter_pb2 import OPERATOR_EQ, Condition, Filter
from remora.v1.history_entry_pb2 import EntryStep, HistoryEntry
from remora.v1.log_record_pb2 import LogRecord
from remora.v1.memory_item_pb2 import MemoryItem, MemoryItemFilter, MemoryItemIds, SpokenMessage
from remora.v1.scalar_pb2 import Scalar
from remora.v1.short_term_pb2 import SummaryCover
from remora.v1.span_pb2 import SpanRecord
from remora.v1.store_item_pb2 import ItemKey, StoreItem
from remora.v1.timeline_event_pb2 import TimelineEvent
from remora.v1.vector_pb2 import Vector, VectorCollection
from remora.v1.workflow_pb2 import WORKFLOW_STEP_STATUS_RUNNING, WorkflowRun, WorkflowStatus, WorkflowStep
from remora.v1.working_memory_pb2 import WORKING_MEMORY_MODE_APPEND, WorkingMemoryScope

VECTOR_MODEL = "callers"
A_DAY = 86_400
NAMES = ("a", "b", "c")
IDS = 12
LONG_AGO = 1_700_000_000
PLAIN_SHARE = 0.1
"""Of so many requests, one has no request id."""

WEIGHTS = {
    "AppendMessages": 40,
    "EditMessages": 14,
    "DeleteMessages": 8,
    "UpdateConversation": 8,
    "SaveSteps": 8,
    "SetWorkingMemory": 8,
    "EditWorkingMemory": 4,
    "CreateConversation": 6,
    "DeleteWorkingMemory": 4,
    "ClearMessages": 3,
    "CommitSummary": 2,
    "DeleteConversation": 3,
    "ImportRecords": 3,
    "SaveWorkflowRun": 6,
    "UpdateWorkflowRun": 6,
    "DeleteWorkflowRun": 2,
    "SaveWorkflowSteps": 6,
    "AddTimelineEvents": 6,
    "PruneWorkflowRuns": 1,
    "UpdateWorkflowStep": 3,
    "DeleteWorkflowStep": 2,
    "DeleteTimelineEvent": 2,
    "SaveHistoryEntry": 6,
    "UpdateHistoryEntry": 4,
    "DeleteHistoryEntry": 2,
    "SaveEntrySteps": 6,
    "UpdateEntryStep": 3,
    "DeleteEntryStep": 2,
    "PutItems": 8,
    "DeleteItems": 3,
    "DeleteNamespaces": 1,
    "ExecuteOperations": 4,
    "DeleteExpiredItems": 1,
    "UpsertVectors": 8,
    "DeleteVectors": 4,
    "CreateCollection": 2,
    "ClearCollection": 1,
    "DeleteCollection": 1,
    "AddMemoryItems": 8,
    "DeleteMemoryItems": 4,
    "AddFacts": 8,
    "ExtractFacts": 4,
    "CorrectFact": 3,
    "RetractFacts": 2,
    "ForgetFacts": 3,
    "SetStaticFacts": 5,
    "SaveCheckpoints": 14,
    "UploadCheckpointPart": 4,
    "DeleteThread": 1,
    "DeleteRuns": 1,
    "CopyThread": 1,
    "PruneThreads": 2,
    "SaveSpans": 6,
    "UpdateSpan": 4,
    "PruneSpans": 1,
    "SaveLogRecords": 6,
    "PruneLogRecords": 1,
    "DeleteUser": 1,
}


def runs_of(user: str) -> list[str]:
    """The ids that a user's runs may have."""
    return [f"{user}-{name}" for name in NAMES]


def entries_of(user: str) -> list[str]:
    """The ids that a user's history entries may have."""
    return [f"{user}-entry-{name}" for name in NAMES]


def collections_of(user: str) -> list[str]:
    """The ids that a user's collections may have."""
    return [f"{user}-{name}" for name in NAMES]


def traces_of(user: str) -> list[str]:
    """The ids that a user's traces may have."""
    return [f"{user}-trace-{name}" for name in NAMES]


class UserRequests:
    """An endless row of requests. Few names and ids, so that most of them meet what earlier ones left."""

    def __init__(self, user: str, shared: str, seed: object) -> None:
        self._user = user
        self._shared = shared
        self._random = random.Random(f"{seed} {user}")
        self._count = 0
        self._make: dict[str, Callable[[], Message]] = {
            "AppendMessages": self._append,
            "EditMessages": self._edit,
            "DeleteMessages": self._delete_messages,
            "UpdateConversation": self._update,
            "SaveSteps": self._save_steps,
            "SetWorkingMemory": self._set_memory,
            "EditWorkingMemory": self._append_memory,
            "CreateConversation": self._create,
            "DeleteWorkingMemory": self._delete_memory,
            "ClearMessages": self._clear,
            "CommitSummary": self._commit_summary,
            "DeleteConversation": self._delete,
            "ImportRecords": self._import,
            "SaveWorkflowRun": lambda: workflows.SaveWorkflowRunRequest(run=self._described_run()),
            "UpdateWorkflowRun": self._update_run,
            "DeleteWorkflowRun": self._delete_run,
            "SaveWorkflowSteps": self._save_workflow_steps,
            "AddTimelineEvents": self._add_events,
            "PruneWorkflowRuns": self._prune_runs,
            "UpdateWorkflowStep": self._update_workflow_step,
            "DeleteWorkflowStep": self._delete_workflow_step,
            "DeleteTimelineEvent": self._delete_event,
            "SaveHistoryEntry": lambda: history.SaveHistoryEntryRequest(entry=self._described_entry()),
            "UpdateHistoryEntry": self._update_entry,
            "DeleteHistoryEntry": lambda: history.DeleteHistoryEntryRequest(entry_id=self._entry()),
            "SaveEntrySteps": self._save_entry_steps,
            "UpdateEntryStep": self._update_entry_step,
            "DeleteEntryStep": self._delete_entry_step,
            "PutItems": lambda: store.PutItemsRequest(items=self._items()),
            "DeleteItems": lambda: store.DeleteItemsRequest(keys=[self._item_key() for _ in range(2)]),
            "DeleteNamespaces": lambda: store.DeleteNamespacesRequest(namespace_prefix=self._namespace()),
            "ExecuteOperations": self._execute_operations,
            "DeleteExpiredItems": store.DeleteExpiredItemsRequest,
            "UpsertVectors": self._upsert_vectors,
            "DeleteVectors": self._delete_vectors,
            "CreateCollection": self._create_collection,
            "ClearCollection": lambda: vectors.ClearCollectionRequest(collection_id=self._own()),
            "DeleteCollection": self._delete_collection,
            "AddMemoryItems": self._add_memory_items,
            "DeleteMemoryItems": self._delete_memory_items,
            **FactRequests(user, self._random).make,
            "SaveCheckpoints": self._save_checkpoints,
            "UploadCheckpointPart": self._upload_checkpoint_part,
            "DeleteThread": lambda: checkpoints.DeleteThreadRequest(thread_id=self._thread()),
            "DeleteRuns": lambda: checkpoints.DeleteRunsRequest(run_ids=[self._run()]),
            "CopyThread": self._copy_thread,
            "PruneThreads": self._prune_threads,
            "SaveSpans": self._save_spans,
            "UpdateSpan": self._update_span,
            "PruneSpans": lambda: history.PruneSpansRequest(started_before=Timestamp(seconds=LONG_AGO)),
            "SaveLogRecords": self._save_logs,
            "PruneLogRecords": lambda: history.PruneLogRecordsRequest(recorded_before=Timestamp(seconds=LONG_AGO)),
            "DeleteUser": lambda: users.DeleteUserRequest(user_id=self._user),
        }

    def draw(self) -> tuple[str, Message]:
        """The next method and its request."""
        self._count += 1
        [method] = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()))
        request = self._make[method]()
        if self._random.random() > PLAIN_SHARE:
            setattr(request, "request_id", f"{self._user}-{self._count}")  # noqa: B010 - every write has it
        return method, request

    def _own(self) -> str:
        return f"{self._user}-{self._random.choice(NAMES)}"

    def _any(self) -> str:
        return self._shared if self._random.random() < 0.25 else self._own()

    def _id(self) -> str:
        return f"m{self._random.randrange(IDS)}"

    def _limit(self) -> int | None:
        return self._random.choice([None, None, 5, 20])

    def _text(self) -> str:
        """A text of its own, now and then a long one."""
        return f"{self._user} {self._count} " + "word " * self._random.choice([0, 3, 30, 400])

    def _message(self) -> message_pb2.Message:
        made_id = self._random.random() < 0.2
        return message_pb2.Message(
            id="" if made_id else self._id(),
            role=self._random.choice(["user", "assistant"]),
            text=self._text(),
            parts=self._random.randbytes(self._random.choice([0, 10, 3000])),
            metadata=self._random.randbytes(self._random.choice([0, 20])),
            embedding=self._vector() if self._random.random() < 0.3 else None,
        )

    def _vector(self) -> message_pb2.Embedding:
        return message_pb2.Embedding(model=VECTOR_MODEL, values=struct.pack("<2f", 1, self._random.random()))

    def _conversation(self, name: str) -> conversation_pb2.Conversation:
        return conversation_pb2.Conversation(
            id=name,
            user_id=self._user,
            title=self._text()[:50],
            metadata=self._random.randbytes(10),
            storage_limit=self._limit(),
        )

    def _append(self) -> Message:
        name = self._any()
        missing = name != self._shared and self._random.random() < 0.8
        return pb.AppendMessagesRequest(
            conversation_id=name,
            user_id=self._user,
            messages=[self._message() for _ in range(self._random.randint(1, 5))],
            create_if_missing=self._conversation("") if missing else None,
        )

    def _edit(self) -> Message:
        return pb.EditMessagesRequest(
            conversation_id=self._any(),
            user_id=self._user,
            edits=[self._one_edit() for _ in range(self._random.randint(1, 4))],
            allow_missing=self._random.random() < 0.7,
        )

    def _one_edit(self) -> pb.Edit:
        match self._random.randrange(10):
            case 0:
                return pb.Edit(remove_all=pb.RemoveAll())
            case 1:
                return pb.Edit(keep=pb.Slice(**{"from": self._random.randint(-6, 3)}))
            case 2 | 3:
                return pb.Edit(remove=self._id())
            case 4 | 5:
                message = self._message()
                message.id = message.id or self._id()
                return pb.Edit(replace=message)
            case _:
                return pb.Edit(append=self._message())

    def _delete_messages(self) -> Message:
        ids = [self._id() for _ in range(self._random.randint(0, 3))]
        return pb.DeleteMessagesRequest(conversation_id=self._any(), user_id=self._user, message_ids=ids)

    def _clear(self) -> Message:
        return pb.ClearMessagesRequest(
            conversation_id=self._random.choice(["", self._any(), self._any()]), user_id=self._user
        )

    def _commit_summary(self) -> Message:
        """Of a window that has never been: it is refused."""
        cover = SummaryCover(window_revision=1 << 62, through_sequence=1, revision=1)
        return pb.CommitSummaryRequest(conversation_id=self._any(), cover=cover, text="Nothing was said.")

    def _create(self) -> Message:
        return pb.CreateConversationRequest(conversation=self._conversation(self._own()))

    def _update(self) -> Message:
        request = pb.UpdateConversationRequest(conversation=self._conversation(self._own()))
        paths = ["title", "metadata", "storage_limit"]
        request.update_mask.paths.extend(self._random.sample(paths, self._random.randint(0, 3)))
        return request

    def _delete(self) -> Message:
        return pb.DeleteConversationRequest(conversation_id=self._own(), allow_missing=self._random.random() < 0.5)

    def _import(self) -> Message:
        """A conversation of long ago, with gaps in its sequences."""
        row = self._conversation(self._own())
        sequences = sorted(self._random.sample(range(1, 50), self._random.randint(0, 6)))
        row.last_sequence = 50
        row.create_time.FromSeconds(LONG_AGO)
        row.update_time.FromSeconds(LONG_AGO + 100)
        own = transfer.ConversationRecord(conversation=row)
        own.last_append_time.FromSeconds(LONG_AGO + 50)
        messages = [self._imported(row.id, sequence) for sequence in sequences]
        return transfer.ImportRecordsRequest(records=[transfer.Record(conversation=own), *messages])

    def _imported(self, name: str, sequence: int) -> transfer.Record:
        message = self._message()
        message.id, message.user_id, message.sequence = f"imported-{sequence}", self._user, sequence
        message.create_time.FromSeconds(LONG_AGO + sequence)
        message.update_time.FromSeconds(LONG_AGO + sequence)
        return transfer.Record(message=transfer.MessageRecord(conversation_id=name, message=message))

    def _save_steps(self) -> Message:
        steps = [self._step() for _ in range(self._random.randint(1, 3))]
        return history.SaveStepsRequest(steps=steps)

    def _step(self) -> step_pb2.Step:
        return step_pb2.Step(
            id=f"s{self._random.randrange(6)}",
            conversation_id=self._any(),
            user_id=self._user,
            step_index=self._random.randrange(4),
            type=step_pb2.STEP_TYPE_TEXT,
            content=self._text(),
        )

    def _described_run(self) -> WorkflowRun:
        run = WorkflowRun(
            id=self._own(),
            workflow_id=f"w of {self._user}",
            status=self._random.choice(list(WorkflowStatus.values())[1:]),
            user_id=self._user,
            output=self._random.randbytes(self._random.choice([0, 10, 3000])),
            metadata=b'{"count": %d}' % self._count,
        )
        run.create_time.FromSeconds(LONG_AGO + self._count)
        run.start_time.FromSeconds(LONG_AGO + self._count)
        return run

    def _update_run(self) -> Message:
        request = workflows.UpdateWorkflowRunRequest(run=self._described_run())
        request.update_mask.paths.extend(self._random.sample(["status", "output", "metadata", "create_time"], 2))
        return request

    def _delete_run(self) -> Message:
        keep, allow_missing = (self._random.random() < 0.5 for _ in range(2))
        return workflows.DeleteWorkflowRunRequest(run_id=self._own(), keep_related=keep, allow_missing=allow_missing)

    def _prune_runs(self) -> Message:
        kept = self._random.randrange(3)
        return workflows.PruneWorkflowRunsRequest(workflow_id=f"w of {self._user}", keep_newest=kept)

    def _update_workflow_step(self) -> Message:
        request = workflows.UpdateWorkflowStepRequest(step=self._workflow_step())
        request.update_mask.paths.extend(self._random.sample(["step_index", "input"], self._random.randint(0, 2)))
        return request

    def _delete_workflow_step(self) -> Message:
        step = self._workflow_step()
        return workflows.DeleteWorkflowStepRequest(step_id=step.id, run_id=step.run_id)

    def _delete_event(self) -> Message:
        return history.DeleteTimelineEventRequest(
            event_id="e", run_id=self._random.choice([self._own(), self._entry()])
        )

    def _entry(self) -> str:
        return self._random.choice(entries_of(self._user))

    def _described_entry(self) -> HistoryEntry:
        entry = HistoryEntry(
            id=self._entry(),
            agent_id=f"a of {self._user}",
            user_id=self._user,
            status=self._random.choice(["working", "completed"]),
            output=self._random.randbytes(self._random.choice([0, 10, 3000])),
        )
        entry.create_time.FromSeconds(LONG_AGO + self._count)
        entry.start_time.FromSeconds(LONG_AGO + self._count)
        return entry

    def _update_entry(self) -> Message:
        request = history.UpdateHistoryEntryRequest(entry=self._described_entry())
        request.update_mask.paths.extend(self._random.sample(["status", "output", "start_time", "create_time"], 2))
        return request

    def _save_entry_steps(self) -> Message:
        steps = [self._entry_step() for _ in range(self._random.randint(1, 3))]
        return history.SaveEntryStepsRequest(steps=steps)

    def _entry_step(self) -> EntryStep:
        return EntryStep(
            id=f"s{self._random.randrange(6)}",
            entry_id=self._entry(),
            step_index=self._random.randrange(3),
            content=self._text().encode(),
        )

    def _update_entry_step(self) -> Message:
        request = history.UpdateEntryStepRequest(step=self._entry_step())
        request.update_mask.paths.extend(self._random.sample(["step_index", "content"], self._random.randint(0, 2)))
        return request

    def _save_spans(self) -> Message:
        return history.SaveSpansRequest(spans=[self._span() for _ in range(self._random.randint(1, 3))])

    def _span(self) -> SpanRecord:
        return SpanRecord(
            trace_id=self._random.choice(traces_of(self._user)),
            span_id=f"s{self._random.randrange(6)}",
            user_id=self._user,
            name=self._text()[:50],
            attributes=b'{"count": %d}' % self._count,
            start_time=Timestamp(seconds=LONG_AGO, nanos=self._random.randrange(4)),
        )

    def _update_span(self) -> Message:
        request = history.UpdateSpanRequest(span=self._span())
        request.update_mask.paths.extend(self._random.sample(["name", "attributes", "start_time"], 2))
        return request

    def _save_logs(self) -> Message:
        return history.SaveLogRecordsRequest(records=[self._log() for _ in range(self._random.randint(1, 3))])

    def _log(self) -> LogRecord:
        return LogRecord(
            id=f"{self._user}-{self._random.randrange(12)}",
            user_id=self._user,
            body=self._text().encode(),
            time=Timestamp(seconds=LONG_AGO, nanos=self._random.randrange(4)),
        )

    def _delete_entry_step(self) -> Message:
        step = self._entry_step()
        return history.DeleteEntryStepRequest(step_id=step.id, entry_id=step.entry_id)

    def _save_workflow_steps(self) -> Message:
        steps = [self._workflow_step() for _ in range(self._random.randint(1, 3))]
        return workflows.SaveWorkflowStepsRequest(steps=steps)

    def _workflow_step(self) -> WorkflowStep:
        return WorkflowStep(
            id=f"s{self._random.randrange(6)}",
            run_id=self._own(),
            user_id=self._user,
            step_index=self._random.randrange(4),
            status=WORKFLOW_STEP_STATUS_RUNNING,
            input=self._text().encode(),
        )

    def _add_events(self) -> Message:
        events = [self._event(number) for number in range(self._random.randint(1, 3))]
        return history.AddTimelineEventsRequest(events=events)

    def _event(self, number: int) -> TimelineEvent:
        event = TimelineEvent(
            id=f"e{self._count}-{number}" if self._random.random() < 0.7 else "e",
            run_id=self._random.choice([self._own(), self._entry()]),
            user_id=self._user,
            metadata=self._text().encode(),
            sequence=self._random.randrange(4),
        )
        event.start_time.FromSeconds(LONG_AGO)
        return event

    def _namespace(self) -> list[str]:
        return [self._user, self._random.choice(NAMES)]

    def _item_key(self) -> ItemKey:
        return ItemKey(namespace=self._namespace(), key=f"i{self._random.randrange(4)}")

    def _items(self) -> list[StoreItem]:
        """Items with different keys."""
        numbers = self._random.sample(range(4), self._random.randint(1, 3))
        return [self._item(f"i{number}") for number in numbers]

    def _item(self, key: str) -> StoreItem:
        item = StoreItem(namespace=self._namespace(), key=key, value=json.dumps({"said": self._text()}).encode())
        item.user_id = self._random.choice(["", self._user])
        if self._random.random() < 0.2:
            item.ttl.FromSeconds(A_DAY)
        for _ in range(self._random.choice([0, 1, 3])):
            item.vectors.add(values=struct.pack("<2f", 1, self._random.random()))
        return item

    def _execute_operations(self) -> Message:
        puts = [store.Operation(put=item) for item in self._items()]
        gone = ItemKey(namespace=self._namespace(), key="deleted alone")
        return store.ExecuteOperationsRequest(operations=[*puts, store.Operation(delete=gone)])

    def _upsert_vectors(self) -> Message:
        given = [self._stored_vector() for _ in range(self._random.randint(1, 4))]
        return vectors.UpsertVectorsRequest(collection_id=self._own(), user_id=self._user, vectors=given)

    def _stored_vector(self) -> Vector:
        return Vector(
            id=f"v{self._random.randrange(6)}",
            values=struct.pack("<2f", self._random.random() - 0.5, self._random.random() - 0.5),
            content=self._text(),
            metadata=self._random.randbytes(self._random.choice([0, 20])),
            attributes={"group": Scalar(integer=self._random.randrange(3))},
        )

    def _delete_vectors(self) -> Message:
        request = vectors.DeleteVectorsRequest(collection_id=self._own(), user_id=self._user)
        if self._random.random() < 0.6:
            request.ids.ids.extend(f"v{self._random.randrange(6)}" for _ in range(2))
        else:
            value = Scalar(integer=self._random.randrange(3))
            request.filter.CopyFrom(Filter(condition=Condition(key="group", operator=OPERATOR_EQ, values=[value])))
        return request

    def _add_memory_items(self) -> Message:
        items = [self._memory_item() for _ in range(self._random.randint(1, 4))]
        return memory.AddMemoryItemsRequest(user_id=self._user, items=items)

    def _memory_item(self) -> MemoryItem:
        return MemoryItem(
            id=f"i{self._random.randrange(6)}",
            text=self._text(),
            conversation=[SpokenMessage(role="user", content="tea")] * self._random.randrange(3),
            tags=self._random.sample(NAMES, self._random.randrange(3)),
            metadata=self._random.choice([b"", b'{"group": 1}']),
        )

    def _delete_memory_items(self) -> Message:
        if self._random.random() < 0.6:
            ids = [f"i{self._random.randrange(6)}" for _ in range(2)]
            return memory.DeleteMemoryItemsRequest(user_id=self._user, ids=MemoryItemIds(ids=ids))
        tags = self._random.sample(NAMES, self._random.randrange(3))
        return memory.DeleteMemoryItemsRequest(user_id=self._user, filter=MemoryItemFilter(tags=tags))

    def _thread(self) -> str:
        return f"{self._user}-thread-{self._random.choice(NAMES)}"

    def _run(self) -> str:
        return f"{self._user}-run-{self._random.choice(NAMES)}"

    def _save_checkpoints(self) -> Message:
        """A checkpoint whose value resembles its parent's, or was uploaded, and what a task wrote since another."""
        thread, place, size = self._thread(), self._random.randrange(1, 6), self._random.randrange(40)
        checkpoint = Checkpoint(
            thread_id=thread,
            id=f"c{place}",
            parent_id=f"c{self._random.randrange(place)}",
            user_id=self._user,
            run_id=self._run(),
        )
        checkpoint.channels.add(channel="a", version=Version(text=f"v{self._count}"))
        checkpoint.channels.add(channel="b", version=Version(text="v"), empty=self._random.random() < 0.5)
        draft = checkpoints.CheckpointDraft(checkpoint=checkpoint)
        text = b"".join(b"line %d of a text\n" % number for number in range(size))
        value = checkpoints.Value(type="json", data=text + str(self._count).encode())
        if self._random.random() < 0.2:
            value = checkpoints.Value(type=UPLOADED, upload=checkpoints.Upload(id=self._upload(), parts=1))
        draft.values.add(channel="a", value=value)
        task = checkpoints.TaskWrites(
            name=checkpoints.CheckpointName(thread_id=thread, checkpoint_id=f"c{self._random.randrange(1, 6)}"),
            task_id=f"task {self._random.randrange(3)}",
            user_id=self._user,
            replace=self._random.random() < 0.5,
        )
        task.writes.add(channel="a", value=checkpoints.Value(data=self._text().encode()))
        return checkpoints.SaveCheckpointsRequest(checkpoints=[draft], writes=[task])

    def _upload(self) -> str:
        return f"u{self._random.randrange(3)}"

    def _upload_checkpoint_part(self) -> Message:
        return checkpoints.UploadCheckpointPartRequest(
            thread_id=self._thread(), upload_id=self._upload(), data=self._random.randbytes(500), user_id=self._user
        )

    def _copy_thread(self) -> Message:
        return checkpoints.CopyThreadRequest(
            source_thread_id=self._thread(), target_thread_id=f"{self._user}-thread-copy"
        )

    def _prune_threads(self) -> Message:
        strategy = self._random.choice([checkpoints.PRUNE_STRATEGY_KEEP_LATEST, checkpoints.PRUNE_STRATEGY_DELETE])
        return checkpoints.PruneThreadsRequest(thread_ids=[self._thread()], strategy=strategy)

    def _create_collection(self) -> Message:
        dimension = self._random.choice([0, 2])
        return vectors.CreateCollectionRequest(collection=VectorCollection(id=self._own(), dimension=dimension))

    def _delete_collection(self) -> Message:
        allow_missing = self._random.random() < 0.5
        return vectors.DeleteCollectionRequest(collection_id=self._own(), allow_missing=allow_missing)

    def _scope(self) -> WorkingMemoryScope:
        if self._random.random() < 0.3:
            return WorkingMemoryScope(user_id=self._user)
        return WorkingMemoryScope(conversation_id=self._own())

    def _set_memory(self) -> Message:
        return memory.SetWorkingMemoryRequest(scope=self._scope(), content=self._text().encode())

    def _append_memory(self) -> Message:
        return memory.EditWorkingMemoryRequest(
            scope=self._scope(), content=self._text() or "-", mode=WORKING_MEMORY_MODE_APPEND
        )

    def _delete_memory(self) -> Message:
        return memory.DeleteWorkingMemoryRequest(scope=self._scope())
