"""Repeats after a start, before the store has loaded which requests there were, and after."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.patience import eventually
from tests.storage.opening import TENANT, open_store, shown
from tests.store.asking import draft

from remora_server import failpoints
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import DeadlineExceeded, MemoryExhausted, RequestIdReused
from remora_server.rpc.calls import NO_TIME
from remora_server.storage.commit import request_ids
from remora_server.storage.commit.request_ids import FoundRequest, RequestIds
from remora_server.storage.database import arrow
from remora_server.storage.local_store import LocalStore

CHAT = "c"
WRITES = 10


def write(number: int, *, payload: int = 0, deadline: float | None = None) -> Write:
    return Write(TENANT, method="Test", request_id=f"r{number}", fingerprint=bytes([payload] * 16), deadline=deadline)


def append(store: LocalStore, number: int, *, payload: int = 0, deadline: float | None = None) -> Outcome:
    request = write(number, payload=payload, deadline=deadline)
    return store.messages.append(request, CHAT, "sarah", [draft(f"m{number}")], ConversationDraft(id=""))


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, list[Outcome]]:
    """A store as a kill leaves it, with some of its requests in the journal alone; and what they came to."""
    store = open_store(tmp_path / "living")
    outcomes = [append(store, number) for number in range(WRITES // 2)]
    store.applier.catch_up()
    outcomes += [append(store, number) for number in range(WRITES // 2, WRITES)]
    shutil.copytree(tmp_path / "living", tmp_path / "killed")
    store.close()
    return tmp_path / "killed", outcomes


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Lets stores load their requests, which are held until then."""
    released, load = threading.Event(), RequestIds._load

    def held(self: RequestIds) -> None:
        while not (released.is_set() or self._stopping.is_set()):
            released.wait(0.01)
        load(self)

    monkeypatch.setattr(RequestIds, "_load", held)
    yield released.set
    released.set()


def ids(store: LocalStore) -> list[str]:
    return [message_id for message_id, _, _ in shown(store, CHAT, "sarah")]


def test_a_repeat_gets_its_first_outcome_before_requests_are_loaded_and_after(
    written: tuple[Path, list[Outcome]], release: Callable[[], None]
) -> None:
    killed, outcomes = written
    store = open_store(killed)

    assert not store.core.has_loaded_requests()
    assert [append(store, number) for number in range(WRITES)] == outcomes
    release()
    eventually(store.core.has_loaded_requests)
    assert [append(store, number) for number in range(WRITES)] == outcomes
    assert ids(store) == [f"m{number}" for number in range(WRITES)]
    store.close()


@pytest.mark.usefixtures("release")
def test_a_new_id_is_not_looked_up_among_the_requests_of_an_hour(
    written: tuple[Path, list[Outcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    find = RequestIds._find_stored

    def watched(self: RequestIds, write: Write) -> FoundRequest | None:
        looked_up.append(write.request_id)
        return find(self, write)

    monkeypatch.setattr(RequestIds, "_find_stored", watched)
    killed, outcomes = written
    store = open_store(killed)

    for number in range(WRITES, 2 * WRITES):
        append(store, number)
    assert looked_up == []
    assert append(store, 3) == outcomes[3]
    assert looked_up == ["r3"]
    store.close()


@pytest.mark.usefixtures("release")
def test_an_id_is_recognised_where_there_is_no_memory_for_hashes(
    written: tuple[Path, list[Outcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "numbers", _no_memory)
    killed, outcomes = written
    store = open_store(killed)

    assert append(store, 3) == outcomes[3]
    append(store, WRITES)
    assert len(ids(store)) == WRITES + 1
    store.close()


def _no_memory(_: object) -> None:
    raise MemoryExhausted


@pytest.mark.usefixtures("release")
def test_an_id_that_comes_with_another_request_is_refused_before_requests_are_loaded(
    written: tuple[Path, list[Outcome]],
) -> None:
    store = open_store(written[0])

    for number in range(WRITES):
        with pytest.raises(RequestIdReused):
            append(store, number, payload=1)
    assert len(ids(store)) == WRITES
    store.close()


def test_a_new_request_is_written_once_while_requests_are_loaded(
    written: tuple[Path, list[Outcome]], release: Callable[[], None]
) -> None:
    store = open_store(written[0])

    new = append(store, WRITES)
    again = append(store, WRITES)
    release()
    eventually(store.core.has_loaded_requests)

    assert new == again == append(store, WRITES)
    assert len(ids(store)) == WRITES + 1
    store.close()


@pytest.mark.usefixtures("release")
def test_what_must_not_wait_is_put_off_while_the_database_would_be_asked(
    written: tuple[Path, list[Outcome]],
) -> None:
    killed, _ = written
    store = open_store(killed)

    with pytest.raises(DeadlineExceeded):
        append(store, WRITES, deadline=NO_TIME)
    assert len(ids(store)) == WRITES
    store.close()


@pytest.mark.usefixtures("release")
def test_requests_that_were_not_loaded_yet_are_not_forgotten(
    written: tuple[Path, list[Outcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, outcomes = written
    monkeypatch.setattr("remora_server.storage.commit.applier.PURGE_SECONDS", 0.0)
    store = open_store(killed)
    for number in range(WRITES, WRITES + 5):
        append(store, number)
        store.applier.catch_up()
    store.applier._purge_requests()
    store.applier._purge_requests()

    assert [append(store, number) for number in range(WRITES)] == outcomes
    store.close()


def test_requests_are_loaded_in_pages_and_gone_on_with_where_that_failed(
    written: tuple[Path, list[Outcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, outcomes = written
    monkeypatch.setattr(request_ids, "PAGE_REVISIONS", 3)
    failpoints.arm("requests_loading=raise@2")
    monkeypatch.setattr(RequestIds, "_find_stored", lambda *_: None)

    store = open_store(killed)
    eventually(store.core.has_loaded_requests)

    assert [append(store, number) for number in range(WRITES)] == outcomes
    assert store.core.oldest_request() == outcomes[0].revision
    store.close()


def test_it_is_told_while_requests_cannot_be_loaded(
    written: tuple[Path, list[Outcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, outcomes = written
    with monkeypatch.context() as failing:
        failing.setattr(RequestIds, "_pages", lambda _: None)
        store = open_store(killed)
        assert "request-ids" in eventually(store.background_failure)
        assert [append(store, number) for number in range(WRITES)] == outcomes

    eventually(store.core.has_loaded_requests)
    assert eventually(lambda: not store.background_failure())
    store.close()
