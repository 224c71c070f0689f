"""A store that remembers what it was asked and answers what a test tells it to."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

from remora_server.domain.backups import Backup
from remora_server.domain.calls import Outcome
from remora_server.domain.conversations import Conversation, ConversationDraft, ConversationQuery
from remora_server.domain.messages import MessagePage
from remora_server.domain.status import EmbeddingStatus, EngineStatus, JournalStatus, StoreStatus
from remora_server.domain.steps import StepPage
from remora_server.domain.store import Store
from remora_server.domain.transfers import ExportPage
from remora_server.domain.working_memory import WorkingMemory
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.schema.message_reader import StoredMessageReader

STATUS = StoreStatus(
    store_id="0123456789abcdef0123456789abcdef",
    format_version=1,
    in_memory=True,
    failure="",
    revision=7,
    applied_revision=6,
    database_bytes=5,
    conversations=4,
    messages=3,
    embeddings={"minilm": EmbeddingStatus(pending=2, refused=1, per_second=2.5)},
    journal=JournalStatus(bytes=1, segments=2, records=3, batches=4, sync_micros=5),
    engine=EngineStatus(
        kernels="scalar",
        conversations=1,
        window_bytes=2,
        parts=3,
        index_bytes=4,
        record_partitions=5,
        record_bytes=6,
        vector_partitions=7,
        vector_bytes=8,
    ),
)


METHODS = {
    "conversations": {
        "create": "create_conversation",
        "get": "get_conversation",
        "list": "list_conversations",
        "count": "count_conversations",
        "update": "update_conversation",
        "delete": "delete_conversation",
    },
    "messages": {
        "append": "append_messages",
        "list": "list_messages",
        "delete": "delete_messages",
        "clear": "clear_messages",
        "edit": "edit_messages",
    },
    "steps": {"save": "save_steps", "list": "list_steps"},
    "working_memories": {
        "get": "get_working_memory",
        "set": "set_working_memory",
        "edit": "edit_working_memory",
        "delete": "delete_working_memory",
    },
    "users": {"clear": "clear_user", "delete": "delete_user"},
    "exports": {"page": "export_records"},
    "imports": {"store": "import_records"},
    "health": {"status": "status"},
}
"""The fake's methods by noun."""
NOTHING: dict[str, object] = dict.fromkeys(Store.__struct_fields__)
"""Of a store, what no handler is given that is tested with this one."""


def conversation(conversation_id: str = "c", uid: int = 1, **fields: object) -> Conversation:
    """A conversation as a store reads it."""
    draft = ConversationDraft(conversation_id, "u", **fields)  # type: ignore[arg-type]
    return Conversation(draft, uid=uid, revision=2, last_sequence=3, message_count=4, create_time=5, update_time=6)


BACKUP = Backup(
    id="b1",
    revision=7,
    store_id="0123456789abcdef0123456789abcdef",
    format_version=1,
    schema_version=2,
    duckdb_version="2.0",
    create_time=1_000_000,
    size=5,
    sha256=b"\x01" * 32,
    rows={"messages": 3},
)


@dataclass
class FakeBackups:
    """Holds one backup of these bytes."""

    content: bytes = b"bytes"
    deleted: list[str] = field(default_factory=list)

    def create(self, _deadline: float) -> Backup:
        return BACKUP

    def read(self, _backup_id: str, offset: int) -> bytes:
        return self.content[offset:]

    def delete(self, backup_id: str) -> bool:
        self.deleted.append(backup_id)
        return True


