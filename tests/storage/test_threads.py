"""Writes to threads that are too much for one record of the journal, and their repeats."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.patience import PATIENCE
from tests.storage.opening import READ, WRITE, open_store

from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint, Version
from remora.v1.checkpoint_service_pb2 import GetCheckpointsResponse
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.checkpoints import (
    CheckpointDraft,
    CheckpointName,
    PartDraft,
    ThreadQuery,
    UploadName,
    ValueDraft,
)
from remora_server.domain.errors import DeadlineExceeded, RequestIdReused
from remora_server.storage.local_store import LocalStore
from remora_server.storage.nouns import threads
from remora_server.storage.nouns.channel_values import Scope
from remora_server.storage.nouns.threads import Threads

NAMED = replace(WRITE, request_id="r1", fingerprint=bytes(16))
THREADS = ("t1", "t2")

WRITES: dict[str, Callable[[LocalStore, Write], Outcome]] = {
    "delete_runs": lambda store, write: store.threads.delete_runs(write, ["run"]),
    "prune": lambda store, write: store.threads.prune(write, THREADS, keep_latest=False),
    "prune, the last is empty": lambda store, write: store.threads.prune(write, ("t1", "none"), keep_latest=False),
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


def shown(store: LocalStore, user_id: str = "") -> dict[str, int]:
    """How many checkpoints each thread has, or each that has some of a user's."""
    found, _ = store.threads.list(READ, ThreadQuery(user_id=user_id, limit=100))
    return {each.id: each.checkpoints for each in found}


@pytest.mark.parametrize("name", WRITES)
def test_a_repeat_does_no_part_again(store: LocalStore, name: str) -> None:
    first = WRITES[name](store, NAMED)
    fill(store)
    store.threads.delete(WRITE, "t3")
    before = shown(store)

    repeated = WRITES[name](store, NAMED)

    assert (repeated, shown(store)) == (first, before)


def test_a_repeat_waits_for_the_end_of_the_first(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_go_on = threading.Event(), threading.Event()
    look = store.threads._scopes_of_runs
    looks: list[Write] = []

    def held(write: Write, run_ids: Sequence[str]) -> Sequence[Scope]:
        looks.append(write)
        begun.set()
        assert may_go_on.wait(PATIENCE)
        return look(write, run_ids)

    monkeypatch.setattr(store.threads, "_scopes_of_runs", held)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(store.threads.delete_runs, NAMED, ["run"])
        assert begun.wait(PATIENCE)
        with pytest.raises(DeadlineExceeded):
            store.threads.delete_runs(replace(NAMED, deadline=time.monotonic()), ["run"])
        may_go_on.set()

    assert looks == [NAMED]
    assert store.threads.delete_runs(NAMED, ["run"]) == first.result()


@pytest.mark.parametrize("name", WRITES)
def test_no_part_is_done_under_the_request_id_of_another_request(store: LocalStore, name: str) -> None:
    store.threads.delete(replace(NAMED, fingerprint=bytes([1] * 16)), "t3")
    before = shown(store)

    with pytest.raises(RequestIdReused):
        WRITES[name](store, NAMED)

    assert shown(store) == before


def upload(store: LocalStore, thread: str, version: str, data: bytes, run: str) -> None:
    """A checkpoint whose one value is uploaded, under a name that other threads use as well."""
    store.checkpoints.upload(WRITE, PartDraft(thread, "", "u", 0, data))
    channel = ChannelVersion(channel="a", version=Version(text=version))
    made = Checkpoint(thread_id=thread, id=version, run_id=run, channels=[channel])
    values = {"a": ValueDraft("bytes", b"", UploadName("u", 1))}
    draft = CheckpointDraft(CheckpointName(thread, "", version), made.SerializeToString(), values)
    store.checkpoints.save(WRITE, [draft], [])


def uploaded(store: LocalStore, thread: str) -> dict[str, bytes]:
    """The values of a thread's checkpoints."""
    names = [CheckpointName(thread, "", version) for version in ("1", "2")]
    found, _ = store.checkpoints.get(READ, names)
    response = GetCheckpointsResponse.FromString(found)
    return {each.checkpoint.id: each.values[0].value.data for each in response.checkpoints if each.values}


def test_uploads_of_one_name_are_copied_as_two(store: LocalStore) -> None:
    upload(store, "first", "1", b"one", "gone")
    upload(store, "second", "2", b"two", "kept")
    for _ in range(2):
        store.threads.copy(WRITE, "first", "both")
        store.threads.copy(WRITE, "second", "both")

    assert uploaded(store, "both") == {"1": b"one", "2": b"two"}

    store.threads.delete_runs(WRITE, ["gone"])

    assert uploaded(store, "both") == {"2": b"two"}


def test_a_copy_does_not_take_the_name_of_an_upload_that_is_not_complete(store: LocalStore) -> None:
    upload(store, "first", "1", b"one", "run")
    store.checkpoints.upload(WRITE, PartDraft("other", "", "u", 0, b"begun"))
    store.threads.copy(WRITE, "first", "other")
    channel = ChannelVersion(channel="a", version=Version(text="2"))
    made = Checkpoint(thread_id="other", id="2", channels=[channel])
    values = {"a": ValueDraft("bytes", b"", UploadName("u", 1))}
    store.checkpoints.save(
        WRITE, [CheckpointDraft(CheckpointName("other", "", "2"), made.SerializeToString(), values)], []
    )

    assert uploaded(store, "other") == {"1": b"one", "2": b"begun"}


def test_a_copy_has_nothing_of_a_user_who_is_deleted_meanwhile(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user_id in ("sarah", "tom"):
        made = Checkpoint(thread_id="shared", id=user_id, user_id=user_id)
        draft = CheckpointDraft(CheckpointName("shared", "", user_id), made.SerializeToString())
        store.checkpoints.save(WRITE, [draft], [])
    copies = Threads._copies

    def copied(self: Threads, write: Write, source: str, target: str) -> Iterator[object]:
        messages = list(copies(self, write, source, target))
        store.users.delete(WRITE, "sarah")
        yield from messages

    monkeypatch.setattr(Threads, "_copies", copied)
    store.threads.copy(NAMED, "shared", "copy")

    assert {name: shown(store)[name] for name in ("shared", "copy")} == {"shared": 1, "copy": 1}
    assert shown(store, "sarah") == {}
