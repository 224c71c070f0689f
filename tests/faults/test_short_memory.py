"""A database with too little memory: requests are refused until there is more, what was acknowledged stays, and nothing
fails for good.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import duckdb
import pytest
from msgspec.structs import replace
from tests.faults.served_store import ServedStore, refused
from tests.patience import PATIENCE, eventually
from tests.storage.opening import READ, WRITE, shown
from tests.store.asking import draft, searched

from remora.errors import RemoraError
from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain.calls import Read
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import MemoryExhausted
from remora_server.domain.messages import MessageDraft, MessageEmbedding
from remora_server.domain.search import OfUser, Profile, QueryVector, SearchOptions, SearchQuery
from remora_server.storage.commit import applier
from remora_server.storage.database import database
from remora_server.storage.local_store import LocalStore, NotApplied, StoreOptions

pytestmark = pytest.mark.slow

MEBIBYTE = 1 << 20
LEAST, TOO_LITTLE, ENOUGH = 32 * MEBIBYTE, 12 * MEBIBYTE, 96 * MEBIBYTE
MODEL, DIMENSION = "a-callers-model", 384
FORGOTTEN_SECONDS = 1.1
"""After so long, users who are not active may leave memory."""
MOST = 100
"""Conversations after which memory is short at the latest."""


def open_store(
    directory: Path, database_bytes: int, recall_bytes: int = 64 * MEBIBYTE, searches: int = 16
) -> LocalStore:
    options = StoreOptions(
        directory,
        segment_bytes=4 * MEBIBYTE,
        queue_bytes=MEBIBYTE,
        database_bytes=database_bytes,
        recall_bytes=recall_bytes,
        searches=searches,
    )
    return LocalStore(options, count_tokens=lambda texts: [1 for _ in texts])


def vector(number: int) -> bytes:
    """One that no other number has."""
    return struct.pack(f"<{DIMENSION}f", *(((number * 31 + place) % 997) - 498.5 for place in range(DIMENSION)))


def message(number: int) -> MessageDraft:
    return draft(f"m{number}", f"text {number}", embedding=MessageEmbedding(MODEL, vector(number)))


def append(store: LocalStore, conversation: str, user: str, numbers: range) -> None:
    store.messages.append(WRITE, conversation, user, [message(number) for number in numbers], ConversationDraft(""))


def read(seconds: float = PATIENCE) -> Read:
    return replace(READ, deadline=time.monotonic() + seconds)


@pytest.fixture
def volatile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStore]:
    """A server that keeps everything in memory, and has little of it."""
    store = ServedStore(tmp_path_factory.mktemp("m"), "--data=:memory:", f"--database-bytes={LEAST}")
    store.sidecar.start()
    yield store
    store.close()


def is_exhausted(refusal: RemoraError | None) -> bool:
    """Whether it says that memory is lacking, rather than that there is much to do."""
    return refusal is not None and (refusal.code.name, refusal.reason) == ("RESOURCE_EXHAUSTED", "MEMORY_EXHAUSTED")


def newest(store: ServedStore) -> str:
    """The text of the newest message."""
    request = pb.ListMessagesRequest(conversation_id="held", page_size=1)
    return store.memory.stubs.conversations.ListMessages(request, timeout=PATIENCE).messages[0].text


def test_a_store_in_memory_that_is_full_refuses_writes_and_goes_on_reading(volatile: ServedStore) -> None:
    refusal = eventually(lambda: volatile.append_until_refused(size=400_000), until=is_exhausted)

    assert refusal.retry_delay
    assert newest(volatile) == volatile.acknowledged[-1]
    assert eventually(lambda: "raise database_bytes" in volatile.status().store.failure)
    assert not volatile.status().store.writable
    assert eventually(lambda: refused(volatile.conversations), until=is_exhausted)
    assert "Fatal" not in volatile.sidecar.log.read_text()


def append_until_exhausted(store: LocalStore) -> int:
    """Append conversations until the database has no memory to take them; how many."""
    for number in range(MOST):
        append(store, f"c{number}", "sarah", range(100))
        try:
            store.conversations.count(read(), "", "")
        except MemoryExhausted:
            return number + 1
    raise AssertionError("there was memory for everything")


def test_what_is_acknowledged_with_too_little_memory_is_there_with_more(tmp_path: Path) -> None:
    store = open_store(tmp_path, TOO_LITTLE)
    acknowledged = append_until_exhausted(store)

    newest = f"c{acknowledged - 1}"
    assert len(shown(store, newest, "sarah")) == 100, "it is read from memory"
    assert "too little memory" in store.status().failure
    assert not store.failure(), "it may pass"
    with pytest.raises(NotApplied):
        store.close()

    again = open_store(tmp_path, ENOUGH)
    assert again.conversations.count(read(), "", "")[0] == acknowledged
    assert len(shown(again, newest, "sarah")) == 100
    again.close()


USERS, TURNS, EACH = 24, 10, 16
THREADS, ROUNDS = 16, 6


def store_of_many(directory: Path) -> LocalStore:
    """A store with little memory, whose users' messages lie among those of the others, and which forgets users soon.

    It keeps one user, whose share is all of it: loads of several go on at once.
    """
    store = open_store(directory, LEAST, recall_bytes=MEBIBYTE // 2, searches=1)
    for turn in range(TURNS):
        for user in range(USERS):
            first = (turn * USERS + user) * EACH
            append(store, f"c{user}", f"user-{user}", range(first, first + EACH))
    store.conversations.count(read(), "", "")
    store.database.checkpoint()
    return store


def first_of(store: LocalStore, user: int) -> int:
    """A user searches for the first message by its vector; the sequence that is found."""
    options = SearchOptions(k=1, profile=Profile.VECTOR)
    query = SearchQuery(OfUser(f"user-{user}"), "", QueryVector(MODEL, vector(user * EACH), b""), options, 0.0)
    return searched(store, read(), query).hits[0].sequence


def search_at_once(store: LocalStore) -> list[int]:
    """All users search."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(partial(first_of, store), range(USERS)))


