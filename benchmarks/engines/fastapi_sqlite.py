"""The FastAPI server, in the environment that `make bench` makes for it."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.engines.engine import Unavailable
from benchmarks.engines.server import TEXTS, Server
from benchmarks.texts import texts

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / ".cache" / "bench" / "bin" / "python"


class FastapiSqlite(Server):
    """FastAPI + uvicorn + SQLite FULL, over HTTP/1.1 with connections kept open."""

    name = "fastapi+sqlite"
    wire = "http"

    def command(self) -> list[str]:
        return [str(PYTHON), str(HERE / "fastapi_server.py"), str(self.directory / "messages.db"), str(self.socket)]

    def start(self) -> None:
        if not PYTHON.exists():
            raise Unavailable(f"{PYTHON} is missing: `make bench` makes it")
        super().start()

    def append_requests(self, client: int) -> list[bytes]:
        return [self._append_request(client, text) for text in texts(client, TEXTS)]

    def _append_request(self, client: int, text: str) -> bytes:
        body = json.dumps({"user_id": f"user-{client}", "role": "user", "text": text}).encode()
        head = (
            f"POST /conversations/conversation-{client}/messages HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def list_request(self, client: int) -> bytes:
        path = f"/conversations/conversation-{client}/messages?user_id=user-{client}&limit=50"
        return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
