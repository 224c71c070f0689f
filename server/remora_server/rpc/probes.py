"""Probes: the server's health, and its metrics, on a port that carries nothing else.

Who watches a process has no token, and reaches it over the network where its data stays on a Unix socket. The port
answers while the store is still being opened, which may take a while after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from remora_server.rpc.health import HEALTH, LIVENESS, READINESS
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
    """gRPC's health service over HTTP/2, and the pages /livez, /readyz and /metrics over HTTP/1.1."""

    def __init__(self) -> None:
        self._transport = NativeTransport(OPTIONS, Identity(), threads_named="probes-")
        self._serving = {LIVENESS: False, READINESS: False}
        self._metrics: Callable[[], tuple[str, bytes]] | None = None

    def start(self, listener: TcpListener) -> str:
        """Take the port, answer, and return the endpoint. Raises ListenError."""
        endpoint = listener.bind(self._transport)
        self._transport.start([], Reflection((HEALTH.full_name,)), None, pages=self._page)
        return endpoint

    def say(self, service: str, serving: bool) -> None:
        """Set the health of a service."""
        self._transport.say(service, serving)
        self._serving[service] = serving

    def show(self, metrics: Callable[[], tuple[str, bytes]]) -> None:
        """Have /metrics from now on; `metrics` makes the page's content type and body."""
        self._metrics = metrics

    def is_ready(self) -> bool:
        """Whether the server is."""
        return self._serving[READINESS]

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
            case "/readyz":
                return self._state(READINESS, "ready")
            case "/metrics":
                return self._measured()
        return None

    def _state(self, service: str, word: str) -> Page:
        if self._serving[service]:
            return 200, TEXT, f"{word}\n".encode()
        return 503, TEXT, f"not {word}\n".encode()

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
