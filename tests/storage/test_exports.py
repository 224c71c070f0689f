"""Exports of a store that is much larger than the memory that its database may take."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from tests.faults.test_short_memory import LEAST
from tests.storage.opening import READ, TENANT, WRITE, one_model, take
from tests.store.asking import draft

from remora.v1 import transfer_service_pb2
from remora_server.domain.calls import Read
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.messages import MessageEmbedding
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.search import MessageVector
from remora_server.domain.transfers import ExportPosition, ExportQuery
from remora_server.storage.local_store import LocalStore, StoreOptions

CONVERSATIONS, EACH, TEXT_BYTES = 16, 800, 3_300
MODEL, DIMENSION, EVERY = "a-callers-model", 64, 5

Line = tuple[str, int, str, bytes]
"""A message: its conversation, its sequence, its text and its vector, empty where it has none."""


@pytest.fixture(scope="module", params=["", MODEL], ids=["callers' vectors", "the server's vectors"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """One whose conversations have grown by turns. Every fifth message has a caller's vector, or each one of the
    server's model.
    """
    options = StoreOptions(tmp_path_factory.mktemp("store"), database_bytes=LEAST)
    store = LocalStore(options, count_tokens=lambda texts: [1 for _ in texts], models=one_model(request.param))
    for first in range(1, EACH + 1, 200):
        for number in range(CONVERSATIONS):
            drafts = [
                draft(f"m{sequence}", text(number, sequence), embedding=embedding(store, number, sequence))
                for sequence in range(first, first + 200)
            ]
            owner = f"user-{number % 2}"
            store.messages.append(WRITE, f"c{number}", owner, drafts, ConversationDraft("", user_id=owner))
    while store.pending.status().pending:
        store.pending.put_embeddings([MessageVector(each, bytes(4)) for each in take(store.pending, 1000)])
    store.conversations.count(READ, "", "")
    store.database.checkpoint()
    yield store
    store.close()


def text(number: int, sequence: int) -> str:
    return f"{sequence} in {number} ".ljust(TEXT_BYTES, "y")


def vector(store: LocalStore, number: int, sequence: int) -> bytes:
    """A caller's."""
    if store.models.default.name or sequence % EVERY:
        return b""
    return struct.pack(f"<{DIMENSION}f", number + 1, sequence, *([0.5] * (DIMENSION - 2)))


def embedding(store: LocalStore, number: int, sequence: int) -> MessageEmbedding | None:
    values = vector(store, number, sequence)
    return MessageEmbedding(MODEL, values) if values else None


def pages(store: LocalStore, user_id: str = "") -> Iterator[list[transfer_service_pb2.Record]]:
    position: ExportPosition | None = None
    while True:
        page = store.exports.page(Read(TENANT), ExportQuery(user_id, limit=1000, position=position))
        assert sum(map(len, page.records)) <= REPLY_BYTES
        yield list(map(transfer_service_pb2.Record.FromString, page.records))
        position = page.following
        if position is None:
            return


def exported(store: LocalStore, user_id: str = "") -> list[Line]:
    return [
        (record.message.conversation_id, message.sequence, message.text, message.embedding.values)
        for page in pages(store, user_id)
        for record in page
        if record.HasField("message")
        for message in [record.message.message]
    ]


def appended(store: LocalStore, *numbers: int) -> list[Line]:
    return [
        (f"c{number}", sequence, text(number, sequence), vector(store, number, sequence))
        for number in numbers
        for sequence in range(1, EACH + 1)
    ]


@pytest.mark.slow
def test_a_store_larger_than_the_databases_memory_is_exported_whole(store: LocalStore) -> None:
    assert CONVERSATIONS * EACH * TEXT_BYTES > LEAST

    assert exported(store) == appended(store, *range(CONVERSATIONS))


@pytest.mark.slow
def test_of_such_a_store_a_users_part_is_exported_alone(store: LocalStore) -> None:
    assert exported(store, "user-1") == appended(store, *range(1, CONVERSATIONS, 2))


@pytest.mark.slow
def test_pages_are_about_as_full_as_they_may_be(store: LocalStore) -> None:
    sizes = [sum(record.ByteSize() for record in page) for page in pages(store)]

    assert min(sizes[:-1]) > REPLY_BYTES - 2 * TEXT_BYTES
