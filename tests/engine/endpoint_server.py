"""An endpoint of models on a port of this machine, which does what tests ask of it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.patience import PATIENCE


@dataclass
class Asked:
    """One request that came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    time: float
    peer: int


@dataclass
class Answer:
    """What is sent back; without a status nothing is, ever."""

    status: int | None = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    slowly: bool = False


Behaviour = Callable[[Asked], Answer | None]


class EndpointServer:
    """Serves while it is entered. `behaviour` answers a request; None: as a healthy endpoint does."""

    def __init__(self) -> None:
        self.behaviour: Behaviour = lambda _asked: None
        self.asked: list[Asked] = []
        self.port = 0
        self.changed = threading.Condition()
        self._ended = threading.Event()
        self._http: _Http | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def up(self) -> None:
        """Listen, on the same port as before where there was one."""
        self._ended = threading.Event()
        self._http = _Http(self.port, self)
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def down(self) -> None:
        """Refuse connections, and break those that there are."""
        if self._http is not None:
            self._ended.set()
            self._http.shutdown()
            self._http.server_close()
            self._http.break_connections()
            self._http = None

    def has_been_asked(self, times: int, within: float = PATIENCE) -> bool:
        """Wait until so many requests have come."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.asked) >= times, within)

    def answer(self, asked: Asked) -> Answer:
        with self.changed:
            self.asked.append(asked)
            self.changed.notify_all()
        found = self.behaviour(asked)
        return found or self.healthy(asked)

    def healthy(self, asked: Asked) -> Answer:
        """A healthy endpoint's answer."""
        raise NotImplementedError

    def hang(self) -> Answer:
        """Say nothing until the endpoint goes down."""
        self._ended.wait(PATIENCE)
        return Answer(status=None)


def error(status: int, code: str = "", **headers: str) -> Answer:
    """A refusal, as OpenAI words one; its message quotes what was sent."""
    body = {"error": {"message": "you said: a secret text", "type": "some_error", "code": code or None}}
    return Answer(status, json.dumps(body).encode(), {name.replace("_", "-"): value for name, value in headers.items()})


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, owner: EndpointServer) -> None:
        self.owner = owner
        self._connections: list[socket.socket] = []
        super().__init__(("127.0.0.1", port), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._connections.append(connection)
        return connection, address

    def break_connections(self) -> None:
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: object, client_address: object) -> None:
        """A peer that goes away is no error of a test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, body, time.monotonic(), self.client_address[1])
        self._send(self.server.owner.answer(asked))

    def _send(self, answer: Answer) -> None:
        if answer.status is None:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        step = 1 if answer.slowly else len(answer.body) or 1
        for start in range(0, len(answer.body), step):
            self.wfile.write(answer.body[start : start + step])
            if answer.slowly:
                time.sleep(0.05)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""
