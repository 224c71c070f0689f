"""Remora's own server, called as its Python client calls it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc
from benchmarks.engines.server import TEXTS, Server
from benchmarks.loading import NUMBER_PLACE
from benchmarks.slices import Measured
from benchmarks.texts import texts

from remora.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    conversation_service_pb2_grpc,
    memory_service_pb2_grpc,
)
from remora.v1.conversation_pb2 import Conversation
from remora.v1.conversation_service_pb2 import AppendMessagesRequest, ListMessagesRequest
from remora.v1.fact_pb2 import Fact
from remora.v1.memory_service_pb2 import AddFactsRequest, SearchMessagesRequest
from remora.v1.message_pb2 import Message
from remora.v1.short_term_pb2 import ShortTermPolicy

SERVICE = "/remora.v1.ConversationService"
SEARCH_PATH = "/remora.v1.MemoryService/SearchMessages"
MODEL = Path(__file__).resolve().parents[2] / ".cache" / "model"
RECALL_BYTES = "384MiB"
"""50,000 messages of 500 bytes with their vectors take 165 MB."""
APPLIED_SECONDS = 600.0
CHECKPOINT_SECONDS = 12.0
BEHIND_SECONDS = 2.5
"""By then everything is in the database: records wait there for others for two seconds."""
BATCH = 400
"""With texts of 500 bytes, what fits the window that HTTP/2 gives a stream: the load sends a request whole."""
FACT_BYTES, FACTS_AT_ONCE = 40, 1_000


class Remora(Server):
    """`remora serve --model none`."""

    name = "remora"
    wire = "grpc"
    append_path = f"{SERVICE}/AppendMessages"
    list_path = f"{SERVICE}/ListMessages"
    model: Sequence[str] = ("--model", "none")

    def command(self) -> list[str]:
        return [
            str(Path(sys.executable).with_name("remora")), "serve", "--listen", f"unix:{self.socket}",
            "--data", str(self.data), *self.model, "--log-level", "warning",
        ]  # fmt: skip

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"

    @property
    def database(self) -> Path:
        """DuckDB's file."""
        return self.data / "remora.duckdb"

    def settle(self) -> None:
        time.sleep(BEHIND_SECONDS)
        super().settle()

    def append_requests(self, client: int) -> list[bytes]:
        return [
            self.append_request(f"conversation-{client}", f"user-{client}", [text]) for text in texts(client, TEXTS)
        ]

    def append_request(
        self, conversation: str, user: str, batch: list[str], short_term: ShortTermPolicy | None = None
    ) -> bytes:
        """An append that creates the conversation where it is missing."""
        return AppendMessagesRequest(
            conversation_id=conversation,
            user_id=user,
            messages=[Message(role="user", text=text) for text in batch],
            create_if_missing=Conversation(user_id=user, short_term=short_term),
            request_id=NUMBER_PLACE * 2,  # as long as the client's
        ).SerializeToString()

    def fill(self, messages: int, progress: Callable[[int], None] = lambda _count: None) -> None:
        """Store at least so many messages, in conversations of BATCH, each of a user of its own."""
        request = self.append_request(f"fill-{NUMBER_PLACE}", f"filler-{NUMBER_PLACE}", texts(0, BATCH))
        stored = 0
        while stored < messages:
            seconds = 0.1 if messages - stored < 20 * BATCH else 1.0
            driven = self.load.run(self.socket, self.wire, self.append_path, [[request]], seconds=seconds, streams=2)
            stored += BATCH * len(driven.spans)
            if driven.failures:
                raise RuntimeError(f"{len(driven.failures)} appends failed")
            progress(stored)
        self.checkpointed()

    def list_request(self, client: int) -> bytes:
        return ListMessagesRequest(
            conversation_id=f"conversation-{client}", user_id=f"user-{client}", page_size=50
        ).SerializeToString()

    def fill_conversation(self, messages: int) -> None:
        """Store so many messages in one conversation, of a user who has no other."""
        written = texts(messages, messages)
        requests = [
            self.append_request(f"searched-{messages}", f"searcher-{messages}", written[at : at + BATCH])
            for at in range(0, messages, BATCH)
        ]
        with self.channel() as channel:
            append = conversation_service_pb2_grpc.ConversationServiceStub(channel).AppendMessages
            for number, request in enumerate(requests):
                numbered = request.replace(NUMBER_PLACE.encode(), f"{messages + number:016}".encode())
                append(AppendMessagesRequest.FromString(numbered), timeout=60, wait_for_ready=True)
        self.checkpointed()

    def fill_facts(self, user_id: str, facts: int) -> None:
        """Store so many facts of a user, of five words each."""
        written = [
            Fact(subject="user", predicate="said", object=f"{text} {number}")
            for number, text in enumerate(texts(facts, facts, FACT_BYTES))
        ]
        with self.channel() as channel:
            add = memory_service_pb2_grpc.MemoryServiceStub(channel).AddFacts
            for at in range(0, facts, FACTS_AT_ONCE):
                add(AddFactsRequest(user_id=user_id, facts=written[at : at + FACTS_AT_ONCE]), timeout=60)
        self.checkpointed()

    def search(self, messages: int, seconds: float) -> Measured:
        """Searches of one client in the conversation that `fill_conversation` made, each for four of its words."""
        return self.drive(SEARCH_PATH, [[_search_request(messages, text) for text in texts(0, TEXTS)]], seconds)

    def start_and_time(self) -> float:
        """Start; the seconds until it has answered a call."""
        began = time.monotonic()
        self.start()
        self.status()
        return time.monotonic() - began

    def channel(self) -> grpc.Channel:
        """A connection as the client makes it."""
        return grpc.insecure_channel(f"unix:{self.socket}")

    def status(self) -> admin_service_pb2.GetStatusResponse:
        """What it says of itself."""
        with self.channel() as channel:
            stub = admin_service_pb2_grpc.AdminServiceStub(channel)
            return stub.GetStatus(admin_service_pb2.GetStatusRequest(), timeout=30, wait_for_ready=True)

    def applied(self) -> None:
        """Wait until the database holds everything."""
        deadline = time.monotonic() + APPLIED_SECONDS
        while (store := self.status().store).applied_revision < store.revision:
            if time.monotonic() > deadline:
                raise RuntimeError("the journal is not applied")
            time.sleep(0.2)

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

    def journal_bytes(self) -> int:
        """What is written of the journal's segments: behind it they are zero."""
        segments = (self.data / "journal").iterdir()
        return sum(len(segment.read_bytes().rstrip(b"\0")) for segment in segments if segment.is_file())


class RemoraWithModel(Remora):
    """`remora serve` with the model that `make setup` fetches, and memory for the indexes of whom recall asks."""

    name = "remora"
    model = ("--model-dir", str(MODEL), "--recall-bytes", RECALL_BYTES)


def _search_request(messages: int, text: str) -> bytes:
    return SearchMessagesRequest(user_id=f"searcher-{messages}", text=" ".join(text.split()[:4])).SerializeToString()
