"""A server that tests break in some way, and what it acknowledged, to compare with what it has in the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora._status import to_exception
from remora.errors import RemoraError
from remora.v1 import conversation_service_pb2 as pb
from remora.v1.admin_service_pb2 import GetStatusRequest, GetStatusResponse
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message

THREADS, WAITING = 2, 2
"""The threads of a server with little room, and how many calls may wait for one."""


class ServedStore:
    """A server without a model, its one conversation, and what it acknowledged."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        """Not started. `arguments` are the server's."""
        self.sidecar = Sidecar(directory, "--model", "none", *arguments)
        self.memory = Remora(self.sidecar.endpoint, timeout=PATIENCE)
        self.page_size = 1_000
        self.acknowledged: list[str] = []
        self.refused: list[str] = []

    def append(self, size: int = 100) -> None:
        """Append a message that no compression makes smaller. Raises RemoraError."""
        text = f"message {len(self.acknowledged) + len(self.refused)}"
        request = pb.AppendMessagesRequest(
            conversation_id="held",
            messages=[Message(role="user", text=text, parts=os.urandom(size))],
            create_if_missing=Conversation(user_id="sarah"),
        )
        try:
            self.memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)
        except Exception:
            self.refused.append(text)
            raise
        self.acknowledged.append(text)

    def append_until_refused(self, size: int) -> RemoraError:
        """Append until there is no room; the refusal."""
        for _ in range(1_000):
            refusal = refused(lambda: self.append(size))
            if refusal is not None:
                return refusal
        raise AssertionError("everything was accepted")

    def listed(self) -> list[str]:
        """The messages as memory has them."""
        request = pb.ListMessagesRequest(
            conversation_id="held", page_size=self.page_size, page_order=pb.PageOrder.PAGE_ORDER_OLDEST_FIRST
        )
        found: list[str] = []
        while True:
            page = self.memory.stubs.conversations.ListMessages(request)
            found += [message.text for message in page.messages]
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    def conversations(self) -> list[str]:
        """The conversations as the database has them."""
        found = self.memory.stubs.conversations.ListConversations(pb.ListConversationsRequest(), timeout=PATIENCE)
        return [conversation.id for conversation in found.conversations]

    def status(self) -> GetStatusResponse:
        return self.memory.stubs.admin.GetStatus(GetStatusRequest(), timeout=PATIENCE)

    def applied(self) -> bool:
        store = self.status().store
        return store.applied_revision == store.revision

    def found_by_a_start(self) -> list[str]:
        """The messages as the database has them: the server is killed once all is there, and started."""
        eventually(self.applied)
        self.sidecar.kill()
        self.sidecar.start()
        return self.listed()

    def health(self, service: str) -> int:
        """What the health service says, of `liveness` or `readiness`."""
        request = health_pb2.HealthCheckRequest(service=service)
        with grpc.insecure_channel(self.sidecar.endpoint) as channel:
            ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")
            reply = ask(request.SerializeToString(), timeout=PATIENCE)
        return health_pb2.HealthCheckResponse.FromString(reply).status

    def close(self) -> None:
        self.memory.close()
        self.sidecar.kill()


def refused(call: Callable[[], object]) -> RemoraError | None:
    """How a call was refused, None where it was not."""
    try:
        call()
    except grpc.RpcError as error:
        return to_exception(error, "", 0)
    return None


@contextmanager
def served(directory: Path, *arguments: str, change: str = "", **planted: str) -> Iterator[ServedStore]:
    """A server with little room, changed in some way or not. What is planted is given by the names of the variables."""
    store = ServedStore(directory, "--threads", str(THREADS), "--waiting-calls", str(WAITING), *arguments)
    store.sidecar.changes = (change,) if change else ()
    store.sidecar.failpoints = planted
    store.sidecar.start()
    try:
        yield store
    finally:
        store.close()


def restart(store: ServedStore, **planted: str) -> None:
    """Kill the server and start it with what is planted, and nothing else."""
    store.sidecar.kill()
    store.sidecar.failpoints = planted
    store.sidecar.start()


def outcome(call: Callable[[], object]) -> str:
    """How a call ended: OK, the reason of its failure, or that its connection broke."""
    failure = refused(call)
    return "OK" if failure is None else failure.reason or failure.code.name


def log_of(store: ServedStore) -> str:
    return store.sidecar.log.read_text()
