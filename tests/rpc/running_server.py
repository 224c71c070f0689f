"""A server over a fake store, on a Unix socket, and a channel to it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from tests.domain.fake_recall import FakeEmbedder, FakeIndex
from tests.patience import PATIENCE
from tests.rpc.fake_memory import FakeAssembler, FakeReceipts, FakeTokens
from tests.rpc.fake_store import FakeBackups, FakeStore

from remora_server import wire
from remora_server.domain.fact_memory import FactMemory
from remora_server.domain.memory_items import ItemMemory
from remora_server.domain.models import PerTenant
from remora_server.domain.publication import Publication
from remora_server.domain.reading import ConversationReader
from remora_server.domain.search import Embedder
from remora_server.domain.status import OverflowStatus, ProcessStatus
from remora_server.domain.summarizing import Summarizing, WindowReader
from remora_server.domain.text_vectors import TextVectors
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.rpc.handlers.admin import AdminHandlers
from remora_server.rpc.handlers.checkpoints import CheckpointHandlers
from remora_server.rpc.handlers.conversations import ConversationHandlers
from remora_server.rpc.handlers.facts import FactHandlers
from remora_server.rpc.handlers.history_entries import HistoryEntryHandlers
from remora_server.rpc.handlers.items import ItemHandlers
from remora_server.rpc.handlers.log_records import LogRecordHandlers
from remora_server.rpc.handlers.memory import MemoryHandlers
from remora_server.rpc.handlers.memory_items import MemoryItemHandlers
from remora_server.rpc.handlers.messages import MessageHandlers
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.handlers.receipts import ReceiptHandlers
from remora_server.rpc.handlers.spans import SpanHandlers
from remora_server.rpc.handlers.steps import StepHandlers
from remora_server.rpc.handlers.text import TextHandlers
from remora_server.rpc.handlers.timeline_events import TimelineEventHandlers
from remora_server.rpc.handlers.transfers import TransferHandlers
from remora_server.rpc.handlers.trimming import TrimmingHandlers
from remora_server.rpc.handlers.users import UserHandlers
from remora_server.rpc.handlers.vectors import VectorHandlers
from remora_server.rpc.handlers.windows import WindowHandlers
from remora_server.rpc.handlers.workflows import WorkflowHandlers
from remora_server.rpc.handlers.working_memory import WorkingMemoryHandlers
from remora_server.rpc.health import Condition
from remora_server.rpc.identity import Identity
from remora_server.rpc.server import SERVICES, Server
from remora_server.rpc.transport.listeners import UnixListener
from remora_server.rpc.transport.transports import ServerOptions

M = TypeVar("M", bound=Message)

METHODS = {method.name: method for service in SERVICES for method in service.methods}
PROCESS = ProcessStatus("1.2.3", "3.11", "2.0", "1.85", start_time=1_000_000, resident_bytes=8)


def overflow_of(tenant_id: str | None) -> OverflowStatus:
    """More fails in all tenants than in one."""
    return OverflowStatus(2 if tenant_id is None else 1, "the model is down")


@dataclass
class RunningServer:
    """Serves while it is entered."""

    store: FakeStore = field(default_factory=FakeStore)
    backups: FakeBackups = field(default_factory=FakeBackups)
    searcher: FakeIndex = field(default_factory=FakeIndex)
    receipts: FakeReceipts = field(default_factory=FakeReceipts)
    assembler: FakeAssembler = field(default_factory=FakeAssembler)
    embedder: FakeEmbedder | None = field(default_factory=FakeEmbedder)
    identity: Identity = field(default_factory=Identity)
    options: ServerOptions = field(default_factory=ServerOptions)
    condition: Condition = field(default_factory=Condition)
    publication: Publication | None = None

    def __enter__(self) -> Self:
        self._directory = tempfile.TemporaryDirectory(prefix="remora-")
        self.server = Server(self.options, self.identity)
        (self.endpoint,) = self.server.bind([UnixListener(Path(self._directory.name) / "s")])
        self.server.start(
            self.handlers(),
            lambda name: 3 if name == FakeEmbedder.model else 0,
            lambda: self.condition,
            self.publication,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()
        self.server.stop(1.0)
        self._directory.cleanup()

    def handlers(self) -> list[object]:
        embedders: PerTenant[Embedder | None] = PerTenant(self.embedder)
        store, page_tokens, tokens = self.store.bundle(self.backups), PageTokens(b"key"), FakeTokens()
        reader = ConversationReader(store.conversations, store.messages, self.searcher, wire.listed)
        windows = WindowReader(store.conversations, store.messages, store.windows, store.message_reader, tokens)
        summarizing = Summarizing(windows, store.windows, tokens)
        return [
            ConversationHandlers(store.conversations, page_tokens),
            MessageHandlers(store.messages, store.users, page_tokens),
            StepHandlers(store.steps, page_tokens),
            TimelineEventHandlers(store.timeline_events, page_tokens),
            HistoryEntryHandlers(store.history_entries, store.entry_steps, store.timeline_events, page_tokens),
            SpanHandlers(store.spans, page_tokens),
            LogRecordHandlers(store.log_records, page_tokens),
            CheckpointHandlers(store.checkpoints, store.threads, page_tokens),
            WorkflowHandlers(store.workflow_runs, store.workflow_steps, page_tokens),
            VectorHandlers(store.vectors, store.collections, TextVectors(embedders), page_tokens),
            ItemHandlers(store.items, TextVectors(embedders), page_tokens),
            WorkingMemoryHandlers(store.working_memories),
            FactHandlers(
                FactMemory(store.facts, store.messages, store.message_reader, embedders), store.facts, page_tokens
            ),
            MemoryItemHandlers(ItemMemory(store.memory_items, embedders), store.memory_items, page_tokens),
            WindowHandlers(store.windows, summarizing, lambda _tenant_id, _conversation_id: ""),
            UserHandlers(store.users),
            MemoryHandlers(self.searcher, self.assembler, reader, tokens, page_tokens, self.receipts),
            ReceiptHandlers(store.receipts, self.receipts, store.message_reader, page_tokens),
            TextHandlers(tokens, embedders),
            TrimmingHandlers(NativeTokenCounter()),
            TransferHandlers(store.exports, store.imports, page_tokens),
            AdminHandlers(store.health, embedders, lambda: PROCESS, store.backups, overflow_of),
        ]

    @cached_property
    def channel(self) -> grpc.Channel:
        return grpc.insecure_channel(self.endpoint)

    def call(
        self,
        method: str,
        request: Message | bytes,
        *,
        metadata: Sequence[tuple[str, str]] = (),
        timeout: float = PATIENCE,
    ) -> Message:
        """The reply of a method, by its short name. Raises grpc.RpcError."""
        descriptor = METHODS[method]
        reply = self.raw(
            f"/{descriptor.containing_service.full_name}/{method}",
            request if isinstance(request, bytes) else request.SerializeToString(),
            metadata=metadata,
            timeout=timeout,
        )
        return GetMessageClass(descriptor.output_type).FromString(reply)

    def raw(
        self, path: str, request: bytes, *, metadata: Sequence[tuple[str, str]] = (), timeout: float = PATIENCE
    ) -> bytes:
        """The encoded reply of a path."""
        ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(path)
        return ask(request, metadata=tuple(metadata), timeout=timeout)


def status_of(error: grpc.RpcError) -> Status:
    """The rich status of a call that failed."""
    status: Status | None = rpc_status.from_call(cast("grpc.Call", error))
    assert status is not None
    return status


def detail(error: grpc.RpcError, kind: type[M]) -> M | None:
    """The detail of one kind, where there is one."""
    found = kind()
    return found if any(packed.Unpack(found) for packed in status_of(error).details) else None
