"""A client goes on working in a forked child, and in its parent.

Each scenario runs in a fresh process: gRPC's state here, after other tests, is not what an application forks from.
"""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from tests.patience import PATIENCE

from remora import AsyncRemora, Remora

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")

SERVER = """
import sys
from remora.v1 import conversation_service_pb2 as wire
from tests.client.scripted_server import ScriptedServer

with ScriptedServer(sys.argv[1]) as server:
    server.answer("CountConversations", lambda request: wire.CountConversationsResponse(count=request.min_revision))
    server.answer("AppendMessages", wire.AppendMessagesResponse(revision=9))
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a process of its own, which counts to min_revision."""
    endpoint = f"unix:{tmp_path_factory.mktemp('forks')}/s"
    command = [sys.executable, "-c", SERVER, endpoint]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}):
        yield endpoint


def in_fresh_process(scenario: Callable[[str], None], endpoint: str) -> None:
    """Runs the scenario there and raises what it raises."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(scenario, endpoint).result()


def succeeds_in_child(work: Callable[[], object]) -> bool:
    """Whether the work comes to an end without an exception in a forked child."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) == 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(PATIENCE))
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def call_in_children(endpoint: str) -> None:
    with Remora(endpoint, timeout=PATIENCE) as memory:
        memory.count_conversations()

        assert all(succeeds_in_child(memory.count_conversations) for _ in range(5))
        assert memory.count_conversations() == 0


@pytest.mark.slow
def test_a_child_opens_a_channel_of_its_own(endpoint: str) -> None:
    in_fresh_process(call_in_children, endpoint)


def call_in_a_childs_child(endpoint: str) -> None:
    with Remora(endpoint, timeout=PATIENCE) as memory:
        memory.count_conversations()

        def fork_again() -> None:
            memory.count_conversations()
            assert succeeds_in_child(memory.count_conversations)

        assert succeeds_in_child(fork_again)


def test_a_child_of_a_child_works_too(endpoint: str) -> None:
    in_fresh_process(call_in_a_childs_child, endpoint)


def read_in_child(endpoint: str) -> None:
    with Remora(endpoint, timeout=PATIENCE) as memory:
        memory.conversation("c").append({"role": "user", "content": "hello"})

        def read() -> None:
            assert memory.count_conversations() == 9

        assert succeeds_in_child(read)


@pytest.mark.slow
def test_a_child_reads_what_its_parent_wrote(endpoint: str) -> None:
    in_fresh_process(read_in_child, endpoint)


def close_in_child(endpoint: str) -> None:
    with Remora(endpoint, timeout=PATIENCE) as memory:
        memory.count_conversations()

        assert succeeds_in_child(memory.close)
        assert memory.count_conversations() == 0


def test_a_child_closes_its_own_channel_only(endpoint: str) -> None:
    in_fresh_process(close_in_child, endpoint)


def close_a_started_server_in_child(_: str) -> None:
    with Remora.start(":memory:", timeout=PATIENCE) as memory:
        memory.conversation("c").append({"role": "user", "content": "hello"})

        assert succeeds_in_child(memory.close)
        assert memory.count_conversations() == 1


def test_a_child_leaves_the_server_that_its_parent_started(endpoint: str) -> None:
    in_fresh_process(close_a_started_server_in_child, endpoint)


def call_in_children_between_event_loops(endpoint: str) -> None:
    memory = AsyncRemora(endpoint, timeout=PATIENCE)

    async def count() -> int:
        return await memory.count_conversations()

    asyncio.run(count())

    assert all(succeeds_in_child(lambda: asyncio.run(count())) for _ in range(5))
    assert asyncio.run(count()) == 0


def test_an_async_client_works_in_a_child_between_event_loops(endpoint: str) -> None:
    in_fresh_process(call_in_children_between_event_loops, endpoint)


def call_in_child_of_a_running_event_loop(endpoint: str) -> None:
    memory = AsyncRemora(endpoint, timeout=PATIENCE)

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


@pytest.mark.slow
def test_an_async_client_refuses_to_work_in_a_child_of_a_running_event_loop(endpoint: str) -> None:
    in_fresh_process(call_in_child_of_a_running_event_loop, endpoint)
