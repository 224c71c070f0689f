"""Receipts of a server that is killed, or whose thread fails, while it writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE

from remora import Remora
from remora.errors import ReceiptNotFoundError
from remora_server.failpoints import VARIABLE


@pytest.mark.slow
def test_a_server_that_is_killed_before_it_writes_a_receipt_loses_that_alone(tmp_path: Path) -> None:
    server = Sidecar(tmp_path, "--model", "none")
    server.failpoints = {VARIABLE: "receipts_turn=abort"}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah")
        chat.append({"role": "user", "content": "hello"})
        lost = chat.context(100).receipt_id
    assert server.wait() != 0

    server.failpoints = {}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah")
        context = chat.context(100)
        assert [message["content"] for message in context.messages] == ["hello"]
        assert memory.receipts.replay(context.receipt_id).context == context
        with pytest.raises(ReceiptNotFoundError):
            memory.receipts.get(lost)
    assert server.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("action", ["raise", "exit"])
def test_a_receipt_is_written_though_the_thread_that_does_it_fails(tmp_path: Path, action: str) -> None:
    server = Sidecar(tmp_path, "--model", "none")
    server.failpoints = {VARIABLE: f"receipts_turn={action}"}
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah")
        chat.append({"role": "user", "content": "hello"})
        context = chat.context(100)

        assert memory.receipts.replay(context.receipt_id).context == context
    assert server.stop() == 0
    assert "a thread failed; it is restarted" in server.log.read_text()
