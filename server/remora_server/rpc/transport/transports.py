"""What the server asks of a transport, and how much a transport takes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.publication import Publication
from remora_server.rpc.methods import Method
from remora_server.rpc.reflection import Reflection
from remora_server.rpc.transport.listeners import Binder


class ServerOptions(Struct, frozen=True):
    """How much the server takes on: threads that answer, calls that may wait for one, connections (of all
    callers, and of one peer: an address, or a process over a Unix socket), bytes of a request.

    `transport` is native or grpcio, which bounds its connections itself. A call without a deadline of its own gets
    `default_timeout`, in seconds.
    """

    transport: str = "native"
    threads: int = 16
    waiting: int = 256
    connections: int = 4_096
    peer_connections: int = 1_024
    receive_limit_bytes: int = 4 * 1024 * 1024
    default_timeout: float = 30.0


class MethodCalls(Struct, frozen=True):
    """The calls of one method since the start; `path` is empty for those of no method.

    `ended` counts them by gRPC's code, `within` those that took at most so many seconds (rising, infinity last).
    """

    path: str
    ended: Mapping[int, int]
    within: Sequence[tuple[float, int]]
    seconds: float
    under_way: int


class Transport(Binder, Protocol):
    """Carries calls to methods. It takes addresses, is started and stopped, each once."""

    def start(self, methods: Sequence[Method], reflection: Reflection, publication: Publication | None) -> None:
        """Answer calls. With a publication, the transport may wait for it instead of methods that write."""

    def say(self, service: str, serving: bool) -> None:
        """Set the health of a service."""

    def calls(self) -> list[MethodCalls]:
        """The calls of each method that was called, but for health; nothing where they are not counted."""

    def failure(self) -> str:
        """Why it does not work as it should; empty where it does."""

    def forget_callers(self) -> None:
        """Tell every caller anew: what tells them has changed."""

    def stop(self, grace: float) -> None:
        """Take no new calls, give those under way so many seconds, and end.

        Streams that wait end at once, others when the time is nearly up: UNAVAILABLE, SERVER_STOPPING.
        """
