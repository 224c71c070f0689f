"""Remora's own server, without a model, called as its Python client calls it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import grpc
from benchmarks.engines.server import TEXTS, Server
from benchmarks.loading import NUMBER_PLACE
from benchmarks.texts import texts

from remora.v1 import admin_service_pb2, admin_service_pb2_grpc
from remora.v1.conversation_pb2 import Conversation
from remora.v1.conversation_service_pb2 import AppendMessagesRequest, ListMessagesRequest
from remora.v1.message_pb2 import Message

SERVICE = "/remora.v1.ConversationService"
CHECKPOINT_SECONDS = 12.0
BATCH = 500


class Remora(Server):
    """`remora serve --model none`."""

    name = "remora"
    wire = "grpc"
    append_path = f"{SERVICE}/AppendMessages"
    list_path = f"{SERVICE}/ListMessages"

    def command(self) -> list[str]:
        return [
            str(Path(sys.executable).with_name("remora")), "serve", "--listen", f"unix:{self.socket}",
            "--data", str(self.data), "--model", "none", "--log-level", "warning",
        ]  # fmt: skip

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"

    @property
    def database(self) -> Path:
        """DuckDB's file."""
        return self.data / "remora.duckdb"

    def append_requests(self, client: int) -> list[bytes]:
        return [
            self.append_request(f"conversation-{client}", f"user-{client}", [text]) for text in texts(client, TEXTS)
        ]

    def append_request(self, conversation: str, user: str, batch: list[str]) -> bytes:
        """An append that creates the conversation where it is missing."""
        return AppendMessagesRequest(
            conversation_id=conversation,
            user_id=user,
            messages=[Message(role="user", text=text) for text in batch],
            create_if_missing=Conversation(user_id=user),
            request_id=NUMBER_PLACE * 2,  # as long as the client's
        ).SerializeToString()

    def fill(self, messages: int, progress: Callable[[int], None] = lambda _count: None) -> None:
        """Store at least so many messages, in conversations of 500, each of a user of its own."""
        request = self.append_request(f"fill-{NUMBER_PLACE}", f"filler-{NUMBER_PLACE}", texts(0, BATCH))
        stored = 0
        while stored < messages:
            seconds = 0.1 if messages - stored < 20 * BATCH else 1.0
            spans, failed = self.load.run(
                self.socket, self.wire, self.append_path, [[request]], seconds=seconds, streams=2
            )
            stored += BATCH * len(spans)
            if failed:
                raise RuntimeError(f"{failed} appends failed")
            progress(stored)
        self.checkpointed()

    def list_request(self, client: int) -> bytes:
        return ListMessagesRequest(
            conversation_id=f"conversation-{client}", user_id=f"user-{client}", page_size=50
        ).SerializeToString()

    def start_and_time(self) -> float:
        """Start; the seconds until it has answered a call."""
        began = time.monotonic()
        self.start()
        self.status()
        return time.monotonic() - began

    def status(self) -> admin_service_pb2.GetStatusResponse:
        """What it says of itself."""
        with grpc.insecure_channel(f"unix:{self.socket}") as channel:
            stub = admin_service_pb2_grpc.AdminServiceStub(channel)
            return stub.GetStatus(admin_service_pb2.GetStatusRequest(), timeout=30, wait_for_ready=True)

    def checkpointed(self) -> None:
        """Wait until DuckDB's write-ahead log is in its file, which happens when no writes come."""
        deadline = time.monotonic() + CHECKPOINT_SECONDS
        while self.wal_bytes() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.settle()

    def wal_bytes(self) -> int:
        """The size of DuckDB's write-ahead log."""
        wal = self.database.with_name(self.database.name + ".wal")
        return wal.stat().st_size if wal.exists() else 0
