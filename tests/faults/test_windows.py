"""Windows of a server that is killed while it moves them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from tests.engine.chat_server import ChatServer
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora, Summarize, Trim
from remora.short_term import ShortTerm
from remora.v1.conversation_service_pb2 import AppendMessagesRequest, GetWindowRequest
from remora.v1.message_pb2 import Message
from remora_server.failpoints import VARIABLE

TEXT = "word " * 99
"""About a hundred tokens."""


def append_until_it_dies(memory: Remora) -> int:
    """How many messages were acknowledged. The stub tries nothing again."""
    request = AppendMessagesRequest(conversation_id="c", messages=[Message(role="user", text=TEXT)])
    for acknowledged in range(1_000):
        try:
            memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)
        except grpc.RpcError:
            return acknowledged
    raise AssertionError("the server lives on")


@pytest.mark.slow
@pytest.mark.parametrize("turn", [1, 2])
def test_a_window_whose_move_was_killed_moves_after_the_next_write(tmp_path: Path, turn: int) -> None:
    server = Sidecar(tmp_path, "--model", "none")
    server.failpoints = {VARIABLE: f"overflow_turn=abort@{turn}"}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        memory.create_conversation("c", user_id="sarah", short_term=Trim(1_000, 300))
        said = append_until_it_dies(memory)
    assert server.wait() != 0

    server.failpoints = {}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah")
        chat.append([{"role": "user", "content": TEXT}] * 10)
        kept = eventually(chat.messages, until=lambda found: len(found) <= 10)
        everything = chat.messages(None, view="all")

    server.stop()
    assert len(everything) >= said + 10
    assert [message.id for message in kept] == [message.id for message in everything][-len(kept) :]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "policy"),
    [
        ("overflow_turn=abort@3", Trim(2_000, 600)),
        ("summary_turn=abort@2", Summarize(2_000, 200, 2)),
        ("summary_written=abort@2", Summarize(2_000, 200, 2)),
    ],
)
def test_overflow_under_16_writers_that_is_killed_in_its_middle_loses_nothing(
    tmp_path: Path, point: str, policy: ShortTerm
) -> None:
    server = Sidecar(tmp_path, "--model", "none")
    server.failpoints = {VARIABLE: point}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory, ThreadPoolExecutor(16) as writers:
        memory.create_conversation("c", user_id="sarah", short_term=policy)
        acknowledged = list(writers.map(lambda writer: write_until_it_dies(memory, writer), range(16)))
    assert server.wait() != 0

    server.failpoints = {}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah")
        chat.append([{"role": "user", "content": TEXT}] * 20)
        kept = eventually(lambda: chat.messages(None), until=lambda found: len(found) <= 6)
        everything = [message.id for message in chat.messages(None, view="all")]
        summary = chat.window().summary

    server.stop()
    assert {message for written in acknowledged for message in written} <= set(everything)
    assert [message.id for message in kept] == everything[-len(kept) :]
    if isinstance(policy, Summarize):
        assert summary is not None
        assert summary.covers_through_sequence == kept[0].sequence - 1


def write_until_it_dies(memory: Remora, writer: int) -> list[str]:
    """The ids of the messages that were acknowledged."""
    acknowledged: list[str] = []
    for number in range(1_000):
        message = Message(id=f"{writer}-{number}", role="user", text=TEXT)
        request = AppendMessagesRequest(conversation_id="c", messages=[message])
        try:
            memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)
        except grpc.RpcError:
            return acknowledged
        acknowledged.append(message.id)
    raise AssertionError("the server lives on")


@pytest.mark.slow
@pytest.mark.parametrize("action", ["raise", "exit"])
def test_a_window_is_moved_though_the_thread_that_does_it_fails(tmp_path: Path, action: str) -> None:
    server = Sidecar(tmp_path, "--model", "none")
    server.failpoints = {VARIABLE: f"overflow_turn={action}"}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah", short_term=Trim(1_000, 300))
        chat.append([{"role": "user", "content": TEXT}] * 20)

        eventually(chat.messages, until=lambda found: len(found) <= 3)
        eventually(lambda: not memory.status().server.failures)
        assert len(chat.messages(None, view="all")) == 20
        assert chat.window().first_sequence == 21 - len(chat.messages())
    assert server.stop() == 0
    assert "a thread failed; it is restarted" in server.log.read_text()


def summary_of(memory: Remora) -> str:
    return memory.stubs.conversations.GetWindow(GetWindowRequest(conversation_id="c")).summary.text


@pytest.mark.slow
@pytest.mark.parametrize("point", ["summary_turn", "summary_written"])
def test_a_summary_that_was_killed_is_made_after_the_next_write(tmp_path: Path, point: str) -> None:
    server = Sidecar(tmp_path, "--model", "none")
    server.failpoints = {VARIABLE: f"{point}=abort"}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        memory.create_conversation("c", user_id="sarah", short_term=Summarize(1_000, 200, 2))
        said = append_until_it_dies(memory)
    assert server.wait() != 0

    server.failpoints = {}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah")
        assert (chat.window().first_sequence, summary_of(memory)) == (0, "")
        chat.append([{"role": "user", "content": TEXT}] * 10)
        kept = eventually(chat.messages, until=lambda found: len(found) <= 10)
        everything = chat.messages(None, view="all")
        assert "word word" in summary_of(memory)

    server.stop()
    assert len(everything) >= said + 10
    assert [message.id for message in kept] == [message.id for message in everything][-len(kept) :]


@pytest.mark.slow
@pytest.mark.parametrize("action", ["raise", "exit"])
@pytest.mark.parametrize("point", ["summary_turn", "summary_written"])
def test_a_summary_is_made_though_the_thread_that_does_it_fails(tmp_path: Path, point: str, action: str) -> None:
    server = Sidecar(tmp_path, "--model", "none")
    server.failpoints = {VARIABLE: f"{point}={action}"}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah", short_term=Summarize(1_000, 200, 2))
        chat.append([{"role": "user", "content": TEXT}] * 20)

        eventually(chat.messages, until=lambda found: len(found) == 2)
        eventually(lambda: not memory.status().server.failures)
        assert "word word" in summary_of(memory)
    assert server.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("action", ["raise", "exit"])
def test_a_summary_is_made_by_a_model_though_the_thread_of_its_request_ends(tmp_path: Path, action: str) -> None:
    with ChatServer() as model:
        server = Sidecar(tmp_path, "--model", "none", f"--chat-url={model.url}", "--chat-model=scribe")
        server.failpoints = {VARIABLE: f"endpoint_request={action}"}
        server.start()
        with Remora(server.endpoint, timeout=PATIENCE) as memory:
            chat = memory.conversation("c", user_id="sarah", short_term=Summarize(1_000, 200, 2))
            chat.append([{"role": "user", "content": TEXT}] * 20)

            eventually(chat.messages, until=lambda found: len(found) == 2)
            assert summary_of(memory).startswith("In short")
            eventually(lambda: not memory.status().server.failures)
        assert server.stop() == 0
