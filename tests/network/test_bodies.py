"""Requests that are larger than they look, or say that they are."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from tests.network import frames
from tests.network.frames import DATA, END_STREAM, Frame, Peer, frame
from tests.network.honest import OPTIONS, append, honest
from tests.network.statuses import Ended, ended, status_of
from tests.network.target import MIB, TRANSPORTS, Target, serving, unless_grpcio
from tests.patience import PATIENCE

from remora.v1 import conversation_service_pb2_grpc

APPEND = "/remora.v1.ConversationService/AppendMessages"
INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL = 3, 8, 12, 13

LIMIT_MIB, THREADS, BOMBS = 4, 4, 16
UNPACKING_MIB = THREADS * 3 * LIMIT_MIB + 24
"""Each thread unpacks up to the limit into a buffer that doubles: while it is copied, the old one is there, too. The
rest is what the bombs themselves take, a mebibyte each, and what the allocator keeps.
"""

BOMB_MIB = 1024
FRAME_BYTES, USUAL_WINDOW = 16_384, 65_535


@pytest.fixture(scope="module", params=TRANSPORTS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with serving("--threads", str(THREADS), "--transport", request.param) as target:
        yield target


@pytest.fixture(scope="module")
def bomb() -> bytes:
    return gzip_of_zeros(BOMB_MIB)


def gzip_of_zeros(mebibytes: int) -> bytes:
    """A gzip file of so many zeros: a compressed mebibyte again and again, its end left away, which nobody reaches."""
    compress = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(MIB)
    head = compress.compress(zeros) + compress.flush(zlib.Z_FULL_FLUSH)
    again = compress.compress(zeros) + compress.flush(zlib.Z_FULL_FLUSH)
    return head + again * (mebibytes - 1)


def send_gzip(endpoint: str, packed: bytes) -> int:
    """The code that a compressed request ends with."""
    with Peer(endpoint) as peer:
        peer.open()
        peer.send(frames.head(1, APPEND, grpc_encoding="gzip"))
        content = b"\x01" + struct.pack(">I", len(packed)) + packed
        room = Room(peer)
        for start in range(0, len(content), FRAME_BYTES):
            part = content[start : start + FRAME_BYTES]
            room.take(len(part))
            peer.send(frame(DATA, 0, 1, part))
        peer.send(frame(DATA, END_STREAM, 1))
        return status_of(peer)


class Room:
    """What the server lets come of a connection's only call, and of the connection."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._bytes = {0: USUAL_WINDOW, 1: 0}

    def take(self, count: int) -> None:
        """Use some, once there is so much."""
        while min(self._bytes.values()) < count:
            self._read(next(self._peer.frames()))
        self._bytes = {stream: room - count for stream, room in self._bytes.items()}

    def _read(self, came: Frame) -> None:
        if came.kind == frames.WINDOW_UPDATE:
            self._bytes[came.stream] += int.from_bytes(came.body, "big")
        if came.kind == frames.SETTINGS and not came.flags & frames.ACK:
            self._peer.send(frame(frames.SETTINGS, frames.ACK))
            values: dict[int, int] = dict(struct.iter_unpack(">HI", came.body))
            self._bytes[1] += values.get(frames.INITIAL_WINDOW_SIZE, USUAL_WINDOW)


def test_bombs_are_refused_before_they_are_unpacked(target: Target, bomb: bytes) -> None:
    assert len(bomb) < 2 * MIB
    with honest(target.endpoint), ThreadPoolExecutor(BOMBS) as pool, target.grows_at_most(UNPACKING_MIB):
        codes = list(pool.map(lambda _: send_gzip(target.tcp, bomb), range(BOMBS)))

    assert codes == [RESOURCE_EXHAUSTED] * BOMBS


