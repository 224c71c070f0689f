"""What only the native transport does: calls in between, replies that wait for the disk without a thread."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from tests.patience import PATIENCE, eventually
from tests.rpc.fake_store import FakeStore, conversation
from tests.rpc.running_server import RunningServer, detail
from tests.storage.opening import open_store
from tests.transport.serving import Serving

from remora.v1 import conversation_pb2, conversation_service_pb2_grpc, message_pb2
from remora.v1 import conversation_service_pb2 as pb
from remora.v1.admin_service_pb2 import GetStatusRequest
from remora_server.domain.calls import Read, Write
from remora_server.storage.local_store import LocalStore

GET = pb.GetConversationRequest(conversation_id="c")


@pytest.fixture
def serving() -> Iterator[Serving]:
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        serving = Serving(Path(directory))
        yield serving
        serving.close()


@pytest.fixture
def served() -> Iterator[tuple[LocalStore, str]]:
    """A local store and the endpoint at which it is served."""
    store = open_store(None)
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        serving = Serving(Path(directory), opened=store.bundle())
        yield store, serving.endpoints[0]
        serving.close()


@pytest.fixture
def stub(serving: Serving) -> Iterator[conversation_service_pb2_grpc.ConversationServiceStub]:
    with grpc.insecure_channel(serving.endpoints[0]) as channel:
        yield conversation_service_pb2_grpc.ConversationServiceStub(channel)


def append(text: str = "t", request_id: str = "") -> pb.AppendMessagesRequest:
    return pb.AppendMessagesRequest(
        conversation_id="c",
        messages=[message_pb2.Message(role="user", text=text)],
        create_if_missing=conversation_pb2.Conversation(user_id="u"),
        request_id=request_id,
    )


def test_a_quick_call_is_answered_by_the_transports_own_thread() -> None:
    store = FakeStore(conversations=[conversation()])
    seen: list[str] = []
    ask = store._ask
    store._ask = lambda *arguments: (seen.append(threading.current_thread().name), ask(*arguments))[1]  # type: ignore[func-returns-value,method-assign]
    with RunningServer(store=store) as server:
        server.call("GetConversation", GET)
        server.call("CountConversations", pb.CountConversationsRequest())

    assert seen[0] == "transport"
    assert seen[1].startswith("worker")


def test_a_write_is_seen_by_the_next_read(
    stub: conversation_service_pb2_grpc.ConversationServiceStub,
) -> None:
    for number in range(50):
        written = stub.AppendMessages(append(str(number)), timeout=PATIENCE)
        read = stub.ListMessages(pb.ListMessagesRequest(conversation_id="c", page_size=1), timeout=PATIENCE)

        assert read.messages[0].text == str(number)
        assert read.revision >= written.revision


def test_far_more_writes_than_threads_wait_for_the_disk(serving: Serving) -> None:
    async def write_all() -> list[int]:
        async with grpc.aio.insecure_channel(serving.endpoints[1]) as channel:
            stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
            replies = await asyncio.gather(*(stub.AppendMessages(append(str(n)), timeout=PATIENCE) for n in range(90)))
        return [reply.messages[0].sequence for reply in replies]

    assert sorted(asyncio.run(write_all())) == list(range(1, 91))


def test_a_repeat_gets_the_first_reply(stub: conversation_service_pb2_grpc.ConversationServiceStub) -> None:
    first = stub.AppendMessages(append(request_id="r"), timeout=PATIENCE)

    assert stub.AppendMessages(append(request_id="r"), timeout=PATIENCE) == first


def test_a_cold_conversation_is_loaded_by_the_pool() -> None:
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        before = Serving(Path(directory))
        with grpc.insecure_channel(before.endpoints[0]) as channel:
            conversation_service_pb2_grpc.ConversationServiceStub(channel).AppendMessages(
                append("kept"), timeout=PATIENCE
            )
        before.close()
        after = Serving(Path(directory))
        with grpc.insecure_channel(after.endpoints[0]) as channel:
            stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
            found = stub.ListMessages(pb.ListMessagesRequest(conversation_id="c"), timeout=PATIENCE)
        after.close()

    assert [message.text for message in found.messages] == ["kept"]


def test_a_held_lock_delays_its_own_conversation_and_no_other(served: tuple[LocalStore, str]) -> None:
    store, endpoint = served
    with grpc.insecure_channel(endpoint) as channel:
        stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        stub.AppendMessages(append(), timeout=PATIENCE)
        locks, access = store.loader._locks, Read("default")
        lock = locks.of(access, "c")
        # Two conversations may share a lock: those that share this one wait, too.
        others = [name for name in map(str, range(20)) if locks.of(access, name)._locks != lock._locks]
        with lock:
            waiting = stub.AppendMessages.future(append("late"), timeout=PATIENCE)
            for name in others:
                other = append()
                other.conversation_id = name
                stub.AppendMessages(other, timeout=PATIENCE)
            assert not waiting.done()

        assert waiting.result().messages[0].sequence == 2


@pytest.mark.parametrize("authority", ["%2Ftmp%2Fs", "/tmp/s", "localhost"])
def test_a_socket_may_be_called_by_any_name(serving: Serving, authority: str) -> None:
    options = [("grpc.default_authority", authority)]
    with grpc.insecure_channel(serving.endpoints[0], options=options) as channel:
        ask = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        assert ask.AppendMessages(append(), timeout=PATIENCE).revision > 0


def test_the_socket_is_gone_after_the_end(serving: Serving) -> None:
    path = Path(serving.endpoints[0].removeprefix("unix:"))
    assert path.is_socket()

    serving.server.stop(1.0)

    assert not path.exists()


def test_a_socket_that_took_the_place_is_left_alone(serving: Serving) -> None:
    path = Path(serving.endpoints[0].removeprefix("unix:"))
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))

        serving.server.stop(1.0)

        assert path.is_socket()


class Withheld:
    """A publication that goes on when a test says so. Revisions between two that it names are nobody's."""

    def __init__(self) -> None:
        self.revision, self.ended = 0, False
        self._changed: Callable[[], None] = lambda: None

    def published(self) -> int:
        return self.revision

    def has_ended(self) -> bool:
        return self.ended

    def follow(self, changed: Callable[[], None]) -> bool:
        self._changed = changed
        return True

    def publish(self, revision: int) -> None:
        self.revision = revision
        self._changed()

    def end(self) -> None:
        self.ended = True
        self._changed()


