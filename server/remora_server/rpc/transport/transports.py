"""The interface of a transport, and its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.publication import Publication
from remora_server.rpc.methods import Method
from remora_server.rpc.reflection import Reflection
from remora_server.rpc.transport.listeners import Binder


class ServerOptions(Struct, frozen=True):
    """The bounds of the server: threads that answer, calls that may wait for a thread, connections (of all callers, and
    of one peer: an address, or a process over a Unix socket), bytes of a request, and of one that is a batch; bytes of
    requests that are not answered, and as many of replies that are not read.

    `transport` is native or grpcio, which bounds its connections itself and receives no longer batches. A call without
    a deadline of its own gets `default_timeout`, in seconds.
    """

    transport: str = "native"
    threads: int = 16
    waiting: int = 256
    connections: int = 4_096
    peer_connections: int = 1_024
    receive_limit_bytes: int = 4 * 1024 * 1024
    batch_bytes: int = 0
    passing_bytes: int = 256 * 1024 * 1024
    default_timeout: float = 30.0

    def longest(self, method: Method) -> int:
        """How many bytes a request of a method may have."""
        return max(self.batch_bytes, self.receive_limit_bytes) if method.takes_batches else self.receive_limit_bytes


class MethodCalls(Struct, frozen=True):
    """The calls of one method since the start; `path` is empty for those of no method.

    `ended` counts them by gRPC's code, `within` by upper bounds of their duration in seconds (rising, infinity last).
    Of those that are under way, `waiting` wait for a thread, or for room to wait for one.
    """

    path: str
    ended: Mapping[int, int]
    within: Sequence[tuple[float, int]]
    seconds: float
    under_way: int
    waiting: int = 0


class Transport(Binder, Protocol):
    """Carries calls to methods. It takes addresses, is started and stopped, each once."""

    def start(self, methods: Sequence[Method], reflection: Reflection, publication: Publication | None) -> None:
        """Answer calls. With a publication, the transport may wait for it instead of methods that write."""

    def say(self, service: str, serving: bool) -> None:
        """Set the health of a service."""

    def calls(self) -> list[MethodCalls]:
        """The calls of each method that was called, without health checks; empty if they are not counted."""

    def failure(self) -> str:
        """Why it does not work as it should; empty if it does."""

    def forget_callers(self) -> None:
        """Identify every caller again, because tokens or tenants have changed."""

    def stop(self, grace: float) -> None:
        """Take no new calls, give the current ones `grace` seconds, and end.

        Waiting streams end at once, others shortly before the time is over: UNAVAILABLE, SERVER_STOPPING.
        """
