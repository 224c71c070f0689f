"""The interface of stores: a Protocol for each noun, and one bundle of them.

Each method is one whole command. A write returns once it is durable and visible, unless it says that its
caller waits for that; it raises StoreFull, StoreFailed, DeadlineExceeded, RequestTooLarge and RequestIdReused besides
what it says itself. A read raises RevisionUnknown and DeadlineExceeded. An empty `user_id` means the conversation's own
user. Revisions only grow; nothing is said about those between two that were given.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from remora_server.domain.backups import BackupStore
from remora_server.domain.checkpoints import CheckpointStore, ThreadStore
from remora_server.domain.context_messages import MessageReader
from remora_server.domain.conversations import ConversationStore
from remora_server.domain.facts import FactStore
from remora_server.domain.history import EntryStepStore, HistoryEntryStore
from remora_server.domain.items import ItemStore
from remora_server.domain.memory_items import MemoryItemStore
from remora_server.domain.messages import MessageStore
from remora_server.domain.publication import Publication
from remora_server.domain.receipts import ReceiptStore
from remora_server.domain.search import EmbeddingQueues, MessageIndex
from remora_server.domain.status import StoreHealth
from remora_server.domain.steps import StepStore
from remora_server.domain.traces import LogRecordStore, SpanStore
from remora_server.domain.transfers import ExportStore, ImportStore
from remora_server.domain.users import UserStore
from remora_server.domain.vectors import CollectionStore, VectorStore
from remora_server.domain.windows import WindowStore
from remora_server.domain.workflows import TimelineEventStore, WorkflowRunStore, WorkflowStepStore
from remora_server.domain.working_memory import WorkingMemoryStore


class Store(Struct, frozen=True):
    """An open store, as the server uses it.

    `secret` is a key of 32 bytes that only this store knows. Signatures with it stay valid over restarts.
    `message_reader` reads messages and facts as this store gives them. `close` makes accepted writes durable and
    releases the store.
    """

    id: str
    secret: bytes
    conversations: ConversationStore
    messages: MessageStore
    message_reader: MessageReader
    steps: StepStore
    working_memories: WorkingMemoryStore
    windows: WindowStore
    workflow_runs: WorkflowRunStore
    workflow_steps: WorkflowStepStore
    timeline_events: TimelineEventStore
    history_entries: HistoryEntryStore
    entry_steps: EntryStepStore
    vectors: VectorStore
    collections: CollectionStore
    items: ItemStore
    memory_items: MemoryItemStore
    facts: FactStore
    spans: SpanStore
    log_records: LogRecordStore
    checkpoints: CheckpointStore
    threads: ThreadStore
    users: UserStore
    receipts: ReceiptStore
    index: MessageIndex
    embeddings: EmbeddingQueues
    exports: ExportStore
    imports: ImportStore
    backups: BackupStore
    health: StoreHealth
    publication: Publication
    close: Callable[[], None]
