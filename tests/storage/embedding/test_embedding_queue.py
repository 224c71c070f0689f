"""Which of the messages that wait for a vector are embedded first, and what is told of them meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.patience import PATIENCE
from tests.storage.opening import WRITE, open_store, take
from tests.store.asking import draft

from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import StoreFailed
from remora_server.domain.search import Lane, MessageVector, Unembedded
from remora_server.storage.commit.applier import Applier
from remora_server.storage.embedding import left_behind
from remora_server.storage.embedding.left_behind import LeftBehind
from remora_server.storage.embedding.order import EmbeddingOrder
from remora_server.storage.embedding.scopes import ResolvedScope
from remora_server.storage.local_store import LocalStore

MODEL = "lengths"
NEW = ConversationDraft(id="")
LEFT = 12


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    """One that finds LEFT messages of `old` without a vector, and one of `asked`, oldest of all."""
    with_no_model = open_store(tmp_path)
    append(with_no_model, "asked", "long ago")
    for number in range(LEFT):
        append(with_no_model, "old", f"text {number}")
    with_no_model.close()
    made = open_store(tmp_path, model=MODEL)
    yield made
    made.close()


def append(store: LocalStore, user: str, text: str, *, name: str = "") -> None:
    drafts = [draft(text=text, name=name)]
    store.messages.append(WRITE, f"of {user}", user, drafts, NEW)


def put(store: LocalStore, messages: list[Unembedded]) -> None:
    store.pending.put_embeddings([MessageVector(each, bytes([0, 0, 128, 63])) for each in messages])


def texts(messages: list[Unembedded]) -> list[str]:
    return [message.text for message in messages]


def pending(store: LocalStore) -> int:
    return store.status().embeddings[MODEL].pending


def test_a_new_message_goes_before_what_was_left_behind(store: LocalStore) -> None:
    left = take(store.pending, 2)
    append(store, "new", "hello")

    assert texts(take(store.pending, 1)) == ["hello"]
    rest = take(store.pending, 100)
    assert len({message.text for message in left + rest}) == len(left + rest) == LEFT + 1


@pytest.mark.parametrize("scope", [ResolvedScope("acme", "asked"), ResolvedScope("acme", "asked", 1)])
def test_what_a_search_waits_for_goes_before_all_others_wherever_it_is(store: LocalStore, scope: ResolvedScope) -> None:
    append(store, "new", "hello")
    append(store, "asked", "just now")

    with store.pending.wanted(scope):
        found = [texts(take(store.pending, 10, lane=Lane.WANTED)) for _ in range(4)]

    assert [text for portion in found for text in portion] == ["just now", "long ago"]
    assert "long ago" not in texts(take(store.pending, 100))


def test_nothing_is_wanted_when_nobody_waits(store: LocalStore) -> None:
    append(store, "new", "hello")
    with store.pending.wanted(ResolvedScope("acme", "new")):
        pass

    assert take(store.pending, 10, lane=Lane.WANTED) == []


def test_a_message_that_comes_while_a_search_waits_is_wanted(store: LocalStore) -> None:
    with store.pending.wanted(ResolvedScope("acme", "new")):
        for _ in range(3):
            assert take(store.pending, 10, lane=Lane.WANTED) == []
        coming = threading.Timer(0.05, append, (store, "new", "hello"))
        coming.start()
        assert texts(take(store.pending, 10, lane=Lane.WANTED, timeout=PATIENCE)) == ["hello"]
        coming.join()


def test_what_is_searched_without_a_wait_is_next_after_what_is_new(store: LocalStore) -> None:
    append(store, "new", "hello")
    store.pending.hint(ResolvedScope("acme", "asked"))

    assert texts(take(store.pending, 1)) == ["hello"]
    assert texts(take(store.pending, 10)) == ["long ago"]


def test_what_is_searched_without_a_wait_is_next_also_after_a_scan_that_failed(store: LocalStore) -> None:
    store.pending.hint(ResolvedScope("acme", "asked"))
    with patch.object(LeftBehind, "newest_of", side_effect=StoreFailed), pytest.raises(StoreFailed):
        take(store.pending, 1)

    assert texts(take(store.pending, 10)) == ["long ago"]


def test_what_does_not_fit_is_found_again(store: LocalStore) -> None:
    with patch.object(EmbeddingOrder, "add", return_value=False):
        append(store, "new", "hello")
    found = take(store.pending, 100)

    assert "hello" in texts(found)


@pytest.mark.parametrize("rows", [1, 5, LEFT, LEFT + 1, LEFT + 2])
def test_each_is_taken_once_however_many_are_read_at_once(store: LocalStore, rows: int) -> None:
    taken: list[str] = []
    with patch.object(left_behind, "SCAN_ROWS", rows):
        while portion := take(store.pending, 3):
            taken += texts(portion)
            put(store, portion)

    assert sorted(taken) == sorted(["long ago", *(f"text {number}" for number in range(LEFT))])
    store.commits.settle()
    assert pending(store) == 0


def test_a_message_waits_as_soon_as_it_is_acknowledged(store: LocalStore) -> None:
    assert pending(store) == LEFT + 1
    with patch.object(Applier, "_is_due", return_value=False):
        append(store, "new", "hello")
        assert pending(store) == LEFT + 2

        put(store, take(store.pending, 1))
        store.commits.settle()

    assert pending(store) == LEFT + 1
    assert store.status().embeddings[MODEL].per_second > 0
