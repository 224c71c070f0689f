"""What a server holds in memory while users come and go: the active ones, whatever the store has."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.served_store import eventually
from tests.faults.sidecar import Sidecar

from remora import Remora
from remora.v1 import conversation_pb2, memory_service_pb2, message_pb2
from remora.v1 import conversation_service_pb2 as pb

MEBIBYTE = 1 << 20
MODEL, DIMENSION = "a-callers-model", 384
USERS, LENGTH = 100, 120
FIRST = 10
"""Users after whom the server has what it keeps besides users: pages of the database, connections, arenas."""
BUDGET, WITHOUT_END = 4 * MEBIBYTE, 1 << 30
BOUND = 20 * MEBIBYTE
"""What more may be resident after all users than after the first: the budget, who was active within the last second,
and what the allocator does not give back; less than what all users take.
"""
PAUSE_SECONDS = 0.08
FORGOTTEN_SECONDS = 1.1
WAIT_SECONDS = 30.0


def vectors() -> Iterator[bytes]:
    """Vectors without end."""
    chance = random.Random(1)
    pool = [chance.gauss(0, 1) for _ in range(20_011)]
    while True:
        start = chance.randrange(len(pool) - DIMENSION)
        yield struct.pack(f"<{DIMENSION}f", *pool[start : start + DIMENSION])


def fill(memory: Remora) -> None:
    """A conversation for each user, with vectors that the caller made."""
    values = vectors()
    for user in range(USERS):
        request = pb.AppendMessagesRequest(
            conversation_id=f"c{user}",
            messages=[
                message_pb2.Message(
                    role="user",
                    text=f"n{user} says {place}",
                    embedding=message_pb2.Embedding(model=MODEL, values=next(values)),
                )
                for place in range(LENGTH)
            ],
            create_if_missing=conversation_pb2.Conversation(user_id=f"user-{user}"),
        )
        memory.stubs.conversations.AppendMessages(request, timeout=WAIT_SECONDS)


def search(memory: Remora, user: int) -> None:
    request = memory_service_pb2.SearchMessagesRequest(user_id=f"user-{user}", text=f"n{user} 7")
    hits = memory.stubs.memory.SearchMessages(request, timeout=WAIT_SECONDS).hits
    assert hits[0].message.text == f"n{user} says 7"


def growth(directory: Path, recall_bytes: int) -> tuple[int, int]:
    """How much more is resident after all users than after the first, and what the index holds in the end, in bytes."""
    sidecar = Sidecar(
        directory, "--model=none", "--window-bytes=1MiB", f"--recall-bytes={recall_bytes}", "--database-bytes=32MiB"
    )
    sidecar.start()
    try:
        with Remora(sidecar.endpoint, timeout=WAIT_SECONDS) as memory:
            fill(memory)
            eventually(lambda: memory.status().store.applied_revision == memory.status().store.revision)
            for user in range(FIRST):
                search(memory, user)
            before = memory.status().server.resident_bytes
            for user in range(FIRST, USERS):
                search(memory, user)
                time.sleep(PAUSE_SECONDS)
            after = memory.status().server.resident_bytes
            time.sleep(FORGOTTEN_SECONDS)
            search(memory, 0)
            return after - before, memory.status().engine.index_bytes
    finally:
        sidecar.kill()


def test_memory_holds_who_is_active_while_users_come_and_go(tmp_path_factory: pytest.TempPathFactory) -> None:
    grown, index_bytes = growth(tmp_path_factory.mktemp("r"), BUDGET)

    assert grown < BOUND
    assert index_bytes <= BUDGET


def test_without_eviction_memory_holds_everybody(tmp_path_factory: pytest.TempPathFactory) -> None:
    _, index_bytes = growth(tmp_path_factory.mktemp("r"), WITHOUT_END)

    assert index_bytes > BOUND
