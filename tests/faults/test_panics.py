"""Panics of the engine, and exceptions and exits of threads, planted in a server: what comes after them is answered."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from typing import TypeAlias

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from tests.certificates import Authority
from tests.engine.embedding_server import EmbeddingServer
from tests.faults.searched_kinds import Facts, MemoryItems, SearchedKind, StoreItems, Vectors
from tests.faults.served_store import THREADS, WAITING, ServedStore, log_of, outcome, restart, served
from tests.faults.sidecar import Sidecar
from tests.network import frames
from tests.network.frames import Peer
from tests.network.honest import reason
from tests.patience import PATIENCE, eventually
from tests.ports import free_port
from tests.tokens import token_file

from remora import Remora
from remora.errors import UnauthenticatedError
from remora.v1 import (
    conversation_service_pb2,
    conversation_service_pb2_grpc,
    history_service_pb2,
    memory_service_pb2,
    working_memory_pb2,
)
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message
from remora_server import failpoints
from remora_server.engine.processors import processors

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
ENGINE, JOURNAL, PYTHON = failpoints.ENGINE_VARIABLE, failpoints.JOURNAL_VARIABLE, failpoints.VARIABLE

CALLS = 5 * (THREADS + WAITING)
"""If each call that comes to nothing kept its place, there would be none left after so many."""
ACTIONS = ["raise", pytest.param("exit", marks=pytest.mark.slow)]
FOUND = 1_000
"""How many messages a search finds at most."""
DIVIDED = 10_000
"""So many messages are searched by several threads."""
PLANTED = "a panic was planted here"
"""What the engine's planted panics say, which may be contents where others panic."""


def search(store: ServedStore) -> list[str]:
    """The messages that hold a word."""
    request = memory_service_pb2.SearchMessagesRequest(
        user_id="sarah", text="message", options=memory_service_pb2.SearchOptions(k=FOUND)
    )
    found = store.memory.stubs.memory.SearchMessages(request, timeout=PATIENCE)
    return [hit.message.text for hit in found.hits]


def list_steps(store: ServedStore) -> None:
    request = history_service_pb2.ListStepsRequest(conversation_id="held")
    store.memory.stubs.history.ListSteps(request, timeout=PATIENCE)


def get_memory(store: ServedStore) -> None:
    """Get a user's working memory."""
    scope = working_memory_pb2.WorkingMemoryScope(user_id="sarah")
    request = memory_service_pb2.GetWorkingMemoryRequest(scope=scope)
    store.memory.stubs.memory.GetWorkingMemory(request, timeout=PATIENCE)


def use(store: ServedStore, rounds: int) -> list[str]:
    """How calls end: quick ones, those of the pool, on a connection that is there and on new ones."""
    outcomes: list[str] = []
    for _ in range(rounds):
        calls = (store.append, store.listed, store.conversations, lambda: store.health("liveness"))
        outcomes += [outcome(call) for call in calls]
    return outcomes


def require_works(store: ServedStore) -> None:
    """All kinds of calls are answered, more than there are places; what was acknowledged is there."""
    assert set(use(store, CALLS)) == {"OK"}
    assert set(store.acknowledged) <= set(store.listed())
    assert eventually(lambda: store.health("readiness") == SERVING)
    assert not store.status().server.failures


def require_told(store: ServedStore) -> None:
    """The log tells of the panic, of its location and thread, in its own format; not of what it said."""
    lines = eventually(lambda: [line for line in log_of(store).splitlines() if "the engine panicked" in line])
    assert len(lines) == 1
    assert "location=rust/supervision/src/failpoints.rs" in lines[0]
    assert "panicked=" in lines[0]
    assert PLANTED not in log_of(store)
    raw = [
        line for line in log_of(store).splitlines() if not line.startswith((" ", "20", "remora", "builtins", "pyo3"))
    ]
    assert raw == []


