"""Probes: the server's health, and its metrics, on a port that carries nothing else.

Who watches a process has no token, and reaches it over the network where its data stays on a Unix socket. The port
answers while the store is still being opened, which may take a while after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from remora_server.rpc.health import HEALTH, LIVENESS, READINESS, STARTING, STARTUP
from remora_server.rpc.identity import Identity
from remora_server.rpc.reflection import Reflection
from remora_server.rpc.transport.listeners import TcpListener
from remora_server.rpc.transport.native_transport import NativeTransport
from remora_server.rpc.transport.transports import ServerOptions

Page = tuple[int, str, bytes]
"""A status of HTTP, a content type and a body."""

TEXT = "text/plain; charset=utf-8"
OPTIONS = ServerOptions(threads=1, waiting=16, connections=256, peer_connections=256, receive_limit_bytes=64 * 1024)

logger = logging.getLogger(__name__)


class Probes:
    """gRPC's health service over HTTP/2, and the pages /livez, /startupz, /readyz and /metrics over HTTP/1.1."""

    def __init__(self) -> None:
        self._transport = NativeTransport(OPTIONS, Identity(), threads_named="probes-")
        self._why_not = dict.fromkeys((LIVENESS, STARTUP, READINESS), STARTING)
        self._metrics: Callable[[], tuple[str, bytes]] | None = None

    def start(self, listener: TcpListener) -> str:
        """Take the port, answer, and return the endpoint. Raises ListenError."""
        endpoint = listener.bind(self._transport)
        self._transport.start([], Reflection((HEALTH.full_name,)), None, pages=self._page)
        return endpoint

    def say(self, service: str, why_not: str) -> None:
        """Set the health of a service: why it does not serve, empty if it does."""
        self._transport.say(service, not why_not)
        self._why_not[service] = why_not

    def show(self, metrics: Callable[[], tuple[str, bytes]]) -> None:
        """Have /metrics from now on; `metrics` makes the page's content type and body."""
        self._metrics = metrics

    def is_ready(self) -> bool:
        """Whether the server is."""
        return not self._why_not[READINESS]

    def failure(self) -> str:
        """Why it does not answer as it should; empty where it does."""
        return self._transport.failure()

    def stop(self) -> None:
        """Answer no more."""
        self._transport.stop(0.0)

    def _page(self, path: str) -> Page | None:
        match path:
            case "/livez":
                return self._state(LIVENESS, "alive")
            case "/startupz":
                return self._state(STARTUP, "started")
            case "/readyz":
                return self._state(READINESS, "ready")
            case "/metrics":
                return self._measured()
        return None

    def _state(self, service: str, word: str) -> Page:
        if why_not := self._why_not[service]:
            return 503, TEXT, f"not {word}: {why_not}\n".encode()
        return 200, TEXT, f"{word}\n".encode()

    def _measured(self) -> Page:
        if self._metrics is None:
            return 503, TEXT, b"the server is starting\n"
        try:
            content_type, body = self._metrics()
        except BaseException:
            # Nobody else would learn why; a panic of the engine is no Exception.
            logger.exception("the metrics cannot be made")
            return 500, TEXT, b"the metrics cannot be made: the log says why\n"
        return 200, content_type, body
