"""Writes to threads that are too much for one record of the journal, and their repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.storage.opening import READ, WRITE, open_store

from remora.v1.checkpoint_pb2 import Checkpoint
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.checkpoints import CheckpointDraft, CheckpointName, ThreadQuery
from remora_server.domain.errors import RequestIdReused
from remora_server.storage.local_store import LocalStore
from remora_server.storage.nouns import threads

NAMED = replace(WRITE, request_id="r1", fingerprint=bytes(16))
THREADS = ("t1", "t2")

WRITES: dict[str, Callable[[LocalStore, Write], Outcome]] = {
    "delete_runs": lambda store, write: store.threads.delete_runs(write, ["run"]),
    "prune": lambda store, write: store.threads.prune(write, THREADS, keep_latest=False),
    "copy": lambda store, write: store.threads.copy(write, "t1", "t3"),
}


@pytest.fixture(autouse=True)
def several_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write takes several records."""
    monkeypatch.setattr(threads, "_MOST_MOVES", 2)
    monkeypatch.setattr(threads, "_COPIED_BYTES", 1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = open_store(tmp_path / "data")
    fill(opened)
    yield opened
    opened.close()


def fill(store: LocalStore) -> None:
    """Five checkpoints in each thread."""
    made = [Checkpoint(thread_id=thread, id=str(number), run_id="run") for thread in THREADS for number in range(5)]
    names = [CheckpointName(each.thread_id, each.checkpoint_ns, each.id) for each in made]
    drafts = [CheckpointDraft(name, each.SerializeToString()) for name, each in zip(names, made, strict=True)]
    store.checkpoints.save(WRITE, drafts, [])


def shown(store: LocalStore) -> dict[str, int]:
    """How many checkpoints each thread has."""
    found, _ = store.threads.list(READ, ThreadQuery(limit=100))
    return {each.id: each.checkpoints for each in found}


@pytest.mark.parametrize("name", WRITES)
def test_a_repeat_does_no_part_again(store: LocalStore, name: str) -> None:
    first = WRITES[name](store, NAMED)
    fill(store)
    store.threads.delete(WRITE, "t3")
    before = shown(store)

    repeated = WRITES[name](store, NAMED)

    assert (repeated, shown(store)) == (first, before)


@pytest.mark.parametrize("name", WRITES)
def test_no_part_is_done_under_the_request_id_of_another_request(store: LocalStore, name: str) -> None:
    store.threads.delete(replace(NAMED, fingerprint=bytes([1] * 16)), "t3")
    before = shown(store)

    with pytest.raises(RequestIdReused):
        WRITES[name](store, NAMED)

    assert shown(store) == before
