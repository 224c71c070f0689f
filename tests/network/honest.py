"""Clients that do nothing wrong, and check every reply."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

import grpc
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from tests.patience import PATIENCE

from remora.v1 import conversation_pb2, conversation_service_pb2_grpc, message_pb2
from remora.v1 import conversation_service_pb2 as pb

T = TypeVar("T")

OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost")]
SHOWN = 5
PAUSE_SECONDS = 0.1
"""After a refusal that says nothing of when to come back."""

REFUSED_BY_GRPC = ("Concurrent RPC limit exceeded!", "Received RST_STREAM with error code 7")


class HonestClient:
    """Appends to a conversation of its own and reads it, one call after the other."""

    def __init__(self, endpoint: str, name: str) -> None:
        """Not connected yet. A call that is refused for overload comes back when it was told to."""
        self.rounds = 0
        self.refusals = 0
        self._name = name
        self._channel = grpc.insecure_channel(endpoint, options=OPTIONS)
        self._stub = conversation_service_pb2_grpc.ConversationServiceStub(self._channel)
        self._texts: list[str] = []

    def round(self) -> None:
        """Append one message and read the newest."""
        text = f"{self._name} {self.rounds}"
        appended = self._ask(self._stub.AppendMessages, append(self._name, [text]))
        self._texts.append(text)
        assert [one.sequence for one in appended.messages] == [len(self._texts)]
        listed = self._ask(self._stub.ListMessages, pb.ListMessagesRequest(conversation_id=self._name, page_size=SHOWN))
        assert [one.text for one in listed.messages] == self._texts[-SHOWN:]
        assert listed.revision >= appended.revision
        self.rounds += 1

    def _ask(self, method: Callable[..., T], request: Message) -> T:
        while True:
            try:
                return method(request, timeout=PATIENCE)
            except grpc.RpcError as error:
                if not (reason(error) == "OVERLOADED" or is_refused_by_grpc(error)):
                    raise
                self.refusals += 1
                time.sleep(PAUSE_SECONDS if is_refused_by_grpc(error) else retry_seconds(error))

    def close(self) -> None:
        """End its connection."""
        self._channel.close()


class HonestClients:
    """Some of them, each in a thread."""

    def __init__(self, endpoint: str, count: int) -> None:
        self._clients = [HonestClient(endpoint, f"honest-{uuid.uuid4()}") for _ in range(count)]
        self._stopping = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=[client]) for client in self._clients]

    def start(self) -> None:
        """Begin; each has made a round when this returns."""
        for client in self._clients:
            client.round()
        for thread in self._threads:
            thread.start()

    def _run(self, client: HonestClient) -> None:
        try:
            while not self._stopping.is_set():
                client.round()
        except BaseException as error:  # noqa: BLE001 - the test that started it raises it
            self._failures.append(error)

    @property
    def refusals(self) -> int:
        """How often one of them was refused."""
        return sum(client.refusals for client in self._clients)

    def go_on(self, rounds: int = 3) -> None:
        """Wait until each has made so many rounds more: they are served whatever others do."""
        goals = [(client, client.rounds + rounds) for client in self._clients]
        deadline = time.monotonic() + PATIENCE
        while not self._failures and any(client.rounds < goal for client, goal in goals):
            assert time.monotonic() < deadline, "honest clients are not served"
            time.sleep(0.005)
        self._raise()

    def stop(self) -> None:
        """End, and raise what went wrong."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        for client in self._clients:
            client.close()
        self._raise()

    def _raise(self) -> None:
        if self._failures:
            raise self._failures[0]


@contextmanager
def honest(endpoint: str, count: int = 2) -> Iterator[HonestClients]:
    """Clients that are at work."""
    clients = HonestClients(endpoint, count)
    clients.start()
    try:
        yield clients
        clients.go_on()
    finally:
        clients.stop()


def append(conversation: str, texts: list[str], request_id: str = "") -> pb.AppendMessagesRequest:
    """An append that creates the conversation where it is missing."""
    return pb.AppendMessagesRequest(
        conversation_id=conversation,
        messages=[message_pb2.Message(role="user", text=text) for text in texts],
        create_if_missing=conversation_pb2.Conversation(user_id="user"),
        request_id=request_id or str(uuid.uuid4()),
    )


def reason(error: grpc.RpcError) -> str:
    """The documented reason of an error; empty where it has none."""
    status, info = _status(error), ErrorInfo()
    found = status is not None and any(detail.Unpack(info) for detail in status.details)
    return info.reason if found else ""


def is_refused_by_grpc(error: grpc.RpcError) -> bool:
    """Whether grpcio refused a call before it came to the server: without details, and nothing was done."""
    said = cast("grpc.Call", error).details() or ""
    return any(one in said for one in REFUSED_BY_GRPC)


def retry_seconds(error: grpc.RpcError) -> float:
    """When to come back. The error must say so."""
    status, info = _status(error), RetryInfo()
    assert status is not None
    assert any(detail.Unpack(info) for detail in status.details)
    return info.retry_delay.seconds + info.retry_delay.nanos / 1e9


def _status(error: grpc.RpcError) -> Status | None:
    status: Status | None = rpc_status.from_call(cast("grpc.Call", error))
    return status
