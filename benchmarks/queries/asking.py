"""Asking the queries: the engine in this process, one store of 20,000 messages beside twenty of 1,000.

No server and no socket: what is measured is the ranking, not the time that it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.in_process import Engine, each, opened
from benchmarks.queries.stores import Conversation, Query, Said, Stores
from benchmarks.queries.vectors import KeptVectors

from remora.v1 import message_pb2
from remora_server.domain.context import ContextRequest
from remora_server.domain.messages import MessageDraft
from remora_server.domain.search import OfUser, SearchOptions, SearchQuery, SearchResult
from remora_server.domain.tokens import O200K_BASE

SIZES = (1_000, 20_000)
TENANTS = dict(zip(SIZES, ("small", "large"), strict=True))
EVERYBODY = "everybody"
"""Whose all messages are in the large store."""
DEPTH = 50
BUDGET = 1_024
"""Tokens of a context."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The ranks of the answer and of what it changed, from 1; None where they are not among the first 50."""

    query: Query
    size: int
    rank: int | None
    rival_rank: int | None


class Asking:
    """Both stores, loaded."""

    def __init__(self, engine: Engine, stores: Stores) -> None:
        self._engine = engine
        self.queries = stores.queries
        self._stores = stores
        self._places: dict[tuple[int, int], tuple[str, int]] = {}
        """Of each message in each store, by its identity: its conversation's id and its sequence."""
        self._load()

    def ask(self, queries: Iterable[Query], size: int, options: SearchOptions) -> list[Asked]:
        """The ranks of the answers in a store of this size, with these options but for the depth."""
        deep = SearchOptions(DEPTH, options.profile, None, options.filter, options.weights)

        def asked(query: Query) -> Asked:
            places = [(hit.conversation_id, hit.sequence) for hit in self._search(query, size, deep).hits]
            return Asked(query, size, self._rank(query.answer, size, places), self._rank(query.rival, size, places))

        return each(asked, queries)

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
            return len(self._engine.context(TENANTS[size], request).items)

        return each(count, queries)

    def _search(self, query: Query, size: int, options: SearchOptions) -> SearchResult:
        asked = SearchQuery(OfUser(_user(query, size)), query.text, None, options, index_wait=0.0)
        return self._engine.search(TENANTS[size], asked)

    def _rank(self, said: Said | None, size: int, places: Sequence[tuple[str, int]]) -> int | None:
        place = None if said is None else self._places[size, id(said)]
        return places.index(place) + 1 if place in places else None

    def _load(self) -> None:
        for size in SIZES:
            for conversation in self._stores.conversations:
                self._append(conversation, size)
        self._engine.embed_all()

    def _append(self, conversation: Conversation, size: int) -> None:
        user = EVERYBODY if size == max(SIZES) else f"user-{conversation.user}"
        both = zip(conversation.messages, conversation.times(), strict=True)
        drafts = [_draft(said, int(time.timestamp() * 1e6)) for said, time in both]
        sequences = self._engine.append(TENANTS[size], conversation.id, user, drafts)
        for said, sequence in zip(conversation.messages, sequences, strict=True):
            self._places[size, id(said)] = conversation.id, sequence


@contextmanager
def loaded(stores: Stores, embedder: KeptVectors) -> Iterator[Asking]:
    """The stores in memory, for as long as the context lasts."""
    with opened(embedder) as engine:
        yield Asking(engine, stores)


def _user(query: Query, size: int) -> str:
    return EVERYBODY if size == max(SIZES) else f"user-{query.user}"


def _draft(said: Said, sent: int) -> MessageDraft:
    message = message_pb2.Message(role=said.role, text=said.text, name=said.name)
    message.sent_time.FromMicroseconds(sent)
    return MessageDraft("", said.role, said.text, message.SerializeToString(), name=said.name)
