"""Several values of one version of a channel, of which some have been deleted."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.storage.opening import READ, WRITE, open_store

from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint, Version
from remora.v1.checkpoint_service_pb2 import GetCheckpointsResponse, ListCheckpointsResponse
from remora_server.domain.calls import Read, Write
from remora_server.domain.checkpoints import (
    ChannelValueName,
    CheckpointDraft,
    CheckpointName,
    CheckpointQuery,
    ValueDraft,
)
from remora_server.domain.differences import STRIDE
from remora_server.storage.local_store import LocalStore
from remora_server.storage.nouns import channel_values
from remora_server.storage.records.reader import Partition


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = open_store(tmp_path / "data")
    yield opened
    opened.close()


def save(
    store: LocalStore,
    checkpoint_id: str,
    value: bytes | None = None,
    *,
    thread: str = "t",
    parent: str = "",
    user: str = "",
    run: str = "",
    write: Write = WRITE,
) -> None:
    """A checkpoint in which a channel has version 1, whose value is new unless it is None."""
    checkpoint = Checkpoint(
        thread_id=thread,
        id=checkpoint_id,
        parent_id=parent,
        user_id=user,
        run_id=run,
        channels=[ChannelVersion(channel="a", version=Version(integer=1))],
    )
    values = {} if value is None else {"a": ValueDraft("bytes", value)}
    name = CheckpointName(thread, "", checkpoint_id)
    store.checkpoints.save(write, [CheckpointDraft(name, checkpoint.SerializeToString(), values, user)], [])


def value(store: LocalStore, checkpoint_id: str, thread: str = "t") -> bytes | None:
    """What the channel has in a checkpoint."""
    found, _ = store.checkpoints.get(READ, [CheckpointName(thread, "", checkpoint_id)])
    values = GetCheckpointsResponse.FromString(found).checkpoints[0].values
    return values[0].value.data if values else None


def threads(store: LocalStore) -> dict[str, dict[str, bytes]]:
    """What the channel has in the checkpoints of all threads; nothing where it has no value."""
    found: dict[str, dict[str, bytes]] = {}
    for each in ListCheckpointsResponse.FromString(store.checkpoints.list(READ, CheckpointQuery()).encoded).checkpoints:
        own = found.setdefault(each.checkpoint.thread_id, {})
        own[each.checkpoint.id] = each.values[0].value.data if each.values else b""
    return found


def test_a_checkpoint_without_a_parent_has_the_value_of_its_version_that_was_stored_last(store: LocalStore) -> None:
    save(store, "1", b"one", run="gone")
    save(store, "2", b"two")
    store.threads.delete_runs(WRITE, ["gone"])
    save(store, "3")

    assert value(store, "3") == b"two"

    save(store, "4", b"four")
    save(store, "5")

    assert value(store, "5") == b"four"


def test_a_value_that_was_accepted_and_is_not_on_disk_yet_is_the_last_of_its_version(store: LocalStore) -> None:
    at_once = replace(WRITE, waits_for_disk=False)
    for number in range(20):
        save(store, "1", b"%d" % number, write=at_once)
        save(store, "2")

        assert value(store, "2") == b"%d" % number


def test_a_value_is_read_by_its_fork_or_as_the_last_of_its_version(store: LocalStore) -> None:
    save(store, "1", b"one")
    save(store, "2", b"two")
    found, _ = store.checkpoints.get(READ, [CheckpointName("t", "", each) for each in ("1", "2")])
    forks = [each.checkpoint.channels[0].fork for each in GetCheckpointsResponse.FromString(found).checkpoints]

    read = [store.checkpoints.read_value(READ, ChannelValueName("t", "", "a", "#1", each), 0) for each in (*forks, 0)]

    assert [each.data for each in read] == [b"one", b"two", b"two"]


def test_the_last_value_of_a_request_is_the_last(store: LocalStore) -> None:
    drafts = []
    for checkpoint_id, given in {"1": b"one", "2": b"two", "3": None}.items():
        channel = ChannelVersion(channel="a", version=Version(integer=1))
        made = Checkpoint(thread_id="t", id=checkpoint_id, channels=[channel])
        values = {} if given is None else {"a": ValueDraft("bytes", given)}
        drafts.append(CheckpointDraft(CheckpointName("t", "", checkpoint_id), made.SerializeToString(), values))
    store.checkpoints.save(WRITE, drafts, [])
    save(store, "4")

    assert (value(store, "3"), value(store, "4")) == (b"two", b"two")


@pytest.mark.parametrize("others", [0, 1])
def test_nothing_takes_the_place_of_a_value_that_went_with_its_user(store: LocalStore, others: int) -> None:
    for number in range(others):
        save(store, f"0{number}", b"other %d" % number)
    save(store, "1", b"hers", user="sarah")
    save(store, "2", parent="1", user="tom")
    store.users.delete(WRITE, "sarah")
    save(store, "3", b"later")

    assert (value(store, "2"), value(store, "3")) == (None, b"later")

    save(store, "4", parent="2", user="tom")

    assert value(store, "4") is None


def test_what_went_with_its_user_is_no_other_value_in_a_copy(store: LocalStore) -> None:
    save(store, "1", b"hers", user="sarah")
    save(store, "2", parent="1", user="tom")
    store.users.delete(WRITE, "sarah")
    save(store, "3", b"there", thread="copy")
    store.threads.copy(WRITE, "t", "copy")

    assert (value(store, "2", "copy"), value(store, "3", "copy")) == (None, b"there")


def test_a_copy_into_a_thread_keeps_apart_what_went_with_its_user_there(store: LocalStore) -> None:
    save(store, "1", b"hers", user="sarah", thread="copy")
    save(store, "2", parent="1", user="tom", thread="copy")
    store.users.delete(WRITE, "sarah")
    save(store, "3", b"copied")
    store.threads.copy(WRITE, "t", "copy")

    assert (value(store, "2", "copy"), value(store, "3", "copy")) == (None, b"copied")


def test_what_is_saved_during_a_copy_is_copied_with_its_value_or_not_at_all(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(store, "1", b"1")
    bodies = store.threads.bodies

    def saved_meanwhile(read: Read, place: Partition) -> Iterator[bytes]:
        yield from bodies(read, place)
        saved = str(len(threads(store)["t"]) + 1)
        save(store, saved, saved.encode())

    monkeypatch.setattr(store.threads, "bodies", saved_meanwhile)
    store.threads.copy(WRITE, "t", "copy")

    copied = threads(store)["copy"]
    assert copied
    assert copied == {each: each.encode() for each in copied}


def test_a_value_is_stored_once(store: LocalStore) -> None:
    save(store, "1", b"one")
    save(store, "2", b"two")
    for checkpoint_id in ("3", "4"):
        save(store, checkpoint_id, b"one")
    for _ in range(2):
        store.threads.copy(WRITE, "t", "copy")

    store.applier.wait(store.core.published(), None)
    assert store.database.rows("SELECT count(*) FROM channel_blobs") == [(4,)]


def test_another_users_value_is_one_of_its_own(store: LocalStore) -> None:
    save(store, "1", b"one", user="sarah")
    save(store, "2", b"one", user="tom")
    store.users.delete(WRITE, "sarah")

    assert value(store, "2") == b"one"


def grow(store: LocalStore, values: Sequence[bytes]) -> None:
    """A thread whose checkpoints follow one another, each with its value."""
    for number, given in enumerate(values):
        channel = ChannelVersion(channel="a", version=Version(integer=number))
        parent = f"{number - 1:04}" if number else ""
        made = Checkpoint(thread_id="t", id=f"{number:04}", parent_id=parent, channels=[channel])
        name = CheckpointName("t", "", made.id)
        write = replace(WRITE, waits_for_disk=number == len(values) - 1)
        draft = CheckpointDraft(name, made.SerializeToString(), {"a": ValueDraft("x", given)})
        store.checkpoints.save(write, [draft], [])


def texts_of_turns(turns: int) -> list[bytes]:
    """A text that grows with each turn, and has nothing to compress."""
    turn = random.Random(1).randbytes
    return list(accumulate(turn(200) for _ in range(turns)))


def test_a_value_that_grows_costs_what_it_grows_by(store: LocalStore) -> None:
    values = texts_of_turns(2 * STRIDE + 50)
    grow(store, values)

    store.applier.wait(store.core.published(), None)
    [(stored,)] = store.database.rows("SELECT sum(octet_length(body)) FROM channel_blobs")
    assert int(str(stored)) < 3 * len(values[-1])  # once by turns, once in strides, and what is around them


def test_a_value_at_the_end_of_many_is_read_after_a_restart(tmp_path: Path) -> None:
    values = texts_of_turns(2 * STRIDE + 50)
    store = open_store(tmp_path / "data")
    grow(store, values)
    store.close()
    store = open_store(tmp_path / "data")
    try:
        for number in (-1, STRIDE, 2 * STRIDE - 1, 2 * STRIDE, 0):
            assert value(store, f"{number % len(values):04}") == values[number]
        depths = [depth for (depth,) in store.database.rows("SELECT depth FROM channel_blobs ORDER BY depth")]
        assert depths == list(range(len(values)))
        store.threads.prune(WRITE, ["t"], keep_latest=True)
        store.threads.copy(WRITE, "t", "copy")
        for thread in ("t", "copy"):
            assert threads(store)[thread] == {f"{len(values) - 1:04}": values[-1]}
        store.applier.wait(store.core.published(), None)
        left = 50 + 2  # the differences since the last stride, that of each stride, and the whole value
        assert store.database.rows("SELECT count(*) FROM channel_blobs") == [(2 * left,)]
    finally:
        store.close()


def test_a_value_is_whole_where_too_many_would_be_read_for_it(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_values, "STRIDE", 3)
    monkeypatch.setattr(channel_values, "GREATEST_DEPTH", 9)
    values = texts_of_turns(20)
    grow(store, values)

    store.applier.wait(store.core.published(), None)
    rows = store.database.rows("SELECT depth, base_version FROM channel_blobs ORDER BY revision")
    assert [depth for depth, _ in rows] == [number % 9 for number in range(20)]
    assert [base for _, base in rows[:8]] == ["", "#0", "#1", "#0", "#3", "#4", "#3", "#6"]
    assert [value(store, f"{number:04}") for number in range(20)] == values
