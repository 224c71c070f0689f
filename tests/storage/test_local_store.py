"""The local store: opening, repeating, reading back, and what it refuses."""

from __future__ import annotations

import errno
import json
import random
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.patience import eventually
from tests.storage.opening import READ, WRITE, messages, open_store, shown, take
from tests.store.asking import draft

from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.messages import MessageEmbedding, MessageQuery
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.search import MessageVector
from remora_server.domain.short_term import ShortTermPolicy, Trim
from remora_server.domain.windows import Growth
from remora_server.storage import local_store
from remora_server.storage.database.database import Database
from remora_server.storage.database.directory import DataDirectory, DirectoryError
from remora_server.storage.local_store import LocalStore
from remora_server.storage.schema.kinds import KINDS

NEW = ConversationDraft(id="")
MODEL = "test-model"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(directory: Path) -> Iterator[LocalStore]:
    opened = open_store(directory, model=MODEL)
    yield opened
    opened.close()


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def append(store: LocalStore, *texts: str, conversation: str = "c", user: str = "sarah") -> int:
    return store.messages.append(WRITE, conversation, user, [draft(text=text) for text in texts], NEW).revision


class Growths:
    """Remembers what it is told of windows."""

    def __init__(self) -> None:
        self.tokens: list[int | None] = []

    def written(self, _tenant_id: str, _conversation_id: str, _revision: int, growth: Growth | None) -> None:
        self.tokens.append(None if growth is None else growth.o200k_tokens)


def test_an_append_to_no_conversation_is_told_how_to_make_one(store: LocalStore) -> None:
    with pytest.raises(ConversationNotFound, match="there is no conversation 'c': create_if_missing makes one"):
        store.messages.append(WRITE, "c", "u", [draft("hello")], None)


def journals() -> int:
    """How many threads of journals this process has."""
    found = 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            found += (task / "comm").read_text() == "journal\n"
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists threads as files")
def test_a_start_that_fails_at_its_end_leaves_nothing_open(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = journals()
    with monkeypatch.context() as patched:
        patched.setattr(DataDirectory, "mark_begun", refuse)
        with pytest.raises(DirectoryError, match="no room"):
            open_store(directory)
    eventually(lambda: journals() == before)

    store = open_store(directory)
    append(store, "tea")
    assert journals() == before + 1
    store.close()


def refuse(_directory: DataDirectory) -> None:
    raise OSError(errno.ENOSPC, "no room")


def test_all_conversations_are_known_however_many_a_start_reads_at_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(directory)
    for number in range(5):
        append(store, "tea", conversation=f"c{number}")
    store.close()
    monkeypatch.setattr(local_store, "CONVERSATIONS_AT_ONCE", 2)

    store = open_store(directory)

    for number in range(5):
        assert shown(store, f"c{number}", "sarah")
    store.close()


def test_of_messages_only_those_that_are_pruned_may_be_gone(store: LocalStore) -> None:
    """If the others might be, each receipt of a conversation that is always pruned would write all of them again."""
    template = ConversationDraft("c", "u", storage_limit=3)
    first = store.messages.append(WRITE, "c", "u", [draft(each) for each in "abc"], template)
    store.messages.append(WRITE, "c", "u", [draft(each) for each in "de"], None)
    uid = store.conversations.get(READ, "c", "u")[0].uid

    gone = [sequence for sequence in range(1, 6) if store.windows.has_lost(uid, first.revision, sequence)]
    assert gone == [1, 2]
    assert not store.windows.has_lost(uid, first.revision, 0)


def test_a_window_whose_oldest_messages_are_pruned_only_grows(store: LocalStore) -> None:
    """If it were looked at for each, an append would cost as much as its whole conversation."""
    growths = Growths()
    store.windows.listen(growths)
    created = replace(NEW, storage_limit=2, short_term=ShortTermPolicy(100, Trim(50)))

    for number in range(4):
        store.messages.append(WRITE, "c", "sarah", [draft(f"m{number}", "hello")], created)
    store.messages.delete(WRITE, "c", "sarah", ["m3"])

    assert growths.tokens == [5, 5, 5, 5, None]


def test_a_second_process_is_refused_with_what_to_do(store: LocalStore, directory: Path) -> None:
    with pytest.raises(DirectoryError, match=r"another process serves .*--data"):
        open_store(directory)


def test_a_newer_format_is_refused(directory: Path) -> None:
    open_store(directory).close()
    found = json.loads((directory / "FORMAT").read_text())
    (directory / "FORMAT").write_text(json.dumps({**found, "format_version": 99}))

    with pytest.raises(DirectoryError, match=r"format 99.*upgrade"):
        open_store(directory)


def test_a_newer_schema_is_refused(directory: Path) -> None:
    open_store(directory).close()
    database = Database(directory, 64 << 20)
    database.set_meta("schema_version", "99")
    database.close()

    with pytest.raises(DirectoryError, match=r"schema version 99.*upgrade"):
        open_store(directory)


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")

    with pytest.raises(DirectoryError, match=r"not empty"):
        open_store(tmp_path)


@pytest.mark.parametrize("left", ["lost+found", "FORMAT.new", "LOCK"])
def test_a_new_volume_and_a_killed_first_start_are_no_obstacle(directory: Path, left: str) -> None:
    directory.mkdir()
    (directory / left).mkdir() if left == "lost+found" else (directory / left).touch()

    open_store(directory).close()


def test_a_server_may_listen_on_a_socket_in_its_new_directory(directory: Path) -> None:
    directory.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(directory / "s"))

        open_store(directory).close()


