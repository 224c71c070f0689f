"""Values of channels that were uploaded, also one that is longer than what the database may keep in memory."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.patience import eventually
from tests.storage.opening import READ, WRITE
from tests.store.asking import count_tokens

from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint, Version
from remora_server.domain.checkpoints import (
    ChannelValueName,
    CheckpointDraft,
    CheckpointName,
    PartDraft,
    TaskDraft,
    UploadName,
    ValueDraft,
    WriteDraft,
    WriteValueName,
)
from remora_server.domain.errors import UploadIncomplete, UploadNamed
from remora_server.domain.uploads import PART_BYTES, UNNAMED_SECONDS
from remora_server.storage.local_store import LocalStore, StoreOptions
from remora_server.storage.schema.kinds import CHECKPOINT_PARTS

MIB = 1 << 20
DATABASE_BYTES = 64 * MIB


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = opened_at(tmp_path)
    yield opened
    opened.close()


def opened_at(directory: Path) -> LocalStore:
    options = StoreOptions(directory / "data", record_bytes=8 * MIB, database_bytes=DATABASE_BYTES)
    return LocalStore(options, count_tokens=count_tokens)


def upload(store: LocalStore, name: str, parts: Sequence[bytes], *, first: int = 0) -> None:
    for index, data in enumerate(parts, first):
        store.checkpoints.upload(WRITE, PartDraft("t", "", name, index, data))


def save(store: LocalStore, version: int, uploaded: UploadName) -> None:
    """A checkpoint with one value, which was uploaded."""
    name = CheckpointName("t", "", str(version))
    channel = ChannelVersion(channel="state", version=Version(integer=version))
    checkpoint = Checkpoint(thread_id="t", id=name.checkpoint_id, channels=[channel])
    draft = CheckpointDraft(name, checkpoint.SerializeToString(), {"state": ValueDraft("bytes", b"", uploaded)})
    store.checkpoints.save(WRITE, [draft], [])


def save_write(store: LocalStore, uploaded: UploadName) -> None:
    """A write of a task, whose value was uploaded."""
    write = WriteDraft("state", 0, ValueDraft("bytes", b"", uploaded))
    store.checkpoints.save(WRITE, [], [TaskDraft(CheckpointName("t", "", "1"), "task", "", (write,))])


def value(store: LocalStore, version: int) -> bytes:
    """A value as clients read it, part by part."""
    return read_parts(store, ChannelValueName("t", "", "state", f"#{version}", 0))


def read_parts(store: LocalStore, name: ChannelValueName | WriteValueName) -> bytes:
    read = b""
    while True:
        part = store.checkpoints.read_value(READ, name, len(read))
        read += part.data
        if len(read) == part.size:
            return read
        assert part.data


def in_parts(data: bytes) -> list[bytes]:
    return [data[begin : begin + PART_BYTES] for begin in range(0, len(data), PART_BYTES)]


@pytest.mark.slow
def test_a_value_beyond_the_memory_of_the_database_is_checkpointed_and_read(tmp_path: Path) -> None:
    state = random.Random(1).randbytes(DATABASE_BYTES)
    store = opened_at(tmp_path)
    parts = in_parts(state)
    upload(store, "u", parts)
    save(store, 1, UploadName("u", len(parts)))
    eventually(lambda: store.applier.applied == store.core.published())
    store.database.checkpoint()
    assert value(store, 1) == state
    assert store.applier.lacking is None
    store.close()

    store = opened_at(tmp_path)
    assert value(store, 1) == state
    store.close()


@pytest.mark.parametrize("size", [1, 16 << 10, (16 << 10) + 1, MIB - 1, MIB, MIB + 1, 3 * MIB + 12_345])
def test_a_value_of_any_length_comes_back_as_it_was_uploaded(store: LocalStore, size: int) -> None:
    data = random.Random(size).randbytes(size)
    upload(store, "u", in_parts(data))
    save(store, 1, UploadName("u", len(in_parts(data))))

    assert value(store, 1) == data


@pytest.mark.parametrize("offset", [MIB + 1, MIB + (16 << 10), 5 * MIB])
def test_behind_the_end_of_a_value_there_is_nothing(store: LocalStore, offset: int) -> None:
    """Who reads a value part by part that was replaced by a shorter one meanwhile must see its new revision."""
    upload(store, "u", [bytes(MIB), b"x"])
    save_write(store, UploadName("u", 2))

    part = store.checkpoints.read_value(READ, WriteValueName("t", "", "1", "task", 0), offset)

    assert (part.data, part.size) == (b"", MIB + 1)


def test_a_part_that_is_uploaded_again_takes_the_place_of_the_longer_one(store: LocalStore) -> None:
    upload(store, "u", [bytes(MIB), bytes(MIB)])
    upload(store, "u", [b"short"], first=1)
    save(store, 1, UploadName("u", 2))

    assert value(store, 1) == bytes(MIB) + b"short"
    with pytest.raises(UploadNamed):
        upload(store, "u", [b"late"], first=1)


def test_only_the_last_part_may_be_short(store: LocalStore) -> None:
    upload(store, "u", [bytes(MIB - 1), b"last"])
    with pytest.raises(UploadIncomplete):
        save(store, 1, UploadName("u", 2))


@contextmanager
def later_than_unnamed_parts(store: LocalStore) -> Iterator[None]:
    """When parts have expired that came before and that nothing has named."""
    now = store.clock()
    with patch.object(store.clock, "_wall", lambda: now + (UNNAMED_SECONDS + 1) * 1_000_000):
        yield


def test_parts_that_nothing_names_expire(store: LocalStore) -> None:
    upload(store, "u", [b"part"])

    with later_than_unnamed_parts(store):
        with pytest.raises(UploadIncomplete):
            save(store, 1, UploadName("u", 1))
        store.commits.settle()
        assert store.expiry.sweep() == 1
        store.commits.settle()
        assert store.database.rows(f"SELECT count(*) FROM {CHECKPOINT_PARTS.name}") == [(0,)]

        upload(store, "u", [b"again"])
        save(store, 1, UploadName("u", 1))
        assert value(store, 1) == b"again"


def test_parts_that_a_checkpoint_or_a_write_names_stay(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(MIB + 5)
    written = WriteValueName("t", "", "1", "task", 0)
    store = opened_at(tmp_path)
    upload(store, "of a value", in_parts(data))
    upload(store, "of a write", in_parts(data[::-1]))
    save(store, 1, UploadName("of a value", 2))
    save_write(store, UploadName("of a write", 2))

    with later_than_unnamed_parts(store):
        store.commits.settle()
        assert store.expiry.sweep() == 0
        assert value(store, 1) == data
        assert read_parts(store, written) == data[::-1]
    store.close()

    store = opened_at(tmp_path)
    with later_than_unnamed_parts(store):
        assert store.expiry.sweep() == 0
        assert value(store, 1) == data
        assert read_parts(store, written) == data[::-1]
    store.close()
