"""What a request that has no time left may do: all that needs no waiting, and nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.patience import PATIENCE
from tests.storage.opening import READ, WRITE, open_store, shown
from tests.store.asking import draft

from remora_server.domain.calls import Outcome, Read
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import DeadlineExceeded
from remora_server.domain.messages import MessageQuery
from remora_server.storage.local_store import LocalStore

NEW = ConversationDraft(id="")
PASSED = 0.0
"""A time of the monotonic clock that is over."""
AT_ONCE = replace(WRITE, deadline=PASSED, waits_for_disk=False)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(directory: Path) -> Iterator[LocalStore]:
    opened = open_store(directory)
    yield opened
    opened.close()


@pytest.fixture
def cold(directory: Path) -> Iterator[LocalStore]:
    """A store whose conversation `c` has two messages, none of which is in memory."""
    before = open_store(directory)
    append(before, WRITE)
    append(before, WRITE)
    before.close()
    opened = open_store(directory)
    yield opened
    opened.close()


def append(store: LocalStore, write: object) -> Outcome:
    return store.messages.append(write, "c", "sarah", [draft(text="t")], NEW)  # type: ignore[arg-type]


def test_a_write_that_waits_for_nothing_is_accepted_without_time(store: LocalStore) -> None:
    revision = append(store, AT_ONCE).revision

    store.commits.wait_published(revision, time.monotonic() + PATIENCE)
    assert [text for _, _, text in shown(store, "c", "sarah")] == ["t"]


def test_a_lock_that_another_holds_is_not_waited_for_beyond_the_deadline(store: LocalStore) -> None:
    append(store, WRITE)
    lock = store.loader._locks.of(WRITE, "c")

    with ThreadPoolExecutor(1) as another, lock, pytest.raises(DeadlineExceeded):
        another.submit(append, store, AT_ONCE).result()
    assert len(shown(store, "c", "sarah")) == 1


def test_a_lock_is_taken_where_it_is_let_go_in_time(store: LocalStore) -> None:
    append(store, WRITE)
    lock = store.loader._locks.of(WRITE, "c")
    with lock:
        writer = threading.Thread(target=append, args=(store, replace(WRITE, deadline=time.monotonic() + PATIENCE)))
        writer.start()
    writer.join()

    assert len(shown(store, "c", "sarah")) == 2


READS: list[Callable[[LocalStore, Read], object]] = [
    lambda store, read: store.conversations.get(read, "c", "sarah"),
    lambda store, read: store.messages.list(read, MessageQuery("c", "sarah", limit=10)),
    lambda store, read: append(store, replace(AT_ONCE, deadline=read.deadline)),
]


@pytest.mark.parametrize("ask", READS, ids=["get", "list", "append"])
def test_a_cold_conversation_is_not_loaded_without_time(
    cold: LocalStore, ask: Callable[[LocalStore, Read], object]
) -> None:
    with pytest.raises(DeadlineExceeded):
        ask(cold, replace(READ, deadline=PASSED))

    assert cold.core.conversation_state("acme", "c") == "cold"
    ask(cold, replace(READ, deadline=time.monotonic() + PATIENCE))


def test_a_repeat_is_not_answered_before_its_first_is_durable_and_applied(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = replace(WRITE, request_id="r", fingerprint=bytes(16))
    with monkeypatch.context() as applies_nothing:
        applies_nothing.setattr(store.applier, "_apply_next", lambda: False)
        first = append(store, replace(write, waits_for_disk=False))

        with pytest.raises(DeadlineExceeded):
            append(store, replace(write, deadline=PASSED, waits_for_disk=False))

    assert append(store, write) == first


def test_nothing_to_change_names_the_revision_that_left_nothing(store: LocalStore) -> None:
    append(store, WRITE)
    gone = store.conversations.delete(replace(WRITE, waits_for_disk=False), "c", "sarah", allow_missing=True)

    nothing = store.conversations.delete(WRITE, "c", "sarah", allow_missing=True)

    assert nothing.revision >= gone.revision
    assert store.core.published() >= gone.revision
