"""Turns the rows of VoltAgent's LibSQLMemoryAdapter into the records that Remora's adapter for VoltAgent reads.

That adapter stores the same with `conversations.ts`, `messages.ts`, `steps.ts` and `workflow-states.ts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from google.protobuf.message import Message as AnyMessage
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Struct

from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message
from remora.v1.step_pb2 import (
    STEP_TYPE_OTHER,
    STEP_TYPE_TEXT,
    STEP_TYPE_TOOL_CALL,
    STEP_TYPE_TOOL_RESULT,
    Step,
)
from remora.v1.transfer_service_pb2 import ConversationRecord, MessageRecord, Record
from remora.v1.workflow_pb2 import (
    WORKFLOW_STATUS_CANCELLED,
    WORKFLOW_STATUS_COMPLETED,
    WORKFLOW_STATUS_ERROR,
    WORKFLOW_STATUS_OTHER,
    WORKFLOW_STATUS_RUNNING,
    WORKFLOW_STATUS_SUSPENDED,
    WorkflowRun,
)
from remora.v1.working_memory_pb2 import WorkingMemoryRecord, WorkingMemoryScope
from remora_server.commands.moving import json_columns, ui_messages
from remora_server.commands.moving.sqlite_file import Row, SqliteFile, quoted

OWNER = "VoltAgent's LibSQLMemoryAdapter"
PREFIX = "voltagent_memory"
DEFAULT_USER = "default"
WORKING_MEMORY = "workingMemory"
COLUMNS = {
    "users": ("id", "metadata", "updated_at"),
    "conversations": ("id", "resource_id", "user_id", "title", "metadata", "created_at", "updated_at"),
    "messages": ("conversation_id", "message_id", "role", "created_at"),
    "workflow_states": ("id", "workflow_id", "workflow_name", "status", "created_at", "updated_at"),
}
STEP_COLUMNS = ("id", "conversation_id", "user_id", "agent_id", "step_index", "type", "role", "created_at")

_STEP_TYPES = {"text": STEP_TYPE_TEXT, "tool_call": STEP_TYPE_TOOL_CALL, "tool_result": STEP_TYPE_TOOL_RESULT}
_STATUSES = {
    "running": WORKFLOW_STATUS_RUNNING,
    "suspended": WORKFLOW_STATUS_SUSPENDED,
    "completed": WORKFLOW_STATUS_COMPLETED,
    "cancelled": WORKFLOW_STATUS_CANCELLED,
    "error": WORKFLOW_STATUS_ERROR,
}
_ENDED = frozenset({"completed", "cancelled", "error"})
_OF_CONVERSATION = "WHERE conversation_id = ? ORDER BY rowid"

Placed = tuple[Record, Row]


class VoltAgentFile(Struct, frozen=True):
    """The records of a file, whose tables have a prefix."""

    file: SqliteFile
    prefix: str

    def require(self) -> None:
        """Raise CommandFailed if another program wrote the file. Files of older versions have no steps."""
        columns = {self._table(name): needed for name, needed in COLUMNS.items()}
        if self._has_steps:
            columns[self._table("steps")] = STEP_COLUMNS
        self.file.require(OWNER, columns, ", or its tablePrefix is another (--table-prefix)")

    def _table(self, name: str) -> str:
        return f"{self.prefix}_{name}"

    @property
    def _has_steps(self) -> bool:
        return bool(self.file.columns(self._table("steps")))

    def records(self) -> Iterator[Placed]:
        """All records with their rows: each conversation with its records, then the rest."""
        for row in self.file.rows(self._table("conversations")):
            yield from self._conversation(row)
        yield from self._of_none()

    def conversation(self, conversation_id: str) -> Iterator[Placed]:
        """The records of one conversation; none if the file does not have it."""
        for row in self.file.rows(self._table("conversations"), "WHERE id = ?", (conversation_id,)):
            yield from self._conversation(row)

    def of_none(self, record: Record) -> Iterator[Placed]:
        """The file's record in the place of a record that belongs to no conversation."""
        if record.HasField("workflow_run"):
            rows = self.file.rows(self._table("workflow_states"), "WHERE id = ?", (record.workflow_run.id,))
            yield from map(_run, rows)
        elif record.HasField("working_memory"):
            given = (record.working_memory.scope.user_id,)
            for row in self.file.rows(self._table("users"), "WHERE id = ?", given):
                yield from _user_memory(row)

    def _of_none(self) -> Iterator[Placed]:
        for row in self.file.rows(self._table("users")):
            yield from _user_memory(row)
        yield from map(_run, self.file.rows(self._table("workflow_states")))

    def _conversation(self, row: Row) -> Iterator[Placed]:
        """A conversation, its messages, its steps and its working memory."""
        conversation_id = row.text("id")
        messages = list(self._messages(conversation_id))
        yield _conversation(row, messages), row
        yield from messages
        if self._has_steps:
            yield from map(_step, self.file.rows(self._table("steps"), _OF_CONVERSATION, (conversation_id,)))
        yield from _working_memory(row, WorkingMemoryScope(conversation_id=conversation_id))

    def _messages(self, conversation_id: str) -> Iterator[Placed]:
        """Messages in the order of their sequences: by time, and those of the same time in the order of writing."""
        rows = list(self.file.rows(self._table("messages"), _OF_CONVERSATION, (conversation_id,)))
        rows.sort(key=lambda row: row.time("created_at"))
        for sequence, row in enumerate(rows, 1):
            yield _message(row, sequence), row

    def orphans(self) -> dict[str, int]:
        """How many messages and steps belong to conversations that the file does not have."""
        names = ["message", *(["step"] if self._has_steps else [])]
        clauses = f"WHERE conversation_id NOT IN (SELECT id FROM {quoted(self._table('conversations'))})"  # noqa: S608 - see rows
        return {name: sum(1 for _ in self.file.rows(self._table(f"{name}s"), clauses)) for name in names}


