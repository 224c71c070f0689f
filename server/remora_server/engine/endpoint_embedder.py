"""The model that embeds behind an endpoint: `domain.search.Embedder`.

Requests are made by threads of their own: who waits for a reply stops when its time is up, whatever the network does.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from remora_server import _native
from remora_server.domain.search import EmbeddingFailed, TextVector
from remora_server.domain.status import ModelStatus
from remora_server.engine.breaker import Breaker
from remora_server.engine.embedding_replies import FLOAT_BYTES
from remora_server.engine.endpoint import Endpoint, InputRefused
from remora_server.engine.query_vectors import QueryVectors

PROVIDER = "openai"
SHARE_OF_DEADLINE = 0.75
"""What embedding may take of the time that a call has left."""
PATIENCE = 0.5
"""Who has less than this share of a query's bound has no time for an endpoint."""
PROBE = "What did we say about it?"
"""A text that every model embeds: one that refuses it refuses everything."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """`model` is the name that the vectors bear, `dimension` that of those which are stored, 0 where there are none.

    A text is cut after `max_tokens` of an encoding; a request has at most `batch_texts` texts, of `batch_tokens`
    together. Times in seconds. At most `waiters` calls wait for vectors at a time: each holds a thread that others
    need.
    """

    model: str
    dimension: int
    encoding: str
    max_tokens: int
    batch_texts: int
    batch_tokens: int
    timeout: float
    query_timeout: float
    waiters: int


class EndpointEmbedder:
    """Embeds through an endpoint. Its state is logged when it changes, and shown by `status`."""

    def __init__(self, endpoint: Endpoint, options: EmbedderOptions) -> None:
        self._endpoint = endpoint
        self._options = options
        self._dimension = options.dimension
        self._queries = QueryVectors()
        self._breaker = Breaker()
        self._waiters = threading.Semaphore(options.waiters)
        self._lock = threading.Lock()
        self._failure = ""
        self._not_before = 0.0
        self._flights: set[Future[list[bytes]]] = set()
        self._closed = False

    @property
    def model(self) -> str:
        return self._options.model

    @property
    def batch_texts(self) -> int:
        """How many texts a request has at most."""
        return self._options.batch_texts

    def status(self) -> ModelStatus:
        return ModelStatus(self.model, self._dimension, provider=PROVIDER, failure=self._failure)

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        made = self._vectors(texts, math.inf)
        self._breaker.may_work_again()
        return made

    def embed_now(self, texts: Sequence[str], deadline: float | None) -> list[TextVector]:
        with self._waiting():
            return self._vectors(texts, math.inf if deadline is None else _well_before(deadline))

    def embed_query(self, text: str, deadline: float | None) -> TextVector:
        kept = self._queries.get(text)
        if kept is not None:
            return kept
        with self._waiting():
            made = self._asked_query(text, deadline)
        if made.values:
            self._queries.keep(text, made)
        return made

    def close(self) -> None:
        """Have everybody who waits for the endpoint wait no more."""
        with self._lock:
            self._closed, flights = True, list(self._flights)
        for flight in flights:
            with suppress(InvalidStateError):
                flight.set_exception(EmbeddingFailed("the server stops"))
        self._endpoint.close()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Be one of those who wait, if there is room. Raises EmbeddingFailed."""
        if not self._waiters.acquire(blocking=False):
            raise EmbeddingFailed("as many calls wait for the endpoint as may")
        try:
            yield
        finally:
            self._waiters.release()

    def _asked_query(self, text: str, deadline: float | None) -> TextVector:
        """The vector of a query, in its own bound. A caller's lack of time does not speak against the endpoint."""
        if not self._breaker.allows():
            raise EmbeddingFailed(self._failure or "the endpoint has failed before")
        own = time.monotonic() + self._options.query_timeout
        until = own if deadline is None else min(own, _well_before(deadline))
        try:
            [made] = self._vectors([text], until)
        except EmbeddingFailed:
            if until == own:
                self._breaker.failed()
            raise
        self._breaker.succeeded()
        return made

    def _vectors(self, texts: Sequence[str], until: float) -> list[TextVector]:
        """The vectors of texts, empty where the model refuses one or there is nothing to embed."""
        cut = self._cut(texts)
        places = [place for place, text in enumerate(cut) if text and not text.isspace()]
        vectors = [b""] * len(texts)
        for batch in self._batches(cut, places):
            made = self._embedded([cut[place] for place in batch], until)
            for place, values in zip(batch, made, strict=True):
                vectors[place] = values
        if places:
            self._note("")
        return [TextVector(values) for values in vectors]

    def _cut(self, texts: Sequence[str]) -> list[str]:
        """The texts as far as the model reads them. None has more tokens than bytes."""
        limit, encoding = self._options.max_tokens, self._options.encoding
        return [
            _native.trim_tokens(encoding, text, limit) if len(text.encode("utf-8", "replace")) > limit else text
            for text in texts
        ]

    def _batches(self, texts: Sequence[str], places: Sequence[int]) -> Iterator[list[int]]:
        """The places in runs that a request may have."""
        sizes = self._sizes([texts[place] for place in places])
        batch: list[int] = []
        room = self._options.batch_tokens
        for place, size in zip(places, sizes, strict=True):
            if batch and (len(batch) == self._options.batch_texts or size > room):
                yield batch
                batch, room = [], self._options.batch_tokens
            batch.append(place)
            room -= size
        if batch:
            yield batch

    def _sizes(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, or its bytes where all of them are few enough."""
        sizes = [len(text.encode("utf-8", "replace")) for text in texts]
        if sum(sizes) <= self._options.batch_tokens:
            return sizes
        return _native.count_tokens(self._options.encoding, list(texts))

    def _embedded(self, texts: Sequence[str], until: float) -> list[bytes]:
        """The vectors of the texts of a request; those that the endpoint refuses are found by halves."""
        try:
            vectors = self._asked(texts, until)
        except InputRefused as refusal:
            self._require_working(until)
            return self._by_halves(texts, until, str(refusal))
        if b"" in vectors:
            self._require_working(until)
            self._log_refused(vectors.count(b""), "the endpoint gives vectors that are zero or not finite")
        return vectors

    def _by_halves(self, texts: Sequence[str], until: float, refusal: str) -> list[bytes]:
        """The vectors of texts that are refused together."""
        if len(texts) == 1:
            self._log_refused(1, refusal)
            return [b""]
        middle = len(texts) // 2
        vectors: list[bytes] = []
        for half in (texts[:middle], texts[middle:]):
            try:
                vectors += self._asked(half, until)
            except InputRefused as error:
                vectors += self._by_halves(half, until, str(error))
        return vectors

    def _require_working(self, until: float) -> None:
        """Make sure that it is the texts which are refused. Raises EmbeddingFailed where every text is."""
        try:
            works = all(self._asked([PROBE], until))
            cause = "the endpoint gives vectors that are zero or not finite, of every text"
        except InputRefused as refusal:
            works, cause = False, f"{refusal}, to every text"
        if not works:
            self._note(cause)
            raise EmbeddingFailed(cause)

    def _asked(self, texts: Sequence[str], until: float) -> list[bytes]:
        """One request and what it comes to. Where a caller has no time for it, it says nothing of the endpoint."""
        left = until - time.monotonic()
        try:
            self._require_leave()
            vectors = self._flown(texts, min(self._options.timeout, left))
            self._require_dimension(vectors)
        except EmbeddingFailed as error:
            self._not_before = max(self._not_before, time.monotonic() + error.wait)
            if error.wait or left >= PATIENCE * self._options.query_timeout:
                self._note(str(error))
            raise
        return vectors

    def _require_leave(self) -> None:
        """Keep to what the endpoint asked for. Raises EmbeddingFailed."""
        wait = self._not_before - time.monotonic()
        if wait > 0:
            raise EmbeddingFailed(self._failure or "the endpoint asked for a pause", wait)

    def _flown(self, texts: Sequence[str], timeout: float) -> list[bytes]:
        """The reply to a request that is made by another thread."""
        if timeout <= 0:
            raise EmbeddingFailed("there is no time left to ask the endpoint")
        flight: Future[list[bytes]] = Future()
        with self._lock:
            if self._closed:
                raise EmbeddingFailed("the server stops")
            self._flights.add(flight)
        threading.Thread(target=self._fly, args=(flight, texts, timeout), name="embedding", daemon=True).start()
        try:
            return flight.result(timeout)
        except TimeoutError:
            raise EmbeddingFailed("the endpoint does not answer in time") from None
        finally:
            with self._lock:
                self._flights.discard(flight)

    def _fly(self, flight: Future[list[bytes]], texts: Sequence[str], timeout: float) -> None:
        # Nobody may wait any more: then the flight has its end already.
        try:
            vectors = self._endpoint.ask(texts, timeout)
        except Exception as error:  # noqa: BLE001 - it is raised again where the flight is waited for
            with suppress(InvalidStateError):
                flight.set_exception(error)
        else:
            with suppress(InvalidStateError):
                flight.set_result(vectors)

    def _require_dimension(self, vectors: Sequence[bytes]) -> None:
        """Vectors of one name have one dimension, from the first that was ever stored. Raises EmbeddingFailed."""
        found = next((len(vector) // FLOAT_BYTES for vector in vectors if vector), 0)
        with self._lock:
            self._dimension = self._dimension or found
        if found and found != self._dimension:
            raise EmbeddingFailed(
                f"the endpoint gives vectors of {found} values, and those called {self.model} have {self._dimension}: "
                "if its model is another now, give them another name (`vectors`)"
            )

    def _note(self, failure: str) -> None:
        """Remember how it is; say so where that has changed."""
        with self._lock:
            before, self._failure = self._failure, failure
        if failure and failure != before:
            logger.warning(
                "the embedding endpoint makes no vectors; it is tried again, searches go by words",
                extra={"model": self.model, "cause": failure},
            )
        elif before and not failure:
            logger.info("the embedding endpoint works again", extra={"model": self.model})

    def _log_refused(self, count: int, cause: str) -> None:
        logger.warning(
            "the embedding endpoint refuses texts: they are found by words only",
            extra={"model": self.model, "texts": count, "cause": cause},
        )


def _well_before(deadline: float) -> float:
    """A time that leaves the rest of a call some of what it has."""
    now = time.monotonic()
    return now + SHARE_OF_DEADLINE * (deadline - now)