ANSWERED = [
    "answering_at_once",
    "answering",
    "worker",
    "call_task",
    "health_answering",
    "core_planning",
    "windows_listing",
]
"""Where a panic is below a call, which is answered as INTERNAL."""
CUT = ["connection_task", "transport_thread", "accepting_task"]
"""Where it ends connections. A caller may send its next call before it knows that."""
BESIDE = ["quick_task", "held_task", "tick_task", "publication_followed", "identifying"]
"""Where it is beside all calls, or beside all but the first."""


@pytest.mark.slow
@pytest.mark.parametrize("point", [*ANSWERED, *CUT, *BESIDE])
def test_a_panic_of_the_engine_ends_one_call_at_most(tmp_path: Path, point: str) -> None:
    passes = 0 if point == "identifying" else 2  # a caller is told once
    with served(tmp_path, **{ENGINE: f"{point}=panic@{passes}"}) as store:
        outcomes: list[str] = []
        while "the engine panicked" not in log_of(store):
            outcomes += use(store, 1)

        failed = [end for end in outcomes if end != "OK"]
        if point in ANSWERED and outcomes:  # else the start met it, which asks until it is answered
            assert failed == ["INTERNAL"]
        elif point in CUT:
            assert set(failed) <= {"CONNECTION_FAILED", "CANCELLED"}
        else:
            assert failed in ([], ["INTERNAL"])
        eventually(lambda: outcome(store.conversations) == "OK")
        require_told(store)
        require_works(store)


@pytest.mark.slow
@pytest.mark.parametrize(("point", "told"), [("page_task", "no reply"), ("page_making", "500")])
def test_a_panic_below_a_page_ends_that_page(tmp_path: Path, point: str, told: str) -> None:
    with served(tmp_path, "--health-listen", "127.0.0.1:0", **{ENGINE: f"{point}=panic@1"}) as store:
        address = eventually(lambda: re.search(r"answering probes.*endpoint=(\S+)", log_of(store)))
        assert address is not None

        assert [page(address[1], "/livez") for _ in range(3)] == ["200", told, "200"]
        require_told(store)
        require_works(store)


def page(address: str, path: str) -> str:
    """The status of a page."""
    connection = HTTPConnection(address, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        return str(connection.getresponse().status)
    except (RemoteDisconnected, ConnectionResetError):
        return "no reply"
    finally:
        connection.close()


@pytest.mark.slow
def test_a_panic_before_a_handshake_ends_that_connection(tmp_path: Path) -> None:
    authority, port = Authority(tmp_path), free_port()
    issued = authority.server()
    arguments = (f"--listen=localhost:{port}", f"--tls-cert={issued.cert}", f"--tls-key={issued.key}")
    with served(tmp_path, *arguments, **{ENGINE: "handshake_task=panic@1"}) as store:
        greeted = [shakes_hands(authority, port) for _ in range(3)]

        assert greeted == [True, False, True]
        require_told(store)
        require_works(store)


def shakes_hands(authority: Authority, port: int) -> bool:
    """Whether the server answers the greeting of TLS."""
    context = ssl.create_default_context(cafile=str(authority.file))
    with socket.create_connection(("localhost", port), PATIENCE) as plain:
        try:
            context.wrap_socket(plain, server_hostname="localhost").close()
        except (ssl.SSLError, OSError):
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["native", "grpcio"])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("point", ["caller_identified", "call_answered"])
def test_whatever_is_raised_below_a_call_is_answered_as_internal(
    tmp_path: Path, point: str, action: str, transport: str
) -> None:
    with served(tmp_path, "--transport", transport, **{PYTHON: f"{point}={action}@3"}) as store:
        outcomes = [counted_as(f"tenant-{number}", store.sidecar.endpoint) for number in range(6)]

        assert outcomes.count("INTERNAL") == 1
        assert set(outcomes) == {"OK", "INTERNAL"}
        assert "call failed" in log_of(store)
        require_works(store)


