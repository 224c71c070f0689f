"""Clients that ask for much and do not read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc
import pytest
from tests.network import frames
from tests.network.frames import LARGEST_WINDOW, Frame, Peer
from tests.network.honest import OPTIONS, append, honest
from tests.network.target import TRANSPORTS, Target, serving, unless_grpcio
from tests.patience import PATIENCE, eventually

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import conversation_service_pb2_grpc

LIST = "/remora.v1.ConversationService/ListMessages"
MESSAGES, TEXT_BYTES = 40, 50_000
"""A page of about 2 MB."""

STREAMS, CONNECTIONS = 100, 20
REPLIES_MIB = 256 // 9 + CONNECTIONS * 2 + 64
"""Connections that hold a reply get no other while they hold an eighth of what is free of the 256 MiB; those that hold
none get one. The rest is what making replies takes, and what the allocator keeps. All replies together would take
4,000 MB.
"""


@contextmanager
def serving_a_large_page(*changes: str, transport: str = "native") -> Iterator[Target]:
    with serving("--transport", transport, changes=changes) as target:
        with grpc.insecure_channel(target.endpoint, options=OPTIONS) as channel:
            stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
            for number in range(MESSAGES):
                stub.AppendMessages(append("large", [f"{number:04}" + "x" * TEXT_BYTES]), timeout=PATIENCE)
        yield target


@pytest.fixture(scope="module", params=TRANSPORTS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with serving_a_large_page(transport=request.param) as target:
        yield target


def ask(peer: Peer, stream: int) -> None:
    encoded = pb.ListMessagesRequest(conversation_id="large", page_size=1000).SerializeToString()
    peer.send(frames.call(stream, LIST, encoded))


@pytest.mark.parametrize(
    "target", unless_grpcio("grpcio keeps replies that nobody reads without a bound"), indirect=True
)
@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 65_535, LARGEST_WINDOW], ids=["no-window", "usual-window", "largest-window"])
def test_replies_that_nobody_reads_take_bounded_memory(target: Target, window: int) -> None:
    ask_and_do_not_read(target, window)


def ask_and_do_not_read(
    target: Target, window: int, connections: int = CONNECTIONS, wait: Callable[[], object] = lambda: None
) -> None:
    """Raises AssertionError where the replies take more memory than they may. `wait` is called at the end."""
    opened = frames.peers(target.tcp, connections)
    others, of_same_peer = honest(target.endpoint), honest(target.tcp)
    with others, of_same_peer as clients, target.grows_at_most(REPLIES_MIB), opened as unread:
        for peer in unread:
            peer.open(initial_window=window)
            peer.send(frames.window_update(0, LARGEST_WINDOW - 65_535))
            for stream in range(1, 2 * STREAMS, 2):
                ask(peer, stream)
        clients.go_on(20)
        wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", unless_grpcio("grpcio keeps replies that nobody reads without a bound"), indirect=True
)
def test_readers_are_never_refused_while_others_do_not_read(target: Target) -> None:
    with frames.peers(target.tcp, CONNECTIONS) as unread:
        for peer in unread:
            peer.open(initial_window=0)
            for stream in range(1, 2 * STREAMS, 2):
                ask(peer, stream)
        for peer in unread:
            assert any(begins_a_reply(came) for came in peer.frames())
        with honest(target.endpoint) as others, honest(target.tcp) as of_same_peer:
            others.go_on(50)
            of_same_peer.go_on(50)
            assert (others.refusals, of_same_peer.refusals) == (0, 0)


def begins_a_reply(came: Frame) -> bool:
    return came.kind == frames.HEADERS and not came.flags & frames.END_STREAM


@pytest.mark.faults
def test_the_check_of_unread_replies_finds_a_server_without_their_bound() -> None:
    finding = pytest.raises(AssertionError, match="its memory grew")
    with serving_a_large_page("no_bound_of_replies") as careless, finding:
        before = careless.memory()

        def wait() -> None:
            eventually(lambda: careless.memory() > before + 2 * REPLIES_MIB)

        ask_and_do_not_read(careless, 0, CONNECTIONS // 4, wait)  # a gigabyte


def test_a_reply_that_is_read_byte_by_byte_comes_whole(target: Target) -> None:
    with honest(target.endpoint) as clients, Peer(target.tcp) as peer:
        peer.open(initial_window=1)
        ask(peer, 1)
        got = 0
        for came in peer.frames():
            if came.kind == frames.DATA:
                got += len(came.body)
                # The first bytes one by one, the rest as it comes.
                peer.send(frames.window_update(1, 1 if got < 100 else 1 << 20) + frames.window_update(0, 1 << 20))
            if came.flags & frames.END_STREAM and came.kind == frames.HEADERS:
                break
        clients.go_on()

    assert got > MESSAGES * TEXT_BYTES
