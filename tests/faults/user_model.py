"""What one user should see of the store, by the contract: a model that takes requests and foretells replies.

A request that was answered tells its revision, sequences and times, and the model expects to see just these from
then on. Of one that was not, they are unknown: left unset, they match anything once, and are known after `adopt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message
from tests.faults import fact_model
from tests.faults.fact_model import UserFacts
from tests.store.checkpoint_model import ThreadRows

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
from remora.v1.fact_pb2 import Fact, StaticFact
from remora.v1.history_entry_pb2 import EntryStep, HistoryEntry
from remora.v1.log_record_pb2 import LogRecord
from remora.v1.memory_item_pb2 import MemoryItem
from remora.v1.span_pb2 import SpanRecord
from remora.v1.store_item_pb2 import ItemKey, StoreItem
from remora.v1.timeline_event_pb2 import TimelineEvent
from remora.v1.vector_pb2 import Vector, VectorCollection
from remora.v1.workflow_pb2 import WorkflowRun, WorkflowStep
from remora_server.domain.checkpoints import PartDraft
from remora_server.domain.errors import FactNotFound, UploadIncomplete, UploadNamed
from remora_server.rpc.handlers.checkpoints import checkpoint_draft, task_draft

LEARNED = (
    "revision",
    "uid",
    "sequence",
    "id",
    "create_time",
    "update_time",
    "token_count",
    "last_sequence",
    "expire_time",
)
"""Fields that a model may not know."""

UPLOADED = "uploaded"
"""The type of values that are uploaded."""

Kind = TypeVar("Kind", bound=Message)
Reply: TypeAlias = Any
"""The reply of whichever method was asked, None where there was none."""

ItemAt: TypeAlias = tuple[tuple[str, ...], str]
"""The namespace and the key of an item."""


class Refused(Exception):
    """The store refuses a request, and changes nothing."""

    def __init__(self, code: grpc.StatusCode) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Expected:
    """What a request comes to: whether it changes anything, and fields of its reply."""

    changes: bool
    fields: dict[str, object] = field(default_factory=dict)

    def differences(self, reply: Reply) -> list[str]:
        """How a reply departs from it."""
        found = {name: getattr(reply, name) for name in self.fields}
        return [
            f"the reply's {name} is {found[name]}, not {wanted}"
            for name, wanted in self.fields.items()
            if found[name] != wanted
        ]


@dataclass
class Kept:
    """One conversation as its user sees it; a shared one is other users', too, and its row is not this user's."""

    row: conversation_pb2.Conversation
    shared: bool = False
    messages: list[message_pb2.Message] = field(default_factory=list)
    steps: dict[str, step_pb2.Step] = field(default_factory=dict)
    memory: bytes | None = None

    @property
    def limit(self) -> int | None:
        return self.row.storage_limit if self.row.HasField("storage_limit") else None

    def ordered_steps(self) -> list[step_pb2.Step]:
        """By index, then in the order of saving."""
        return sorted(self.steps.values(), key=lambda step: step.step_index)

    def touched(self, revision: int) -> None:
        """The conversation, or what it holds, was changed at this revision (0: at an unknown one)."""
        self.row.revision = revision
        self.row.message_count = len(self.messages)
        self.row.ClearField("update_time")


@dataclass
class Seen:
    """What the store shows one user."""

    conversations: dict[str, conversation_pb2.Conversation]
    messages: dict[str, list[message_pb2.Message]]
    steps: dict[str, list[step_pb2.Step]]
    memories: dict[str, bytes | None]
    """By conversation; the user's own under the empty name."""
    found: list[tuple[str, str]]
    """What a search by vector finds: conversations and messages."""
    runs: dict[str, WorkflowRun] = field(default_factory=dict)
    run_steps: dict[str, list[WorkflowStep]] = field(default_factory=dict)
    events: dict[str, list[TimelineEvent]] = field(default_factory=dict)
    """The parts of each run that there may be, and the events of each entry."""
    entries: dict[str, HistoryEntry] = field(default_factory=dict)
    entry_steps: dict[str, list[EntryStep]] = field(default_factory=dict)
    collections: dict[str, VectorCollection] = field(default_factory=dict)
    vectors: dict[str, list[Vector]] = field(default_factory=dict)
    """The user's vectors of each collection, by id."""
    items: dict[ItemAt, StoreItem] = field(default_factory=dict)
    """The items of the user's namespaces, as a search shows them."""
    items_by_key: dict[ItemAt, StoreItem] = field(default_factory=dict)
    near_items: set[ItemAt] = field(default_factory=set)
    """Those that a search by vector finds."""
    near: dict[str, list[str]] = field(default_factory=dict)
    """The ids of those that a search of the collection finds."""
    checkpoints: list[checkpoints.FoundCheckpoint] = field(default_factory=list)
    """Without the times at which they were stored."""
    spans: dict[str, list[SpanRecord]] = field(default_factory=dict)
    """Those of each trace that there may be."""
    logs: list[LogRecord] = field(default_factory=list)
    memory_items: list[MemoryItem] = field(default_factory=list)
    """By id."""
    facts: list[Fact] = field(default_factory=list)
    static_facts: list[StaticFact] = field(default_factory=list)
    remembered: list[str] = field(default_factory=list)
    """The ids of those that a search finds."""


