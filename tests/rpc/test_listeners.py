"""Where a server listens: what is taken, what is refused, and with which words."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import PATIENCE

from remora_server.rpc.identity import Identity
from remora_server.rpc.server import TRANSPORTS
from remora_server.rpc.transport.listeners import (
    Listener,
    ListenError,
    TcpListener,
    UnixListener,
    parse_listener,
    require_guarded,
)
from remora_server.rpc.transport.transports import ServerOptions, Transport


@pytest.fixture(params=TRANSPORTS)
def binder(request: pytest.FixtureRequest) -> Iterator[Transport]:
    transport = TRANSPORTS[request.param](ServerOptions(), Identity(), None)
    yield transport
    transport.stop(0.0)


@pytest.mark.parametrize(
    ("endpoint", "listener", "local"),
    [
        ("unix:/run/remora/s", UnixListener(Path("/run/remora/s")), True),
        ("127.0.0.1:7000", TcpListener("127.0.0.1", 7000), True),
        ("127.9.9.9:0", TcpListener("127.9.9.9", 0), True),
        ("[::1]:7000", TcpListener("::1", 7000), True),
        ("localhost:7000", TcpListener("localhost", 7000), True),
        ("0.0.0.0:7000", TcpListener("0.0.0.0", 7000), False),
        ("[::]:7000", TcpListener("::", 7000), False),
        ("10.0.0.1:7000", TcpListener("10.0.0.1", 7000), False),
        ("localhost.example:65535", TcpListener("localhost.example", 65535), False),
    ],
)
def test_an_endpoint_is_understood(endpoint: str, listener: Listener, local: bool) -> None:
    assert parse_listener(endpoint) == listener
    assert listener.endpoint == endpoint
    assert listener.is_local is local


@pytest.mark.parametrize(
    "endpoint", ["", "unix:", "unix:relative", "host", ":7000", "host:", "host:port", "host:65536", "host:-1", "host:²"]
)
def test_a_malformed_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(ListenError):
        parse_listener(endpoint)


@pytest.mark.parametrize("endpoint", ["0.0.0.0:1", "10.1.2.3:1", "[::]:1", "example.org:1"])
def test_other_machines_are_let_in_only_with_tokens_or_by_saying_so(endpoint: str) -> None:
    listeners = [parse_listener("unix:/s"), parse_listener(endpoint)]

    with pytest.raises(ListenError, match="--token-file"):
        require_guarded(listeners, guarded=False)
    require_guarded(listeners, guarded=True)


def test_this_machine_needs_no_tokens() -> None:
    require_guarded([parse_listener("unix:/s"), parse_listener("127.0.0.1:1")], guarded=False)


def test_a_socket_and_its_directory_are_their_owners_alone(directory: Path, binder: Transport) -> None:
    path = directory / "new" / "s"

    assert UnixListener(path).bind(binder) == f"unix:{path}"

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_socket_that_a_dead_server_left_is_replaced(directory: Path, binder: Transport) -> None:
    path = directory / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    UnixListener(path).bind(binder)

    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_socket_that_someone_listens_on_is_left_alone(directory: Path, binder: Transport) -> None:
    path = directory / "s"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()

        with pytest.raises(ListenError, match="another process listens on"):
            UnixListener(path).bind(binder)

        assert path.exists()


def test_a_file_that_is_no_socket_is_left_alone(directory: Path, binder: Transport) -> None:
    path = directory / "s"
    path.write_text("precious")

    with pytest.raises(ListenError, match="is not a socket"):
        UnixListener(path).bind(binder)

    assert path.read_text() == "precious"


def test_a_directory_that_cannot_be_made_is_named(directory: Path, binder: Transport) -> None:
    (directory / "file").write_text("")

    with pytest.raises(ListenError, match=r"the directory .*file/sub cannot be made"):
        UnixListener(directory / "file" / "sub" / "s").bind(binder)


def test_a_socket_that_may_not_be_looked_at_is_refused(
    directory: Path, binder: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = Path.lstat

    def refused(path: Path) -> os.stat_result:
        if path == directory / "s":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return looked_at(path)

    monkeypatch.setattr(Path, "lstat", refused)

    with pytest.raises(ListenError, match=r"^cannot listen on unix:.*: Permission denied$"):
        UnixListener(directory / "s").bind(binder)


def test_another_users_directory_is_refused(
    directory: Path, binder: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        os.chown(directory, 4_242, -1)
    monkeypatch.setattr(os, "geteuid", lambda: directory.stat().st_uid + 1)

    with pytest.raises(ListenError, match="belongs to user"):
        UnixListener(directory / "s").bind(binder)


def test_another_users_link_to_ones_own_directory_is_refused(
    directory: Path, binder: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = directory / "link"
    link.symlink_to("/usr")
    if os.geteuid() == 0:
        os.lchown(link, 4_242, -1)
    monkeypatch.setattr(os, "geteuid", lambda: link.lstat().st_uid + 1)

    with pytest.raises(ListenError, match="belongs to user"):
        UnixListener(link / "s").bind(binder)


def test_ones_own_link_to_ones_own_directory_is_taken(directory: Path, binder: Transport) -> None:
    (directory / "target").mkdir()
    (directory / "link").symlink_to(directory / "target")

    assert UnixListener(directory / "link" / "s").bind(binder) == f"unix:{directory}/link/s"


def test_a_path_too_long_for_a_socket_is_refused(directory: Path, binder: Transport) -> None:
    with pytest.raises(ListenError, match="the path has more than"):
        UnixListener(directory / ("s" * 200)).bind(binder)


def test_port_0_takes_a_free_port_and_says_which(binder: Transport) -> None:
    endpoint = TcpListener("127.0.0.1", 0).bind(binder)

    bound = parse_listener(endpoint)
    assert isinstance(bound, TcpListener)
    assert bound.port > 0


def test_every_address_of_ipv6_takes_ipv4_too(binder: Transport) -> None:
    try:
        endpoint = parse_listener("[::]:0").bind(binder)
    except ListenError:
        pytest.skip("this machine has no IPv6")

    port = int(endpoint.rpartition(":")[2])
    for host in ("127.0.0.1", "::1"):
        socket.create_connection((host, port), timeout=PATIENCE).close()


def test_a_port_in_use_is_refused(binder: Transport) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(ListenError, match=rf"cannot listen on 127.0.0.1:{port}: Address already in use"):
            TcpListener("127.0.0.1", port).bind(binder)


def test_a_host_that_is_not_here_is_refused(binder: Transport) -> None:
    with pytest.raises(ListenError, match=r"cannot listen on 192\.0\.2\.1:1"):
        TcpListener("192.0.2.1", 1).bind(binder)


@pytest.mark.parametrize(("mode", "directory"), [(0o600, 0o700), (0o660, 0o750)])
def test_the_mode_says_who_may_use_a_socket_and_its_new_directory(
    binder: Transport, tmp_path: Path, mode: int, directory: int
) -> None:
    path = tmp_path / "new" / "s"
    parse_listener(f"unix:{path}", mode).bind(binder)

    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE(path.parent.stat().st_mode) == directory