def _conversation(row: Row, messages: list[Placed]) -> Record:
    own = Conversation(
        id=row.text("id"),
        user_id=row.text("user_id") or DEFAULT_USER,
        resource_id=row.text("resource_id"),
        title=row.text("title"),
        metadata=_metadata(row),
        last_sequence=len(messages),
        create_time=_time(row.time("created_at")),
        update_time=_time(row.time("updated_at")),
    )
    record = ConversationRecord(conversation=own)
    if messages:
        record.last_append_time.CopyFrom(messages[-1][0].message.message.create_time)
    return Record(conversation=record)


def _metadata(row: Row) -> bytes:
    """The metadata without the working memory, which Remora stores separately."""
    if WORKING_MEMORY not in json_columns.members(row, "metadata"):
        return json_columns.data(row, "metadata")
    members = json_columns.raw_members(row, "metadata")
    del members[WORKING_MEMORY]
    return json_columns.written(members)


def _message(row: Row, sequence: int) -> Record:
    json_columns.members(row, "metadata")
    parts = ui_messages.parts(row)
    time = _time(row.time("created_at"))
    own = Message(
        id=row.text("message_id"),
        user_id=row.optional_text("user_id") or DEFAULT_USER,
        role=row.text("role"),
        text=ui_messages.text_of(parts.value),
        parts=b'{"parts":' + parts.encoded + b"}",
        metadata=json_columns.data(row, "metadata"),
        sequence=sequence,
        create_time=time,
        update_time=time,
    )
    return Record(message=MessageRecord(conversation_id=row.text("conversation_id"), message=own))


def _step(row: Row) -> Placed:
    kind = row.text("type")
    own = Step(
        id=row.text("id"),
        conversation_id=row.text("conversation_id"),
        user_id=row.text("user_id") or DEFAULT_USER,
        agent_id=row.text("agent_id"),
        agent_name=row.optional_text("agent_name"),
        operation_id=row.optional_text("operation_id"),
        type=_STEP_TYPES.get(kind, STEP_TYPE_OTHER),
        other_type="" if kind in _STEP_TYPES else kind,
        role=row.text("role"),
        content=row.optional_text("content"),
        arguments=json_columns.data(row, "arguments"),
        result=json_columns.data(row, "result"),
        usage=json_columns.data(row, "usage"),
        sub_agent_id=row.optional_text("sub_agent_id"),
        sub_agent_name=row.optional_text("sub_agent_name"),
        create_time=_time(row.time("created_at")),
    )
    _set(row, "step_index", own, "step_index", row.integer("step_index"))
    return Record(step=own), row