class Draft:
    """One user's messages of a conversation while a write is foretold."""

    def __init__(self, kept: Kept, user: str, reply: Reply) -> None:
        self.kept, self.user, self.reply = kept, user, reply
        self.messages = list(kept.messages)
        self.last_sequence = kept.row.last_sequence
        self.placed: list[message_pb2.Message] = []
        self.replaced: list[bool] = []

    def put(self, given: message_pb2.Message) -> None:
        """Append, or replace in its place."""
        message = copied(given)
        message.user_id, message.revision = self.user, revision_of(self.reply)
        place = self.find(given.id)
        if place is None:
            self._append(message)
        else:
            message.sequence = self.messages[place].sequence
            if self.messages[place].HasField("create_time"):
                message.create_time.CopyFrom(self.messages[place].create_time)
            self.messages[place] = message
        self.placed.append(message)
        self.replaced.append(place is not None)

    def find(self, message_id: str) -> int | None:
        """Where the message stands."""
        places = (place for place, known in enumerate(self.messages) if message_id and known.id == message_id)
        return next(places, None)

    def _append(self, message: message_pb2.Message) -> None:
        self.last_sequence += 1
        message.sequence = 0 if self.kept.shared else self.last_sequence
        answered = getattr(self.reply, "messages", [])[len(self.placed) : len(self.placed) + 1]
        for known in answered:
            message.id = message.id or known.id
            message.sequence = message.sequence or known.sequence
            message.create_time.CopyFrom(known.create_time)
        self.messages.append(message)

    def edit(self, edit: pb.Edit, *, allow_missing: bool) -> None:
        """Apply one edit."""
        action = edit.WhichOneof("action")
        if action == "append":
            self.put(edit.append)
        elif action == "replace":
            if self._present(edit.replace.id, allow_missing=allow_missing):
                self.put(edit.replace)
        elif action == "remove":
            if self._present(edit.remove, allow_missing=allow_missing):
                self.messages = [known for known in self.messages if known.id != edit.remove]
        elif action == "remove_all":
            self.messages = []
        else:
            self.messages = self.messages[_bound(edit.keep, "from") : _bound(edit.keep, "to")]

    def _present(self, message_id: str, *, allow_missing: bool) -> bool:
        if self.find(message_id) is None and not allow_missing:
            raise Refused(grpc.StatusCode.NOT_FOUND)
        return self.find(message_id) is not None

    def prune(self) -> int:
        """Drop the oldest beyond the storage limit; how many those are."""
        over = 0 if self.kept.limit is None else max(0, len(self.messages) - self.kept.limit)
        del self.messages[:over]
        return over

    @property
    def changes(self) -> bool:
        before, after = self.kept.messages, self.messages
        return [id(message) for message in before] != [id(message) for message in after]

    def commit(self) -> None:
        """Make it what the conversation holds."""
        self.kept.messages, self.kept.row.last_sequence = self.messages, self.last_sequence
        self.kept.touched(revision_of(self.reply))

    def answer(self) -> list[pb.AppendedMessage]:
        """What the reply should say of the messages."""
        pairs = zip(self.placed, self.replaced, strict=True)
        return [
            pb.AppendedMessage(id=m.id, sequence=m.sequence, create_time=m.create_time, replaced=replaced)
            for m, replaced in pairs
        ]


