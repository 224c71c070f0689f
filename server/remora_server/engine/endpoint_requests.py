"""Requests to an endpoint of embeddings: how long they may take, how they end, and what that says of the endpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from remora_server.domain.search import EmbeddingFailed
from remora_server.domain.vectors import FLOAT_BYTES
from remora_server.engine.endpoint import Endpoint, InputRefused, Unanswered
from remora_server.engine.flights import FlightFailed, Flights
from remora_server.locking import Level, new_lock

PROBE = "What did we say about it?"
"""A text that every model embeds. An endpoint that refuses it refuses everything."""

logger = logging.getLogger(__name__)


class RequestOptions(Struct, frozen=True):
    """`model` is the name of the vectors, `dimension` theirs, 0 if it is not known. A request takes at most `timeout`
    seconds. The failure of a request that had less than `patience` does not count against the endpoint.
    """

    model: str
    dimension: int
    timeout: float
    patience: float


class EndpointRequests:
    """Asks an endpoint, keeps its state and logs when that changes. Safe to share between threads."""

    def __init__(self, endpoint: Endpoint, options: RequestOptions) -> None:
        self._endpoint = endpoint
        self._options = options
        self._lock = new_lock(Level.LEAF)
        self._dimension = options.dimension
        self._failure = ""
        self._not_before = 0.0
        self._flights: Flights[list[bytes]] = Flights("embedding")

    @property
    def dimension(self) -> int:
        """The dimension of the vectors, 0 while it is not known."""
        return self._dimension

    @property
    def failure(self) -> str:
        """Why no vectors are made; empty if they are."""
        return self._failure

    def ask(self, texts: Sequence[str], until: float) -> list[bytes]:
        """The vectors of texts, by a deadline of the monotonic clock; empty for those without direction.

        Raises EmbeddingFailed, InputRefused.
        """
        left = until - time.monotonic()
        try:
            self._require_leave()
            vectors = self._flown(texts, min(self._options.timeout, left))
            self._require_dimension(vectors)
        except EmbeddingFailed as error:
            self._not_before = max(self._not_before, time.monotonic() + error.wait)
            if error.wait or left >= self._options.patience:
                self._note(str(error))
            raise
        return vectors

    def require_working(self, until: float) -> None:
        """Check that the endpoint accepts a harmless text. Raises EmbeddingFailed if not: it refuses every text."""
        try:
            works = all(self.ask([PROBE], until))
            cause = "the endpoint gives vectors that are zero or not finite, of every text"
        except InputRefused as refusal:
            works, cause = False, f"{refusal}, to every text"
        if not works:
            self._note(cause)
            raise EmbeddingFailed(cause)

    def worked(self) -> None:
        """Note a complete reply."""
        self._note("")

    def close(self) -> None:
        """End every wait for the endpoint."""
        self._flights.close()
        self._endpoint.close()

    def _require_leave(self) -> None:
        """Respect the pause that the endpoint asked for. Raises EmbeddingFailed until it is over."""
        wait = self._not_before - time.monotonic()
        if wait > 0:
            raise EmbeddingFailed(self._failure or "the endpoint asked for a pause", wait)

    def _flown(self, texts: Sequence[str], timeout: float) -> list[bytes]:
        """The reply to a request, which another thread makes."""
        if timeout <= 0:
            raise EmbeddingFailed("there is no time left to ask the endpoint")
        try:
            return self._flights.wait(partial(self._endpoint.ask, texts, timeout), timeout)
        except FlightFailed as error:
            raise EmbeddingFailed(str(error)) from error
        except TimeoutError:
            raise Unanswered("the endpoint does not answer in time") from None

    def _require_dimension(self, vectors: Sequence[bytes]) -> None:
        """Require the dimension of the first vector that was stored under this name. Raises EmbeddingFailed."""
        found = next((len(vector) // FLOAT_BYTES for vector in vectors if vector), 0)
        with self._lock:
            self._dimension = self._dimension or found
        if found and found != self._dimension:
            raise EmbeddingFailed(
                f"the endpoint gives vectors of {found} values, and those called {self._options.model} have "
                f"{self._dimension}: if its model is another now, give them another name (`vectors`)"
            )

    def _note(self, failure: str) -> None:
        with self._lock:
            before, self._failure = self._failure, failure
        if failure and failure != before:
            logger.warning(
                "the embedding endpoint makes no vectors; it is tried again, searches go by words",
                extra={"model": self._options.model, "cause": failure},
            )
        elif before and not failure:
            logger.info("the embedding endpoint works again", extra={"model": self._options.model})