def counted_as(tenant: str, endpoint: str) -> str:
    """How a call of a tenant that was not seen before ends."""
    request = conversation_service_pb2.CountConversationsRequest()
    with grpc.insecure_channel(endpoint) as channel:
        stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        try:
            stub.CountConversations(request, metadata=(("remora-tenant", tenant),), timeout=PATIENCE)
        except grpc.RpcError as error:
            return reason(error)
    return "OK"


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    "point", ["applier_turn", "expiry_turn", "health_turn", "panics_turn", "transport_run", "worker_run"]
)
def test_a_thread_that_fails_is_begun_anew(tmp_path: Path, point: str, action: str) -> None:
    passes = "@2" if point.endswith("_turn") else ""
    with served(tmp_path, **{PYTHON: f"{point}={action}{passes}"}) as store:
        eventually(lambda: "a thread failed; it is restarted" in log_of(store))

        require_works(store)
        eventually(store.applied)
        assert store.sidecar.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    "point", ["transaction_written", "transaction_committed", "checkpoint_begun", "checkpoint_done"]
)
def test_what_fails_while_the_database_is_written_is_done_again(tmp_path: Path, point: str, action: str) -> None:
    with served(tmp_path, change="checkpoint_often") as store:
        restart(store, **{PYTHON: f"{point}={action}@2"})  # its first start migrates, in transactions
        while "the database failed; it is tried again" not in log_of(store):
            store.append(50_000)
            eventually(lambda: store.applied() or "the database failed" in log_of(store))
        eventually(lambda: "the database can be written again" in log_of(store))

        require_works(store)
        eventually(store.applied)
        restart(store)
        assert store.listed() == store.acknowledged
        require_works(store)


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_a_server_stops_with_its_last_user_though_the_thread_that_waits_for_that_fails(
    tmp_path: Path, action: str
) -> None:
    lease = tmp_path / "lease"
    with lease.open("w") as user:
        fcntl.flock(user, fcntl.LOCK_SH)
        with served(tmp_path, "--lease", str(lease), **{PYTHON: f"lease_turn={action}"}) as store:
            eventually(lambda: "a thread failed; it is restarted" in log_of(store))
            require_works(store)

            user.close()

            assert store.sidecar.wait() == 0
            assert not lease.exists()


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_a_request_is_known_after_a_start_though_the_thread_that_loads_requests_fails(
    tmp_path: Path, action: str
) -> None:
    with served(tmp_path) as store:
        first = repeated(store)
        eventually(store.applied)
        restart(store, **{PYTHON: f"requests_loading={action}"})
        eventually(lambda: "a thread failed; it is restarted" in log_of(store))

        assert repeated(store) == first
        require_works(store)


def repeated(store: ServedStore) -> str:
    """The id of the message that a request, always the same, has written."""
    conversation = store.memory.conversation("repeated", user_id="sarah")
    return conversation.append({"role": "user", "content": "once"}, request_id="r").messages[0].id


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_a_token_that_is_replaced_is_good_no_more_though_the_thread_that_sees_it_fails(
    tmp_path: Path, action: str
) -> None:
    file = token_file(tmp_path / "tokens", "old a")
    sidecar = Sidecar(tmp_path, "--model", "none", "--token-file", str(file), token="old")
    sidecar.failpoints = {PYTHON: f"rereading_turn={action}"}
    sidecar.start()
    try:
        assert accepts(sidecar, "old")
        token_file(tmp_path / "next", "new a").replace(file)

        assert eventually(lambda: accepts(sidecar, "new"))
        assert not accepts(sidecar, "old")
        assert "a thread failed; it is restarted" in sidecar.log.read_text()
        assert sidecar.stop() == 0
    finally:
        sidecar.kill()


def accepts(sidecar: Sidecar, token: str) -> bool:
    with Remora(sidecar.endpoint, token=token, timeout=PATIENCE) as memory:
        try:
            memory.status()
        except UnauthenticatedError:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("point", ["core_applying", "core_applied"])