class UserModel:
    """The conversations of one user and its part of a shared one; its writes come one after the other."""

    def __init__(self, user: str, shared: str) -> None:
        self.user = user
        self.shared = shared
        self.memory: bytes | None = None
        self.runs: dict[str, WorkflowRun] = {}
        self.run_steps: dict[tuple[str, str], WorkflowStep] = {}
        self.events: dict[tuple[str, str], TimelineEvent] = {}
        """Parts of runs, by run and id, in the order of writing."""
        self.entries: dict[str, HistoryEntry] = {}
        self.entry_steps: dict[tuple[str, str], EntryStep] = {}
        """By entry and id, in the order of adding."""
        self.collections: dict[str, VectorCollection] = {}
        self.items: dict[ItemAt, StoreItem] = {}
        self.vectors: dict[tuple[str, str], Vector] = {}
        """By collection and id."""
        self.memory_items: dict[str, MemoryItem] = {}
        self.facts = UserFacts(user)
        self.threads = ThreadRows()
        self.spans: dict[tuple[str, str], SpanRecord] = {}
        self.logs: dict[str, LogRecord] = {}
        """In the order of saving."""
        self.kept: dict[str, Kept] = {}
        self.kept[shared] = Kept(conversation_pb2.Conversation(id=shared), shared=True)
        self._methods: dict[str, Callable[[Any, Any], Expected]] = {
            "CreateConversation": self._create,
            "UpdateConversation": self._update,
            "DeleteConversation": self._delete,
            "AppendMessages": self._append,
            "EditMessages": self._edit,
            "DeleteMessages": self._delete_messages,
            "ClearMessages": self._clear,
            "CommitSummary": self._commit_summary,
            "DeleteUser": self._delete_user,
            "ImportRecords": self._import,
            "SaveSteps": self._save_steps,
            "SetWorkingMemory": self._set_memory,
            "EditWorkingMemory": self._update_memory,
            "DeleteWorkingMemory": self._delete_memory,
            "SaveWorkflowRun": self._save_run,
            "UpdateWorkflowRun": self._update_run,
            "DeleteWorkflowRun": self._delete_run,
            "SaveWorkflowSteps": self._save_run_steps,
            "AddTimelineEvents": self._add_events,
            "PruneWorkflowRuns": self._prune_runs,
            "UpdateWorkflowStep": self._update_run_step,
            "DeleteWorkflowStep": self._delete_run_step,
            "DeleteTimelineEvent": self._delete_event,
            "SaveHistoryEntry": self._save_entry,
            "UpdateHistoryEntry": self._update_entry,
            "DeleteHistoryEntry": self._delete_entry,
            "SaveEntrySteps": self._save_entry_steps,
            "UpdateEntryStep": self._update_entry_step,
            "DeleteEntryStep": self._delete_entry_step,
            "PutItems": self._put_items,
            "DeleteItems": self._delete_items,
            "DeleteNamespaces": self._delete_namespaces,
            "ExecuteOperations": self._execute_operations,
            "DeleteExpiredItems": lambda _request, _reply: Expected(False, {"deleted_items": 0}),
            "UpsertVectors": self._upsert_vectors,
            "DeleteVectors": self._delete_vectors,
            "CreateCollection": self._create_collection,
            "ClearCollection": self._clear_collection,
            "DeleteCollection": self._delete_collection,
            "AddMemoryItems": self._add_memory_items,
            "DeleteMemoryItems": self._delete_memory_items,
            "AddFacts": self._add_facts,
            "ExtractFacts": self._extract_facts,
            "CorrectFact": self._correct_fact,
            "RetractFacts": self._retract_facts,
            "ForgetFacts": self._forget_facts,
            "SetStaticFacts": self._set_static_facts,
            "SaveCheckpoints": self._save_checkpoints,
            "UploadCheckpointPart": self._upload_checkpoint_part,
            "DeleteThread": self._delete_thread,
            "DeleteRuns": self._delete_runs,
            "CopyThread": self._copy_thread,
            "PruneThreads": self._prune_threads,
            "SaveSpans": self._save_spans,
            "UpdateSpan": self._update_span,
            "PruneSpans": self._prune_spans,
            "SaveLogRecords": self._save_logs,
            "PruneLogRecords": self._prune_logs,
        }

    def apply(self, method: str, request: Message, reply: Message | None) -> Expected:
        """Do what the store does for a request that had this reply, or none. Raises Refused: then nothing changes."""
        return self._methods[method](request, reply)

    def _find(self, name: str) -> Kept:
        if name not in self.kept:
            raise Refused(grpc.StatusCode.NOT_FOUND)
        return self.kept[name]

    def _begin(self, given: conversation_pb2.Conversation, name: str, reply: Reply) -> Kept:
        row = copied(given)
        row.id, row.user_id = name, self.user
        row.uid = row.revision = revision_of(reply)
        self.kept[name] = Kept(row)
        return self.kept[name]

    def _create(self, request: pb.CreateConversationRequest, reply: Reply) -> Expected:
        if request.conversation.id in self.kept:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS)
        row = self._begin(request.conversation, request.conversation.id, reply).row
        if reply is not None:
            row.create_time.CopyFrom(reply.create_time)
            row.update_time.CopyFrom(reply.create_time)
        return Expected(True, {"conversation_id": row.id})

    def _update(self, request: pb.UpdateConversationRequest, reply: Reply) -> Expected:
        row = self._find(request.conversation.id).row
        for path in request.update_mask.paths:
            row.ClearField(path)  # type: ignore[arg-type]
            if path != "storage_limit" or request.conversation.HasField("storage_limit"):
                setattr(row, path, getattr(request.conversation, path))
        self.kept[row.id].touched(revision_of(reply))
        if reply is not None:
            row.update_time.CopyFrom(reply.update_time)
        return Expected(True)

    def _delete(self, request: pb.DeleteConversationRequest, reply: Reply) -> Expected:
        gone = self.kept.get(request.conversation_id)
        if gone is None and not request.allow_missing:
            raise Refused(grpc.StatusCode.NOT_FOUND)
        self.kept.pop(request.conversation_id, None)
        deleted = 0 if gone is None else len(gone.messages)
        return Expected(gone is not None, {"deleted": gone is not None, "deleted_messages": deleted})

    def _append(self, request: pb.AppendMessagesRequest, reply: Reply) -> Expected:
        created = request.conversation_id not in self.kept and request.HasField("create_if_missing")
        if created:
            self._begin(request.create_if_missing, request.conversation_id, reply)
        draft = Draft(self._find(request.conversation_id), self.user, reply)
        for message in request.messages:
            draft.put(message)
        pruned = draft.prune()
        draft.commit()
        fields = {"messages": draft.answer(), "conversation_created": created, "pruned_messages": pruned}
        return Expected(True, fields)

    def _edit(self, request: pb.EditMessagesRequest, reply: Reply) -> Expected:
        draft = Draft(self._find(request.conversation_id), self.user, reply)
        before = list(draft.messages)
        for edit in request.edits:
            draft.edit(edit, allow_missing=request.allow_missing)
        left = {message.sequence for message in draft.messages}
        removed = sum(message.sequence not in left for message in before)
        pruned = draft.prune()
        if not draft.changes:
            return Expected(False, {"messages": [], "deleted_messages": 0, "pruned_messages": 0})
        draft.commit()
        fields = {"messages": draft.answer(), "deleted_messages": removed, "pruned_messages": pruned}
        return Expected(True, fields)

    def _delete_messages(self, request: pb.DeleteMessagesRequest, reply: Reply) -> Expected:
        kept = self._find(request.conversation_id)
        left = [message for message in kept.messages if message.id not in request.message_ids]
        deleted = len(kept.messages) - len(left)
        if deleted:
            kept.messages = left
            kept.touched(revision_of(reply))
        return Expected(deleted > 0, {"deleted_messages": deleted})

    def _clear(self, request: pb.ClearMessagesRequest, reply: Reply) -> Expected:
        if request.conversation_id:
            kept = self._find(request.conversation_id)
            return Expected(True, {"deleted_messages": _cleared([kept], revision_of(reply))})
        parts = [kept for kept in self.kept.values() if kept.messages or kept.steps]
        return Expected(bool(parts), {"deleted_messages": _cleared(parts, revision_of(reply))})

    def _commit_summary(self, request: pb.CommitSummaryRequest, _reply: Reply) -> Expected:
        self._find(request.conversation_id)
        raise Refused(grpc.StatusCode.ABORTED)

    def _delete_user(self, _request: users.DeleteUserRequest, reply: Reply) -> Expected:
        owned = [name for name, kept in self.kept.items() if not kept.shared]
        messages = sum(len(self.kept.pop(name).messages) for name in owned)
        parts = [kept for kept in self.kept.values() if kept.messages or kept.steps]
        messages += _cleared(parts, revision_of(reply))
        self.memory = None
        self.runs, self.run_steps, self.events = {}, {}, {}
        self.entries, self.entry_steps = {}, {}
        self.vectors = {}
        self.items = {at: item for at, item in self.items.items() if item.user_id != self.user}
        self.memory_items = {}
        self.facts.rows.forget(self.user)
        self.spans, self.logs = {}, {}
        self.threads.forget(self.user)
        return Expected(True, {"deleted_conversations": len(owned), "deleted_messages": messages})

    def _import(self, request: transfer.ImportRecordsRequest, reply: Reply) -> Expected:
        given = request.records[0].conversation.conversation
        if given.id in self.kept:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS)
        kept = self._begin(given, given.id, reply)
        kept.messages = [copied(record.message.message) for record in request.records[1:]]
        for message in kept.messages:
            message.revision = revision_of(reply)
        kept.row.message_count = len(kept.messages)
        return Expected(True, {"imported_records": len(request.records)})

    def _save_steps(self, request: history.SaveStepsRequest, reply: Reply) -> Expected:
        parts = {step.conversation_id: self._find(step.conversation_id) for step in request.steps}
        for given in request.steps:
            step = copied(given)
            step.user_id = self.user
            parts[step.conversation_id].steps.pop(step.id, None)
            parts[step.conversation_id].steps[step.id] = step
        for kept in parts.values():
            kept.touched(revision_of(reply))
        return Expected(True)

    def _set_memory(self, request: memory.SetWorkingMemoryRequest, reply: Reply) -> Expected:
        if request.scope.user_id:
            self.memory = request.content
        else:
            self._find(request.scope.conversation_id).memory = request.content
        return Expected(True)

    def _update_memory(self, request: memory.EditWorkingMemoryRequest, reply: Reply) -> Expected:
        of_user = bool(request.scope.user_id)
        before = self.memory if of_user else self._find(request.scope.conversation_id).memory
        after = b"\n\n".join(filter(None, [before, request.content.encode()]))
        if of_user:
            self.memory = after
        else:
            self._find(request.scope.conversation_id).memory = after
        return Expected(True)

    def _delete_memory(self, request: memory.DeleteWorkingMemoryRequest, reply: Reply) -> Expected:
        if request.scope.user_id:
            deleted, self.memory = self.memory is not None, None
        else:
            kept = self._find(request.scope.conversation_id)
            deleted, kept.memory = kept.memory is not None, None
        return Expected(deleted, {"deleted": deleted})

    def _save_run(self, request: workflows.SaveWorkflowRunRequest, reply: Reply) -> Expected:
        return self._put_run(copied(request.run), reply)

    def _update_run(self, request: workflows.UpdateWorkflowRunRequest, reply: Reply) -> Expected:
        if request.run.id not in self.runs:
            raise Refused(grpc.StatusCode.NOT_FOUND)
        run = _replaced(self.runs[request.run.id], request.run, request.update_mask.paths)
        return self._put_run(run, reply)

    def _put_run(self, run: WorkflowRun, reply: Reply) -> Expected:
        run.revision = revision_of(reply)
        run.ClearField("update_time")
        if reply is not None:
            run.update_time.CopyFrom(reply.update_time)
        self.runs[run.id] = run
        return Expected(True)

    def _delete_run(self, request: workflows.DeleteWorkflowRunRequest, _reply: Reply) -> Expected:
        if request.run_id not in self.runs:
            if not request.allow_missing:
                raise Refused(grpc.StatusCode.NOT_FOUND)
            return Expected(False, {"deleted": False})
        self._drop_run(request.run_id, keep_related=request.keep_related)
        return Expected(True, {"deleted": True})

    def _prune_runs(self, request: workflows.PruneWorkflowRunsRequest, _reply: Reply) -> Expected:
        newest = sorted(self.runs.values(), key=lambda run: run.create_time.ToMicroseconds(), reverse=True)
        gone = newest[request.keep_newest :]
        for run in gone:
            self._drop_run(run.id, keep_related=False)
        return Expected(bool(gone), {"deleted_runs": len(gone)})

    def _drop_run(self, run_id: str, *, keep_related: bool) -> None:
        del self.runs[run_id]
        if not keep_related:
            self.run_steps = {key: step for key, step in self.run_steps.items() if key[0] != run_id}
            self.events = {key: event for key, event in self.events.items() if key[0] != run_id}

    def _save_run_steps(self, request: workflows.SaveWorkflowStepsRequest, _reply: Reply) -> Expected:
        for step in request.steps:
            self.run_steps.pop((step.run_id, step.id), None)
            self.run_steps[step.run_id, step.id] = copied(step)
        return Expected(True)

    def _update_run_step(self, request: workflows.UpdateWorkflowStepRequest, _reply: Reply) -> Expected:
        key = (request.step.run_id, request.step.id)
        if key not in self.run_steps:
            raise Refused(grpc.StatusCode.NOT_FOUND)
        step = _replaced(self.run_steps.pop(key), request.step, request.update_mask.paths)
        step.ClearField("update_time")
        self.run_steps[key] = step
        return Expected(True)

    def _delete_run_step(self, request: workflows.DeleteWorkflowStepRequest, _reply: Reply) -> Expected:
        gone = self.run_steps.pop((request.run_id, request.step_id), None)
        return Expected(gone is not None, {"deleted": gone is not None})

    def _delete_event(self, request: history.DeleteTimelineEventRequest, _reply: Reply) -> Expected:
        gone = self.events.pop((request.run_id, request.event_id), None)
        return Expected(gone is not None, {"deleted": gone is not None})

    def _add_events(self, request: history.AddTimelineEventsRequest, _reply: Reply) -> Expected:
        fresh: dict[tuple[str, str], TimelineEvent] = {}
        for event in request.events:
            key = (event.run_id, event.id)
            before = fresh.get(key) or self.events.get(key)
            if before is None:
                fresh[key] = copied(event)
            elif _unlike(event, before):
                raise Refused(grpc.StatusCode.ALREADY_EXISTS)
        self.events.update(fresh)
        return Expected(bool(fresh))

    def _save_entry(self, request: history.SaveHistoryEntryRequest, reply: Reply) -> Expected:
        return self._put_entry(copied(request.entry), reply)

    def _update_entry(self, request: history.UpdateHistoryEntryRequest, reply: Reply) -> Expected:
        if request.entry.id not in self.entries:
            raise Refused(grpc.StatusCode.NOT_FOUND)
        return self._put_entry(
            _replaced(self.entries[request.entry.id], request.entry, request.update_mask.paths), reply
        )

    def _put_entry(self, entry: HistoryEntry, reply: Reply) -> Expected:
        entry.ClearField("update_time")
        if reply is not None:
            entry.update_time.CopyFrom(reply.update_time)
        self.entries[entry.id] = entry
        return Expected(True)

    def _delete_entry(self, request: history.DeleteHistoryEntryRequest, _reply: Reply) -> Expected:
        gone = self.entries.pop(request.entry_id, None)
        if gone is not None:
            self.entry_steps = {key: step for key, step in self.entry_steps.items() if key[0] != gone.id}
            self.events = {key: event for key, event in self.events.items() if key[0] != gone.id}
        return Expected(gone is not None, {"deleted": gone is not None})

    def _save_entry_steps(self, request: history.SaveEntryStepsRequest, _reply: Reply) -> Expected:
        if any(step.entry_id not in self.entries for step in request.steps):
            raise Refused(grpc.StatusCode.NOT_FOUND)
        keys = [(step.entry_id, step.id) for step in request.steps]
        for number, (key, step) in enumerate(zip(keys, request.steps, strict=True)):
            if key in keys[number + 1 :]:
                continue
            before = self.entry_steps.get(key)
            self.entry_steps[key] = copied(step)
            if before is not None and before.HasField("create_time"):
                self.entry_steps[key].create_time.CopyFrom(before.create_time)
        return Expected(True)

    def _update_entry_step(self, request: history.UpdateEntryStepRequest, _reply: Reply) -> Expected:
        key = (request.step.entry_id, request.step.id)
        if key not in self.entry_steps:
            raise Refused(grpc.StatusCode.NOT_FOUND)
        step = _replaced(self.entry_steps[key], request.step, request.update_mask.paths)
        step.ClearField("update_time")
        self.entry_steps[key] = step
        return Expected(True)

    def _delete_entry_step(self, request: history.DeleteEntryStepRequest, _reply: Reply) -> Expected:
        gone = self.entry_steps.pop((request.entry_id, request.step_id), None)
        return Expected(gone is not None, {"deleted": gone is not None})

    def _put_items(self, request: store.PutItemsRequest, reply: Reply) -> Expected:
        self._put_each(request.items, reply)
        return Expected(True)

    def _put_each(self, given: Iterable[StoreItem], reply: Reply) -> None:
        for each in given:
            item = copied(each)
            item.revision = revision_of(reply)
            self.items[_at(item)] = item

    def _delete_items(self, request: store.DeleteItemsRequest, _reply: Reply) -> Expected:
        gone = self._delete_each(request.keys)
        return Expected(bool(gone), {"deleted_items": gone})

    def _delete_each(self, keys: Iterable[ItemKey]) -> int:
        return sum(self.items.pop(_at(key), None) is not None for key in keys)

    def _delete_namespaces(self, request: store.DeleteNamespacesRequest, _reply: Reply) -> Expected:
        prefix = tuple(request.namespace_prefix)
        self.items = {at: item for at, item in self.items.items() if at[0][: len(prefix)] != prefix}
        return Expected(True)

    def _execute_operations(self, request: store.ExecuteOperationsRequest, reply: Reply) -> Expected:
        puts = [each.put for each in request.operations if each.HasField("put")]
        gone = self._delete_each(each.delete for each in request.operations if each.HasField("delete"))
        self._put_each(puts, reply)
        return Expected(bool(puts or gone))

    def _upsert_vectors(self, request: vectors.UpsertVectorsRequest, reply: Reply) -> Expected:
        name = request.collection_id
        collection = self.collections.setdefault(name, VectorCollection(id=name))
        collection.current_dimension = 2
        for given in request.vectors:
            vector = copied(given)
            vector.collection_id, vector.user_id, vector.revision = name, self.user, revision_of(reply)
            self.vectors[name, vector.id] = vector
        return Expected(True)

    def _delete_vectors(self, request: vectors.DeleteVectorsRequest, _reply: Reply) -> Expected:
        def goes(vector: Vector) -> bool:
            if request.HasField("ids"):
                return vector.id in request.ids.ids
            return vector.attributes["group"] == request.filter.condition.values[0]

        own = {key: vector for key, vector in self.vectors.items() if key[0] == request.collection_id}
        gone = [key for key, vector in own.items() if goes(vector)]
        for key in gone:
            del self.vectors[key]
        return Expected(bool(gone), {"deleted_vectors": len(gone)})

    def _add_memory_items(self, request: memory.AddMemoryItemsRequest, _reply: Reply) -> Expected:
        for given in request.items:
            item, before = copied(given), self.memory_items.get(given.id)
            item.user_id = self.user
            if before is not None and before.HasField("create_time"):
                item.create_time.CopyFrom(before.create_time)
            self.memory_items[item.id] = item
        return Expected(True, {"ids": [item.id for item in request.items]})

    def _delete_memory_items(self, request: memory.DeleteMemoryItemsRequest, _reply: Reply) -> Expected:
        def goes(item: MemoryItem) -> bool:
            return item.id in request.ids.ids or (
                request.HasField("filter") and set(request.filter.tags) <= set(item.tags)
            )

        gone = [item.id for item in self.memory_items.values() if goes(item)]
        for item_id in gone:
            del self.memory_items[item_id]
        return Expected(bool(gone), {"deleted_items": len(gone)})

    def _add_facts(self, request: memory.AddFactsRequest, _reply: Reply) -> Expected:
        return Expected(True, {"ids": self.facts.add(request)})

    def _extract_facts(self, request: memory.ExtractFactsRequest, _reply: Reply) -> Expected:
        added, ended = self.facts.extract(request)
        return Expected(bool(added or ended), {"ids": added})

    def _correct_fact(self, request: memory.CorrectFactRequest, _reply: Reply) -> Expected:
        try:
            return Expected(True, {"fact_id": self.facts.correct(request)})
        except FactNotFound:
            raise Refused(grpc.StatusCode.NOT_FOUND) from None

    def _retract_facts(self, request: memory.RetractFactsRequest, _reply: Reply) -> Expected:
        retracted = self.facts.retract(list(request.facts.ids))
        return Expected(bool(retracted), {"retracted_facts": retracted})

    def _forget_facts(self, request: memory.ForgetFactsRequest, _reply: Reply) -> Expected:
        changes, forgotten = self.facts.forget(request)
        return Expected(changes, {"forgotten_facts": forgotten})

    def _set_static_facts(self, request: memory.SetStaticFactsRequest, _reply: Reply) -> Expected:
        self.facts.set_static = True
        return Expected(True, {"ids": [fact.id for fact in request.facts]})

    def _save_checkpoints(self, request: checkpoints.SaveCheckpointsRequest, reply: Reply) -> Expected:
        drafts = [checkpoint_draft(each) for each in request.checkpoints]
        tasks = [task_draft(each) for each in request.writes]
        try:
            self.threads.save(drafts, tasks, revision_of(reply), 0)
        except UploadIncomplete as error:
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION) from error
        return Expected(True)

    def _upload_checkpoint_part(self, request: checkpoints.UploadCheckpointPartRequest, _reply: Reply) -> Expected:
        given = (request.thread_id, request.checkpoint_ns, request.upload_id, request.index)
        try:
            self.threads.upload(PartDraft(*given, request.data, request.user_id))
        except UploadNamed as error:
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION) from error
        return Expected(True)

    def _delete_thread(self, request: checkpoints.DeleteThreadRequest, _reply: Reply) -> Expected:
        self.threads.delete(request.thread_id)
        return Expected(True)

    def _delete_runs(self, request: checkpoints.DeleteRunsRequest, _reply: Reply) -> Expected:
        gone = self.threads.delete_runs(request.run_ids)
        return Expected(bool(gone), {"deleted_checkpoints": gone})

    def _copy_thread(self, request: checkpoints.CopyThreadRequest, _reply: Reply) -> Expected:
        copied = self.threads.copy(request.source_thread_id, request.target_thread_id)
        return Expected(bool(copied), {"copied_checkpoints": copied})

    def _prune_threads(self, request: checkpoints.PruneThreadsRequest, _reply: Reply) -> Expected:
        keep_latest = request.strategy != checkpoints.PRUNE_STRATEGY_DELETE
        gone = sum(self.threads.prune(each, keep_latest=keep_latest) for each in request.thread_ids)
        return Expected(bool(gone), {"deleted_checkpoints": gone})

    def _create_collection(self, request: vectors.CreateCollectionRequest, _reply: Reply) -> Expected:
        if request.collection.id in self.collections:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS)
        collection = copied(request.collection)
        collection.current_dimension = collection.dimension
        self.collections[collection.id] = collection
        return Expected(True)

    def _clear_collection(self, request: vectors.ClearCollectionRequest, _reply: Reply) -> Expected:
        collection = self.collections.get(request.collection_id)
        if collection is None:
            return Expected(False)
        collection.current_dimension = collection.dimension
        self._drop_vectors(collection.id)
        return Expected(True)

    def _delete_collection(self, request: vectors.DeleteCollectionRequest, _reply: Reply) -> Expected:
        if self.collections.pop(request.collection_id, None) is None:
            if not request.allow_missing:
                raise Refused(grpc.StatusCode.NOT_FOUND)
            return Expected(False, {"deleted": False})
        self._drop_vectors(request.collection_id)
        return Expected(True, {"deleted": True})

    def _drop_vectors(self, name: str) -> None:
        self.vectors = {key: vector for key, vector in self.vectors.items() if key[0] != name}

    def _save_spans(self, request: history.SaveSpansRequest, _reply: Reply) -> Expected:
        for span in request.spans:
            self._put_span(copied(span))
        return Expected(True)

    def _put_span(self, span: SpanRecord) -> None:
        self.spans.pop((span.trace_id, span.span_id), None)
        self.spans[span.trace_id, span.span_id] = span

    def _update_span(self, request: history.UpdateSpanRequest, _reply: Reply) -> Expected:
        key = (request.span.trace_id, request.span.span_id)
        if key not in self.spans:
            raise Refused(grpc.StatusCode.NOT_FOUND)
        self._put_span(_replaced(self.spans[key], request.span, request.update_mask.paths))
        return Expected(True)

    def _prune_spans(self, _request: history.PruneSpansRequest, _reply: Reply) -> Expected:
        """Nothing: the spans of all users are younger, because no user may delete another's."""
        return Expected(False, {"deleted_spans": 0})

    def _save_logs(self, request: history.SaveLogRecordsRequest, _reply: Reply) -> Expected:
        for record in request.records:
            self.logs.pop(record.id, None)
            self.logs[record.id] = copied(record)
        return Expected(True)

    def _prune_logs(self, _request: history.PruneLogRecordsRequest, _reply: Reply) -> Expected:
        """Nothing, likewise."""
        return Expected(False, {"deleted_records": 0})

    def differences(self, seen: Seen) -> list[str]:
        """How what the store shows departs from what it should; empty where it does not."""
        own = {name: kept.row for name, kept in self.kept.items() if not kept.shared}
        if own.keys() != seen.conversations.keys():
            return [f"conversations {sorted(seen.conversations)}, not {sorted(own)}"]
        found = [
            f"conversation {name}: {text}"
            for name, row in own.items()
            for text in _unlike(row, seen.conversations[name])
        ]
        for name, kept in self.kept.items():
            found += _row_differences(f"messages of {name}", kept.messages, seen.messages[name])
        for compare in COMPARED.values():
            found += compare(self, seen)
        return found or self._search_differences(seen)

    def step_differences(self, seen: Seen) -> list[str]:
        return [
            text
            for name, kept in self.kept.items()
            for text in _row_differences(f"steps of {name}", kept.ordered_steps(), seen.steps[name])
        ]

    def conversation_memory_differences(self, seen: Seen) -> list[str]:
        wanted = {name: kept.memory for name, kept in self.kept.items() if not kept.shared}
        shown = {name: content for name, content in seen.memories.items() if name}
        return [] if shown == wanted else [f"conversation memories {shown}, not {wanted}"]

    def user_memory_differences(self, seen: Seen) -> list[str]:
        shown = seen.memories[""]
        return [] if shown == self.memory else [f"user memories {shown!r}, not {self.memory!r}"]

    def run_differences(self, seen: Seen) -> list[str]:
        names = sorted(self.runs | seen.runs)
        return _row_differences(
            "workflow runs",
            [self.runs[name] for name in names if name in self.runs],
            [seen.runs[name] for name in names if name in seen.runs],
        )

    def run_step_differences(self, seen: Seen) -> list[str]:
        return [
            text
            for name, shown in seen.run_steps.items()
            for text in _row_differences(f"workflow steps of {name}", self._steps_of(name), shown)
        ]

    def _steps_of(self, run_id: str) -> list[WorkflowStep]:
        """By index, then in the order of saving."""
        own = (step for key, step in self.run_steps.items() if key[0] == run_id)
        return sorted(own, key=lambda step: step.step_index)

    def event_differences(self, seen: Seen) -> list[str]:
        return [
            text
            for name, shown in seen.events.items()
            for text in _row_differences(f"timeline events of {name}", self._events_of(name), shown)
        ]

    def _events_of(self, run_id: str) -> list[TimelineEvent]:
        """By sequence, then in the order of adding: all began at one time."""
        own = (event for key, event in self.events.items() if key[0] == run_id)
        return sorted(own, key=lambda event: event.sequence)

    def entry_differences(self, seen: Seen) -> list[str]:
        names = sorted(self.entries | seen.entries)
        return _row_differences(
            "history entries",
            [self.entries[name] for name in names if name in self.entries],
            [seen.entries[name] for name in names if name in seen.entries],
        )

    def entry_step_differences(self, seen: Seen) -> list[str]:
        return [
            text
            for name, shown in seen.entry_steps.items()
            for text in _row_differences(f"entry steps of {name}", self._entry_steps_of(name), shown)
        ]

    def _entry_steps_of(self, entry_id: str) -> list[EntryStep]:
        """By index, then in the order of adding."""
        own = (step for key, step in self.entry_steps.items() if key[0] == entry_id)
        return sorted(own, key=lambda step: step.step_index)

    def collection_differences(self, seen: Seen) -> list[str]:
        names = sorted(self.collections | seen.collections)
        return _row_differences(
            "vector_collections",
            [self.collections[name] for name in names if name in self.collections],
            [seen.collections[name] for name in names if name in seen.collections],
        )

    def vector_differences(self, seen: Seen) -> list[str]:
        found: list[str] = []
        for name, shown in seen.vectors.items():
            own = [vector for key, vector in sorted(self.vectors.items()) if key[0] == name]
            found += _row_differences(f"vectors of {name}", own, shown)
            if seen.near[name] != [vector.id for vector in own]:
                found.append(f"vectors of {name}: a search finds {seen.near[name]}, not all of them")
        return found

    def memory_item_differences(self, seen: Seen) -> list[str]:
        own = [self.memory_items[item_id] for item_id in sorted(self.memory_items)]
        found = _row_differences("memory items", own, seen.memory_items)
        if sorted(seen.remembered) != [item.id for item in own]:
            found.append(f"memory items: a search finds {sorted(seen.remembered)}, not all of them")
        return found

    def fact_differences(self, seen: Seen) -> list[str]:
        own, shown = self.facts.told(), sorted(map(fact_model.told, seen.facts))
        lost = [f"facts: {line} is missing" for line in own if line not in shown]
        return lost + [f"facts: {line} should not be there" for line in shown if line not in own]

    def static_fact_differences(self, seen: Seen) -> list[str]:
        if seen.static_facts != fact_model.STATIC and (self.facts.set_static or seen.static_facts):
            return [f"static_facts are {seen.static_facts}"]
        return []

    def checkpoint_differences(self, seen: Seen) -> list[str]:
        return self._thread_differences("checkpoints", seen, lambda found: [found.checkpoint])

    def blob_differences(self, seen: Seen) -> list[str]:
        return self._thread_differences(
            "channel_blobs", seen, lambda found: [each for each in found.values if each.value.type != UPLOADED]
        )

    def part_differences(self, seen: Seen) -> list[str]:
        return self._thread_differences(
            "checkpoint_parts", seen, lambda found: [each for each in found.values if each.value.type == UPLOADED]
        )

    def write_differences(self, seen: Seen) -> list[str]:
        return self._thread_differences("checkpoint_writes", seen, lambda found: list(found.writes))

    def _thread_differences(
        self, name: str, seen: Seen, part: Callable[[checkpoints.FoundCheckpoint], list[Any]]
    ) -> list[str]:
        found = [contents.found(each) for contents, each in self.threads.listed()]
        for each in found:
            forget_given(each)
        wanted = sorted((each.checkpoint.thread_id, each.checkpoint.id, str(part(each))) for each in found)
        shown = sorted((each.checkpoint.thread_id, each.checkpoint.id, str(part(each))) for each in seen.checkpoints)
        return [f"{name} {shown}, not {wanted}"] if shown != wanted else []

    def span_differences(self, seen: Seen) -> list[str]:
        return [
            text
            for name, shown in seen.spans.items()
            for text in _row_differences(f"spans of {name}", self._spans_of(name), shown)
        ]

    def _spans_of(self, trace_id: str) -> list[SpanRecord]:
        """By start, then in the order of saving."""
        own = (span for key, span in self.spans.items() if key[0] == trace_id)
        return sorted(own, key=lambda span: span.start_time.ToNanoseconds())

    def log_differences(self, seen: Seen) -> list[str]:
        by_time = sorted(self.logs.values(), key=lambda record: record.time.ToNanoseconds())
        return _row_differences("log records", by_time, seen.logs)

    def item_differences(self, seen: Seen) -> list[str]:
        found: list[str] = []
        for shown in (seen.items, seen.items_by_key):
            places = sorted(self.items | shown)
            own = [_without_vectors(self.items[at]) for at in places if at in self.items]
            found += _row_differences("store_items", own, [shown[at] for at in places if at in shown])
        near = {at for at, item in self.items.items() if item.vectors}
        if seen.near_items != near:
            found.append(f"store_items: a search by vector finds {seen.near_items}, not {near}")
        return found

    def _search_differences(self, seen: Seen) -> list[str]:
        wanted = {(name, id_) for name, kept in self.kept.items() for id_ in _with_vectors(seen.messages[name], kept)}
        if len(seen.found) != len(set(seen.found)):
            return ["a search finds a message twice"]
        return [] if wanted == set(seen.found) else [f"a search finds {sorted(seen.found)}, not {sorted(wanted)}"]

    def adopt(self, seen: Seen) -> None:
        """Expect from now on just what was seen, which must not differ."""
        self.runs = {name: copied(run) for name, run in seen.runs.items()}
        self.run_steps = _adopted(self.run_steps, seen.run_steps)
        self.events = _adopted(self.events, seen.events)
        self.entries = {name: copied(entry) for name, entry in seen.entries.items()}
        self.entry_steps = _adopted(self.entry_steps, seen.entry_steps)
        self.collections = {name: copied(collection) for name, collection in seen.collections.items()}
        self.vectors = _adopted(self.vectors, seen.vectors)
        self.items = {at: _with_vectors_of(item, self.items.get(at)) for at, item in seen.items.items()}
        self.memory_items = {item.id: copied(item) for item in seen.memory_items}
        self.logs = {key: copied(next(one for one in seen.logs if one.id == key)) for key in self.logs}
        for name, kept in self.kept.items():
            if not kept.shared:
                kept.row = copied(seen.conversations[name])
            for message, shown in zip(kept.messages, seen.messages[name], strict=True):
                embedding = copied(message.embedding)
                message.CopyFrom(shown)
                message.embedding.CopyFrom(embedding)
            kept.steps = {
                step.id: next(shown for shown in seen.steps[name] if shown.id == step.id)
                for step in kept.steps.values()
            }


