"""The threads that embed messages behind their writes."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from remora_server import failpoints
from remora_server.domain.search import (
    EmbeddingFailed,
    EmbeddingQueue,
    Lane,
    MessageVector,
    Portion,
    TextVector,
    Unembedded,
)
from remora_server.supervision import LongLived

logger = logging.getLogger(__name__)

Embed: TypeAlias = Callable[[Sequence[str]], list[TextVector]]
"""Makes vectors of texts: see `domain.search.Embedder`."""

PORTION = Portion(messages=32, characters=2_000)
"""How much is encoded and recorded at once. It is small, because searches wait for these vectors and the next ones."""
IDLE_SECONDS = 0.5
RETRY_SECONDS = (0.5, 30.0)


class Indexer:
    """Takes messages that wait for a vector, embeds them and puts their vectors, until it is closed.

    What fails is tried again after a growing pause, and logged once until something works. An embedder that makes no
    vectors logs that itself.
    """

    def __init__(self, queue: EmbeddingQueue, embed: Embed, lane: Lane = Lane.ALL, portion: Portion = PORTION) -> None:
        """`portion`: how much is embedded and recorded at once."""
        self._queue = queue
        self._embed_texts = embed
        self._lane = lane
        self._portion = portion
        self._taken: list[Unembedded] = []
        self._stopping = threading.Event()
        self._failing = False
        self._pause = RETRY_SECONDS[0]
        self._thread = LongLived(f"indexer-{lane.value}", self._run)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more messages, without waiting for those that are being embedded."""
        self._thread.end()
        self._stopping.set()

    def close(self) -> None:
        """Stop after the messages that are embedded now. If that fails, the next start finds them again."""
        self.stop()
        self._thread.join()

    @property
    def failure(self) -> str:
        """Why its thread is not running; empty if it is."""
        return self._thread.failure

    def _run(self) -> None:
        while not self._stopping.is_set():
            failpoints.hit("indexer_turn")
            try:
                self._work()
            except BaseException as error:  # noqa: BLE001 - whatever fails, later messages are to be embedded
                self._failed(error)

    def _work(self) -> None:
        """Embed one portion, or wait for messages."""
        if not self._taken:
            self._taken = self._queue.next_unembedded(self._lane, self._portion, IDLE_SECONDS)
        if self._taken:
            self._embed(self._taken)
            self._taken = []
            self._succeeded()

    def _embed(self, messages: Sequence[Unembedded]) -> None:
        vectors = self._embed_texts([message.text for message in messages])
        failpoints.hit("vectors_made")
        self._queue.put_embeddings(
            [MessageVector(message, made.values, made.pieces) for message, made in zip(messages, vectors, strict=True)]
        )

    def _succeeded(self) -> None:
        if self._failing:
            logger.info("embedding messages works again")
        self._failing, self._pause = False, RETRY_SECONDS[0]

    def _failed(self, error: BaseException) -> None:
        if self._stopping.is_set():
            return
        wait = 0.0
        if isinstance(error, EmbeddingFailed):
            wait = error.wait
        else:
            if not self._failing:
                logger.error("embedding messages failed; it is tried again, searches go by words", exc_info=error)
            self._failing = True
        self._stopping.wait(max(wait, self._pause * random.uniform(0.5, 1.0)))  # noqa: S311 - jitter, no secret
        self._pause = min(2 * self._pause, RETRY_SECONDS[1])
