"""Listeners: Unix sockets and TCP ports, who may connect, and how they are bound."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from remora.address import other_owner

UNIX = "unix:"
MAX_SOCKET_PATH = 103 if sys.platform == "darwin" else 107  # sockaddr_un's, with a NUL behind it
OWN = 0o600
"""The mode of a socket for its owner only."""
SHARED = 0o660
"""The mode of a socket for all users of its group."""


class ListenError(Exception):
    """The server cannot listen there; the message says where, why and what to do."""


class Binder(Protocol):
    """Takes addresses for a server."""

    def bind_unix(self, path: str) -> None:
        """Take a Unix socket. Raises OSError."""

    def bind_tcp(self, host: str, port: int) -> int:
        """Take a port of a host and return it. Raises OSError."""


class UnixListener(Struct, frozen=True):
    """A Unix socket. Only its mode says who may connect: the peer is not checked."""

    path: Path
    mode: int = OWN

    @property
    def endpoint(self) -> str:
        """Its name."""
        return f"{UNIX}{self.path}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return True

    def bind(self, server: Binder) -> str:
        """Take the socket and return its endpoint. A file that a dead server left behind is removed first."""
        if len(os.fsencode(self.path)) > MAX_SOCKET_PATH:
            raise ListenError(f"cannot listen on {self.endpoint}: the path has more than {MAX_SOCKET_PATH} bytes")
        self._make_directory()
        self._remove_stale()
        with _umask(_without(self.mode)), _named(self.endpoint):
            server.bind_unix(str(self.path))
        return self.endpoint

    def _make_directory(self) -> None:
        directory = self.path.parent
        try:
            with _umask(_without(_of_directory(self.mode))):
                directory.mkdir(parents=True, exist_ok=True)
            owner = other_owner(directory)
        except OSError as error:
            raise ListenError(f"the directory {directory} cannot be made: {error.strerror}") from error
        if owner is not None:
            raise ListenError(f"the directory {directory} belongs to user {owner}: listen elsewhere (--listen)")

    def _remove_stale(self) -> None:
        try:
            is_socket = stat.S_ISSOCK(self.path.lstat().st_mode)
        except FileNotFoundError:
            return
        except OSError as error:
            raise ListenError(f"cannot listen on {self.endpoint}: {error.strerror}") from error
        if not is_socket:
            raise ListenError(f"{self.path} exists and is not a socket: listen elsewhere (--listen)")
        if self._answers():
            raise ListenError(f"another process listens on {self.endpoint}: stop it, or listen elsewhere (--listen)")
        self.path.unlink()

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            return probe.connect_ex(str(self.path)) not in (errno.ECONNREFUSED, errno.ENOENT)


class TcpListener(Struct, frozen=True):
    """A TCP port of a host name or address; port 0 takes a free one."""

    host: str
    port: int

    @property
    def endpoint(self) -> str:
        """Its name."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def bind(self, server: Binder) -> str:
        """Take the port and return its endpoint."""
        with _named(self.endpoint):
            return replace(self, port=server.bind_tcp(self.host, self.port)).endpoint


Listener = UnixListener | TcpListener


def parse_listener(endpoint: str, socket_mode: int = OWN) -> Listener:
    """A listener from `unix:/path`, `host:port` or `[IPv6]:port`. Raises ListenError."""
    if endpoint.startswith(UNIX):
        path = Path(endpoint.removeprefix(UNIX))
        if not path.is_absolute():
            raise ListenError(f"{endpoint!r} does not name a socket by its absolute path: unix:/path")
        return UnixListener(path, socket_mode)
    host, _, port = endpoint.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ListenError(f"{endpoint!r} is neither unix:/path nor host:port")
    return TcpListener(host.removeprefix("[").removesuffix("]"), int(port))


def require_guarded(listeners: list[Listener], *, guarded: bool) -> None:
    """Refuse listeners that other machines reach, unless tokens or certificates guard them, or the settings allow it
    explicitly.
    """
    remote = [listener for listener in listeners if not listener.is_local]
    if remote and not guarded:
        raise ListenError(
            f"other machines would reach {remote[0].endpoint} without a token: "
            "give tokens (--token-file), require client certificates (--tls-client-ca), or say that neither is needed "
            "(--insecure)"
        )


def _of_directory(mode: int) -> int:
    """The mode for a new directory of a socket with this mode: users who may connect may enter it."""
    return 0o700 if mode == OWN else 0o750


def _without(mode: int) -> int:
    """The umask that leaves a new file at most these permissions."""
    return 0o777 & ~mode


@contextmanager
def _named(endpoint: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ListenError(f"cannot listen on {endpoint}: {error.strerror or error}") from error


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