def _replaced(before: Kind, given: Message, names: Iterable[str]) -> Kind:
    """A message with these fields of another, none of which is a message or empty there."""
    after = copied(before)
    for name in names:
        value = getattr(given, name)
        if isinstance(value, Message):
            getattr(after, name).CopyFrom(value)
        else:
            setattr(after, name, value)
    return after


def _adopted(known: Mapping[tuple[str, str], Kind], seen: Mapping[str, Sequence[Any]]) -> dict[tuple[str, str], Kind]:
    """The parts of runs as they were seen, in the order of those that are known."""
    shown = {(name, part.id): part for name, parts in seen.items() for part in parts}
    return {key: copied(shown[key]) for key in known}


COMPARED: dict[str, Callable[[UserModel, Seen], list[str]]] = {
    "steps": UserModel.step_differences,
    "conversation_memories": UserModel.conversation_memory_differences,
    "user_memories": UserModel.user_memory_differences,
    "workflow_runs": UserModel.run_differences,
    "workflow_steps": UserModel.run_step_differences,
    "timeline_events": UserModel.event_differences,
    "history_entries": UserModel.entry_differences,
    "entry_steps": UserModel.entry_step_differences,
    "vector_collections": UserModel.collection_differences,
    "vectors": UserModel.vector_differences,
    "store_items": UserModel.item_differences,
    "checkpoints": UserModel.checkpoint_differences,
    "channel_blobs": UserModel.blob_differences,
    "checkpoint_writes": UserModel.write_differences,
    "checkpoint_parts": UserModel.part_differences,
    "spans": UserModel.span_differences,
    "log_records": UserModel.log_differences,
    "memory_items": UserModel.memory_item_differences,
    "facts": UserModel.fact_differences,
    "static_facts": UserModel.static_fact_differences,
}
"""How what is seen of each kind of records departs from what it should be, by the kind's name, which each text has."""


