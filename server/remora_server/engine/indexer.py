"""The thread that embeds messages behind their writes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from remora_server.domain.search import Embedder, EmbeddingQueue, MessageVector, Unembedded

logger = logging.getLogger(__name__)

TAKE = 256
"""Messages taken at once: enough for batches of texts of one length."""
BATCH = 16
"""Messages encoded and recorded at once: a search that waits for the processor, or for these vectors, waits no longer."""
IDLE_SECONDS = 0.5
RETRY_SECONDS = (0.5, 30.0)


class Indexer:
    """Takes messages that wait for a vector, embeds them and puts their vectors, until it is closed.

    What fails is tried again after a while, and logged once until something works.
    """

    def __init__(self, queue: EmbeddingQueue, embedder: Embedder) -> None:
        self._queue = queue
        self._embedder = embedder
        self._stopping = threading.Event()
        self._failing = False
        self._pause = RETRY_SECONDS[0]
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop after the batch at hand. What is not embedded is found again by the next start."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        waiting: list[Unembedded] = []
        while not self._stopping.is_set():
            try:
                waiting = waiting or _by_length(self._queue.next_unembedded(TAKE, IDLE_SECONDS))
                while waiting and not self._stopping.is_set():
                    self._embed(waiting[:BATCH])
                    del waiting[:BATCH]
                self._recovered()
            except Exception:  # noqa: BLE001 - a background loop must go on
                self._failed()

    def _embed(self, messages: Sequence[Unembedded]) -> None:
        vectors = self._embedder.embed([message.text for message in messages])
        self._queue.put_embeddings([MessageVector(*pair) for pair in zip(messages, vectors, strict=True)])

    def _failed(self) -> None:
        if not self._failing:
            logger.exception("embedding messages failed; it is tried again, and searches go by words meanwhile")
        self._failing = True
        self._stopping.wait(self._pause)
        self._pause = min(2 * self._pause, RETRY_SECONDS[1])

    def _recovered(self) -> None:
        if self._failing:
            logger.info("embedding messages works again")
        self._failing, self._pause = False, RETRY_SECONDS[0]


def _by_length(messages: list[Unembedded]) -> list[Unembedded]:
    """Short texts first: those of a batch cost about the same, and most messages have their vector early."""
    return sorted(messages, key=lambda message: len(message.text))
