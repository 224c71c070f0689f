"""Conversations that are loaded while the database changes: what is read of one is one state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.storage.opening import WRITE, open_store, shown
from tests.store.asking import draft

from remora_server.domain.conversations import ConversationDraft
from remora_server.storage.local_store import LocalStore
from remora_server.storage.nouns import loading

ANOTHER = """
INSERT INTO messages SELECT * REPLACE (sequence + 1 AS sequence, 'added' AS id, revision + 1 AS revision) FROM messages
"""


def between_the_reads(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Act once, on another thread, when a load has read what stands about messages and not yet their bodies."""
    window_start, waiting = loading._window_start, [act]

    def start(messages: Sequence[tuple[int, int, str, str, str, int, int, int]]) -> int:
        if waiting:
            acting = threading.Thread(target=waiting.pop())
            acting.start()
            acting.join()
        return window_start(messages)

    monkeypatch.setattr(loading, "_window_start", start)


def add_a_message(store: LocalStore) -> None:
    """As the applier does, of a write to a conversation that is not in memory any more."""
    store.database.transact(lambda cursor: cursor.execute(ANOTHER))


def test_a_message_that_comes_between_the_reads_of_a_load_is_in_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    store.messages.append(WRITE, "c", "sarah", [draft("first", "hello")], ConversationDraft(id=""))
    store.close()
    store = open_store(tmp_path)
    try:
        between_the_reads(monkeypatch, lambda: add_a_message(store))
        assert shown(store, "c", "sarah") == [("first", "user", "hello")]
    finally:
        store.close()