def forget_given(found: checkpoints.FoundCheckpoint) -> None:
    """Clear what the server gives a checkpoint as it likes."""
    found.checkpoint.ClearField("create_time")
    for channel in found.checkpoint.channels:
        channel.ClearField("fork")


def revision_of(reply: Reply) -> int:
    """The revision of a write, 0 where it is not known."""
    return 0 if reply is None else int(reply.revision)


def copied(message: Kind) -> Kind:
    """A copy."""
    fresh = type(message)()
    fresh.CopyFrom(message)
    return fresh


def _bound(keep: pb.Slice, name: str) -> int | None:
    return getattr(keep, name) if keep.HasField(name) else None  # type: ignore[arg-type]


def _cleared(parts: Iterable[Kept], revision: int) -> int:
    """Remove what a user has in these conversations; how many messages that was."""
    count = 0
    for kept in parts:
        count += len(kept.messages)
        kept.messages, kept.steps = [], {}
        kept.touched(revision)
    return count


def _with_vectors(shown: Sequence[message_pb2.Message], kept: Kept) -> list[str]:
    """The ids of messages whose caller gave a vector."""
    return [seen.id for seen, known in zip(shown, kept.messages, strict=True) if known.embedding.values]


def _at(given: StoreItem | ItemKey) -> ItemAt:
    return tuple(given.namespace), given.key


