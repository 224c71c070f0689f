"""A pod's life as the kubelet plays it: start, startup probe, traffic, SIGTERM, grace period, SIGKILL, start."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from tests.faults.changed_server import WAITING
from tests.faults.watched import WATCHED, Watched
from tests.patience import PATIENCE, eventually

from remora.v1.conversation_pb2 import Conversation
from remora.v1.conversation_service_pb2 import (
    AppendMessagesRequest,
    CountConversationsRequest,
    ListMessagesRequest,
)
from remora.v1.conversation_service_pb2_grpc import ConversationServiceStub
from remora.v1.message_pb2 import Message

WRITERS = WAITERS = 100
"""Each has one call in flight at all times. More find no room on one connection."""
GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL, as of a pod whose terminationGracePeriodSeconds is 2."""
CALM = 3
"""How much each writer has written when the end comes, at least."""


class Kubelet:
    """Starts and ends a server as Kubernetes does."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.server = Watched(directory, "--model", "none", *WATCHED, *arguments)
        self.server.changes = ("counts_wait",)

    def start(self) -> None:
        """Start, ask the startup probe until it says yes, and then the readiness probe: only now calls come."""
        self.server.launch()
        eventually(lambda: self.server.page("/startupz")[0] == 200)
        eventually(lambda: self.server.page("/readyz")[0] == 200)
        assert self.server.page("/livez")[0] == 200

    def stop(self) -> int:
        """SIGTERM, and SIGKILL if it has not ended when the grace period has. Returns the exit code."""
        self.terminate()
        try:
            return self.server.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.kill(self.server.pid, signal.SIGKILL)
            return self.server.wait()

    def terminate(self) -> None:
        """SIGTERM."""
        os.kill(self.server.pid, signal.SIGTERM)


class Clients:
    """Threads whose calls are in flight, and what became of them."""

    def __init__(self, endpoint: str, held: Path) -> None:
        """Waiters' calls are answered when the file `held` is gone."""
        self.written: list[list[str]] = [[] for _ in range(WRITERS)]
        """What was acknowledged, by writers."""
        self.ended: list[grpc.StatusCode] = []
        """How calls ended that were not answered."""
        self.counted: list[int] = []
        """What waiters were answered."""
        self._held = held
        self._channels = [_channel(endpoint) for _ in range(2)]
        self._threads = [threading.Thread(target=self._write, args=[number]) for number in range(WRITERS)]
        self._threads += [threading.Thread(target=self._count) for _ in range(WAITERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a call does not end"
        for channel in self._channels:
            channel.close()

    def in_flight(self) -> int:
        """Calls that have been made and have not ended: one of each thread."""
        return sum(thread.is_alive() for thread in self._threads)

    def _write(self, number: int) -> None:
        stub = ConversationServiceStub(self._channels[0])
        while True:
            text = str(len(self.written[number]))
            try:
                stub.AppendMessages(_append(number, text), timeout=PATIENCE)
            except grpc.RpcError as error:
                self.ended.append(error.code())
                return
            self.written[number].append(text)

    def _count(self) -> None:
        stub = ConversationServiceStub(self._channels[1])
        try:
            reply = stub.CountConversations(
                CountConversationsRequest(user_id=f"{WAITING}{self._held}"), timeout=PATIENCE
            )
        except grpc.RpcError as error:
            self.ended.append(error.code())
        else:
            self.counted.append(reply.count)


def _channel(endpoint: str) -> grpc.Channel:
    """A connection of its own."""
    return grpc.insecure_channel(endpoint, options=[("grpc.use_local_subchannel_pool", 1)])


def _append(number: int, text: str) -> AppendMessagesRequest:
    user = f"user-{number}"
    return AppendMessagesRequest(
        conversation_id=f"chat-{number}",
        user_id=user,
        messages=[Message(role="user", text=text)],
        create_if_missing=Conversation(user_id=user),
        request_id=f"{number}-{text}",
    )


@contextmanager
def traffic(kubelet: Kubelet, held: Path) -> Iterator[Clients]:
    """Clients, of whom 200 calls are in flight."""
    held.touch()
    clients = Clients(kubelet.server.endpoint, held)
    clients.start()
    eventually(lambda: kubelet.server.metric("remora_calls_in_flight", grpc_method="CountConversations") == WAITERS)
    eventually(lambda: min(map(len, clients.written)) >= CALM)
    assert clients.in_flight() == WRITERS + WAITERS
    yield clients
    clients.join()


def stored(endpoint: str) -> list[list[str]]:
    """What each writer's conversation holds, once what it wrote last has been repeated."""
    texts = []
    with _channel(endpoint) as channel:
        stub = ConversationServiceStub(channel)
        for number in range(WRITERS):
            before = _texts(stub, number)
            stub.AppendMessages(_append(number, before[-1]), timeout=PATIENCE)
            assert _texts(stub, number) == before, "a repeat wrote again"
            texts.append(before)
    return texts


def _texts(stub: ConversationServiceStub, number: int) -> list[str]:
    """All messages of a writer's conversation, in the order of writing."""
    request, texts = ListMessagesRequest(conversation_id=f"chat-{number}", page_size=100), []
    while True:
        page = stub.ListMessages(request, timeout=PATIENCE)
        texts += [message.text for message in page.messages]
        if not page.next_page_token:
            return sorted(texts, key=int)
        request.page_token = page.next_page_token


def require_nothing_lost(kubelet: Kubelet, clients: Clients) -> None:
    """What was acknowledged is there, and at most the one message besides whose call was not answered."""
    for kept, acknowledged in zip(stored(kubelet.server.endpoint), clients.written, strict=True):
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) <= len(acknowledged) + 1


@pytest.fixture
def held(tmp_path: Path) -> Path:
    return tmp_path / "held-up"


@pytest.mark.slow
def test_a_pod_that_is_killed_after_its_grace_period_loses_nothing_that_was_acknowledged(
    tmp_path: Path, held: Path
) -> None:
    kubelet = Kubelet(tmp_path, "--shutdown-grace", "60")
    kubelet.start()
    with traffic(kubelet, held) as clients:
        code = kubelet.stop()

    assert code == -signal.SIGKILL
    assert len(clients.ended) == WRITERS + WAITERS
    assert set(clients.ended) == {grpc.StatusCode.UNAVAILABLE}

    kubelet.start()
    require_nothing_lost(kubelet, clients)
    assert kubelet.server.stop() == 0


@pytest.mark.slow
def test_a_pod_that_ends_within_its_grace_period_answers_what_it_took_on(tmp_path: Path, held: Path) -> None:
    kubelet = Kubelet(tmp_path, "--shutdown-grace", "60")
    kubelet.start()
    with traffic(kubelet, held) as clients:
        kubelet.terminate()
        eventually(lambda: len(clients.ended) == WRITERS)
        held.unlink()
        code = kubelet.server.wait()

    assert code == 0
    assert clients.counted == [0] * WAITERS
    assert set(clients.ended) == {grpc.StatusCode.UNAVAILABLE}

    kubelet.start()
    require_nothing_lost(kubelet, clients)
    assert kubelet.server.stop() == 0


@pytest.mark.slow
def test_a_pod_whose_calls_do_not_end_leaves_them_when_its_own_grace_is_over(tmp_path: Path, held: Path) -> None:
    kubelet = Kubelet(tmp_path, "--shutdown-grace", "0.2")
    kubelet.start()
    with traffic(kubelet, held) as clients:
        kubelet.terminate()
        eventually(lambda: len(clients.ended) == WRITERS + WAITERS)
        held.unlink()
        code = kubelet.server.wait()

    assert code == 0
    assert set(clients.ended) == {grpc.StatusCode.UNAVAILABLE}

    kubelet.start()
    require_nothing_lost(kubelet, clients)
    assert kubelet.server.stop() == 0
