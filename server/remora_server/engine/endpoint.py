"""An OpenAI-compatible endpoint of embeddings: one request, one reply, and what can go wrong between."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import urllib3
from msgspec import Struct
from urllib3 import exceptions

from remora_server.domain.search import EmbeddingFailed
from remora_server.engine.embedding_replies import WrongReply, decode_reply, encode_request, error_code

CONNECT_SECONDS = 5.0
GREATEST_WAIT = 600.0
"""The longest pause before the next request that an endpoint may ask for, in seconds."""
CHUNK = 64 << 10
REPLY_BYTES, REPLY_BYTES_PER_TEXT = 1 << 20, 128 << 10
"""The size of the longest reply. A vector of 4,096 numbers takes up to 100 KB in JSON."""
CONNECTIONS = 16

OK = 200
_REFUSING_INPUT = (400, 413, 422)
_FAILING = (500, 502, 504)
"""Endpoints and proxies also answer so if one text is too much for them."""

_CAUSES: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.NameResolutionError, "the endpoint's name is not known"),
    (exceptions.NewConnectionError, "there is no connection to the endpoint"),
    (exceptions.ConnectTimeoutError, "there is no connection to the endpoint in time"),
    (exceptions.TimeoutError, "the endpoint does not answer in time"),
    (exceptions.SSLError, "TLS with the endpoint fails"),
)
_BROKEN = "the connection to the endpoint broke"


class InputRefused(Exception):
    """The endpoint refuses the request: one of its texts, or its form."""


class Unanswered(EmbeddingFailed):
    """There was no usable answer. One of the texts may be the cause."""


class EndpointOptions(Struct, frozen=True):
    """An endpoint. `url` is that of its `/embeddings`; the key comes from a file, which is read for each request, or as
    it is, and goes into the header `key_header`.
    """

    url: str
    model: str
    dimensions: int | None
    headers: Mapping[str, str]
    key_header: str
    key: str | None
    key_file: Path | None


class Endpoint:
    """Asks an endpoint for vectors. Safe to share between threads."""

    def __init__(self, options: EndpointOptions) -> None:
        self._options = options
        self._pool = urllib3.PoolManager(maxsize=CONNECTIONS, retries=False)
        self._as_base64 = True
        self._base64_works = False

    def ask(self, texts: Sequence[str], timeout: float) -> list[bytes]:
        """A unit vector for each text, empty where the endpoint gives one without direction.

        Raises EmbeddingFailed (Unanswered where a text may be why), InputRefused where other texts may be accepted.
        An endpoint that knows nothing of base64 refuses a request that asks for it: then it is asked without.
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
        """Let the connections go that nobody uses."""
        self._pool.clear()

    def _asked(self, texts: Sequence[str], timeout: float, *, as_base64: bool) -> list[bytes]:
        options = self._options
        request = encode_request(options.model, texts, options.dimensions, as_base64=as_base64)
        limit = REPLY_BYTES + len(texts) * REPLY_BYTES_PER_TEXT
        status, wait, body = self._post(request, timeout, limit)
        if status in _REFUSING_INPUT:
            raise InputRefused(_answered(status, body))
        if status in _FAILING and not wait:
            raise Unanswered(_answered(status, body))
        if status != OK:
            raise EmbeddingFailed(_answered(status, body), wait)
        try:
            return decode_reply(body, len(texts))
        except WrongReply as error:
            raise Unanswered(str(error)) from error

    def _post(self, request: bytes, timeout: float, limit: int) -> tuple[int, float, bytes]:
        """The status, the seconds to wait before the next request, the body."""
        until = time.monotonic() + timeout
        try:
            with self._pool.request(
                "POST",
                self._options.url,
                body=request,
                headers=self._headers(),
                timeout=urllib3.Timeout(connect=min(timeout, CONNECT_SECONDS), read=timeout),
                redirect=False,
                preload_content=False,
            ) as response:
                return response.status, _wait(response), _read(response, limit, until)
        except (exceptions.HTTPError, OSError) as error:
            raise Unanswered(_cause(error)) from error

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json", **self._options.headers}
        key = self._key()
        if key:
            name = self._options.key_header
            headers[name] = f"Bearer {key}" if name == "authorization" else key
        return headers

    def _key(self) -> str:
        file = self._options.key_file
        try:
            key = self._options.key or "" if file is None else file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EmbeddingFailed(f"the file of the endpoint's key, {file}, cannot be read") from error
        key = key.strip()
        if not key.isascii() or not all(map(str.isprintable, key)):
            raise EmbeddingFailed("the endpoint's key is no line of printable ASCII")
        return key


def _read(response: urllib3.BaseHTTPResponse, limit: int, until: float) -> bytes:
    """The body, of at most so many bytes and until so late, however slowly it comes."""
    body = bytearray()
    while chunk := response.read1(CHUNK):
        body += chunk
        if len(body) > limit:
            raise Unanswered(f"the reply is longer than {limit} bytes")
        if time.monotonic() > until:
            raise Unanswered("the endpoint's reply does not end in time")
    return bytes(body)


def _wait(response: urllib3.BaseHTTPResponse) -> float:
    try:
        asked = urllib3.Retry().get_retry_after(response)
    except exceptions.InvalidHeader:
        return 0.0
    return min(asked or 0.0, GREATEST_WAIT)


def _answered(status: int, body: bytes) -> str:
    code = error_code(body)
    return f"the endpoint answered {status}" + (f" ({code})" if code else "")


def _cause(error: Exception) -> str:
    return next((cause for kind, cause in _CAUSES if isinstance(error, kind)), _BROKEN)
