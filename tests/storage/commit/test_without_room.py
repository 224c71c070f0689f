"""A database that finds no room, on the disk or in memory, for what the journal holds, also when it is opened:
everything acknowledged is served all the same.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace
from tests.examples import examples
from tests.patience import PATIENCE
from tests.storage.opening import READ, TENANT, WRITE, open_store, shown, take
from tests.store.asking import draft, searched

from remora.v1 import message_pb2
from remora_server.domain.calls import Write
from remora_server.domain.conversations import ConversationDraft, ConversationQuery
from remora_server.domain.errors import ConversationNotFound, MemoryExhausted, RequestIdReused
from remora_server.domain.messages import Append, Edit, Keep, Remove
from remora_server.domain.search import (
    InConversation,
    OfTenant,
    OfUser,
    Profile,
    Scope,
    SearchOptions,
    SearchQuery,
    WordsOnly,
)
from remora_server.storage.commit import applier
from remora_server.storage.commit.applier import Applier
from remora_server.storage.database.database import Database
from remora_server.storage.local_store import LocalStore, NotApplied

USERS = ["sarah", "tom"]
CONVERSATIONS = ["c1", "c2", "c3"]
IDS = ["m1", "m2", "m3", "m4"]
NEW = ConversationDraft(id="")
WORD = "river"
"""In every text."""


class Room:
    """What the databases of a test have: on the disk, for logs and checkpoints, or `in_memory`, for any commit."""

    def __init__(self, *, in_memory: bool) -> None:
        self.is_full = False
        self._in_memory = in_memory

    def require(self, _directory: Path, _size: int) -> None:
        """As `require_room`."""
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextmanager
    def under(self) -> Iterator[None]:
        """Have databases meet the lack of it."""
        write_with_room = Database.transact

        def transact(database: Database, write: Callable[[duckdb.DuckDBPyConnection], object]) -> None:
            if self.is_full and self._in_memory:
                raise duckdb.OutOfMemoryException("Out of Memory Error")
            if database.logs:
                self.require(Path(), 0)
            write_with_room(database, write)

        with (
            patch.object(Database, "transact", transact),
            patch("remora_server.storage.database.database.require_room", self.require),
            patch.object(applier, "RETRY_SECONDS", 0.01),
            patch.object(applier, "TICK_SECONDS", 0.01),
        ):
            yield

    @contextmanager
    def given_to(self, store: LocalStore) -> Iterator[None]:
        """Room that lasts until the store has used it."""
        self.is_full = False
        while store.applier.lacking or store.applier.applied < store.core.published():
            time.sleep(0.001)
        yield
        self.is_full = True


@pytest.fixture(params=["disk", "memory"])
def room(request: pytest.FixtureRequest) -> Iterator[Room]:
    made = Room(in_memory=request.param == "memory")
    with made.under():
        yield made


@pytest.fixture
def memory() -> Iterator[Room]:
    made = Room(in_memory=True)
    with made.under():
        yield made


def killed(store: LocalStore, directory: Path) -> Path:
    """The directory of a store as it is now, which nobody has closed."""
    copy = directory.with_name(directory.name + "'")
    shutil.copytree(directory, copy)
    with patch.object(Applier, "_apply_next", return_value=False), suppress(NotApplied):
        store.close()
    return copy


def found(store: LocalStore, scope: Scope) -> set[tuple[str, str]]:
    """Conversations and texts that a search finds."""
    options = SearchOptions(profile=Profile.LEXICAL, k=100)
    hits = searched(store, READ, SearchQuery(scope, WORD, None, options, 0.0, words_only=WordsOnly.PROFILE)).hits
    return {(hit.conversation_id, message_pb2.Message.FromString(hit.encoded).text) for hit in hits}


class FullMachine(RuleBasedStateMachine):
    """Does each thing to the store and to a model of it. There is no room but for moments; kills come any time, and so
    do failures of the database that end it for good.
    """

    def __init__(self, *, in_memory: bool) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="remora-full-"))
        self.directory = self.folder / "data"
        self.room = Room(in_memory=in_memory)
        self.patched = self.room.under()
        self.patched.__enter__()
        self.store = open_store(self.directory, window_bytes=20_000)
        self.room.is_full = True
        self.model: dict[str, dict[str, dict[str, str]]] = {}
        """Texts by conversation, user and id."""

    def teardown(self) -> None:
        self.room.is_full = False
        self.store.close()
        self.patched.__exit__(None, None, None)
        shutil.rmtree(self.folder)

    @rule(
        conversation=st.sampled_from(CONVERSATIONS),
        user=st.sampled_from(USERS),
        batch=st.lists(st.tuples(st.sampled_from(IDS), st.integers(0, 99)), min_size=1, max_size=3),
    )
    def append(self, conversation: str, user: str, batch: list[tuple[str, int]]) -> None:
        texts = [(message_id, f"{WORD} {number}") for message_id, number in batch]
        self.store.messages.append(WRITE, conversation, user, [draft(*each) for each in texts], NEW)
        self.model.setdefault(conversation, {}).setdefault(user, {}).update(texts)

    @rule(conversation=st.sampled_from(CONVERSATIONS), user=st.sampled_from(USERS), gone=st.sampled_from(IDS))
    def edit(self, conversation: str, user: str, gone: str) -> None:
        if conversation in self.model:
            edits: list[Edit] = [Remove(gone), Append(draft(gone, f"{WORD} edited")), Keep(-2, None)]
            self.store.messages.edit(WRITE, conversation, user, edits, allow_missing=True)
            part = self.model[conversation].setdefault(user, {})
            part.pop(gone, None)
            part[gone] = f"{WORD} edited"
            self.model[conversation][user] = dict(list(part.items())[-2:])

    @rule(conversation=st.sampled_from(CONVERSATIONS), user=st.sampled_from(USERS))
    def clear(self, conversation: str, user: str) -> None:
        if conversation in self.model:
            self.store.messages.clear(WRITE, conversation, user)
            self.model[conversation].pop(user, None)

    @rule(conversation=st.sampled_from(CONVERSATIONS))
    def delete(self, conversation: str) -> None:
        if self.model.pop(conversation, None) is not None:
            self.store.conversations.delete(WRITE, conversation, "", allow_missing=False)

    @rule()
    def there_is_room_for_a_moment(self) -> None:
        with self.room.given_to(self.store):
            pass

    @rule()
    def the_database_fails_for_good(self) -> None:
        self.store.applier._must_reopen = True
        while self.store.applier._must_reopen:
            time.sleep(0.001)

    @rule()
    def kill_and_start(self) -> None:
        self.directory = killed(self.store, self.directory)
        self.store = open_store(self.directory, window_bytes=20_000)

    @invariant()
    def lists_are_the_models(self) -> None:
        for conversation in CONVERSATIONS:
            for user in USERS:
                if conversation in self.model:
                    part = self.model[conversation].get(user, {})
                    assert dict(self.listed(conversation, user)) == part
                else:
                    with pytest.raises(ConversationNotFound):
                        shown(self.store, conversation, user)

    def listed(self, conversation: str, user: str) -> list[tuple[str, str]]:
        return [(message_id, text) for message_id, _, text in shown(self.store, conversation, user)]

    @invariant()
    def searches_find_what_the_model_has(self) -> None:
        everywhere = set()
        for user in USERS:
            of_user = set()
            for conversation, parts in self.model.items():
                here = {(conversation, text) for text in parts.get(user, {}).values()}
                assert found(self.store, InConversation(conversation, user)) == here
                of_user |= here
            assert found(self.store, OfUser(user)) == of_user
            everywhere |= of_user
        assert found(self.store, OfTenant()) == everywhere


class FullDiskMachine(FullMachine):
    """The disk has no room for the database's log."""

    def __init__(self) -> None:
        super().__init__(in_memory=False)

    @invariant()
    def the_database_answers(self) -> None:
        listed, _ = self.store.conversations.list(READ, ConversationQuery(limit=10))
        assert {row.draft.id for row in listed} == self.model.keys()


