"""Copies the file of VoltAgent's LibSQLMemoryAdapter, and compares the server's records with it."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Struct, field
from rich.console import Console

from remora import Remora
from remora.v1.conversation_pb2 import Conversation
from remora.v1.transfer_service_pb2 import Record
from remora.v1.working_memory_pb2 import WorkingMemoryRecord
from remora_server.commands.moving.records import Copied, differences, exported, require_equal, send
from remora_server.commands.moving.sqlite_file import Row, SqliteFile
from remora_server.commands.moving.voltagent import Placed, VoltAgentFile
from remora_server.commands.numbers import counted
from remora_server.commands.output import diagnostics, progress_of_rows
from remora_server.commands.reported import Reported
from remora_server.rpc.handlers.exported import conversation_of

Key = tuple[str, ...]


def copy(client: Remora, file: SqliteFile, prefix: str) -> str:
    """Check, copy and compare the records of a file. Returns the report's lines. Raises CommandFailed."""
    source = VoltAgentFile(file, prefix)
    source.require()
    count = sum(1 for _ in source.records())
    report = Reported(file.name)
    with progress_of_rows() as progress:
        task = progress.add_task("copying", total=count)
        given = ((record, _named(record, row)) for record, row in progress.track(source.records(), task_id=task))
        copied = send(client, file.name, given, progress.console)
        _Comparing(source, copied, report).run(client, progress.console)
    require_equal(copied, report, "record")
    for name, orphans in source.orphans().items():
        if orphans:
            left = counted(orphans, f"{name} of a deleted conversation is", f"{name}s of deleted conversations are")
            diagnostics().print(f"{left} left out")
    return copied.told("record")


class _Comparing(Struct):
    """Compares the file with all that is exported. One conversation at a time is in memory."""

    source: VoltAgentFile
    copied: Copied
    report: Reported
    _seen: set[Key] = field(default_factory=set)
    _conversation_id: str = ""
    _records: dict[Key, Placed] = field(default_factory=dict)

    def run(self, client: Remora, console: Console) -> None:
        for record in exported(client, None, console):
            own = self._expected(record)
            if own is not None:
                self._compare(*own, record)
        for record, row in self.source.records():
            if _key(record) not in self._seen:
                self.copied.differing.add(_named(record, row))
                self.report(f"{_named(record, row)}: it is not in Remora")

    def _expected(self, record: Record) -> Placed | None:
        """The file's record in the place of another one."""
        conversation_id = conversation_of(record)
        if not conversation_id:
            return next(self.source.of_none(record), None)
        if conversation_id != self._conversation_id:
            self._conversation_id = conversation_id
            self._records = {_key(own): (own, row) for own, row in self.source.conversation(conversation_id)}
        return self._records.get(_key(record))

    def _compare(self, expected: Record, row: Row, found: Record) -> None:
        self._seen.add(_key(expected))
        if names := _differences(_message_of(expected), _message_of(found)):
            self.copied.differing.add(_named(expected, row))
            self.report(f"{_named(expected, row)}: Remora has another {', '.join(names)}")


def _key(record: Record) -> Key:
    """The key of a record."""
    kind, own = str(record.WhichOneof("kind")), _message_of(record)
    user_id = "" if kind == "conversation" else getattr(own, "user_id", "")
    return kind, conversation_of(record), user_id, _id_of(own)


def _id_of(own: Message) -> str:
    """The id of a record; of a working memory, that of its owner."""
    if isinstance(own, WorkingMemoryRecord):
        return own.scope.conversation_id or own.scope.user_id
    return str(getattr(own, "id", ""))


def _message_of(record: Record) -> Message:
    match record.WhichOneof("kind"):
        case "conversation":
            return record.conversation.conversation
        case "message":
            return record.message.message
        case kind:
            own: Message = getattr(record, str(kind))
            return own


def _differences(expected: Message, found: Message) -> list[str]:
    """In which fields that a caller sets two messages differ. The conversation may have changed since."""
    for name in ("revision", "token_count", "embedding"):
        if name in found.DESCRIPTOR.fields_by_name:
            found.ClearField(name)
    if isinstance(expected, Conversation) and isinstance(found, Conversation):
        found.ClearField("uid")
        found.ClearField("message_count")
        expected.last_sequence = max(expected.last_sequence, found.last_sequence)
        _raise_to(expected.update_time, found.update_time)
    return differences(expected, found)


def _raise_to(time: Timestamp, other: Timestamp) -> None:
    if other.ToMicroseconds() > time.ToMicroseconds():
        time.CopyFrom(other)


def _named(record: Record, row: Row) -> str:
    kind = str(record.WhichOneof("kind")).replace("_", " ")
    return f"{row.place} ({kind} {_id_of(_message_of(record))!r})"