def _without_vectors(item: StoreItem) -> StoreItem:
    """The item as it is shown."""
    shown = copied(item)
    shown.ClearField("vectors")
    return shown


def _with_vectors_of(shown: StoreItem, known: StoreItem | None) -> StoreItem:
    item = copied(shown)
    if known is not None:
        item.vectors.extend(known.vectors)
    return item


def _row_differences(what: str, wanted: Sequence[Kind], shown: Sequence[Kind]) -> list[str]:
    if len(wanted) != len(shown):
        return [f"{what}: {_names(shown)}, not {_names(wanted)}"]
    return [f"{what}: {text}" for pair in zip(wanted, shown, strict=True) for text in _unlike(*pair)]


def _names(rows: Sequence[Any]) -> list[str]:
    return [f"{_name(row)}@{getattr(row, 'sequence', '')}" for row in rows]


def _name(row: Any) -> str:  # noqa: ANN401 - a message of any kind
    return str(getattr(row, "id", "") or getattr(row, "span_id", ""))


def _unlike(wanted: Kind, shown: Kind) -> list[str]:
    """The fields in which a message departs from what is known of it."""
    wanted, shown = copied(wanted), copied(shown)
    if isinstance(wanted, message_pb2.Message):
        wanted.ClearField("embedding")
    for name in LEARNED:
        if name in wanted.DESCRIPTOR.fields_by_name and not _is_known(wanted, name):
            shown.ClearField(name)
    names = [f.name for f in wanted.DESCRIPTOR.fields if getattr(wanted, f.name) != getattr(shown, f.name)]
    label = _name(shown)
    return [f"{label}'s {name} is {getattr(shown, name)!r}, not {getattr(wanted, name)!r}" for name in names]


def _is_known(message: Message, name: str) -> bool:
    return any(known.name == name for known, _ in message.ListFields()) or name == "last_sequence"
