"""SIGKILL while messages are embedded: in the end each has its vector, as if nothing had happened."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import MessageLike, Remora
from remora.errors import ConnectionFailedError, DeadlineExceededError
from remora.v1 import memory_service_pb2 as memory_pb2
from remora_server import failpoints
from remora_server.storage.database.database import FILE_NAME

pytestmark = pytest.mark.slow

WRITERS, KILLS, BATCH = 3, 3, 4

SUBJECTS = "the harbour|my sister|a red kite|the old piano|our neighbour|the last train|a grey cat|the bakery".split(
    "|"
)
DEEDS = "was closed on|was seen again on|began to sing on|disappeared on|was painted on".split("|")
DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday".split("|")


def sentence(number: int) -> str:
    """One of many sentences, each with words of its own in another order."""
    return f"{SUBJECTS[number % 8]} {DEEDS[number % 5]} {DAYS[number % 7]} number {number}"


class Writer(threading.Thread):
    """Appends batches of sentences until it is told to stop, and logs the texts that were acknowledged."""

    def __init__(self, endpoint: str, number: int, stopping: threading.Event) -> None:
        super().__init__()
        self.endpoint, self.number, self.stopping = endpoint, number, stopping
        self.acknowledged: dict[str, str] = {}

    def run(self) -> None:
        count = 1000 * self.number
        with Remora(self.endpoint, timeout=PATIENCE) as memory:
            chat = memory.conversation(f"writer-{self.number}", user_id="sarah")
            while not self.stopping.wait(0.05):
                texts = [sentence(count + part) for part in range(BATCH)]
                count += BATCH
                appended = chat.append([{"role": "user", "content": text} for text in texts])
                self.acknowledged.update(zip((m.id for m in appended.messages), texts, strict=True))


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    server = Sidecar(tmp_path, "--model-dir", os.environ["REMORA_MODEL_DIR"], "--precision", "int8")
    server.start()
    yield server
    server.kill()


def found(memory: Remora, text: str, k: int) -> memory_pb2.SearchMessagesResponse:
    request = memory_pb2.SearchMessagesRequest(
        user_id="sarah", text=text, options=memory_pb2.SearchOptions(k=k, profile=memory_pb2.PROFILE_VECTOR)
    )
    return memory.stubs.memory.SearchMessages(request, timeout=PATIENCE)


def wait_until_all_is_embedded(memory: Remora) -> None:
    eventually(lambda: not (memory.status().model.pending or found(memory, "anything", 1).index.pending))


def test_every_message_has_its_vector_in_the_end(sidecar: Sidecar) -> None:
    stopping = threading.Event()
    writers = [Writer(sidecar.endpoint, number, stopping) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in range(KILLS):
        before = [len(writer.acknowledged) for writer in writers]
        eventually(lambda: all(len(w.acknowledged) > count for w, count in zip(writers, before, strict=True)))  # noqa: B023
        time.sleep(random.uniform(0.0, 0.5))
        sidecar.kill()
        sidecar.start()
    stopping.set()
    for writer in writers:
        writer.join()

    texts = {message_id: text for writer in writers for message_id, text in writer.acknowledged.items()}
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        wait_until_all_is_embedded(memory)
        hits = found(memory, "anything", 1000).hits
        assert len(hits) == len({hit.message.id for hit in hits}), "none is found twice"
        assert texts.keys() <= {hit.message.id for hit in hits}, "each is found by its vector"
        for message_id, text in random.sample(sorted(texts.items()), 10):
            [best] = found(memory, text, 1).hits
            assert (best.message.id, best.message.text) == (message_id, text)
            assert best.score == pytest.approx(1, abs=1e-3)


POINTS = ("vectors_made", "vectors_accepted", "vectors_published", "transaction_written", "transaction_committed")
SAID = 40


def some_points() -> list[object]:
    """One of them in the usual tests, the others where there is time."""
    return [POINTS[0], *(pytest.param(point, marks=pytest.mark.faults) for point in POINTS[1:])]


def say(memory: Remora, *contents: str, request_id: str | None = None) -> None:
    """Messages that are acknowledged; the server may be dead right after."""
    said: list[MessageLike] = [{"role": "user", "content": content} for content in contents]
    memory.conversation("talk", user_id="sarah").append(said, request_id=request_id)


def embedded_texts(sidecar: Sidecar) -> list[str]:
    """The texts of the stopped server's messages, once for each vector."""
    with duckdb.connect(str(sidecar.directory / "data" / FILE_NAME), read_only=True) as connection:
        rows = connection.execute("""
            SELECT m.text FROM messages m JOIN embeddings e
            ON e.conversation_uid = m.conversation_uid AND e.sequence = m.sequence AND e.message_revision = m.revision
        """).fetchall()
    return sorted(text for (text,) in rows)


@pytest.mark.parametrize("point", some_points())
def test_messages_whose_embedding_is_killed_have_their_vectors_in_the_end(sidecar: Sidecar, point: str) -> None:
    sidecar.kill()
    # One transaction is of requests that are forgotten, right after the start, before it answers or after.
    sidecar.failpoints = {failpoints.VARIABLE: f"{point}=abort@1"}
    sidecar.start()
    texts = [sentence(number) for number in range(SAID)]
    with Remora(sidecar.endpoint) as memory, suppress(ConnectionFailedError, DeadlineExceededError):
        say(memory, *texts, request_id="said")  # the server may be dead before it answers
    assert sidecar.wait() < 0, "the point was reached"

    sidecar.failpoints = {}
    sidecar.start()
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        say(memory, *texts, request_id="said")
        wait_until_all_is_embedded(memory)
    assert sidecar.stop() == 0
    assert embedded_texts(sidecar) == sorted(texts)


LEFT, LEFT_IN_FAULTS = 300, 3_000


@pytest.mark.parametrize("count", [LEFT, pytest.param(LEFT_IN_FAULTS, marks=pytest.mark.faults)])
def test_a_backlog_that_is_killed_again_and_again_is_embedded_in_the_end(sidecar: Sidecar, count: int) -> None:
    texts = [f"{sentence(number)} {number}" for number in range(count)]
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        for first in range(0, count, 50):
            say(memory, *texts[first : first + 50])
    embedded = [0]
    for _ in range(KILLS):
        time.sleep(random.uniform(0.2, 0.6))
        sidecar.kill()
        sidecar.start()
        with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
            embedded.append(count - memory.status().model.pending)

    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        wait_until_all_is_embedded(memory)
    assert sidecar.stop() == 0
    assert embedded == sorted(embedded), "what was embedded once stays so"
    assert embedded_texts(sidecar) == sorted(texts)
