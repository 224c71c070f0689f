"""SIGKILL under load: what was acknowledged is there, once and in order; what was not is there whole or not at all."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.faults.sidecar import Sidecar

from remora import Remora
from remora.errors import RemoraError
from remora.v1 import conversation_pb2, conversation_service_pb2, message_pb2

WRITERS = 8
KILLS = 10
BATCH = 3


@dataclass
class Writer:
    """Appends numbered batches to a conversation of its own until it is told to stop, and logs what was acknowledged.

    A batch whose call failed is unsure: the server may have written it before it died.
    """

    endpoint: str
    number: int
    stopping: threading.Event
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    unsure: set[int] = field(default_factory=set)
    revisions: list[int] = field(default_factory=list)

    @property
    def conversation(self) -> str:
        return f"writer-{self.number}"

    def run(self) -> None:
        with Remora(self.endpoint, timeout=0.5) as memory:
            chat, batch = memory.conversation(self.conversation, user_id=f"user-{self.number}"), 0
            while not self.stopping.is_set():
                batch += 1
                try:
                    appended = chat.append([{"role": "user", "content": f"{batch}.{part}"} for part in range(BATCH)])
                except RemoraError:
                    self.unsure.add(batch)
                else:
                    self.acknowledged.append((batch, appended.messages[0].sequence))
                    self.revisions.append(appended.revision)


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    server = Sidecar(tmp_path, "--model", "none")
    server.start()
    yield server
    server.kill()


def held(memory: Remora, writer: Writer) -> list[tuple[int, str]]:
    chat = memory.conversation(writer.conversation, user_id=f"user-{writer.number}")
    return [(message.sequence, message.text) for message in chat.messages(limit=None, timeout=10)]


def check(memory: Remora, writer: Writer) -> None:
    rows = held(memory, writer)
    sequences, texts = [row[0] for row in rows], [row[1] for row in rows]
    assert sequences == sorted(set(sequences)), "sequences only grow"
    assert len(texts) == len(set(texts)), "nothing is doubled"
    batches = [int(text.split(".")[0]) for text in texts]
    whole = [f"{batch}.{part}" for batch in dict.fromkeys(batches) for part in range(BATCH)]
    assert texts == whole, "a batch is there whole, in order, or not at all"
    places = {text: sequence for sequence, text in rows}
    for batch, sequence in writer.acknowledged:
        assert places.get(f"{batch}.0") == sequence, f"batch {batch} was acknowledged at {sequence}"
    assert set(batches) <= {batch for batch, _ in writer.acknowledged} | writer.unsure
    assert writer.revisions == sorted(writer.revisions), "revisions never go back"


@pytest.mark.timeout(300)
def test_nothing_acknowledged_is_lost_doubled_or_reordered_by_kills(sidecar: Sidecar) -> None:
    stopping = threading.Event()
    writers = [Writer(sidecar.endpoint, number, stopping) for number in range(WRITERS)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()

    for _ in range(KILLS):
        time.sleep(random.uniform(0.1, 0.8))
        sidecar.kill()
        sidecar.start()
    time.sleep(0.3)
    stopping.set()
    for thread in threads:
        thread.join()

    assert all(writer.acknowledged for writer in writers), "every writer got something through"
    with Remora(sidecar.endpoint, timeout=10) as memory:
        for writer in writers:
            check(memory, writer)


def test_sigterm_drains_and_ends_with_success(sidecar: Sidecar) -> None:
    with Remora(sidecar.endpoint) as memory:
        memory.conversation("c", user_id="sarah").append({"role": "user", "content": "kept"})

    assert sidecar.stop() == 0

    sidecar.start()
    with Remora(sidecar.endpoint) as memory:
        [message] = memory.conversation("c", user_id="sarah").messages()
        assert message.text == "kept"


def test_a_repeated_request_is_answered_alike_after_a_kill(sidecar: Sidecar) -> None:
    request = conversation_service_pb2.AppendMessagesRequest(
        conversation_id="c",
        user_id="sarah",
        messages=[message_pb2.Message(role="user", text="once")],
        create_if_missing=conversation_pb2.Conversation(),
        request_id="the-same",
    )
    with Remora(sidecar.endpoint) as memory:
        first = memory.stubs.conversations.AppendMessages(request, timeout=5)
    sidecar.kill()
    sidecar.start()

    with Remora(sidecar.endpoint) as memory:
        again = memory.stubs.conversations.AppendMessages(request, timeout=5)
        assert again == first
        assert len(memory.conversation("c", user_id="sarah").messages()) == 1
