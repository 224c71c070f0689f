"""The engine in this process, its store in memory: to measure what is found, not the time that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from benchmarks.queries.vectors import KeptVectors

from remora_server.domain.assembler import ContextAssembler
from remora_server.domain.calls import Read, Write
from remora_server.domain.context import Context, ContextRequest
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.fact_memory import FactMemory
from remora_server.domain.messages import MessageDraft
from remora_server.domain.models import PerTenant, ServedModel, ServedModels
from remora_server.domain.recollection import Recollection
from remora_server.domain.search import Embedder, Lane, MessageVector, Portion, SearchQuery, SearchResult
from remora_server.domain.store import Store
from remora_server.domain.tokens import O200K_BASE
from remora_server.engine.processors import processors
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.storage.local_store import StoreOptions, open_store

MEMORY = 1 << 30
TOGETHER = Portion(512, 1 << 22)
"""Messages that are embedded at once."""
PATIENCE = 0.2
"""Seconds after which no further message waits for a vector."""

T = TypeVar("T")
S = TypeVar("S")


class Engine:
    """A store with its search and its contexts."""

    def __init__(self, store: Store, embedder: KeptVectors) -> None:
        self._store = store
        self._embedder = embedder
        served = PerTenant[Embedder | None](embedder)
        self._recollection = Recollection(store.index, served)
        self._assembler = ContextAssembler(
            store.conversations,
            store.messages,
            self._recollection,
            NativeTokenCounter(),
            store.message_reader,
            windows=store.windows,
            facts=FactMemory(store.facts, store.messages, store.message_reader, served),
            memories=store.working_memories,
        )

    def append(self, tenant: str, conversation_id: str, user: str, drafts: Sequence[MessageDraft]) -> list[int]:
        """Append to a conversation, which is made if it is not there; the sequences of the messages."""
        written = self._store.messages.append(
            Write(tenant, "AppendMessages"), conversation_id, user, drafts, ConversationDraft(conversation_id, user)
        )
        return [placed.sequence for placed in written.messages]

    def embed_all(self) -> None:
        """Embed what has no vector yet."""
        queue = self._store.embeddings.of(ServedModel(self._embedder.model, late=True))
        while messages := queue.next_unembedded(Lane.ALL, TOGETHER, PATIENCE):
            made = self._embedder.embed([message.text for message in messages])
            both = zip(messages, made, strict=True)
            queue.put_embeddings([MessageVector(message, one.values, one.pieces) for message, one in both])

    def search(self, tenant: str, query: SearchQuery) -> SearchResult:
        return self._recollection.search(Read(tenant), query)

    def context(self, tenant: str, request: ContextRequest) -> Context:
        return self._assembler.assemble(Read(tenant), request)


@contextmanager
def opened(embedder: KeptVectors) -> Iterator[Engine]:
    """An empty engine, for as long as the context lasts."""
    tokens = NativeTokenCounter()
    store = open_store(
        StoreOptions(None, window_bytes=MEMORY, recall_bytes=MEMORY, database_bytes=MEMORY),
        count_tokens=lambda texts: tokens.count(O200K_BASE, texts),
        models=ServedModels(ServedModel(embedder.model, late=True)),
    )
    try:
        yield Engine(store, embedder)
    finally:
        store.close()


def each(ask: Callable[[S], T], asked: Iterable[S]) -> list[T]:
    """Ask in as many threads as there are processors."""
    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(ask, asked))
