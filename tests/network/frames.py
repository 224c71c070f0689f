"""A client of HTTP/2 that does what a well-behaved one does not: it writes frames as it is told (RFC 9113)."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.patience import PATIENCE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
LARGEST_WINDOW = 2**31 - 1
CANCEL = 8

POST, SCHEME_HTTP = b"\x83", b"\x86"
READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that came."""

    kind: int
    flags: int
    stream: int
    body: bytes


def frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    """A frame as it stands on the wire."""
    return len(body).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + body


def settings(**values: int) -> bytes:
    """SETTINGS: none, or `initial_window=bytes`."""
    body = b"".join(struct.pack(">HI", INITIAL_WINDOW_SIZE, value) for value in values.values())
    return frame(SETTINGS, body=body)


def header(name: str, value: str) -> bytes:
    """A header as a literal that no table keeps (RFC 7541, 6.2.2)."""
    parts = (name.encode(), value.encode())
    return b"\x00" + b"".join(bytes([len(part)]) + part for part in parts)


def head_block(path: str, **more: str) -> bytes:
    """The headers of a call."""
    headers = {":path": path, ":authority": "localhost", "content-type": "application/grpc", "te": "trailers"}
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return POST + SCHEME_HTTP + b"".join(header(name, value) for name, value in (headers | named).items())


def head(stream: int, path: str, **more: str) -> bytes:
    """HEADERS of a call whose message follows."""
    return frame(HEADERS, END_HEADERS, stream, head_block(path, **more))


def message(encoded: bytes) -> bytes:
    """A message of gRPC with its flag and length."""
    return b"\x00" + struct.pack(">I", len(encoded)) + encoded


def call(stream: int, path: str, encoded: bytes) -> bytes:
    """A whole call with one short message."""
    return head(stream, path) + frame(DATA, END_STREAM, stream, message(encoded))


def reset(stream: int) -> bytes:
    """RST_STREAM: the caller does not want the reply any more."""
    return frame(RST_STREAM, stream=stream, body=struct.pack(">I", CANCEL))


def window_update(stream: int, more: int) -> bytes:
    """WINDOW_UPDATE."""
    return frame(WINDOW_UPDATE, stream=stream, body=struct.pack(">I", more))


class Peer:
    """One connection. What is sent is sent whole; the server's closing it is no error."""

    def __init__(self, endpoint: str, timeout: float = PATIENCE, source: str = "") -> None:
        """`source` is the address that it comes from, where it matters."""
        self._timeout = timeout
        self._socket = connected(endpoint, timeout, source)
        self._input = b""
        self.is_closed = False

    def open(self, **values: int) -> None:
        """Say that it speaks HTTP/2."""
        self.send(PREFACE + settings(**values))

    def send(self, content: bytes) -> bool:
        """Send; false once the server has closed the connection, or takes nothing for the time that it is given."""
        try:
            self._socket.sendall(content)
        except (BrokenPipeError, ConnectionError):
            self.is_closed = True
        except TimeoutError:
            return False
        return not self.is_closed

    def offer(self, content: bytes, meanwhile: Callable[[], object]) -> bool:
        """Send; false once the server has closed the connection, or has taken nothing after `meanwhile`."""
        rest, has_waited = memoryview(content), False
        self._socket.setblocking(False)
        try:
            while rest:
                sent = self._send_some(rest)
                if self.is_closed or (has_waited and not sent):
                    return False
                if not sent:
                    meanwhile()
                rest, has_waited = rest[sent:], not sent
        finally:
            self._socket.settimeout(self._timeout)
        return True

    def _send_some(self, content: memoryview) -> int:
        """How much was sent without waiting."""
        try:
            return self._socket.send(content)
        except BlockingIOError:
            return 0
        except ConnectionError:
            self.is_closed = True
            return 0

    def frames(self) -> Iterator[Frame]:
        """The frames that come, until the connection is closed. Raises TimeoutError where none comes for long."""
        while True:
            while (came := self._whole()) is not None:
                yield came
            try:
                more = self._socket.recv(READ_BYTES)
            except ConnectionError:
                more = b""
            if not more:
                self.is_closed = True
                return
            self._input += more

    def _whole(self) -> Frame | None:
        if len(self._input) < HEAD_BYTES:
            return None
        end = HEAD_BYTES + int.from_bytes(self._input[:3], "big")
        if len(self._input) < end:
            return None
        kind, flags, stream = struct.unpack(">BBI", self._input[3:HEAD_BYTES])
        came = Frame(kind, flags, stream & LARGEST_WINDOW, self._input[HEAD_BYTES:end])
        self._input = self._input[end:]
        return came

    def answers(self) -> bool:
        """Whether it answers a ping: everything that was sent before has been read. False where it is closed."""
        mark = struct.pack(">d", time.monotonic())
        if not self.send(frame(PING, body=mark)):
            return False
        return any(came.kind == PING and came.body == mark for came in self.frames())

    def until_closed(self) -> list[Frame]:
        """What comes before the server closes the connection. Raises TimeoutError where it does not."""
        return list(self.frames())

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._socket.close()


def connected(endpoint: str, timeout: float, source: str = "") -> socket.socket:
    """A socket that is connected to `unix:path` or `host:port`."""
    kind, address = _address(endpoint)
    connection = socket.socket(kind, socket.SOCK_STREAM)
    try:
        if source:
            connection.bind((source, 0))
        connection.connect(address)  # waits while more wait to be taken than may
    except OSError:
        connection.close()
        raise
    connection.settimeout(timeout)
    return connection


def _address(endpoint: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    if endpoint.startswith("unix:"):
        return socket.AF_UNIX, endpoint.removeprefix("unix:")
    host, _, port = endpoint.rpartition(":")
    return socket.AF_INET, (host, int(port))


@contextmanager
def peers(endpoint: str, count: int, source: str = "") -> Iterator[list[Peer]]:
    """So many connections, on which nothing was said."""
    opened: list[Peer] = []
    try:
        for _ in range(count):
            opened.append(Peer(endpoint, source=source))  # noqa: PERF401 - those that were opened are closed if one cannot be
        yield opened
    finally:
        for peer in opened:
            peer.close()
