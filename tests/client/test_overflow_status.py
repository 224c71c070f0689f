"""What `status()` tells of conversations that are not summarised, from a real server and endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.chat_server import ChatServer
from tests.engine.endpoint_server import error
from tests.patience import PATIENCE, eventually

from remora import Conversation, Remora, Summarize
from remora.testing import serve
from remora.v1.admin_service_pb2 import OverflowStatus

KEY = "the-key-of-the-model"
SECRET = "My sister Ana lives in Lisbon, and nobody may know it."


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def endpoint(model: ChatServer, tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    asked = (f"--chat-url={model.url}", "--chat-model=scribe", f"--chat-api-key-file={file}")
    with serve("--model=none", *asked) as endpoint:
        yield endpoint


def overflowing(memory: Remora, conversation_id: str) -> Conversation:
    chat = memory.conversation(conversation_id, user_id="sarah", short_term=Summarize(20, 10, keep_messages=1))
    chat.append([{"role": "user", "content": SECRET}] * 3)
    return chat


def test_a_model_that_fails_is_shown_to_its_tenant_and_tells_nothing_that_was_said(
    model: ChatServer, endpoint: str
) -> None:
    model.behaviour = lambda asked: error(401, asked.headers["authorization"] + str(asked.body))
    with (
        Remora(endpoint, tenant="one", timeout=PATIENCE) as memory,
        Remora(endpoint, tenant="two", timeout=PATIENCE) as other,
    ):
        chat = overflowing(memory, "c")
        overflowing(memory, "d")

        told = eventually(lambda: memory.status().overflow, until=lambda found: found.failing == 2)

        assert told.failure
        assert told.failure == chat.window().failure
        assert not [each for each in (KEY, SECRET, "Ana", "sarah", "one") if each in told.failure]
        assert other.status().overflow == OverflowStatus()

        model.behaviour = lambda _asked: None

        eventually(lambda: memory.status().overflow, until=OverflowStatus().__eq__)
        eventually(lambda: chat.window().summary is not None)
