"""What tests of the embedded store share: opening one, and making and reading messages."""

from __future__ import annotations

from pathlib import Path

from remora.v1 import conversation_service_pb2, message_pb2
from remora_server.domain.calls import Read, Write
from remora_server.domain.messages import MessageDraft, MessageEmbedding, MessageQuery
from remora_server.domain.models import ServedModel, ServedModels
from remora_server.domain.search import Lane, Portion, Unembedded
from remora_server.storage.embedded import EmbeddedStore, StoreOptions
from remora_server.storage.embeddings import PendingEmbeddings

TENANT = "acme"
READ = Read(TENANT)
WRITE = Write(TENANT, method="Test")
SMALL = 4 << 20


def one_model(name: str, *, late: bool = False) -> ServedModels:
    """A model for all tenants."""
    return ServedModels(ServedModel(name, late))


def open_store(directory: Path | None, *, model: str = "", window_bytes: int = SMALL) -> EmbeddedStore:
    """A store with small buffers, so that their bounds are met."""
    options = StoreOptions(directory=directory, segment_bytes=SMALL, queue_bytes=1 << 20, window_bytes=window_bytes)
    return EmbeddedStore(options, count_tokens=lambda texts: [len(text) for text in texts], models=one_model(model))


def draft(
    message_id: str = "",
    text: str = "",
    role: str = "user",
    embedding: MessageEmbedding | None = None,
    name: str = "",
) -> MessageDraft:
    """A message as the wire layer would hand it over."""
    body = message_pb2.Message(role=role, text=text, name=name).SerializeToString()
    return MessageDraft(id=message_id, role=role, text=text, body=body, embedding=embedding, name=name)


def messages(store: EmbeddedStore, query: MessageQuery) -> list[message_pb2.Message]:
    """The messages of one page."""
    page = store.messages.list(READ, query)
    decoded = list(conversation_service_pb2.ListMessagesResponse.FromString(page.encoded).messages)
    assert page.count == len(decoded)
    return decoded


def shown(store: EmbeddedStore, conversation_id: str, user_id: str) -> list[tuple[str, str, str]]:
    """All of a user's messages as (id, role, text)."""
    found = messages(store, MessageQuery(conversation_id, user_id, limit=1000))
    return [(message.id, message.role, message.text) for message in found]


def take(pending: PendingEmbeddings, messages: int, *, lane: Lane = Lane.ALL, timeout: float = 0) -> list[Unembedded]:
    """The next messages to embed."""
    return pending.next_unembedded(lane, Portion(messages, characters=1 << 30), timeout)
