"""Values of channels that were uploaded, also one that is longer than what the database may keep in memory."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

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
    UploadName,
    ValueDraft,
)
from remora_server.domain.errors import UploadIncomplete, UploadNamed
from remora_server.domain.uploads import PART_BYTES
from remora_server.storage.local_store import LocalStore, StoreOptions

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


def value(store: LocalStore, version: int) -> bytes:
    """A value as clients read it, part by part."""
    name = ChannelValueName("t", "", "state", f"#{version}", 0)
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
