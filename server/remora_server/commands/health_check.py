"""One call of gRPC's health service over a socket of its own, which imports neither gRPC nor protobuf.

A probe runs often, with little CPU, and importing them takes longer than all else. Of HTTP/2 (RFC 9113) this knows what
one call on a new connection needs; of HPACK (RFC 7541) literals that are not indexed.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING = 0x0, 0x1, 0x3, 0x4, 0x6
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
STREAM = 1
LARGEST_PORT = 65_535
HEAD_BYTES = 9
FRAME_BYTES = 16_384
"""The longest frame that a peer may send which was told of no other limit."""
MESSAGE_HEAD_BYTES = 5
"""gRPC's flag and length before each message."""

POST, SCHEME_HTTP = b"\x83", b"\x86"
PATH, AUTHORITY, CONTENT_TYPE, NEW_NAME = b"\x04", b"\x01", b"\x0f\x10", b"\x00"
"""A literal's first bytes: HPACK's static table has the name, or the name follows."""

TLS_ALERT = b"\x15\x03"
"""How a port that speaks TLS begins to refuse what is none: the whole is shorter than a frame's head."""

SERVING = b"\x08\x01"
"""HealthCheckResponse with `status: SERVING`."""


class NoAnswer(Exception):
    """The server gave none; the message says why."""


class NoPlainGrpc(NoAnswer):
    """Something answers that speaks TLS, or no gRPC."""

    def __init__(self) -> None:
        super().__init__("it speaks no gRPC without TLS")


def is_serving(endpoint: str, service: str, seconds: float) -> bool:
    """Whether a service serves at `unix:/path` or host:port. Raises NoAnswer."""
    try:
        with _connected(endpoint, seconds) as connection:
            return _asked(_Frames(connection, time.monotonic() + seconds), service) == SERVING
    except TimeoutError as error:
        raise NoAnswer(f"no answer within {seconds:g} s") from error
    except OSError as error:
        raise NoAnswer(error.strerror or str(error)) from error


def _connected(endpoint: str, seconds: float) -> socket.socket:
    if endpoint.startswith("unix:") and endpoint != "unix:":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(seconds)
        try:
            connection.connect(endpoint.removeprefix("unix:").removeprefix("//"))
        except OSError:
            connection.close()
            raise
        return connection
    host, _, port = endpoint.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > LARGEST_PORT:
        raise NoAnswer("this is neither unix:/path nor host:port")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=seconds)


def _asked(frames: _Frames, service: str) -> bytes:
    """The encoded HealthCheckResponse."""
    name = service.encode()
    request = b"\x0a" + bytes([len(name)]) + name
    head = (
        POST + SCHEME_HTTP + PATH + _text("/grpc.health.v1.Health/Check") + AUTHORITY + _text("localhost")
        + CONTENT_TYPE + _text("application/grpc") + NEW_NAME + _text("te") + _text("trailers")
    )  # fmt: skip
    frames.send(
        PREFACE,
        _frame(SETTINGS, 0, 0, b""),
        _frame(HEADERS, END_HEADERS, STREAM, head),
        _frame(DATA, END_STREAM, STREAM, b"\x00" + len(request).to_bytes(4, "big") + request),
    )
    answer = b"".join(_messages(frames))
    if len(answer) < MESSAGE_HEAD_BYTES:
        raise NoAnswer("it knows no such health")
    return answer[MESSAGE_HEAD_BYTES:]


def _messages(frames: _Frames) -> Iterator[bytes]:
    """What the stream brings until its end."""
    while True:
        kind, flags, stream, content = frames.receive()
        if kind in {SETTINGS, PING} and not flags & ACK:
            frames.send(_frame(kind, ACK, 0, content if kind == PING else b""))
        if stream != STREAM:
            continue
        if kind == DATA:
            yield content[1 : -content[0] or None] if flags & PADDED else content
        if kind == RST_STREAM or (kind in {DATA, HEADERS} and flags & END_STREAM):
            return


def _text(value: str) -> bytes:
    """A string of HPACK, of less than 127 bytes."""
    return bytes([len(value)]) + value.encode("ascii")


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


class _Frames:
    """A connection's frames, until a deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def send(self, *frames: bytes) -> None:
        self._connection.settimeout(self._left())
        self._connection.sendall(b"".join(frames))

    def receive(self) -> tuple[int, int, int, bytes]:
        """A frame's kind, flags, stream and content. Raises OSError, NoAnswer."""
        head = self._read(HEAD_BYTES)
        length = int.from_bytes(head[:3], "big")
        if length > FRAME_BYTES:
            raise NoPlainGrpc
        return head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFF_FFFF, self._read(length)

    def _read(self, size: int) -> bytes:
        read = bytearray()
        while len(read) < size:
            self._connection.settimeout(self._left())
            received = self._connection.recv(size - len(read))
            if not received:
                raise NoPlainGrpc if read.startswith(TLS_ALERT) else NoAnswer("it closed the connection")
            read += received
        return bytes(read)

    def _left(self) -> float:
        """The seconds that are left. Raises TimeoutError."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
