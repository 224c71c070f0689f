"""Connections that never become calls: half-open, idle, and more than there may be."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from itertools import cycle

import pytest
from tests.network.frames import PREFACE, SETTINGS, Peer, frame, peers
from tests.network.honest import honest
from tests.network.target import Target, serving, unless_grpcio
from tests.patience import PATIENCE, eventually

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
    with serving("--transport", transport) as target, honest(target.endpoint_of(kind)) as clients:
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


@pytest.mark.parametrize(
    "transport", unless_grpcio("grpcio has no bound of connections but the system's of open files")
)
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_connections_beyond_the_bound_are_closed_until_others_end(kind: str, transport: str) -> None:
    with serving("--connections", "20", "--transport", transport) as target, honest(target.endpoint, 2) as clients:
        endpoint = target.endpoint_of(kind)
        with peers(endpoint, 18) as idle:
            open_idle(idle)
            for _ in range(200):
                with Peer(endpoint) as newcomer:
                    newcomer.open()
                    assert newcomer.until_closed() == []
            clients.go_on()
            assert all(peer.answers() for peer in idle)

        eventually(lambda: is_served(endpoint))
        with honest(target.endpoint_of(kind), 1):
            pass


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


@pytest.mark.faults
def test_the_check_of_connections_beyond_the_bound_finds_a_server_that_takes_them() -> None:
    with serving() as careless, peers(careless.endpoint, 20) as idle:
        open_idle(idle)
        with Peer(careless.endpoint, timeout=2.0) as newcomer:
            newcomer.open()
            with pytest.raises(TimeoutError):
                newcomer.until_closed()
