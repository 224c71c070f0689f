"""A client goes on working in a forked child, and in its parent."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable

import pytest
from tests.client.scripted_server import ScriptedServer

from remora import AsyncRemora, Remora
from remora.v1 import conversation_service_pb2 as wire

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")

CHILD_SECONDS = 10


def succeeds_in_child(work: Callable[[], object]) -> bool:
    """Whether the work comes to an end without an exception in a forked child."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) == 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(CHILD_SECONDS)
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


@pytest.fixture
def server(server: ScriptedServer) -> ScriptedServer:
    server.answer("CountConversations", wire.CountConversationsResponse(count=4))
    server.answer("AppendMessages", wire.AppendMessagesResponse(revision=9))
    return server


def test_a_child_opens_a_channel_of_its_own(server: ScriptedServer) -> None:
    with Remora(server.endpoint, timeout=20) as memory:
        memory.count_conversations()

        assert all(succeeds_in_child(memory.count_conversations) for _ in range(5))
        assert memory.count_conversations() == 4


def test_a_child_of_a_child_works_too(server: ScriptedServer) -> None:
    with Remora(server.endpoint, timeout=20) as memory:
        memory.count_conversations()

        def fork_again() -> None:
            memory.count_conversations()
            assert succeeds_in_child(memory.count_conversations)

        assert succeeds_in_child(fork_again)


def test_a_child_reads_what_its_parent_wrote(server: ScriptedServer) -> None:
    with Remora(server.endpoint, timeout=20) as memory:
        memory.conversation("c").append({"role": "user", "content": "hello"})

        assert succeeds_in_child(memory.count_conversations)

    assert server.request(wire.CountConversationsRequest).min_revision == 9


def test_a_child_closes_its_own_channel_only(server: ScriptedServer) -> None:
    with Remora(server.endpoint, timeout=20) as memory:
        memory.count_conversations()

        assert succeeds_in_child(memory.close)
        assert memory.count_conversations() == 4


def test_a_child_works_while_threads_of_its_parent_call(server: ScriptedServer) -> None:
    stop = threading.Event()
    with Remora(server.endpoint, timeout=20) as memory:

        def call() -> None:
            while not stop.is_set():
                memory.conversation("c").append({"role": "user", "content": "hello"})

        threads = [threading.Thread(target=call) for _ in range(2)]
        for thread in threads:
            thread.start()
        children = [succeeds_in_child(memory.count_conversations) for _ in range(5)]
        stop.set()
        for thread in threads:
            thread.join()

    assert all(children)


def test_an_async_client_works_in_a_child_between_event_loops(server: ScriptedServer) -> None:
    memory = AsyncRemora(server.endpoint, timeout=20)

    async def count() -> int:
        return await memory.count_conversations()

    asyncio.run(count())

    assert all(succeeds_in_child(lambda: asyncio.run(count())) for _ in range(5))
    assert asyncio.run(count()) == 4


def test_an_async_client_refuses_to_work_in_a_child_of_a_running_event_loop(server: ScriptedServer) -> None:
    memory = AsyncRemora(server.endpoint, timeout=20)

    async def count() -> int:
        return await memory.count_conversations()

    def refuse() -> None:
        with pytest.raises(RuntimeError, match="forked"):
            asyncio.run(count())

    async def fork() -> bool:
        await count()
        refused = succeeds_in_child(refuse)
        await count()
        await memory.close()
        return refused

    assert asyncio.run(fork())