def test_memory_that_may_hold_half_of_a_change_is_shown_no_more(tmp_path: Path, point: str) -> None:
    with served(tmp_path, **{ENGINE: f"{point}=panic@3"}) as store:
        store.append()
        eventually(lambda: "the engine panicked" in log_of(store) or not outcome(store.append))

        assert eventually(lambda: store.health("readiness") == NOT_SERVING)
        assert store.health("liveness") == SERVING
        assert outcome(store.append) == "STORE_FAILED"
        assert outcome(store.listed) == "STORE_FAILED"
        assert outcome(lambda: search(store)) == "STORE_FAILED"
        status = store.status()
        assert not status.store.writable
        assert "panic" in status.store.failure
        assert status.store.failure in status.server.failures
        require_told(store)

        store.sidecar.failpoints = {}
        store.sidecar.kill()
        store.sidecar.start()
        listed = store.listed()
        assert [text for text in listed if text in store.acknowledged] == store.acknowledged
        assert set(listed) <= {*store.acknowledged, *store.refused}
        require_works(store)


@pytest.mark.slow
def test_a_panic_below_a_list_of_records_ends_that_call(tmp_path: Path) -> None:
    with served(tmp_path, **{ENGINE: "records_listing=panic@1"}) as store:
        store.append()
        outcomes = [outcome(lambda: list_steps(store)) for _ in range(4)]

        assert sorted(outcomes) == ["INTERNAL", "OK", "OK", "OK"]
        require_told(store)
        require_works(store)


@pytest.mark.slow
def test_half_of_what_was_loaded_of_records_is_never_shown(tmp_path: Path) -> None:
    with served(tmp_path, **{ENGINE: "records_loading=panic"}) as store:
        store.append()
        assert outcome(lambda: get_memory(store)) == "INTERNAL"

        assert outcome(lambda: get_memory(store)) == "STORE_FAILED"
        assert outcome(store.append) == "STORE_FAILED"
        assert eventually(lambda: store.health("readiness") == NOT_SERVING)
        require_told(store)

        store.sidecar.failpoints = {}
        store.sidecar.kill()
        store.sidecar.start()
        assert outcome(lambda: get_memory(store)) == "OK"
        require_works(store)


class Messages:
    """Conversations of one message each, in a server that keeps no more of them in memory than the last uses."""

    arguments = ("--window-bytes", "0")

    def __init__(self, store: ServedStore) -> None:
        """Nothing is written yet."""
        self._stub = store.memory.stubs.conversations

    def write(self, number: int) -> None:
        request = conversation_service_pb2.AppendMessagesRequest(
            conversation_id=f"c{number}",
            messages=[Message(role="user", text=str(number))],
            create_if_missing=Conversation(user_id="sarah"),
        )
        self._stub.AppendMessages(request, timeout=PATIENCE)

    def require(self, number: int) -> None:
        request = conversation_service_pb2.ListMessagesRequest(conversation_id=f"c{number}")
        found = self._stub.ListMessages(request, timeout=PATIENCE).messages
        assert [message.text for message in found] == [str(number)]


class WorkingMemories:
    """Working memories of users, in a server that keeps no more of them in memory than the last uses."""

    arguments = ("--record-bytes", "0")

    def __init__(self, store: ServedStore) -> None:
        """Nothing is written yet."""
        self._stub = store.memory.stubs.memory

    def write(self, number: int) -> None:
        request = memory_service_pb2.SetWorkingMemoryRequest(scope=scope_of(number), content=str(number).encode())
        self._stub.SetWorkingMemory(request, timeout=PATIENCE)

    def require(self, number: int) -> None:
        request = memory_service_pb2.GetWorkingMemoryRequest(scope=scope_of(number))
        assert self._stub.GetWorkingMemory(request, timeout=PATIENCE).content == str(number).encode()


def scope_of(number: int) -> working_memory_pb2.WorkingMemoryScope:
    return working_memory_pb2.WorkingMemoryScope(user_id=f"u{number}")


Evicted: TypeAlias = type[Messages] | type[WorkingMemories]
EVICTED = 60
"""So many are more than the last uses."""