def test_a_refused_directory_is_free_again(directory: Path) -> None:
    open_store(directory).close()
    found = (directory / "FORMAT").read_text()
    (directory / "FORMAT").write_text("{}")
    with pytest.raises(DirectoryError, match=r"damaged"):
        open_store(directory)

    (directory / "FORMAT").write_text(found)

    open_store(directory).close()


def test_a_lost_database_is_rebuilt_from_the_journal(directory: Path) -> None:
    store = open_store(directory)
    append(store, "kept")
    store.expiry.close()
    store.core.close()  # the process ends here: nothing was applied, nothing was checkpointed
    store.applier._stopping = True
    store.applier._thread.join()
    store.database.close()
    assert store._directory is not None
    store._directory.close()
    for file in directory.glob("remora.duckdb*"):
        file.unlink()

    again = open_store(directory)

    assert [text for _, _, text in shown(again, "c", "sarah")] == ["kept"]
    again.close()


@pytest.mark.slow
def test_a_repeat_is_recognised_after_a_restart(directory: Path) -> None:
    write = replace(WRITE, request_id="r1", fingerprint=bytes(16))
    store = open_store(directory)
    first = store.messages.append(write, "c", "sarah", [draft(text="once")], NEW)
    store.close()

    store = open_store(directory)

    assert store.messages.append(write, "c", "sarah", [draft(text="once")], NEW) == first
    store.close()


def test_pages_join_memory_and_disk_without_gaps(directory: Path) -> None:
    store = open_store(directory, window_bytes=100_000)
    for start in range(0, 900, 100):
        append(store, *(f"{number}" for number in range(start, start + 100)))
    store.applier.wait(store.core.published(), None)

    newest_first: list[int] = []
    before = None
    while True:
        page = messages(store, MessageQuery("c", "sarah", limit=70, before_sequence=before))
        newest_first = [int(message.text) for message in page] + newest_first
        if not page or page[0].sequence == 1:
            break
        before = page[0].sequence
    oldest_first = [int(m.text) for m in messages(store, MessageQuery("c", "sarah", newest=False, limit=1000))]

    assert newest_first == oldest_first == list(range(900))
    store.close()