@pytest.mark.slow
def test_the_check_of_memory_finds_a_server_that_unpacks_bombs(bomb: bytes) -> None:
    finding = pytest.raises(AssertionError, match="its memory grew")
    with serving("--receive-limit-bytes", "1GiB") as careless, finding, careless.grows_at_most(UNPACKING_MIB):
        send_gzip(careless.tcp, bomb[: len(bomb) // 4])


def test_a_bomb_within_a_bomb_is_unpacked_once(target: Target, bomb: bytes) -> None:
    with honest(target.endpoint), target.grows_at_most(UNPACKING_MIB):
        code = send_gzip(target.tcp, gzip.compress(bomb))

    assert code == INVALID_ARGUMENT


def test_a_message_beyond_the_limit_is_refused(target: Target) -> None:
    options = [*OPTIONS, ("grpc.max_send_message_length", -1)]
    channel = grpc.insecure_channel(target.tcp, options=options)
    ask = conversation_service_pb2_grpc.ConversationServiceStub(channel).AppendMessages
    with channel, honest(target.endpoint), target.grows_at_most(UNPACKING_MIB), pytest.raises(grpc.RpcError) as raised:
        ask(append("large", ["x" * (LIMIT_MIB * MIB + 1)]), timeout=PATIENCE)

    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("announced", [LIMIT_MIB * MIB + 1, 2**31, 2**32 - 1])
def test_a_length_beyond_the_limit_is_refused_without_the_message(target: Target, announced: int) -> None:
    with honest(target.endpoint), target.grows_at_most(UNPACKING_MIB), Peer(target.tcp) as peer:
        peer.open()
        peer.send(frames.head(1, APPEND) + frame(DATA, 0, 1, b"\x00" + struct.pack(">I", announced)))

        assert status_of(peer) == RESOURCE_EXHAUSTED


ONE = frames.message(b"")
MALFORMED: dict[str, tuple[bytes, dict[str, str]]] = {
    "no message": (b"", {}),
    "two messages": (ONE + ONE, {}),
    "a message that is cut off": (ONE[:-1], {}),
    "an unknown flag": (b"\x02" + ONE[1:], {}),
    "compressed, and nobody says how": (b"\x01" + ONE[1:], {}),
    "said to be gzip, and is not": (b"\x01\0\0\0\x03abc", {"grpc_encoding": "gzip"}),
    "a timeout without a unit": (ONE, {"grpc_timeout": "5"}),
    "a timeout of nine digits": (ONE, {"grpc_timeout": "123456789S"}),
}


@pytest.mark.parametrize("target", unless_grpcio("gRPC's library answers these, without details"), indirect=True)
@pytest.mark.parametrize("what", MALFORMED)
def test_a_call_that_breaks_the_protocol_is_told_so(target: Target, what: str) -> None:
    body, headers = MALFORMED[what]
    with Peer(target.tcp) as peer:
        peer.open()
        peer.send(frames.head(1, APPEND, **headers) + frame(DATA, END_STREAM, 1, body))

        assert ended(peer) == Ended(INTERNAL, "CALL_MALFORMED")


@pytest.mark.parametrize("target", unless_grpcio("gRPC's library answers these, without details"), indirect=True)
def test_an_unknown_compression_is_told_so(target: Target) -> None:
    with Peer(target.tcp) as peer:
        peer.open()
        peer.send(frames.head(1, APPEND, grpc_encoding="snappy") + frame(DATA, END_STREAM, 1, ONE))

        assert ended(peer) == Ended(UNIMPLEMENTED, "COMPRESSION_UNKNOWN")


def test_an_unknown_method_is_told_so(target: Target) -> None:
    with Peer(target.tcp) as peer:
        peer.open()
        peer.send(frames.call(1, "/remora.v1.ConversationService/Unknown", b""))

        assert ended(peer) == Ended(UNIMPLEMENTED, "METHOD_UNKNOWN")


@pytest.mark.parametrize(
    "target", unless_grpcio("a call takes room before its request comes: others are refused"), indirect=True
)
def test_a_length_that_is_announced_takes_no_memory(target: Target) -> None:
    calls, connections = 100, 10
    prefix = b"\x00" + struct.pack(">I", LIMIT_MIB * MIB)
    opened = frames.peers(target.tcp, connections)
    with honest(target.endpoint) as clients, target.grows_at_most(UNPACKING_MIB), opened as announcing:
        for peer in announcing:
            peer.open()
            for stream in range(1, 2 * calls, 2):
                peer.send(frames.head(stream, APPEND) + frame(DATA, 0, stream, prefix))
        assert all(peer.answers() for peer in announcing)
        clients.go_on()