@pytest.mark.slow
def test_a_panic_while_a_conversation_is_read_from_the_database_ends_that_call(tmp_path: Path) -> None:
    with served(tmp_path) as store:
        store.append()
        restart(store, **{ENGINE: "windows_reading=panic"})
        outcomes = [outcome(store.listed) for _ in range(4)]

        assert outcomes == ["INTERNAL", "OK", "OK", "OK"]
        require_told(store)
        require_works(store)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "kind"),
    [
        ("windows_loading", Messages),
        ("windows_evicting", Messages),
        ("records_evicting", WorkingMemories),
    ],
)
def test_memory_that_may_hold_half_of_what_was_loaded_is_shown_no_more(
    tmp_path: Path, point: str, kind: Evicted
) -> None:
    with served(tmp_path, *kind.arguments) as store:
        evicted = kind(store)
        for number in range(EVICTED):
            evicted.write(number)
        eventually(store.applied)
        restart(store, **{ENGINE: f"{point}=panic"})
        outcomes = [outcome(partial(evicted.require, number)) for number in range(EVICTED)]

        panicked = outcomes.index("INTERNAL")
        assert set(outcomes[:panicked]) <= {"OK"}
        assert set(outcomes[panicked + 1 :]) == {"STORE_FAILED"}
        require_stopped(store)
        require_told(store)

        restart(store)
        for number in range(EVICTED):
            evicted.require(number)
        require_works(store)


@pytest.mark.slow
@pytest.mark.parametrize(("point", "kind"), [("windows_evicting", Messages), ("records_evicting", WorkingMemories)])
def test_memory_that_may_have_dropped_half_of_what_is_applied_is_shown_no_more(
    tmp_path: Path, point: str, kind: Evicted
) -> None:
    with served(tmp_path, *kind.arguments, **{ENGINE: f"{point}=panic"}) as store:
        evicted = kind(store)
        for written in range(EVICTED):
            if outcome(partial(evicted.write, written)) != "OK":
                break
            eventually(lambda: store.applied() or "the engine panicked" in log_of(store))

        assert 0 < written < EVICTED - 1
        require_stopped(store)
        require_told(store)

        restart(store)
        for number in range(written):
            evicted.require(number)
        require_works(store)


def require_stopped(store: ServedStore) -> None:
    """Nothing is shown or taken any more, and GetStatus says why."""
    assert outcome(store.append) == "STORE_FAILED"
    assert outcome(store.listed) == "STORE_FAILED"
    assert eventually(lambda: store.health("readiness") == NOT_SERVING)
    status = store.status()
    assert not status.store.writable
    assert "panic" in status.store.failure
    assert status.store.failure in status.server.failures


@pytest.mark.slow
def test_a_panic_while_recall_drops_a_user_ends_one_search(tmp_path: Path) -> None:
    with served(tmp_path, "--recall-bytes", "0", **{ENGINE: "recall_evicting=panic"}) as store:
        users = ("sarah", "tom")
        for user in users:
            store.memory.conversation(user, user_id=user).append({"role": "user", "content": f"message of {user}"})
        outcomes: list[str] = []
        while "the engine panicked" not in log_of(store):
            outcomes += [outcome(partial(require_own, store, user)) for user in users]
        outcomes += [outcome(partial(require_own, store, user)) for user in users]

        assert outcomes.count("INTERNAL") == 1
        assert set(outcomes) == {"OK", "INTERNAL"}
        require_told(store)
        require_works(store)


def require_own(store: ServedStore, user: str) -> None:
    """A user's search finds the user's message."""
    request = memory_service_pb2.SearchMessagesRequest(user_id=user, text="message")
    found = store.memory.stubs.memory.SearchMessages(request, timeout=PATIENCE)
    assert [hit.message.text for hit in found.hits] == [f"message of {user}"]


@pytest.mark.slow
def test_a_panic_of_the_journals_thread_stops_the_store_as_a_failed_write_does(tmp_path: Path) -> None:
    with served(tmp_path, **{JOURNAL: "before_sync=panic@3"}) as store:
        outcomes = [outcome(store.append) for _ in range(6)]

        assert set(outcomes) == {"OK", "STORE_FAILED"}
        assert outcomes == sorted(outcomes), "nothing is acknowledged behind a failure"
        assert eventually(lambda: store.health("readiness") == NOT_SERVING)
        assert "panicked" in store.status().store.failure
        assert store.listed() == store.acknowledged