def test_users_who_become_active_at_once_find_memory_one_after_the_other(tmp_path: Path) -> None:
    store = store_of_many(tmp_path)

    assert search_at_once(store) == [1] * USERS

    store.close()


def test_without_a_bound_users_who_become_active_at_once_find_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "READ_BYTES", 1 << 10)
    monkeypatch.setattr(database, "DIMENSION_BYTES", 0)
    monkeypatch.setattr(database, "ALONE_BYTES", 0)
    store = store_of_many(tmp_path)

    def none_finds_memory() -> bool:
        found = search_at_once(store)
        time.sleep(FORGOTTEN_SECONDS)
        return not found

    with pytest.raises(MemoryExhausted):
        eventually(none_finds_memory)
    store.close()


def test_threads_that_found_no_memory_to_ask_or_to_end_ask_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("DIMENSION_BYTES", "ALONE_BYTES"):
        monkeypatch.setattr(database, bound, 0)
    monkeypatch.setattr(database, "READ_BYTES", 1 << 10)
    store = store_of_many(tmp_path)

    with ThreadPoolExecutor(THREADS) as pool:
        refusals: set[type[BaseException | None]] = set()

        def all_search() -> set[type[BaseException | None]]:
            asked = [pool.submit(first_of, store, user) for user in range(USERS)]
            refusals.update(type(one.exception()) for one in asked)
            time.sleep(FORGOTTEN_SECONDS)
            return refusals

        for _ in range(ROUNDS):
            all_search()
        eventually(all_search, until={MemoryExhausted, type(None)}.issubset)
        assert [pool.submit(first_of, store, user).result() for user in range(USERS)] == [1] * USERS

    assert refusals == {MemoryExhausted, type(None)}
    store.close()


LONG, MANY = 4096, 2_500


def store_of_long_vectors(directory: Path) -> LocalStore:
    """A store with little memory, opened again; one message in a hundred is sarah's, the others are tom's."""
    store = open_store(directory, LEAST)
    long = MessageEmbedding(MODEL, struct.pack(f"<{LONG}f", *range(1, LONG + 1)))
    for first in range(0, MANY, 100):
        others = [draft(f"m{number}", "text", embedding=long) for number in range(first, first + 99)]
        store.messages.append(WRITE, "c-tom", "tom", others, ConversationDraft(""))
        store.messages.append(WRITE, "c", "sarah", [draft(f"s{first}", "text", embedding=long)], ConversationDraft(""))
    store.conversations.count(read(), "", "")
    store.database.checkpoint()
    store.close()
    return open_store(directory, LEAST)


