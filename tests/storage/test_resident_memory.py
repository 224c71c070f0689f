"""What a server holds in memory while users come and go: the active ones, whatever the store has."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora.v1 import conversation_pb2, memory_service_pb2, message_pb2
from remora.v1 import conversation_service_pb2 as pb

MEBIBYTE = 1 << 20
MODEL, DIMENSION = "a-callers-model", 384
USERS, LENGTH = 60, 200
BUDGET, WITHOUT_END = 4 * MEBIBYTE, 1 << 30
ALL = 20 * MEBIBYTE
"""All users take more than this."""
SETTLING, ROUNDS = 2, 3
"""How often all come and go until the server has what it keeps besides users (pages of the database, connections,
arenas), and how often after that.
"""
BOUND = 10 * MEBIBYTE
"""What more may be resident then, for what the allocator does not give back. A sixth of what users take, lost whenever
one leaves, is more.
"""
PAUSE_SECONDS = 0.05
FORGOTTEN_SECONDS = 1.1


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
        memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)


def search(memory: Remora, user: int) -> None:
    request = memory_service_pb2.SearchMessagesRequest(user_id=f"user-{user}", text=f"n{user} 7")
    hits = memory.stubs.memory.SearchMessages(request, timeout=PATIENCE).hits
    assert hits[0].message.text == f"n{user} says 7"


@contextmanager
def filled(directory: Path, recall_bytes: int, *changes: str) -> Iterator[Remora]:
    """A server that has everybody's conversation."""
    sidecar = Sidecar(
        directory, "--model=none", "--window-bytes=1MiB", f"--recall-bytes={recall_bytes}", "--database-bytes=32MiB"
    )
    sidecar.changes = changes
    sidecar.start()
    try:
        with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
            fill(memory)
            eventually(lambda: memory.status().store.applied_revision == memory.status().store.revision)
            yield memory
    finally:
        sidecar.kill()


def come_and_go(memory: Remora) -> None:
    """Each user is active, one after the other."""
    for user in range(USERS):
        search(memory, user)
        time.sleep(PAUSE_SECONDS)


def growth(memory: Remora) -> int:
    """How much more is resident once all have come and gone again and again, in bytes."""
    for _ in range(SETTLING):
        come_and_go(memory)
    before = memory.status().server.resident_bytes
    for _ in range(ROUNDS):
        come_and_go(memory)
    return memory.status().server.resident_bytes - before


@pytest.mark.faults
def test_memory_holds_who_is_active_while_users_come_and_go(tmp_path_factory: pytest.TempPathFactory) -> None:
    with filled(tmp_path_factory.mktemp("r"), BUDGET) as memory:
        assert growth(memory) < BOUND

        time.sleep(FORGOTTEN_SECONDS)
        search(memory, 0)
        assert memory.status().engine.index_bytes <= BUDGET


@pytest.mark.faults
def test_a_server_that_keeps_what_it_loaded_is_found_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    with filled(tmp_path_factory.mktemp("r"), BUDGET, "keep_what_is_read") as memory:
        assert growth(memory) > BOUND


@pytest.mark.slow
def test_without_eviction_memory_holds_everybody(tmp_path_factory: pytest.TempPathFactory) -> None:
    with filled(tmp_path_factory.mktemp("r"), WITHOUT_END) as memory:
        come_and_go(memory)

        assert memory.status().engine.index_bytes > ALL