@pytest.mark.slow
@pytest.mark.parametrize("point", ["recall_draining", "recall_scoring"])
def test_a_panic_below_a_search_ends_that_search_and_what_it_left_is_loaded_anew(tmp_path: Path, point: str) -> None:
    with served(tmp_path, **{ENGINE: f"{point}=panic@1"}) as store:
        for _ in range(3):
            store.append()
        outcomes = [outcome(lambda: search(store)) for _ in range(4)]
        outcomes += [outcome(store.append), outcome(lambda: search(store))]

        assert outcomes.count("INTERNAL") == 1
        assert set(outcomes) == {"OK", "INTERNAL"}
        assert sorted(search(store)) == sorted(store.acknowledged)
        require_told(store)
        require_works(store)


@pytest.mark.slow
def test_a_panic_in_a_part_of_a_divided_search_ends_that_search(tmp_path: Path) -> None:
    with served(tmp_path, **{ENGINE: "recall_dividing=panic"}) as store:
        conversation = store.memory.conversation("long", user_id="sarah")
        for begin in range(0, DIVIDED, 1_000):
            conversation.append([{"role": "user", "content": f"message {begin + number}"} for number in range(1_000)])
        outcomes = [outcome(lambda: search(store)) for _ in range(4)]

        # On one processor, no search is divided.
        assert sorted(outcomes) == (["INTERNAL", "OK", "OK", "OK"] if processors() > 1 else ["OK"] * 4)
        assert len(search(store)) == FOUND
        require_works(store)


Kind: TypeAlias = Callable[[ServedStore], SearchedKind]
KINDS = [
    Vectors,
    StoreItems,
    pytest.param(MemoryItems, marks=pytest.mark.faults),
    pytest.param(Facts, marks=pytest.mark.faults),
]


def with_records(store: ServedStore, kind: Kind, planted: str) -> SearchedKind:
    """Records that a search finds, in a server that is then started anew: what is planted is in what searches load."""
    searched = kind(store)
    for _ in range(3):
        searched.write()
    require_found(searched)
    restart(store, **{ENGINE: planted})
    return searched


def require_found(searched: SearchedKind) -> None:
    """A search finds all that was acknowledged, and nothing else."""
    assert searched.search() == searched.expected()


def require_kept(store: ServedStore, searched: SearchedKind) -> None:
    """The panic was told of, and nothing was lost by it, in memory or in the database."""
    require_found(searched)
    searched.write()
    require_found(searched)
    require_told(store)
    require_works(store)
    restart(store)
    require_found(searched)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", ["parts_filling", "parts_reading", "parts_evicting"])
def test_a_panic_below_a_search_of_records_ends_that_search(tmp_path: Path, point: str, kind: Kind) -> None:
    with served(tmp_path) as store:
        searched = with_records(store, kind, f"{point}=panic@1")
        outcomes = [outcome(lambda: require_found(searched)) for _ in range(4)]

        assert sorted(outcomes) == ["INTERNAL", "OK", "OK", "OK"]
        require_kept(store, searched)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_half_of_a_change_of_records_is_never_found(tmp_path: Path, kind: Kind) -> None:
    with served(tmp_path) as store:
        searched = with_records(store, kind, "parts_draining=panic@1")
        require_found(searched)
        searched.write()
        outcomes = [outcome(lambda: require_found(searched)) for _ in range(4)]

        # None fails if the applier was there before.
        assert sorted(outcomes)[1:] == ["OK"] * 3
        assert outcomes[0] in {"OK", "INTERNAL"}
        require_kept(store, searched)


@pytest.mark.slow
def test_a_panic_while_the_applier_drops_vectors_from_memory_stops_nothing(tmp_path: Path) -> None:
    with served(tmp_path, "--vector-bytes", "16384") as store:
        searched, growing = Vectors(store), Vectors(store, "growing")
        for each in (searched, growing):
            each.write()
        restart(store, **{ENGINE: "parts_evicting=panic@20"})  # beyond what the loads pass
        for each in (searched, growing):
            require_found(each)
        while "the engine panicked" not in log_of(store):
            growing.write()

        assert outcome(store.append) == "OK"
        require_kept(store, searched)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Vectors, StoreItems])
