"""The model that embeds behind an endpoint: `domain.search.Embedder`."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from remora_server import _native
from remora_server.domain.search import EmbeddingFailed, TextVector
from remora_server.domain.status import ModelStatus
from remora_server.engine.breaker import Breaker
from remora_server.engine.endpoint import Endpoint, InputRefused, Unanswered
from remora_server.engine.endpoint_requests import EndpointRequests, RequestOptions
from remora_server.engine.query_vectors import QueryVectors

PROVIDER = "openai"
SHARE_OF_DEADLINE = 0.75
"""The share of a call's remaining time that embedding may take."""
PATIENCE = 0.5
"""A call with less time left than this share of a query's time limit does not ask the endpoint."""
UNANSWERED = 3
"""After so many requests without an answer to the same texts, one of them may be the cause."""
REMEMBERED = 8
"""How many groups of texts without an answer are remembered."""
SHORTEST = 32
"""The shortest beginning of a refused text that is tried, in tokens."""

logger = logging.getLogger(__name__)


class EmbedderOptions(Struct, frozen=True):
    """`model` is the name of the vectors, `dimension` that of the stored ones, 0 if there are none.

    A text is cut after `max_tokens` of an encoding. A request has at most `batch_texts` texts with `batch_tokens`
    together. Times are in seconds. At most `waiters` calls wait for vectors at a time, because each holds a thread
    that others need.
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
    """Embeds through an endpoint. A text that the endpoint refuses gets a vector without values."""

    def __init__(self, endpoint: Endpoint, options: EmbedderOptions) -> None:
        self._options = options
        patience = PATIENCE * options.query_timeout
        request = RequestOptions(options.model, options.dimension, options.timeout, patience)
        self._requests = EndpointRequests(endpoint, request)
        self._queries = QueryVectors()
        self._breaker = Breaker()
        self._waiters = threading.Semaphore(options.waiters)
        self._unanswered: dict[tuple[str, ...], int] = {}

    @property
    def model(self) -> str:
        return self._options.model

    @property
    def batch_texts(self) -> int:
        """How many texts a request has at most."""
        return self._options.batch_texts

    def status(self) -> ModelStatus:
        failure = self._requests.failure
        return ModelStatus(self.model, self._requests.dimension, provider=PROVIDER, failure=failure)

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        made = self._vectors(texts, math.inf, is_background=True)
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

    def unknown_words(self, _text: str) -> list[str]:
        return []

    def close(self) -> None:
        """End every wait for the endpoint."""
        self._requests.close()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Take one of the places for calls that wait. Raises EmbeddingFailed if all are taken."""
        if not self._waiters.acquire(blocking=False):
            raise EmbeddingFailed("too many calls wait for the endpoint")
        try:
            yield
        finally:
            self._waiters.release()

    def _asked_query(self, text: str, deadline: float | None) -> TextVector:
        """The vector of a query, within its own time limit. A caller's short deadline is no failure of the endpoint."""
        if not self._breaker.allows():
            raise EmbeddingFailed(self._requests.failure or "the endpoint has failed before", self._breaker.rest())
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

    def _vectors(self, texts: Sequence[str], until: float, *, is_background: bool = False) -> list[TextVector]:
        """The vectors of texts; empty if the model refuses a text or there is nothing to embed."""
        cut = [self._cut(text, self._options.max_tokens) for text in texts]
        indexes = [index for index, text in enumerate(cut) if text and not text.isspace()]
        vectors = [b""] * len(texts)
        for batch in self._batches(cut, indexes):
            ask = self._embedded_some_time if is_background else self._embedded
            made = ask([cut[index] for index in batch], until)
            for index, values in zip(batch, made, strict=True):
                vectors[index] = values
        if indexes:
            self._requests.worked()
        return [TextVector(values) for values in vectors]

    def _cut(self, text: str, tokens: int) -> str:
        """A text cut to a number of tokens. A text has at most as many tokens as bytes."""
        if len(text.encode("utf-8", "replace")) <= tokens:
            return text
        return _native.trim_tokens(self._options.encoding, text, tokens)

    def _batches(self, texts: Sequence[str], indexes: Sequence[int]) -> Iterator[list[int]]:
        """The indexes in runs that a request may have."""
        sizes = self._sizes([texts[index] for index in indexes])
        batch: list[int] = []
        room = self._options.batch_tokens
        for index, size in zip(indexes, sizes, strict=True):
            if batch and (len(batch) == self._options.batch_texts or size > room):
                yield batch
                batch, room = [], self._options.batch_tokens
            batch.append(index)
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
        """The vectors of the texts of a request. Halving finds the texts that the endpoint refuses."""
        try:
            vectors = self._requests.ask(texts, until)
        except InputRefused as refusal:
            self._requests.require_working(until)
            return self._by_halves(texts, until, refusal)
        if b"" in vectors:
            self._requests.require_working(until)
            self._log_refused(vectors.count(b""), "the endpoint gives vectors that are zero or not finite")
        return vectors

    def _embedded_some_time(self, texts: Sequence[str], until: float) -> list[bytes]:
        """The same for texts that are tried until they have vectors, because an endpoint may fail on one every time."""
        run = tuple(texts)
        try:
            vectors = self._embedded(texts, until)
        except Unanswered as failure:
            times = self._unanswered.pop(run, 0) + 1
            self._unanswered[run] = times
            if len(self._unanswered) > REMEMBERED:
                self._unanswered.pop(next(iter(self._unanswered)), None)
            if times < UNANSWERED:
                raise
            self._requests.require_working(until)
            vectors = self._by_halves(texts, until, failure)
        self._unanswered.pop(run, None)
        return vectors

    def _by_halves(self, texts: Sequence[str], until: float, refusal: InputRefused | Unanswered) -> list[bytes]:
        """The vectors of texts that, as one request, are refused or get no answer."""
        if len(texts) == 1:
            return [self._alone(texts[0], until, refusal)]
        middle = len(texts) // 2
        vectors: list[bytes] = []
        for half in (texts[:middle], texts[middle:]):
            try:
                vectors += self._requests.ask(half, until)
            except (InputRefused, Unanswered) as error:
                vectors += self._by_halves(half, until, error)
        return vectors

    def _alone(self, text: str, until: float, refusal: InputRefused | Unanswered) -> bytes:
        """The vector of the longest beginning of a text that is accepted; empty if that is too short."""
        [tokens] = _native.count_tokens(self._options.encoding, [text])
        while tokens >= 2 * SHORTEST:
            tokens //= 2
            try:
                [vector] = self._requests.ask([self._cut(text, tokens)], until)
            except (InputRefused, Unanswered):
                continue
            return vector
        self._requests.require_working(until)
        self._log_refused(1, str(refusal))
        return b""

    def _log_refused(self, count: int, cause: str) -> None:
        logger.warning(
            "the embedding endpoint refuses texts: they are found by words only",
            extra={"model": self.model, "texts": count, "cause": cause},
        )


def _well_before(deadline: float) -> float:
    """A deadline that leaves the rest of the call a share of its time."""
    now = time.monotonic()
    return now + SHARE_OF_DEADLINE * (deadline - now)
