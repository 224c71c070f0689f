"""Asking the queries: the engine in this process, one store of 20,000 messages beside twenty of 1,000.

No server and no socket: what is measured is the ranking, not the time that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.queries.stores import Conversation, Query, Said, Stores
from benchmarks.queries.vectors import KeptVectors

from remora.v1 import message_pb2
from remora_server.domain.assembler import ContextAssembler
from remora_server.domain.calls import Read, Write
from remora_server.domain.context import ContextRequest
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.fact_memory import FactMemory
from remora_server.domain.messages import MessageDraft
from remora_server.domain.models import PerTenant, ServedModel, ServedModels
from remora_server.domain.recollection import Recollection
from remora_server.domain.search import (
    Embedder,
    Lane,
    MessageVector,
    OfUser,
    Portion,
    SearchOptions,
    SearchQuery,
    SearchResult,
)
from remora_server.domain.store import Store
from remora_server.domain.tokens import O200K_BASE
from remora_server.engine.processors import processors
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.storage.local_store import StoreOptions, open_store
from remora_server.storage.schema.message_reader import StoredMessageReader

SIZES = (1_000, 20_000)
TENANTS = dict(zip(SIZES, ("small", "large"), strict=True))
EVERYBODY = "everybody"
"""Whose all messages are in the large store."""
DEPTH = 50
BUDGET = 1_024
"""Tokens of a context."""
MEMORY = 1 << 30
TOGETHER = Portion(512, 1 << 22)
"""Messages that are embedded at once."""
PATIENCE = 0.2
"""Seconds after which no further message waits for a vector."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """The ranks of the answer and of what it changed, from 1; None where they are not among the first 50."""

    query: Query
    size: int
    rank: int | None
    rival_rank: int | None


class Asking:
    """Both stores, loaded."""

    def __init__(self, store: Store, embedder: KeptVectors, stores: Stores) -> None:
        self._store = store
        self._stores = stores
        self._places: dict[tuple[int, int], tuple[str, int]] = {}
        """Of each message in each store, by its identity: its conversation's id and its sequence."""
        self._load(embedder)
        self._recollection = Recollection(store.index, PerTenant[Embedder | None](embedder))
        tokens = NativeTokenCounter()
        self._assembler = ContextAssembler(
            store.conversations,
            store.messages,
            self._recollection,
            tokens,
            StoredMessageReader(),
            windows=store.windows,
            facts=FactMemory(store.facts, store.messages, StoredMessageReader(), PerTenant[Embedder | None](embedder)),
            memories=store.working_memories,
        )

    def ask(self, queries: Iterable[Query], size: int, options: SearchOptions) -> list[Asked]:
        """The ranks of the answers in a store of this size, with these options but for the depth."""
        deep = SearchOptions(DEPTH, options.profile, None, options.filter, options.weights)

        def asked(query: Query) -> Asked:
            places = [(hit.conversation_id, hit.sequence) for hit in self._search(query, size, deep).hits]
            return Asked(query, size, self._rank(query.answer, size, places), self._rank(query.rival, size, places))

        return _each(asked, queries)

    def recalled(self, queries: Iterable[Query], size: int, options: SearchOptions) -> list[int]:
        """How many messages a context recalls for each query."""

        def count(query: Query) -> int:
            request = ContextRequest(
                f"talk-{query.user}-0",
                BUDGET,
                _user(query, size),
                query.text,
                encoding=O200K_BASE,
                recent_messages=0,
                search=options,
                search_user_scope=True,
            )
            return len(self._assembler.assemble(Read(TENANTS[size]), request).items)

        return _each(count, queries)

    def _search(self, query: Query, size: int, options: SearchOptions) -> SearchResult:
        asked = SearchQuery(OfUser(_user(query, size)), query.text, None, options, index_wait=0.0)
        return self._recollection.search(Read(TENANTS[size]), asked)

    def _rank(self, said: Said | None, size: int, places: Sequence[tuple[str, int]]) -> int | None:
        place = None if said is None else self._places[size, id(said)]
        return places.index(place) + 1 if place in places else None

    def _load(self, embedder: KeptVectors) -> None:
        for size in SIZES:
            for conversation in self._stores.conversations:
                self._append(conversation, size)
        queue = self._store.embeddings.of(ServedModel(embedder.model, late=True))
        while messages := queue.next_unembedded(Lane.ALL, TOGETHER, PATIENCE):
            made = embedder.embed([message.text for message in messages])
            both = zip(messages, made, strict=True)
            queue.put_embeddings([MessageVector(message, one.values, one.pieces) for message, one in both])

    def _append(self, conversation: Conversation, size: int) -> None:
        user = EVERYBODY if size == max(SIZES) else f"user-{conversation.user}"
        both = zip(conversation.messages, conversation.times(), strict=True)
        drafts = [_draft(said, int(time.timestamp() * 1e6)) for said, time in both]
        outcome = self._store.messages.append(
            Write(TENANTS[size], "AppendMessages"),
            conversation.id,
            user,
            drafts,
            ConversationDraft(conversation.id, user),
        )
        for said, placed in zip(conversation.messages, outcome.messages, strict=True):
            self._places[size, id(said)] = conversation.id, placed.sequence


@contextmanager
def loaded(stores: Stores, embedder: KeptVectors) -> Iterator[Asking]:
    """The stores in memory, for as long as the context lasts."""
    tokens = NativeTokenCounter()
    store = open_store(
        StoreOptions(None, window_bytes=MEMORY, recall_bytes=MEMORY, database_bytes=MEMORY),
        count_tokens=lambda texts: tokens.count(O200K_BASE, texts),
        models=ServedModels(ServedModel(embedder.model, late=True)),
    )
    try:
        yield Asking(store, embedder, stores)
    finally:
        store.close()


def _user(query: Query, size: int) -> str:
    return EVERYBODY if size == max(SIZES) else f"user-{query.user}"


def _draft(said: Said, sent: int) -> MessageDraft:
    message = message_pb2.Message(role=said.role, text=said.text, name=said.name)
    message.sent_time.FromMicroseconds(sent)
    return MessageDraft("", said.role, said.text, message.SerializeToString(), name=said.name)


def _each(asked: Callable[[Query], T], queries: Iterable[Query]) -> list[T]:
    """Asked in as many threads as there are processors."""
    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(asked, queries))
