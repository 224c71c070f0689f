"""Threads whose work has failed for good, over the wire: what does not need them is answered, and GetStatus names them.

A thread that fails is begun anew after a pause. Here the pause has no end, which shows what holds until it is over.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from tests.engine.embedding_server import EmbeddingServer
from tests.faults.served_store import ServedStore, outcome, refused, restart, served
from tests.faults.sidecar import Sidecar
from tests.faults.watched import WATCHED, Watched
from tests.patience import PATIENCE, eventually
from tests.tokens import token_file

from remora import Remora, Summarize, Trim
from remora.errors import ReceiptNotFoundError, UnauthenticatedError
from remora.v1 import memory_service_pb2
from remora_server.failpoints import VARIABLE

pytestmark = pytest.mark.slow

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
LOST = "begin_nothing_anew"
TEXT = "word " * 99
"""About a hundred tokens."""


@contextmanager
def losing(directory: Path, point: str, *arguments: str) -> Iterator[ServedStore]:
    """A server that loses the first thread that comes to a point, for good."""
    with served(directory, *arguments, change=LOST, **{VARIABLE: f"{point}=raise"}) as store:
        yield store


def require_told(store: ServedStore, thread: str, readiness: int = SERVING) -> None:
    """GetStatus names the one thread that is lost, the server is ready or not, and calls are answered all the same."""
    [failure] = eventually(lambda: store.status().server.failures)
    assert f"the thread {thread}" in failure
    assert eventually(lambda: store.health("readiness") == readiness)
    for _ in range(3):
        assert outcome(store.append) == "OK"
    assert store.listed() == store.acknowledged


@pytest.mark.parametrize(
    ("point", "thread", "readiness"),
    [
        ("applier_turn", "applier", NOT_SERVING),
        ("health_turn", "health", NOT_SERVING),
        ("worker_run", "worker-", NOT_SERVING),
        ("expiry_turn", "expiry", SERVING),
        ("panics_turn", "panics", SERVING),
    ],
)
def test_a_thread_that_is_not_begun_anew_is_told(tmp_path: Path, point: str, thread: str, readiness: int) -> None:
    passes = "@2" if point.endswith("_turn") else ""
    with served(tmp_path, change=LOST, **{VARIABLE: f"{point}=raise{passes}"}) as store:
        require_told(store, thread, readiness)
        assert store.sidecar.stop() == 0


def test_without_its_transport_a_server_says_where_probes_ask_that_it_is_not_ready(tmp_path: Path) -> None:
    server = Watched(tmp_path, "--model", "none", *WATCHED)
    server.changes, server.failpoints = (LOST,), {VARIABLE: "transport_run=raise@1"}  # the first one answers probes
    server.launch()
    try:
        status, page = eventually(lambda: server.page("/readyz"), until=lambda read: "the thread" in read[1])

        assert status == 503
        assert "the thread transport failed" in page
        assert server.metric("remora_failures") == 1
        assert server.stop() == 0
    finally:
        server.kill()


def test_without_the_transport_for_probes_all_else_is_answered(tmp_path: Path) -> None:
    with losing(tmp_path, "transport_run", *WATCHED) as store:
        require_told(store, "probes-transport")
        assert store.sidecar.stop() == 0


def test_without_the_thread_that_moves_windows_a_window_grows_until_a_start(tmp_path: Path) -> None:
    with losing(tmp_path, "overflow_turn") as store:
        chat = store.memory.conversation("c", user_id="sarah", short_term=Trim(1_000, 300))
        chat.append([{"role": "user", "content": TEXT}] * 20)

        require_told(store, "overflow")
        assert len(chat.messages(None)) == 20

        restart(store)
        chat.append({"role": "user", "content": TEXT})
        eventually(chat.messages, until=lambda found: len(found) <= 3)
        assert store.status().server.failures == []


def test_without_one_of_the_threads_that_write_summaries_the_others_write_them(tmp_path: Path) -> None:
    with losing(tmp_path, "summary_turn") as store:
        chat = store.memory.conversation("c", user_id="sarah", short_term=Summarize(1_000, 200, 2))
        chat.append([{"role": "user", "content": TEXT}] * 20)

        require_told(store, "summaries-")
        eventually(chat.messages, until=lambda found: len(found) == 2)
        summary = chat.window().summary
        assert summary is not None
        assert "word word" in summary.text


def test_without_the_thread_that_writes_receipts_contexts_are_answered_and_receipts_are_waited_for(
    tmp_path: Path,
) -> None:
    with losing(tmp_path, "receipts_turn") as store:
        chat = store.memory.conversation("c", user_id="sarah")
        chat.append({"role": "user", "content": "hello"})
        lost = chat.context(100).receipt_id

        require_told(store, "receipts")
        assert [message["content"] for message in chat.context(100).messages] == ["hello"]
        request = memory_service_pb2.GetReceiptRequest(receipt_id=lost)
        waiting = refused(lambda: store.memory.stubs.memory.GetReceipt(request, timeout=0.5))
        assert waiting is not None
        assert waiting.code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert store.sidecar.stop() == 0

        restart(store)
        context = chat.context(100)
        assert store.memory.receipts.replay(context.receipt_id).context == context
        with pytest.raises(ReceiptNotFoundError):
            store.memory.receipts.get(lost)


def test_without_the_thread_that_loads_requests_a_repeat_is_recognised(tmp_path: Path) -> None:
    with served(tmp_path, change=LOST) as store:
        chat = store.memory.conversation("repeated", user_id="sarah")
        message = {"role": "user", "content": "once"}
        first = chat.append(message, request_id="r").messages[0].id
        eventually(store.applied)
        restart(store, **{VARIABLE: "requests_loading=raise"})

        require_told(store, "request-ids")
        assert chat.append(message, request_id="r").messages[0].id == first
        assert len(chat.messages()) == 1


def test_without_the_thread_that_rereads_credentials_those_read_last_are_in_use_until_a_start(tmp_path: Path) -> None:
    file = token_file(tmp_path / "tokens", "old a")
    server = Sidecar(tmp_path, "--model", "none", "--token-file", str(file), token="old")
    server.changes, server.failpoints = (LOST,), {VARIABLE: "rereading_turn=raise"}
    server.start()
    try:
        token_file(tmp_path / "next", "new a").replace(file)
        with Remora(server.endpoint, token="old", timeout=PATIENCE) as memory:
            [failure] = eventually(lambda: memory.status().server.failures)
        assert "the thread rereading" in failure
        assert accepted(server) == ["old"]
        assert server.stop() == 0

        server.failpoints, server.token = {}, "new"
        server.start()
        assert accepted(server) == ["new"]
    finally:
        server.kill()


def accepted(server: Sidecar) -> list[str]:
    """The tokens whose calls are answered."""
    return [token for token in ("old", "new") if accepts(server, token)]


def accepts(server: Sidecar, token: str) -> bool:
    with Remora(server.endpoint, token=token, timeout=PATIENCE) as memory:
        try:
            memory.conversation("c", user_id="sarah").append({"role": "user", "content": "hello"})
        except UnauthenticatedError:
            return False
    return True


def test_without_the_thread_that_waits_for_the_last_user_a_server_goes_on_until_a_signal(tmp_path: Path) -> None:
    lease = tmp_path / "lease"
    with lease.open("w") as user:
        fcntl.flock(user, fcntl.LOCK_SH)
        with losing(tmp_path, "lease_turn", "--lease", str(lease)) as store:
            require_told(store, "lease")

            user.close()

            require_told(store, "lease")
            assert store.sidecar.stop() == 0
            assert lease.exists()


def test_without_a_thread_that_embeds_messages_searches_find_them_by_words(tmp_path: Path) -> None:
    with EmbeddingServer() as server:
        endpoint = ("--model", "auto", "--embedding-url", server.url, "--embedding-model", "letters")
        with losing(tmp_path, "indexer_turn", *endpoint) as store:
            require_told(store, "indexer-")
            assert sorted(found(store)) == sorted(store.acknowledged)

            restart(store)
            eventually(lambda: store.status().model.pending == 0)
            assert store.status().server.failures == []


def found(store: ServedStore) -> list[str]:
    """The messages that hold a word, by words alone where they have no vectors."""
    request = memory_service_pb2.SearchMessagesRequest(
        user_id="sarah", text="message", options=memory_service_pb2.SearchOptions(k=100)
    )
    hits = store.memory.stubs.memory.SearchMessages(request, timeout=PATIENCE).hits
    return [hit.message.text for hit in hits]