@pytest.fixture
def withheld() -> Iterator[tuple[RunningServer, Withheld]]:
    """A server whose store answers with revision 9, and what publishes it."""
    publication = Withheld()
    with RunningServer(publication=publication) as server:
        yield server, publication


def test_a_reply_waits_for_any_publication(withheld: tuple[RunningServer, Withheld]) -> None:
    server, publication = withheld
    with ThreadPoolExecutor(1) as caller:
        waiting = caller.submit(server.call, "AppendMessages", append(), timeout=PATIENCE)
        eventually(lambda: "append_messages" in server.store.asked)
        publication.publish(8)
        server.call("GetStatus", GetStatusRequest())
        assert not waiting.done()
        publication.publish(1_000)
        reply = cast("pb.AppendMessagesResponse", waiting.result())

    assert reply.revision == 9
    assert not cast("Write", server.store.asked["append_messages"][0]).waits_for_disk


def test_nothing_is_acknowledged_once_publication_has_ended(withheld: tuple[RunningServer, Withheld]) -> None:
    server, publication = withheld
    with ThreadPoolExecutor(1) as caller:
        waiting = caller.submit(server.call, "AppendMessages", append(), timeout=PATIENCE)
        eventually(lambda: "append_messages" in server.store.asked)
        publication.end()
        with pytest.raises(grpc.RpcError) as raised:
            waiting.result()

    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert info.reason == "STORE_FAILED"
