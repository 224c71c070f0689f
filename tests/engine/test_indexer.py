"""The indexer: everything that waits is embedded, whatever fails meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import pytest
from tests.patience import PATIENCE

from remora_server.domain.search import EmbeddingFailed, Lane, MessageVector, Portion, TextVector, Unembedded
from remora_server.domain.status import ModelStatus
from remora_server.engine import indexer
from remora_server.engine.indexer import PORTION, Indexer


def waiting(*texts: str) -> list[Unembedded]:
    return [Unembedded("acme", 7, "c1", "sarah", number, 40 + number, text) for number, text in enumerate(texts)]


class Queue:
    """Messages that wait, and the vectors that came."""

    def __init__(self, messages: Sequence[Unembedded], failures: int = 0) -> None:
        self.messages = list(messages)
        self.failures = failures
        self.batches: list[list[MessageVector]] = []
        self.changed = threading.Condition()

    def next_unembedded(self, lane: Lane, portion: Portion, timeout: float) -> list[Unembedded]:
        assert lane is Lane.ALL
        with self.changed:
            self.changed.wait_for(lambda: self.messages, timeout)
            taken: list[Unembedded] = []
            while self.messages and portion.has_room_after(taken):
                taken.append(self.messages.pop(0))
            return taken

    def put_embeddings(self, vectors: Sequence[MessageVector]) -> None:
        with self.changed:
            if self.failures:
                self.failures -= 1
                self.changed.notify_all()
                raise OSError("no room")
            self.batches.append(list(vectors))
            self.changed.notify_all()

    def add(self, messages: Sequence[Unembedded]) -> None:
        with self.changed:
            self.messages += messages
            self.changed.notify_all()

    def has(self, count: int) -> bool:
        return self.becomes(lambda: sum(map(len, self.batches)) >= count)

    def becomes(self, state: Callable[[], bool]) -> bool:
        with self.changed:
            return self.changed.wait_for(state, PATIENCE)

    @property
    def vectors(self) -> list[MessageVector]:
        return [vector for batch in self.batches for vector in batch]


class Model:
    """Embeds a text as its own bytes, backwards for its word pieces."""

    model = "bytes"

    def status(self) -> ModelStatus:
        return ModelStatus(self.model, dimension=1)

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        return [self.embed_query(text, None) for text in texts]

    def embed_now(self, texts: Sequence[str], _deadline: float | None) -> list[TextVector]:
        return self.embed(texts)

    def embed_query(self, text: str, _deadline: float | None) -> TextVector:
        return TextVector(text.encode(), text.encode()[::-1])

    def unknown_words(self, _text: str) -> list[str]:
        return []


@contextmanager
def running(queue: Queue, model: Model | None = None, portion: Portion = PORTION) -> Iterator[None]:
    thread = Indexer(queue, (model or Model()).embed, portion=portion)
    thread.start()
    try:
        yield
    finally:
        thread.close()


def test_each_message_gets_the_vector_of_its_text() -> None:
    messages = waiting(*(f"text {number}" for number in range(3 * PORTION.messages + 1)))
    queue = Queue(messages)
    with running(queue):
        assert queue.has(len(messages))
    found = {vector.message: (vector.values, vector.pieces) for vector in queue.vectors}
    assert found == {message: (message.text.encode(), message.text.encode()[::-1]) for message in messages}
    assert len(queue.vectors) == len(messages)


@pytest.mark.parametrize(
    ("texts", "most"), [(["a"] * 90, PORTION.messages), (["a" * 500] * 90, 4), (["a" * 5_000] * 3, 1)]
)
def test_what_is_encoded_at_once_is_short(texts: list[str], most: int) -> None:
    queue = Queue(waiting(*texts))
    with running(queue):
        assert queue.has(len(texts))
    assert max(map(len, queue.batches)) == most


def test_what_is_interrupted_by_the_end_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    interrupted, begun = threading.Event(), threading.Event()

    def slow(_texts: Sequence[str]) -> list[TextVector]:
        begun.set()
        assert interrupted.wait(PATIENCE)
        raise InterruptedError

    thread = Indexer(Queue(waiting("one")), slow)
    thread.start()
    assert begun.wait(PATIENCE)
    thread.stop()
    interrupted.set()
    thread.close()
    assert caplog.records == []


def test_messages_that_come_later_are_embedded() -> None:
    queue = Queue([])
    with running(queue):
        queue.add(waiting("late"))
        assert queue.has(1)


def test_a_failure_loses_nothing_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(indexer, "RETRY_SECONDS", (0.001, 0.002))
    messages = waiting(*(f"text {number}" for number in range(PORTION.messages + 1)))
    queue = Queue(messages, failures=4)
    with caplog.at_level(logging.INFO, logger=indexer.__name__), running(queue):
        assert queue.has(len(messages))
    assert {vector.message for vector in queue.vectors} == set(messages)
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


class Unreachable(Model):
    """Makes no vectors at first, and says when to come again."""

    def __init__(self, failures: int, wait: float) -> None:
        self.failures, self.wait = failures, wait
        self.asked: list[float] = []

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        self.asked.append(time.monotonic())
        if len(self.asked) <= self.failures:
            raise EmbeddingFailed("down", self.wait)
        return super().embed(texts)


def test_a_model_that_makes_no_vectors_is_asked_again_when_it_says(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(indexer, "RETRY_SECONDS", (0.001, 0.002))
    queue, model = Queue(waiting("one", "two")), Unreachable(failures=2, wait=0.2)
    with caplog.at_level(logging.INFO, logger=indexer.__name__), running(queue, model):
        assert queue.has(2)
    assert all(later - sooner >= 0.2 for sooner, later in pairwise(model.asked))
    assert caplog.records == [], "the model's own log says it"


def test_a_model_may_have_larger_portions() -> None:
    queue = Queue(waiting(*(f"text {number}" for number in range(150))))
    with running(queue, portion=Portion(100, characters=1 << 20)):
        assert queue.has(150)
    assert max(map(len, queue.batches)) == 100


def test_closing_ends_a_wait_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "RETRY_SECONDS", (3600.0, 3600.0))
    queue = Queue(waiting("one"), failures=1)
    with running(queue):
        assert queue.becomes(lambda: queue.failures == 0)
    assert queue.batches == []


def test_an_indexer_that_never_started_can_be_closed() -> None:
    Indexer(Queue([]), Model().embed).close()
