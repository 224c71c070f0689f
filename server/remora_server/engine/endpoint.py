"""An OpenAI-compatible endpoint of embeddings: one request, one reply, and what can fail."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from remora_server.domain.search import EmbeddingFailed
from remora_server.engine.embedding_replies import WrongReply, decode_reply, encode_request
from remora_server.engine.http_endpoint import OK, HttpEndpoint, HttpOptions, KeyUnusable, NoReply, Reply

ANSWER_BYTES, ANSWER_BYTES_PER_TEXT = 1 << 20, 128 << 10
"""The longest answer of an endpoint has so many bytes, and so many more for each text. A vector of 4,096 numbers takes
up to 100 KB in JSON.
"""

_REFUSING_INPUT = (400, 413, 422)
_FAILING = (500, 502, 504)
"""Endpoints and proxies also give these answers if one text is too much for them."""


class InputRefused(Exception):
    """The endpoint refuses the request: one of its texts, or its form."""


class Unanswered(EmbeddingFailed):
    """There was no usable answer. One of the texts may be the cause."""


class EndpointOptions(Struct, frozen=True):
    """An endpoint, with the URL of its `/embeddings`, and what to request from it."""

    http: HttpOptions
    model: str
    dimensions: int | None


class Endpoint:
    """Asks an endpoint for vectors. Safe to share between threads."""

    def __init__(self, options: EndpointOptions) -> None:
        self._options = options
        self._http = HttpEndpoint(options.http)
        self._as_base64 = True
        self._base64_works = False

    def ask(self, texts: Sequence[str], timeout: float) -> list[bytes]:
        """A unit vector for each text; empty if the endpoint's vector has no direction.

        Raises EmbeddingFailed (Unanswered if a text may be the cause), InputRefused if other texts may be accepted.
        An endpoint that does not know base64 refuses a request for it and is then asked again without it.
        """
        try:
            vectors = self._asked(texts, timeout, as_base64=self._as_base64)
        except InputRefused:
            if self._base64_works or not self._as_base64:
                raise
            vectors = self._asked(texts, timeout, as_base64=False)
            self._as_base64 = False
        self._base64_works = True
        return vectors

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._http.close()

    def _asked(self, texts: Sequence[str], timeout: float, *, as_base64: bool) -> list[bytes]:
        options = self._options
        request = encode_request(options.model, texts, options.dimensions, as_base64=as_base64)
        reply = self._post(request, timeout, ANSWER_BYTES + len(texts) * ANSWER_BYTES_PER_TEXT)
        if reply.status in _REFUSING_INPUT:
            raise InputRefused(reply.describe())
        if reply.status in _FAILING and not reply.wait:
            raise Unanswered(reply.describe())
        if reply.status != OK:
            raise EmbeddingFailed(reply.describe(), reply.wait)
        try:
            return decode_reply(reply.body, len(texts))
        except WrongReply as error:
            raise Unanswered(str(error)) from error

    def _post(self, request: bytes, timeout: float, limit: int) -> Reply:
        try:
            return self._http.post(request, timeout, limit)
        except NoReply as error:
            raise Unanswered(str(error)) from error
        except KeyUnusable as error:
            raise EmbeddingFailed(str(error)) from error