@dataclass
class FakeStore:
    """Each method keeps its arguments in `asked`, then returns the field of its kind, or raises `error`."""

    outcome: Outcome = field(default_factory=lambda: Outcome(revision=9))
    conversations: list[Conversation] = field(default_factory=list)
    page: MessagePage = field(default_factory=lambda: MessagePage(b"", 0, 0, 0, more=False, revision=9, uid=1))
    steps: StepPage = field(default_factory=lambda: StepPage(b"", following=None, revision=9))
    memory: WorkingMemory = field(default_factory=lambda: WorkingMemory(None, 0, 9))
    export: ExportPage = field(default_factory=lambda: ExportPage((), None, revision=9))
    error: Exception | None = None
    waiting_for: threading.Event | None = None
    asked: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def _ask(self, name: str, *arguments: object) -> None:
        self.asked[name] = arguments
        if self.waiting_for is not None:
            require_time(arguments[0].deadline if arguments else None)  # type: ignore[attr-defined]
            self.waiting_for.wait()
        if self.error is not None:
            raise self.error

    def create_conversation(self, *arguments: object) -> Outcome:
        self._ask("create_conversation", *arguments)
        return self.outcome

    def get_conversation(self, *arguments: object) -> tuple[Conversation, int]:
        self._ask("get_conversation", *arguments)
        return self.conversations[0], 9

    def list_conversations(self, *arguments: object) -> tuple[list[Conversation], int]:
        self._ask("list_conversations", *arguments)
        query = cast("ConversationQuery", arguments[1])
        uids = [each.uid for each in self.conversations]
        first = query.skip + (0 if query.after is None else uids.index(query.after.uid) + 1)
        return self.conversations[first : first + query.limit], 9

    def count_conversations(self, *arguments: object) -> tuple[int, int]:
        self._ask("count_conversations", *arguments)
        return len(self.conversations), 9

    def update_conversation(self, *arguments: object) -> Outcome:
        self._ask("update_conversation", *arguments)
        return self.outcome

    def delete_conversation(self, *arguments: object, allow_missing: bool) -> Outcome:
        self._ask("delete_conversation", *arguments, allow_missing)
        return self.outcome

    def append_messages(self, *arguments: object) -> Outcome:
        self._ask("append_messages", *arguments)
        return self.outcome

    def list_messages(self, *arguments: object) -> MessagePage:
        self._ask("list_messages", *arguments)
        return self.page

    def delete_messages(self, *arguments: object) -> Outcome:
        self._ask("delete_messages", *arguments)
        return self.outcome

    def clear_messages(self, *arguments: object) -> Outcome:
        self._ask("clear_messages", *arguments)
        return self.outcome

    def clear_user(self, *arguments: object) -> Outcome:
        self._ask("clear_user", *arguments)
        return self.outcome

    def delete_user(self, *arguments: object) -> Outcome:
        self._ask("delete_user", *arguments)
        return self.outcome

    def edit_messages(self, *arguments: object, allow_missing: bool) -> Outcome:
        self._ask("edit_messages", *arguments, allow_missing)
        return self.outcome

    def save_steps(self, *arguments: object) -> Outcome:
        self._ask("save_steps", *arguments)
        return self.outcome

    def list_steps(self, *arguments: object) -> StepPage:
        self._ask("list_steps", *arguments)
        return self.steps

    def get_working_memory(self, *arguments: object) -> WorkingMemory:
        self._ask("get_working_memory", *arguments)
        return self.memory

    def set_working_memory(self, *arguments: object) -> Outcome:
        self._ask("set_working_memory", *arguments)
        return self.outcome

    def edit_working_memory(self, *arguments: object) -> Outcome:
        self._ask("edit_working_memory", *arguments)
        return self.outcome

    def delete_working_memory(self, *arguments: object) -> Outcome:
        self._ask("delete_working_memory", *arguments)
        return self.outcome

    def export_records(self, *arguments: object) -> ExportPage:
        self._ask("export_records", *arguments)
        return self.export

    def import_records(self, *arguments: object) -> Outcome:
        self._ask("import_records", *arguments)
        return self.outcome

    def status(self) -> StoreStatus:
        self._ask("status")
        return STATUS

    def bundle(self, backups: FakeBackups) -> Store:
        """What handlers are given."""
        nouns = {noun: self._noun(noun) for noun in METHODS}
        given = {**NOTHING, "message_reader": StoredMessageReader(), "backups": backups, **nouns}
        return Store(**given)  # type: ignore[arg-type]

    def _noun(self, noun: str) -> SimpleNamespace:
        return SimpleNamespace(**{name: getattr(self, method) for name, method in METHODS[noun].items()})
