"""An HTTP endpoint of models: one POST of JSON, one bounded reply, and what can fail."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path

import urllib3
from msgspec import Struct
from urllib3 import exceptions

CONNECT_SECONDS = 5.0
GREATEST_WAIT = 600.0
"""The longest pause before the next request that an endpoint may ask for, in seconds."""
CHUNK = 64 << 10
CONNECTIONS = 16

OK = 200

_CAUSES: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.NameResolutionError, "the endpoint's name is not known"),
    (exceptions.NewConnectionError, "there is no connection to the endpoint"),
    (exceptions.ConnectTimeoutError, "there is no connection to the endpoint in time"),
    (exceptions.TimeoutError, "the endpoint does not answer in time"),
    (exceptions.SSLError, "TLS with the endpoint fails"),
)
_BROKEN = "the connection to the endpoint broke"
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class NoReply(Exception):
    """There was no complete reply. The text says why."""


class KeyUnusable(Exception):
    """The endpoint's key cannot be read or sent. The text says why, without the key."""


class HttpOptions(Struct, frozen=True):
    """Where an endpoint is, and the key that it expects in the header `key_header`. The key is given as text, or in a
    file that is read for each request.
    """

    url: str
    headers: Mapping[str, str]
    key_header: str
    key: str | None
    key_file: Path | None


class Reply(Struct, frozen=True):
    """A reply. `wait` is the pause that the endpoint asks for, in seconds."""

    status: int
    wait: float
    body: bytes

    def describe(self) -> str:
        """The status and the error's code, without the message, which may quote what was sent."""
        code = _error_code(self.body)
        return f"the endpoint answered {self.status}" + (f" ({code})" if code else "")


class HttpEndpoint:
    """Posts to an endpoint. Safe to share between threads."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._pool = urllib3.PoolManager(maxsize=CONNECTIONS, retries=False)

    def post(self, request: bytes, timeout: float, limit: int) -> Reply:
        """The reply of at most `limit` bytes to a body of JSON. Raises NoReply, KeyUnusable."""
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
                return Reply(response.status, _wait(response), _read(response, limit, until))
        except (exceptions.HTTPError, OSError) as error:
            raise NoReply(_cause(error)) from error

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._pool.clear()

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
            raise KeyUnusable(f"the file of the endpoint's key, {file}, cannot be read") from error
        key = key.strip()
        if not key.isascii() or not all(map(str.isprintable, key)):
            raise KeyUnusable("the endpoint's key is not one line of printable ASCII")
        return key


def _read(response: urllib3.BaseHTTPResponse, limit: int, until: float) -> bytes:
    """The body, with a bound on its bytes and a deadline, however slowly it comes."""
    body = bytearray()
    while chunk := response.read1(CHUNK):
        body += chunk
        if len(body) > limit:
            raise NoReply(f"the reply is longer than {limit} bytes")
        if time.monotonic() > until:
            raise NoReply("the endpoint's reply does not end in time")
    return bytes(body)


def _wait(response: urllib3.BaseHTTPResponse) -> float:
    try:
        asked = urllib3.Retry().get_retry_after(response)
    except exceptions.InvalidHeader:
        return 0.0
    return min(asked or 0.0, GREATEST_WAIT)


def _cause(error: Exception) -> str:
    return next((cause for kind, cause in _CAUSES if isinstance(error, kind)), _BROKEN)


def _error_code(body: bytes) -> str:
    """The code or type in an error's reply, in OpenAI's form; empty if there is none."""
    try:
        error = json.loads(body)["error"]
        found = error.get("code") or error.get("type")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""
    return found if isinstance(found, str) and _CODE.fullmatch(found) else ""
