"""The FastAPI server, in the environment that `make bench` makes for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.engines.engine import Unavailable
from benchmarks.engines.record_calls import CONTENTS
from benchmarks.engines.server import TEXTS, Calls, Server
from benchmarks.texts import texts

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / ".cache" / "bench" / "bin" / "python"


class FastapiSqlite(Server):
    """FastAPI + uvicorn + SQLite FULL, over HTTP/1.1 with connections kept open."""

    name = "fastapi+sqlite"
    wire = "http"
    program = "fastapi_server.py"

    def command(self) -> list[str]:
        return [str(PYTHON), str(HERE / self.program), str(self.directory / "messages.db"), str(self.socket)]

    def start(self) -> None:
        if not PYTHON.exists():
            raise Unavailable(f"{PYTHON} is missing: `make bench` makes it")
        super().start()

    def append_requests(self, client: int) -> list[bytes]:
        return [self._append_request(client, text) for text in texts(client, TEXTS)]

    def _append_request(self, client: int, text: str) -> bytes:
        message = {"user_id": f"user-{client}", "role": "user", "text": text}
        return _with_body("POST", f"/conversations/conversation-{client}/messages", message)

    def list_request(self, client: int) -> bytes:
        path = f"/conversations/conversation-{client}/messages?user_id=user-{client}&limit=50"
        return _get(path)


class FastapiTuned(FastapiSqlite):
    """The same with async handlers, orjson and a group commit."""

    name = "fastapi-tuned"
    program = "fastapi_tuned_server.py"


def http_puts(users: Sequence[str]) -> Calls:
    """A put to the record of each user."""
    return Calls(
        "",
        [
            _with_body("PUT", f"/users/{user}/working-memory", {"content": CONTENTS[number % len(CONTENTS)]})
            for number, user in enumerate(users)
        ],
    )


def http_gets(users: Sequence[str]) -> Calls:
    """A get of the record of each user."""
    return Calls("", [_get(f"/users/{user}/working-memory") for user in users])


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def _with_body(method: str, path: str, value: dict[str, str]) -> bytes:
    body = json.dumps(value).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