def _user_memory(row: Row) -> Iterator[Placed]:
    return _working_memory(row, WorkingMemoryScope(user_id=row.text("id")))


def _working_memory(row: Row, scope: WorkingMemoryScope) -> Iterator[Placed]:
    """The working memory in the metadata of a conversation or a user. An empty text is none, as for VoltAgent's
    adapter.
    """
    content = json_columns.members(row, "metadata").get(WORKING_MEMORY)
    if content is not None and not isinstance(content, str):
        raise row.fault("metadata", f"has a {WORKING_MEMORY} that is not a text")
    if content:
        time = _time(row.time("updated_at"))
        body = ui_messages.as_javascript_encodes(content).encode()
        yield Record(working_memory=WorkingMemoryRecord(scope=scope, content=body, update_time=time)), row


def _run(row: Row) -> Placed:
    status = row.text("status")
    json_columns.members(row, "metadata")
    own = WorkflowRun(
        id=row.text("id"),
        workflow_id=row.text("workflow_id"),
        workflow_name=row.text("workflow_name"),
        status=_STATUSES.get(status, WORKFLOW_STATUS_OTHER),
        other_status="" if status in _STATUSES else status,
        user_id=row.optional_text("user_id"),
        conversation_id=row.optional_text("conversation_id"),
        context=_context(row),
        metadata=json_columns.data(row, "metadata"),
        start_time=_time(row.time("created_at")),
        create_time=_time(row.time("created_at")),
        update_time=_time(row.time("updated_at")),
    )
    for column in ("input", "output", "workflow_state", "events"):
        setattr(own, column, json_columns.data(row, column))
    if status in _ENDED:
        own.end_time.CopyFrom(own.update_time)  # as VoltAgent's adapter takes it
    _suspend(row, own)
    _cancel(row, own)
    return Record(workflow_run=own), row


def _context(row: Row) -> bytes:
    """Entries of texts and values. JSON writes a Map as `{}` and a symbol as null, so that their content is lost."""
    entries = json_columns.value(row, "context")
    if entries is None or entries == {}:
        return b""
    if not isinstance(entries, list):
        raise row.fault("context", "is not a list of entries")
    for entry in entries:
        if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
            raise row.fault("context", "has an entry whose key is not a text, such as a symbol")
    return json_columns.data(row, "context")


def _suspend(row: Row, run: WorkflowRun) -> None:
    given, raw = json_columns.members(row, "suspension"), json_columns.raw_members(row, "suspension")
    if not given:
        return
    own = run.suspension
    own.SetInParent()
    _set_time(row, "suspension", given.get("suspendedAt"), own.suspend_time)
    for key, field in (("reason", "reason"), ("stepIndex", "step_index"), ("lastEventSequence", "last_event_sequence")):
        if given.get(key) is not None:
            _set(row, "suspension", own, field, given[key])
    own.checkpoint, own.suspend_data = (bytes(raw.get(key, b"")) for key in ("checkpoint", "suspendData"))


def _cancel(row: Row, run: WorkflowRun) -> None:
    given = json_columns.members(row, "cancellation")
    if not given:
        return
    run.cancellation.SetInParent()
    _set_time(row, "cancellation", given.get("cancelledAt"), run.cancellation.cancel_time)
    if given.get("reason") is not None:
        _set(row, "cancellation", run.cancellation, "reason", given["reason"])


def _set(row: Row, column: str, message: AnyMessage, field: str, value: object) -> None:
    """Set a field to a value of the file, which may be of another type."""
    try:
        setattr(message, field, value)
    except (TypeError, ValueError) as error:
        raise row.fault(column, f"has a {field} that is not understood: {value!r}") from error


def _set_time(row: Row, column: str, given: object, field: Timestamp) -> None:
    if given is None:
        return
    try:
        field.CopyFrom(_time(datetime.fromisoformat(str(given))))
    except (ValueError, OverflowError) as error:
        raise row.fault(column, f"has a time that cannot be read: {given!r}") from error


def _time(given: datetime) -> Timestamp:
    time = Timestamp()
    time.FromDatetime(given)
    return time
