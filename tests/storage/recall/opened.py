"""A store with its index, for tests of searches."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace
from tests.storage.opening import READ, SMALL, TENANT, WRITE, one_model, take
from tests.store.asking import draft, searched

from remora.v1 import message_pb2
from remora_server.domain.calls import Read
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.messages import MessageDraft
from remora_server.domain.search import (
    Hit,
    InConversation,
    MessageVector,
    Profile,
    QueryVector,
    Scope,
    SearchOptions,
    SearchQuery,
    SearchResult,
)
from remora_server.storage.local_store import LocalStore, StoreOptions

MODEL = "letters"
NEW = ConversationDraft(id="")
HERE = InConversation("c")


def embed(text: str) -> bytes:
    """The letters of a text, counted: a vector that two texts with the same letters share."""
    return struct.pack("<27f", 1.0, *(float(text.count(chr(97 + letter))) for letter in range(26)))


class Opened:
    """A store with its index, and what tests do to both."""

    def __init__(self, directory: Path | None, *, model: str = MODEL, **options: int) -> None:
        given = StoreOptions(directory, segment_bytes=SMALL, queue_bytes=1 << 20, recall_bytes=SMALL)
        self.store = LocalStore(
            replace(given, **options),
            count_tokens=lambda texts: [len(text) for text in texts],
            models=one_model(model),
        )

    def append(self, *texts: str, conversation: str = "c", user: str = "sarah", tenant: str = TENANT) -> None:
        self.put(*(draft(text, text) for text in texts), conversation=conversation, user=user, tenant=tenant)

    def put(self, *drafts: MessageDraft, conversation: str = "c", user: str = "sarah", tenant: str = TENANT) -> None:
        self.store.messages.append(replace(WRITE, tenant_id=tenant), conversation, user, drafts, NEW)

    def embed_all(self) -> None:
        while waiting := take(self.store.pending, 100, timeout=0.01):
            self.store.pending.put_embeddings([MessageVector(each, embed(each.text)) for each in waiting])

    def search(
        self, text: str, scope: Scope = HERE, *, wait: float = 0.0, read: Read = READ, **options: object
    ) -> SearchResult:
        vector = None if options.get("profile") is Profile.LEXICAL else QueryVector(MODEL, embed(text))
        given = SearchOptions(**{"k": 100, **options})  # type: ignore[arg-type]
        return searched(self.store, read, SearchQuery(scope, text, vector, given, wait))

    def texts(self, text: str, scope: Scope = HERE, **options: object) -> list[str]:
        return [decoded(hit).text for hit in self.search(text, scope, **options).hits]  # type: ignore[arg-type]


def decoded(hit: Hit) -> message_pb2.Message:
    """The message that was found."""
    return message_pb2.Message.FromString(hit.encoded)


@contextmanager
def opened(directory: Path | None, model: str = MODEL, **options: int) -> Iterator[Opened]:
    """A store with some of its options, until the context ends."""
    made = Opened(directory, model=model, **options)
    try:
        yield made
    finally:
        made.store.close()
