"""A server in a control group of 256 MiB, as in a small pod: it fits what it keeps into that, and is not killed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from benchmarks.control_group import ControlGroup, NoControlGroups
from tests.faults.sidecar import ROOT, Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora.v1.conversation_pb2 import Conversation
from remora.v1.conversation_service_pb2 import AppendMessagesRequest, ListMessagesRequest
from remora.v1.memory_service_pb2 import AssembleContextRequest, SearchMessagesRequest
from remora.v1.message_pb2 import Message

LIMIT, CORES = 256 << 20, 8.0
USERS, MESSAGES, BATCH = 500, 20_000, 40
CLIENTS, ROUNDS = 8, 15
WORDS = [f"word{number}" for number in range(5_000)]


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    try:
        made = ControlGroup(f"remora-pod-test-{os.getpid()}", memory_bytes=LIMIT, cores=CORES)
    except NoControlGroups as reason:
        pytest.skip(f"no control group can be made: {reason}")
    yield made
    made.remove()


@pytest.mark.slow
@pytest.mark.parametrize("model", [("--model", "none"), ("--model-dir", str(ROOT / ".cache" / "model"))])
def test_a_server_with_256_mib_serves_eight_clients_and_500_users(
    tmp_path: Path, group: ControlGroup, model: tuple[str, str]
) -> None:
    server = Sidecar(tmp_path, *model)
    server.prefix = tuple(group.entering([]))
    server.start()
    try:
        with Remora(server.endpoint, timeout=PATIENCE) as memory, ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(lambda number: _fill(memory, number), range(MESSAGES // BATCH)))
            served = sum(clients.map(lambda client: _use(memory, client), range(CLIENTS)))
            stored = eventually(lambda: memory.status().store.messages, until=lambda found: found >= MESSAGES + served)
    finally:
        server.kill()

    assert group.killed() == 0
    assert served == CLIENTS * ROUNDS
    assert stored == MESSAGES + served


def _fill(memory: Remora, number: int) -> None:
    """A user's conversation gets messages of about 500 bytes."""
    chance = random.Random(number)
    messages = [Message(role="user", text=_text(chance)) for _ in range(BATCH)]
    memory.stubs.conversations.AppendMessages(_append(number, messages), timeout=PATIENCE)


def _use(memory: Remora, client: int) -> int:
    """Writes and reads of one client, of users by chance."""
    chance, stubs = random.Random(f"client {client}"), memory.stubs
    for _ in range(ROUNDS):
        number = chance.randrange(USERS)
        chat, query = f"chat-{number}", " ".join(chance.sample(WORDS, 4))
        message = Message(role="user", text=_text(chance))
        stubs.conversations.AppendMessages(_append(number, [message]), timeout=PATIENCE)
        stubs.conversations.ListMessages(ListMessagesRequest(conversation_id=chat, page_size=50), timeout=PATIENCE)
        stubs.memory.SearchMessages(SearchMessagesRequest(user_id=f"user-{number}", text=query), timeout=PATIENCE)
        context = AssembleContextRequest(conversation_id=chat, max_tokens=2_000, query=query)
        stubs.memory.AssembleContext(context, timeout=PATIENCE)
    return ROUNDS


def _append(number: int, messages: list[Message]) -> AppendMessagesRequest:
    user = f"user-{number % USERS}"
    return AppendMessagesRequest(
        conversation_id=f"chat-{number % USERS}",
        user_id=user,
        messages=messages,
        create_if_missing=Conversation(user_id=user),
    )


def _text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=60))
