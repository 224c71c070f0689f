"""The thread that embeds messages behind their writes."""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from remora_server import failpoints
from remora_server.domain.search import Embedder, EmbeddingFailed, EmbeddingQueue, MessageVector, Unembedded

logger = logging.getLogger(__name__)

TAKE = 256
"""Messages taken at once: enough to batch texts of about one length."""
BATCH = 16
"""Messages encoded and recorded at once: who waits for the processor, or for these vectors, does not wait for more."""
IDLE_SECONDS = 0.5
RETRY_SECONDS = (0.5, 30.0)
NICENESS = 5


class Indexer:
    """Takes messages that wait for a vector, embeds them and puts their vectors, until it is closed.

    What fails is tried again after a while, which grows, and logged once until something works; an embedder that makes
    no vectors logs that itself.
    """

    def __init__(self, queue: EmbeddingQueue, embedder: Embedder, batch: int = BATCH) -> None:
        """`batch`: how many messages are embedded and recorded at once."""
        self._queue = queue
        self._embedder = embedder
        self._batch = batch
        self._waiting: list[Unembedded] = []
        self._stopping = threading.Event()
        self._failing = False
        self._pause = RETRY_SECONDS[0]
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop after the batch at hand. What is not embedded by then is found again at the next start."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        _give_way()
        while not self._stopping.is_set():
            try:
                self._work()
            except Exception as error:  # noqa: BLE001 - whatever fails, later messages are to be embedded
                self._failed(error)

    def _work(self) -> None:
        """Embed one batch, or wait for messages."""
        if not self._waiting:
            self._waiting = sorted(self._queue.next_unembedded(max(TAKE, self._batch), IDLE_SECONDS), key=_length)
        if self._waiting:
            self._embed(self._waiting[: self._batch])
            del self._waiting[: self._batch]
            self._succeeded()

    def _embed(self, messages: Sequence[Unembedded]) -> None:
        vectors = self._embedder.embed([message.text for message in messages])
        failpoints.hit("vectors_made")
        self._queue.put_embeddings(
            [MessageVector(message, made.values, made.pieces) for message, made in zip(messages, vectors, strict=True)]
        )

    def _succeeded(self) -> None:
        if self._failing:
            logger.info("embedding messages works again")
        self._failing, self._pause = False, RETRY_SECONDS[0]

    def _failed(self, error: Exception) -> None:
        wait = 0.0
        if isinstance(error, EmbeddingFailed):
            wait = error.wait
        else:
            if not self._failing:
                logger.error("embedding messages failed; it is tried again, searches go by words", exc_info=error)
            self._failing = True
        self._stopping.wait(max(wait, self._pause * random.uniform(0.5, 1.0)))  # noqa: S311 - jitter, no secret
        self._pause = min(2 * self._pause, RETRY_SECONDS[1])


def _length(message: Unembedded) -> int:
    """Short texts go first: those of a batch cost about the same, and most messages have their vectors early."""
    return len(message.text)


def _give_way() -> None:
    """Let requests have the processor first. Only Linux gives threads a priority of their own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
