"""Remora's server with or without a model, stopped by a signal while others are measured."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from benchmarks.engines.remora import MODEL, SEARCH_PATH, Remora
from benchmarks.loading import NUMBER_PLACE, Load
from benchmarks.slices import Measured
from benchmarks.texts import texts

from remora.v1.conversation_service_pb2 import AppendMessagesRequest
from remora.v1.conversation_service_pb2_grpc import ConversationServiceStub
from remora.v1.memory_service_pb2 import SearchMessagesRequest, SearchMessagesResponse
from remora.v1.memory_service_pb2_grpc import MemoryServiceStub

SEARCHED = 50
"""Messages of each client's own conversation."""
QUERIES = 16
FIRST_FRESH = 1_000
WAIT_SECONDS = 60


class Paused(Remora):
    """What it does outside of a load does not disturb others, and work left behind is no part of a load."""

    def __init__(self, directory: Path, load: Load, name: str, *, model: bool) -> None:
        self.name = name
        self.model = ("--model-dir", str(MODEL)) if model else ("--model", "none")
        self.running = 0.0
        """Seconds that it was not stopped since the first time that it was."""
        super().__init__(directory, load)

    def settle(self) -> None:
        """Nothing: a backlog does not come to rest."""

    def pause(self) -> None:
        """Stop it until it is resumed."""
        self.process_signal(signal.SIGSTOP)

    def process_signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        if self.process is not None:
            self.process.send_signal(number)

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Let it run meanwhile."""
        self.process_signal(signal.SIGCONT)
        began = time.monotonic()
        try:
            yield
        finally:
            self.pause()
            self.running += time.monotonic() - began

    def stop(self) -> None:
        self.process_signal(signal.SIGCONT)
        super().stop()

    def pending(self) -> int:
        """How many messages wait to be embedded."""
        return self.status().model.pending

    def embedded(self) -> int:
        """How many messages are embedded."""
        status = self.status()
        return status.store.messages - status.model.pending

    def fill_searched(self, clients: int) -> None:
        """A conversation for the searches of each client."""
        with self.channel() as channel:
            append = ConversationServiceStub(channel).AppendMessages
            for client in range(clients):
                request = self.append_request(f"searched-{client}", f"searcher-{client}", texts(client, SEARCHED))
                append(_numbered(request, client), timeout=WAIT_SECONDS, wait_for_ready=True)

    def search_own(self, clients: int, seconds: float) -> Measured:
        """Searches of each client in its own conversation, no two for the same words."""
        return self.drive(SEARCH_PATH, [_searches(client) for client in range(clients)], seconds)

    def embedded_after(self, number: int) -> float:
        """Append a message to a conversation of its own; the seconds until a search finds it by its vector."""
        user = f"fresh-{number}"
        request = self.append_request(user, user, texts(-1 - number, 1))
        with self.channel() as channel:
            ConversationServiceStub(channel).AppendMessages(
                _numbered(request, FIRST_FRESH + number), timeout=WAIT_SECONDS
            )
            began = time.monotonic()
            found = _search(channel, user)
        if found.index.pending:
            raise RuntimeError(f"a message was not embedded within {WAIT_SECONDS} seconds")
        return time.monotonic() - began


def _numbered(request: bytes, number: int) -> AppendMessagesRequest:
    return AppendMessagesRequest.FromString(request.replace(NUMBER_PLACE.encode(), f"{number:016}".encode()))


def _searches(client: int) -> list[bytes]:
    """The load puts a number into each query, so that none is embedded already."""
    return [
        SearchMessagesRequest(
            user_id=f"searcher-{client}", text=f"{' '.join(text.split()[:4])} {NUMBER_PLACE}"
        ).SerializeToString()
        for text in texts(client, QUERIES)
    ]


def _search(channel: grpc.Channel, user: str) -> SearchMessagesResponse:
    request = SearchMessagesRequest(user_id=user, text="anything")
    request.index_wait.FromSeconds(WAIT_SECONDS)
    found: SearchMessagesResponse = MemoryServiceStub(channel).SearchMessages(request, timeout=2 * WAIT_SECONDS)
    return found