def found_by_long_vector(store: LocalStore) -> int:
    """How many of sarah's messages are found by a vector."""
    query = QueryVector(MODEL, struct.pack(f"<{LONG}f", *range(1, LONG + 1)), b"")
    options = SearchOptions(k=100, profile=Profile.VECTOR)
    return len(searched(store, read(), SearchQuery(OfUser("sarah"), "", query, options, 0.0)).hits)


def test_long_vectors_that_lie_far_apart_are_read_with_little_memory(tmp_path: Path) -> None:
    store = store_of_long_vectors(tmp_path)

    assert found_by_long_vector(store) == MANY / 100

    store.close()


def test_without_room_for_their_length_long_vectors_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "DIMENSION_BYTES", 0)
    store = store_of_long_vectors(tmp_path)

    with monkeypatch.context() as patched:
        patched.setattr(database, "ALONE_BYTES", 0)
        with pytest.raises(MemoryExhausted):
            found_by_long_vector(store)

    assert found_by_long_vector(store) == MANY / 100, "they are read alone"
    store.close()


LONG_TEXT, IN_ONE = 500_000, 5


def append_long(store: LocalStore, conversations: range) -> None:
    """Append some messages that no compression makes smaller to each of so many conversations."""
    for number in conversations:
        drafts = [draft(f"m{place}", os.urandom(LONG_TEXT // 2).hex()) for place in range(IN_ONE)]
        store.messages.append(WRITE, f"c{number}", "sarah", drafts, ConversationDraft(""))
        store.conversations.count(read(), "", "")


def is_checkpointed(store: LocalStore) -> bool:
    return not store.status().failure and store.database.wal_bytes() == 0


def test_long_messages_are_checkpointed_with_less_memory_than_they_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(applier, "CHECKPOINT_IDLE_SECONDS", 0.0)
    store = open_store(tmp_path, LEAST)
    append_long(store, range(18))

    eventually(lambda: is_checkpointed(store))
    assert "Failed to create checkpoint" in caplog.text, "the memory that it begins with is too little"
    append_long(store, range(18, 20))
    eventually(lambda: is_checkpointed(store))
    store.close()

    again = open_store(tmp_path, LEAST)
    for number in range(20):
        assert [len(message[2]) for message in shown(again, f"c{number}", "sarah")] == [LONG_TEXT] * IN_ONE
    again.close()


def test_long_messages_fill_a_store_in_memory_without_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applier, "TICK_SECONDS", 0.01)
    store = LocalStore(StoreOptions(None, database_bytes=LEAST), count_tokens=lambda texts: [1 for _ in texts])

    with pytest.raises(MemoryExhausted):
        append_long(store, range(MOST))

    assert "too little memory" in store.status().failure
    assert not store.failure(), "it may pass"
    with pytest.raises(NotApplied):
        store.close()


def test_a_full_store_in_memory_can_be_read_and_checkpointed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applier, "TICK_SECONDS", 0.01)
    store = LocalStore(StoreOptions(None, database_bytes=LEAST), count_tokens=lambda texts: [1 for _ in texts])
    with pytest.raises(MemoryExhausted):
        append_long(store, range(MOST))

    store.database.checkpoint()

    conversations = store.database.rows("SELECT count(*) FROM conversations")
    assert store.database.rows("SELECT count(*) FROM messages")[0][0] == conversations[0][0] * IN_ONE > 0
    with pytest.raises(NotApplied):
        store.close()


def test_a_batch_that_finds_no_memory_is_applied_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applier, "BATCH_SECONDS", 0.2)
    store = open_store(tmp_path, ENOUGH)
    transact = store.database.transact
    refusals = iter([True, True])

    def refuse_twice(write: Callable[[duckdb.DuckDBPyConnection], object]) -> None:
        if next(refusals, False):
            raise duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block of size 256.0 KiB")
        transact(write)

    monkeypatch.setattr(store.database, "transact", refuse_twice)
    append(store, "c", "sarah", range(100))
    assert store.conversations.count(read(), "", "")[0] == 1
    assert not next(refusals, False)
    assert not store.status().failure
    store.close()