class FullMemoryMachine(FullMachine):
    """The database has no memory for anything new."""

    def __init__(self) -> None:
        super().__init__(in_memory=True)


TestFullDisk = FullDiskMachine.TestCase
TestFullMemory = FullMemoryMachine.TestCase
TestFullDisk.settings = TestFullMemory.settings = settings(
    max_examples=examples(6), stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
def test_what_asks_a_database_without_memory_is_refused_until_there_is_some(memory: Room, tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    store.messages.append(WRITE, "before", "sarah", [draft("m", WORD)], NEW)
    store.commits.settle()
    memory.is_full = True
    store.messages.append(WRITE, "after", "sarah", [draft("m", WORD)], NEW)

    store = open_store(killed(store, tmp_path / "data"))

    with pytest.raises(MemoryExhausted):
        store.conversations.list(READ, ConversationQuery(limit=10))
    assert "memory" in store.status().failure
    assert not store.failure(), "it serves"
    with memory.given_to(store):
        listed, _ = store.conversations.list(READ, ConversationQuery(limit=10))
        assert {row.draft.id for row in listed} == {"before", "after"}
        assert not store.status().failure
        store.close()


def test_a_request_is_known_that_the_database_does_not_have(room: Room, tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    room.is_full = True
    write = Write(TENANT, method="Test", request_id="once", fingerprint=bytes(16))
    first = store.messages.append(write, "c", "sarah", [draft("m", WORD)], NEW)

    store = open_store(killed(store, tmp_path / "data"))

    with pytest.raises(RequestIdReused):
        store.messages.append(replace(write, fingerprint=bytes(15) + b"\1"), "c", "sarah", [draft("m", WORD)], NEW)
    with room.given_to(store):
        assert store.messages.append(write, "c", "sarah", [draft("m", WORD)], NEW) == first
        assert shown(store, "c", "sarah") == [("m", "user", WORD)]
        store.close()


def test_messages_that_the_database_got_late_are_embedded(room: Room, tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", model="letters")
    room.is_full = True
    store.messages.append(WRITE, "c", "sarah", [draft("m", WORD)], NEW)
    store = open_store(killed(store, tmp_path / "data"), model="letters")

    with room.given_to(store):
        assert [each.text for each in take(store.pending, 10, timeout=PATIENCE)] == [WORD]
        store.close()


@pytest.mark.slow
def test_what_was_applied_without_a_log_is_applied_again_where_the_disk_stays_full(tmp_path: Path) -> None:
    room = Room(in_memory=False)
    with room.under():
        store = open_store(tmp_path / "data")
        room.is_full = True
        store.messages.append(WRITE, "c", "sarah", [draft("m", WORD)], NEW)
        assert store.conversations.list(READ, ConversationQuery(limit=10))[0]
        assert not store.database.logs

        store = open_store(killed(store, tmp_path / "data"))

        assert [row.draft.id for row in store.conversations.list(READ, ConversationQuery(limit=10))[0]] == ["c"]
        assert "room" in store.status().failure
        with room.given_to(store):
            assert store.database.logs
            store.messages.append(WRITE, "d", "sarah", [draft("m", WORD)], NEW)
            store.commits.settle()
            store.close()
