"""Connections that never become calls: half-open, idle, and more than there may be."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

import pytest
from tests.network import frames
from tests.network.frames import PREFACE, SETTINGS, Peer, frame, peers
from tests.network.honest import honest
from tests.network.statuses import status_of
from tests.network.target import Target, serving, unless_grpcio
from tests.patience import PATIENCE, eventually
from tests.tokens import token_file

from remora import Remora

OK, UNAUTHENTICATED = 0, 16

MANY = 1000
CONNECTION_KIB = 48
"""What a connection may take: its buffers for reading and writing, its tables of headers, and its task."""

HALVES = (b"", PREFACE[:12], PREFACE[:-1])
"""What a half-open connection has said."""


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_idle(idle: list[Peer]) -> None:
    """Complete connections, which the server has answered."""
    for peer in idle:
        peer.open()
    assert all(peer.answers() for peer in idle)


def wait_for_sockets(target: Target, count: int, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while target.sockets() > count:
        assert time.monotonic() < deadline, f"{target.sockets()} connections are open, not {count}"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "transport"), [("unix", "native"), ("tcp", "native"), ("tcp", "grpcio")])
def test_half_open_connections_are_closed_and_idle_ones_are_kept(kind: str, transport: str) -> None:
    bound = ("--peer-connections", str(4 * MANY))
    with serving("--transport", transport, *bound) as target, honest(target.endpoint_of(kind)) as clients:
        endpoint, before = target.endpoint_of(kind), target.sockets()
        bounded = target.grows_at_most(2 * MANY * CONNECTION_KIB / 1024)
        with bounded, peers(endpoint, MANY) as half_open, peers(endpoint, MANY) as idle:
            for peer, half in zip(half_open, cycle(HALVES), strict=False):
                peer.send(half)
            open_idle(idle)
            clients.go_on()
            assert target.sockets() >= before + MANY

            wait_for_sockets(target, before + MANY)
            for peer in half_open:
                peer.until_closed()
            assert all(peer.answers() for peer in idle)
            clients.go_on()
        wait_for_sockets(target, before)


@pytest.mark.faults
def test_a_connection_with_half_of_its_settings_is_closed_when_it_answers_no_ping() -> None:
    with serving() as target, honest(target.endpoint) as clients:
        before = target.sockets()
        with peers(target.endpoint, 100) as half_open:
            for peer in half_open:
                peer.send(PREFACE + frame(SETTINGS, body=bytes(6))[:-3])
            for peer in half_open:
                peer.until_closed()
            clients.go_on()
        wait_for_sockets(target, before)


BOUND, PEER_BOUND = 20, 10
ALONE = 4
"""Sockets of a server that nobody is connected to: two that listen, and two of its own."""

LIST_CONVERSATIONS = "/remora.v1.ConversationService/ListConversations"
ELSEWHERE = "127.0.0.2"
"""Another address of this machine: another peer."""


@pytest.fixture(params=unless_grpcio("grpcio has no bound of connections but the system's of open files"))
def bounded(request: pytest.FixtureRequest) -> Iterator[Target]:
    """A server with room for so many connections."""
    bounds = ("--connections", str(BOUND), "--peer-connections", str(PEER_BOUND))
    with serving(*bounds, "--transport", request.param) as target:
        wait_for_sockets(target, ALONE)
        yield target


def make_a_call(peer: Peer) -> None:
    """A valid one, which is answered."""
    peer.send(frames.call(1, LIST_CONVERSATIONS, b""))
    assert status_of(peer) == OK


def test_idle_connections_without_a_call_make_way_for_newcomers(bounded: Target) -> None:
    with honest(bounded.tcp, 2) as clients, peers(bounded.tcp, BOUND - 2, ELSEWHERE) as idle:
        open_as_many_as_may(idle)
        for _ in range(3 * BOUND):
            assert is_served(bounded.tcp)
        clients.go_on()


def open_as_many_as_may(idle: list[Peer]) -> None:
    """Complete connections of one peer; the oldest are closed for the newest."""
    for peer in idle:
        peer.open()
    eventually(lambda: sum(peer.answers() for peer in idle), until=lambda answering: answering == PEER_BOUND)


def test_connections_with_a_valid_call_are_kept_and_newcomers_closed(bounded: Target) -> None:
    half = BOUND // 2
    with peers(bounded.tcp, half) as here, peers(bounded.tcp, half, ELSEWHERE) as elsewhere:
        for peer in (*here, *elsewhere):
            peer.open()
            make_a_call(peer)
        with Peer(bounded.tcp, source="127.0.0.3") as newcomer:
            newcomer.open()
            assert newcomer.until_closed() == []
        assert all(peer.answers() for peer in (*here, *elsewhere))

    eventually(lambda: is_served(bounded.tcp))


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_peer_beyond_its_bound_takes_no_room_of_others(bounded: Target, kind: str) -> None:
    endpoint = bounded.endpoint_of(kind)
    with peers(endpoint, PEER_BOUND) as held:
        for peer in held:
            peer.open()
            make_a_call(peer)
        with Peer(endpoint) as newcomer:
            newcomer.open()
            assert newcomer.until_closed() == []
        with Peer(bounded.tcp, source=ELSEWHERE) as other:
            other.open()
            assert other.answers()
        assert all(peer.answers() for peer in held)


@pytest.mark.slow
def test_idle_connections_without_a_token_lock_nobody_out(tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "tokens", "secret acme")
    serves = serving("--connections", str(BOUND), f"--token-file={tokens}", token="secret")
    with serves as guarded, ExitStack() as opened:
        wait_for_sockets(guarded, ALONE)
        idle = opened.enter_context(peers(guarded.tcp, BOUND))
        for peer in idle:
            peer.open()
            peer.send(frames.call(1, LIST_CONVERSATIONS, b""))
            assert status_of(peer) == UNAUTHENTICATED
        with Remora(guarded.tcp, token="secret", timeout=PATIENCE) as memory:
            assert memory.list_conversations() == []


def is_served(endpoint: str) -> bool:
    """Whether a newcomer is."""
    with Peer(endpoint) as peer:
        peer.open()
        return peer.answers()


@pytest.mark.faults
def test_connections_that_come_and_go_leave_nothing_behind() -> None:
    with serving() as target, honest(target.endpoint) as clients:
        before = target.sockets()
        with target.grows_at_most(32):
            for number in range(5 * MANY):
                with Peer(target.tcp if number % 2 else target.endpoint) as peer:
                    peer.open()
            clients.go_on()
        wait_for_sockets(target, before)


@pytest.mark.faults
def test_the_check_of_half_open_connections_finds_a_server_that_waits_for_them() -> None:
    with serving(changes=("no_handshake_timeout",)) as careless:
        before = careless.sockets()
        with peers(careless.endpoint, 10):
            while careless.sockets() < before + 5:
                time.sleep(0.05)
            with pytest.raises(AssertionError, match="connections are open"):
                wait_for_sockets(careless, before, seconds=10.0)
