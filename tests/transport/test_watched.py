"""A server that is watched over its port for probes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.changed_server import HELD, WAITING
from tests.faults.watched import WATCHED, Watched
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora_server.main import main

SECRETS = ("a-tenant", "a-user", "a-conversation")


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path, "--model", "none", *WATCHED)
    yield watched
    if watched.is_launched:
        watched.kill()


@pytest.mark.slow
def test_what_is_called_is_counted_and_nobody_is_named(watched: Watched) -> None:
    watched.start()
    tenant, user, conversation = SECRETS
    with Remora(watched.endpoint, tenant=tenant, timeout=PATIENCE) as memory:
        memory.conversation(conversation, user_id=user).append({"role": "user", "content": "where is the key?"})
        assert memory.search("key", user_id=user)
        assert memory.search("key", user_id=user)

    assert watched.metric("grpc_server_handled_total", grpc_method="AppendMessages", grpc_code="OK") == 1
    assert watched.metric("grpc_server_handling_seconds_count", grpc_method="SearchMessages") == 2
    assert watched.metric("remora_messages") == 1
    assert watched.metric("remora_recall_loads_total") >= 1
    assert watched.metric("remora_recall_seconds_count") == 2
    assert watched.metric("remora_recall_hits_total") >= 1
    eventually(lambda: watched.metric("remora_journal_waiting_records") == 0)  # a receipt may be under way
    assert watched.metric("remora_journal_records_total") >= 1
    assert watched.metric("process_resident_memory_bytes") > 0
    assert not [secret for secret in SECRETS if secret in watched.page("/metrics")[1]]


@pytest.mark.slow
def test_a_call_under_way_is_counted_as_such(watched: Watched) -> None:
    watched.changes = ("counts_wait",)
    watched.start()
    held = watched.directory / "held-up"
    held.touch()
    with Remora(watched.endpoint, timeout=PATIENCE) as memory:
        waiting = threading.Thread(target=memory.count_conversations, kwargs={"user_id": f"{WAITING}{held}"})
        waiting.start()
        eventually(lambda: watched.metric("remora_calls_in_flight", grpc_method="CountConversations") == 1)
        held.unlink()
        waiting.join(PATIENCE)

    eventually(lambda: watched.metric("remora_calls_in_flight", grpc_method="CountConversations") == 0)


@pytest.mark.slow
def test_a_call_that_no_thread_has_taken_is_counted_as_waiting(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "--model", "none", "--threads", "1", *WATCHED)
    watched.changes = ("counts_wait",)
    watched.start()
    held = watched.directory / "held-up"
    held.touch()

    def counted(name: str) -> float:
        return watched.metric(name, grpc_method="CountConversations")

    with Remora(watched.endpoint, timeout=PATIENCE) as memory:
        asked = {"user_id": f"{WAITING}{held}"}
        callers = [threading.Thread(target=memory.count_conversations, kwargs=asked) for _ in range(3)]
        for caller in callers:
            caller.start()
        eventually(lambda: (counted("remora_calls_in_flight"), counted("remora_calls_waiting")) == (3, 2))
        held.unlink()
        for caller in callers:
            caller.join(PATIENCE)

    eventually(lambda: (counted("remora_calls_in_flight"), counted("remora_calls_waiting")) == (0, 0))
    watched.kill()


@pytest.mark.slow
def test_a_server_that_still_opens_its_store_is_alive_and_not_ready(watched: Watched) -> None:
    watched.changes = ("open_when_it_may",)
    held = watched.directory / HELD
    held.touch()
    watched.launch()

    eventually(lambda: watched.page("/livez")[0] == 200)
    assert {watched.page(path)[0] for path in ("/startupz", "/readyz", "/metrics")} == {503}

    held.unlink()
    eventually(lambda: watched.page("/readyz")[0] == 200)
    assert {watched.page(path)[0] for path in ("/startupz", "/metrics")} == {200}


@pytest.mark.slow
def test_the_port_is_free_when_the_server_has_ended(watched: Watched) -> None:
    watched.start()
    host, _, port = watched.probes.rpartition(":")

    assert watched.stop() == 0
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, int(port)))


@pytest.mark.parametrize("endpoint", ["unix:/tmp/probes", "9090", "127.0.0.1:http"])
def test_probes_are_answered_over_tcp_alone(endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["serve", "--data", str(tmp_path / "data"), "--listen", f"unix:{tmp_path / 's'}"]

    assert main([*arguments, "--health-listen", endpoint]) == 2
    assert endpoint in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