def test_half_of_a_change_that_nobody_searches_stops_nothing(tmp_path: Path, kind: Kind) -> None:
    with served(tmp_path) as store:
        searched = with_records(store, kind, "parts_draining=panic@1")
        require_found(searched)
        searched.write()
        eventually(lambda: "the engine panicked" in log_of(store))

        assert outcome(store.append) == "OK"
        assert outcome(lambda: require_found(searched)) == "OK"
        require_kept(store, searched)


@pytest.mark.slow
def test_half_of_what_a_filter_looks_at_is_never_used(tmp_path: Path) -> None:
    with served(tmp_path) as store:
        searched = with_records(store, StoreItems, "paths_learning=panic@5")
        assert isinstance(searched, StoreItems)
        assert outcome(searched.search) == "INTERNAL"

        searched.remove_even()
        assert searched.expected() == []
        assert outcome(lambda: require_found(searched)) == "OK"
        require_kept(store, searched)


@pytest.mark.slow
def test_connections_that_stall_are_evicted_after_a_panic_of_the_task_that_does_it(tmp_path: Path) -> None:
    with served(tmp_path, **{ENGINE: "stalled_task=panic"}) as store:
        for _ in range(3):
            store.append(900_000)
        require_told(store)

        assert eventually(lambda: is_evicted_where_it_stalls(store))
        eventually(lambda: outcome(store.conversations) == "OK")
        require_works(store)


def is_evicted_where_it_stalls(store: ServedStore) -> bool:
    """Have connections read nothing until their peer is refused; whether one is closed before its call is ended."""
    request = conversation_service_pb2.ListMessagesRequest(conversation_id="held", page_size=1_000)
    asked = frames.call(1, "/remora.v1.ConversationService/ListMessages", request.SerializeToString())
    with ExitStack() as opened:
        unread: list[Peer] = []
        while not unread or begins_a_reply(unread[-1]):
            peer = opened.enter_context(Peer(store.sidecar.endpoint))
            peer.open(initial_window=0)
            peer.send(asked)
            unread.append(peer)
        unread.pop()
        # A reply that is left for long ends its call, but not its connection.
        return any(all(came.kind != frames.RST_STREAM for came in peer.until_closed()) for peer in unread)


def begins_a_reply(peer: Peer) -> bool:
    """Whether a call is answered, and not refused."""
    came = next(came for came in peer.frames() if came.kind == frames.HEADERS)
    return not came.flags & frames.END_STREAM


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted",
    [
        {ENGINE: "encoder_job=panic@1"},
        {ENGINE: "encoder_thread=panic@1"},
        {PYTHON: "indexer_turn=raise@3"},
        {PYTHON: "indexer_turn=exit@3"},
    ],
    ids=["encoder_job", "encoder_thread", "indexer_raises", "indexer_exits"],
)
def test_messages_are_embedded_whatever_befalls_the_threads_that_do_it(tmp_path: Path, planted: dict[str, str]) -> None:
    model = ("--model", "auto", "--model-dir", os.environ["REMORA_MODEL_DIR"], "--precision", "int8")
    with served(tmp_path, *model, **planted) as store:
        for _ in range(5):
            store.append()
        eventually(lambda: "panicked" in log_of(store) or "a thread failed" in log_of(store))

        eventually(lambda: store.status().model.pending == 0)
        assert store.status().model.refused == 0
        require_works(store)


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("point", ["endpoint_request", "vectors_made", "vectors_accepted", "vectors_published"])
def test_messages_are_embedded_by_an_endpoint_whatever_is_raised_meanwhile(
    tmp_path: Path, point: str, action: str
) -> None:
    with EmbeddingServer() as server:
        endpoint = ("--model", "auto", "--embedding-url", server.url, "--embedding-model", "letters")
        with served(tmp_path, *endpoint, **{PYTHON: f"{point}={action}"}) as store:
            for _ in range(3):
                store.append()
            eventually(lambda: "embedding messages failed" in log_of(store) or "a thread failed" in log_of(store))

            eventually(lambda: store.status().model.pending == 0)
            require_works(store)
