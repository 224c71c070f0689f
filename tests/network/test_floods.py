"""Frames without end: each flood ends with a closed connection, is answered, or is held back, and hurts nobody else."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest
from tests.network import frames
from tests.network.frames import DATA, HEADERS, PING, Peer, frame
from tests.network.honest import honest
from tests.network.target import Target, serving

APPEND = "/remora.v1.ConversationService/AppendMessages"
REFLECT = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
LIST_SERVICES = b"\x3a\x01*"
"""A ServerReflectionRequest with list_services."""

BATCH, AT_ONCE = 100, 2_000
"""How many frames are sent together: few, or more than a server that keeps up has read before the last one comes."""
GROWTH_MIB = 48
"""What a flood may take: the windows of its connection and what the allocator keeps, not what was sent."""

Flood = Callable[[], Iterator[bytes]]


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving() as target:
        yield target


def streams(count: int) -> Iterator[int]:
    return iter(range(1, 2 * count, 2))


def resets() -> Iterator[bytes]:
    """Calls that are taken back at once."""
    return (frames.head(stream, APPEND) + frames.reset(stream) for stream in streams(20_000))


def resets_of_whole_calls() -> Iterator[bytes]:
    """Calls that are taken back when their request is whole."""
    encoded = b"\x0a\x01c"
    return (frames.call(stream, APPEND, encoded) + frames.reset(stream) for stream in streams(20_000))


def half_calls() -> Iterator[bytes]:
    """Calls whose request never comes."""
    return (frames.head(stream, APPEND) for stream in streams(20_000))


def continuations() -> Iterator[bytes]:
    """One call's headers that do not end."""
    yield frame(HEADERS, 0, 1, frames.head_block(APPEND))
    part = b"".join(frames.header(f"a-{number}", "x" * 100) for number in range(10))
    for _ in range(20_000):
        yield frame(frames.CONTINUATION, 0, 1, part)


def empty_continuations() -> Iterator[bytes]:
    """The same, of nothing."""
    yield frame(HEADERS, 0, 1, frames.head_block(APPEND))
    for _ in range(100_000):
        yield frame(frames.CONTINUATION, 0, 1)


def settings() -> Iterator[bytes]:
    """Settings, each of which wants an answer that nobody reads."""
    return (frames.settings(initial_window=1000 + number % 2) for number in range(100_000))


def pings() -> Iterator[bytes]:
    """Pings, each of which wants an answer that nobody reads."""
    return (frame(PING, body=struct.pack(">Q", number)) for number in range(200_000))


def empty_data() -> Iterator[bytes]:
    """A request of many frames without a byte."""
    yield frames.head(1, APPEND)
    for _ in range(200_000):
        yield frame(DATA, 0, 1)


def single_bytes() -> Iterator[bytes]:
    """A stream of requests byte by byte, of which the replies find no room."""
    yield frames.settings(initial_window=0)
    request = frames.message(LIST_SERVICES)
    for stream in streams(50):
        yield frames.head(stream, REFLECT) + frame(DATA, 0, stream, request)
    for number in range(200_000):
        yield frame(DATA, 0, 1 + number % 50 * 2, b"\0")


def window_updates() -> Iterator[bytes]:
    """Room for replies to nothing."""
    return (frames.window_update(0, 1) for _ in range(200_000))


def priorities() -> Iterator[bytes]:
    """Priorities of calls that never come."""
    return (frame(frames.PRIORITY, 0, stream, struct.pack(">IB", 0, 1)) for stream in streams(100_000))


def unknown_frames() -> Iterator[bytes]:
    """Frames of a kind that there is not."""
    return (frame(0xBB, 0, 0, bytes(100)) for _ in range(100_000))


FLOODS: tuple[Flood, ...] = (
    resets, resets_of_whole_calls, half_calls, continuations, empty_continuations, settings, pings, empty_data,
    single_bytes, window_updates, priorities, unknown_frames,
)  # fmt: skip
ENDED_BY_THE_SERVER = (resets, resets_of_whole_calls, continuations, empty_continuations)
"""Floods that only a hostile client sends."""


def flood(frames_of: Flood, send: Callable[[bytes], bool], together: int = BATCH) -> int:
    """Send all of them, or as many as the server takes: how many."""
    sent, batch = 0, []
    for one in frames_of():
        batch.append(one)
        if len(batch) == together:
            if not send(b"".join(batch)):
                return sent
            sent, batch = sent + together, []
    return sent


@pytest.mark.parametrize("frames_of", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood_hurts_nobody_else(target: Target, frames_of: Flood) -> None:
    with (
        honest(target.endpoint) as clients,
        target.grows_at_most(GROWTH_MIB),
        Peer(target.tcp) as peer,
    ):
        peer.open()
        # It is held back where others are served again and again while nothing more of it is taken.
        sent = flood(frames_of, lambda batch: peer.offer(batch, clients.go_on))
        clients.go_on()

    assert sent >= BATCH, "the flood was none"


@pytest.mark.parametrize("frames_of", ENDED_BY_THE_SERVER, ids=lambda flood: flood.__name__)
def test_what_only_an_attack_sends_ends_its_connection(target: Target, frames_of: Flood) -> None:
    with Peer(target.tcp) as peer:
        peer.open()
        flood(frames_of, peer.send, AT_ONCE)

        assert not peer.answers()
        assert peer.is_closed


@pytest.mark.faults
@pytest.mark.parametrize("frames_of", [resets, resets_of_whole_calls], ids=lambda flood: flood.__name__)
def test_the_check_of_attacks_finds_a_server_without_a_bound_of_resets(frames_of: Flood) -> None:
    with serving(changes=("no_bound_of_resets",)) as careless, Peer(careless.tcp) as peer:
        peer.open()
        flood(frames_of, peer.send, AT_ONCE)

        assert peer.answers()
