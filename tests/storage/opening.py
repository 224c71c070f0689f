"""What tests of the local store share: opening one, and making and reading messages."""

from __future__ import annotations

from pathlib import Path

from tests.store.asking import count_tokens, listed

from remora.v1 import message_pb2
from remora_server.domain.calls import Read, Write
from remora_server.domain.messages import MessageQuery
from remora_server.domain.models import ServedModel, ServedModels
from remora_server.domain.search import Lane, Portion, Unembedded
from remora_server.storage.embedding.queues import PendingEmbeddings
from remora_server.storage.local_store import LocalStore, StoreOptions
from remora_server.storage.schema.kinds import KINDS, Kinds

TENANT = "acme"
READ = Read(TENANT)
WRITE = Write(TENANT, method="Test")
SMALL = 4 << 20


def one_model(name: str, *, late: bool = False) -> ServedModels:
    """A model for all tenants."""
    return ServedModels(ServedModel(name, late))


def open_store(
    directory: Path | None,
    *,
    model: str = "",
    window_bytes: int = SMALL,
    record_bytes: int = SMALL,
    kinds: Kinds = KINDS,
) -> LocalStore:
    """A store with small buffers, so that their bounds are met."""
    options = StoreOptions(
        directory=directory,
        segment_bytes=SMALL,
        queue_bytes=1 << 20,
        window_bytes=window_bytes,
        record_bytes=record_bytes,
    )
    return LocalStore(options, count_tokens=count_tokens, models=one_model(model), kinds=kinds)


def messages(store: LocalStore, query: MessageQuery) -> list[message_pb2.Message]:
    """The messages of one page."""
    return listed(store, READ, query)


def shown(store: LocalStore, conversation_id: str, user_id: str) -> list[tuple[str, str, str]]:
    """All of a user's messages as (id, role, text)."""
    found = messages(store, MessageQuery(conversation_id, user_id, limit=1000))
    return [(message.id, message.role, message.text) for message in found]


def take(pending: PendingEmbeddings, messages: int, *, lane: Lane = Lane.ALL, timeout: float = 0) -> list[Unembedded]:
    """The next messages to embed."""
    return pending.next_unembedded(lane, Portion(messages, characters=1 << 30), timeout)