def test_a_page_does_not_grow_over_a_reply_by_a_message_that_is_not_in_memory(directory: Path) -> None:
    store = open_store(directory)
    for size in (1, REPLY_BYTES - 1000, REPLY_BYTES // 2):
        append(store, "x" * size)
    store.close()
    store = open_store(directory)

    before, sizes = None, []
    while before is None or before > 1:
        page = store.messages.list(READ, MessageQuery("c", "sarah", before_sequence=before))
        sizes.append(len(page.encoded) // 1000)
        before = page.first_sequence

    assert max(sizes) * 1000 <= REPLY_BYTES
    assert len(sizes) == 2
    store.close()


def test_a_replaced_message_is_read_back_at_once_however_old_it_is(store: LocalStore) -> None:
    store.messages.append(WRITE, "c", "sarah", [draft(f"m{number}", "old") for number in range(400)], NEW)
    store.applier.wait(store.core.published(), None)

    for turn in range(20):
        store.messages.append(WRITE, "c", "sarah", [draft("m0", f"new {turn}")], NEW)

        assert shown(store, "c", "sarah")[0] == ("m0", "user", f"new {turn}")


@pytest.mark.slow
def test_more_long_messages_than_the_database_has_memory_for_are_kept_and_read_back(directory: Path) -> None:
    store = open_store(directory)
    texts = [random.Random(number).randbytes(50_000).hex() for number in range(600)]
    for number, text in enumerate(texts):
        store.messages.append(WRITE, "c", "sarah", [draft(f"m{number}", text)], NEW)
    store.commits.settle()
    store.close()

    store = open_store(directory)
    assert [message.text for message in messages(store, MessageQuery("c", "sarah", limit=5))] == texts[-5:]
    oldest = messages(store, MessageQuery("c", "sarah", newest=False, limit=5))
    assert [message.text for message in oldest] == texts[:5]
    store.close()


@pytest.mark.slow
def test_a_user_is_deleted_whose_conversations_do_not_fit_into_memory(directory: Path) -> None:
    store = open_store(directory, window_bytes=1)
    for number in range(20):
        append(store, "owner's", conversation=f"c{number}", user="tom")
        append(store, "guest's", conversation=f"c{number}", user="sarah")
    store.applier.wait(store.core.published(), None)

    assert store.users.delete(WRITE, "sarah").deleted_messages == 20
    store.close()


def test_messages_wait_for_a_vector_once_each(store: LocalStore) -> None:
    append(store, "one", "", "two")
    store.messages.append(
        WRITE, "c", "sarah", [draft(text="own", embedding=MessageEmbedding("theirs", vector(1, 0)))], NEW
    )

    waiting = take(store.pending, 10)

    assert [message.text for message in waiting] == ["two", "one"]
    assert take(store.pending, 10) == []


def test_vectors_are_kept_with_their_model_and_leave_with_their_message(store: LocalStore) -> None:
    append(store, "one", "two")
    waiting = take(store.pending, 10)
    store.pending.put_embeddings([MessageVector(message, vector(3, 4)) for message in waiting])
    store.applier.wait(store.core.published(), None)
    rows = store.database.rows('SELECT model, dimension, "values" FROM embeddings')
    assert rows == [(MODEL, 2, [3.0, 4.0])] * 2

    store.messages.clear(WRITE, "c", "sarah")
    store.applier.wait(store.core.published(), None)

    assert store.database.rows("SELECT * FROM embeddings") == []


def test_a_vector_of_a_message_that_moved_on_is_ignored(store: LocalStore) -> None:
    store.messages.append(WRITE, "c", "sarah", [draft("m", "old")], NEW)
    waiting = take(store.pending, 10)
    store.messages.append(WRITE, "c", "sarah", [draft("m", "new")], NEW)

    store.pending.put_embeddings([MessageVector(message, vector(1, 0)) for message in waiting])
    store.applier.wait(store.core.published(), None)

    assert store.database.rows("SELECT * FROM embeddings") == []


@pytest.mark.parametrize("applied_between", [True, False])
def test_a_late_vector_leaves_the_valid_one_alone(store: LocalStore, applied_between: bool) -> None:
    store.messages.append(WRITE, "c", "sarah", [draft("m", "a long old text")], NEW)
    late = take(store.pending, 10)
    own = MessageEmbedding(MODEL, vector(0, 1))
    revision = store.messages.append(WRITE, "c", "sarah", [draft("m", "new", embedding=own)], NEW).revision
    if applied_between:
        store.applier.wait(revision, None)

    store.pending.put_embeddings([MessageVector(message, vector(1, 0)) for message in late])
    store.applier.wait(store.core.published(), None)

    rows = store.database.rows('SELECT message_revision, by_caller, "values" FROM embeddings')
    assert rows == [(revision, True, [0.0, 1.0])]


def test_the_servers_vector_never_replaces_the_callers(store: LocalStore) -> None:
    append(store, "text")
    [message] = take(store.pending, 10)
    own = MessageEmbedding(MODEL, vector(0, 1))
    store.messages.append(WRITE, "c", "sarah", [draft("m", "own", embedding=own)], NEW)

    store.pending.put_embeddings([MessageVector(replace(message, sequence=2, revision=2), vector(1, 0))])
    store.applier.wait(store.core.published(), None)

    assert store.database.rows('SELECT "values" FROM embeddings') == [([0.0, 1.0],)]


@pytest.mark.slow
def test_another_model_embeds_again_what_the_first_has_done(directory: Path) -> None:
    store = open_store(directory, model=MODEL)
    append(store, "one")
    waiting = take(store.pending, 10)
    store.pending.put_embeddings([MessageVector(message, vector(1, 0)) for message in waiting])
    store.close()

    store = open_store(directory, model="another")

    assert [message.text for message in take(store.pending, 10)] == ["one"]
    store.close()


def test_nothing_is_left_of_a_deleted_user(store: LocalStore) -> None:
    append(store, "mine", conversation="own")
    append(store, "owner's", conversation="shared", user="tom")
    append(store, "guest's", conversation="shared", user="sarah")
    waiting = take(store.pending, 10)
    store.pending.put_embeddings([MessageVector(message, vector(1, 0)) for message in waiting])

    outcome = store.users.delete(WRITE, "sarah")

    assert (outcome.deleted_conversations, outcome.deleted_messages) == (1, 2)
    store.applier.wait(store.core.published(), None)
    for table in ("conversations", "messages", *(kind.name for kind in KINDS if kind.of_user)):
        assert store.database.rows(f"SELECT * FROM {table} WHERE user_id = 'sarah'") == []
    assert len(store.database.rows("SELECT * FROM embeddings")) == 1
