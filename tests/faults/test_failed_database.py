"""A database that fails for good in the midst of a checkpoint is opened again, and has everything in the end."""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually
from tests.storage.opening import TENANT, WRITE, open_store, shown
from tests.store.asking import draft

from remora import Remora
from remora.v1 import conversation_pb2, message_pb2
from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain.calls import Read
from remora_server.domain.conversations import ConversationDraft
from remora_server.storage.commit import applier
from remora_server.storage.local_store import LocalStore

pytestmark = pytest.mark.slow

SEGMENT_BYTES = 1 << 20
PART_BYTES = 32 << 10


def count(store: LocalStore) -> int:
    return store.conversations.count(Read(TENANT, deadline=time.monotonic() + PATIENCE), "", "")[0]


def test_a_database_that_failed_for_good_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    checkpoint, reopen = store.database.checkpoint, store.database.reopen
    failures = iter([True, True])
    reopened: list[str] = []

    def fail_twice() -> None:
        if next(failures, False):
            raise duckdb.FatalException("the disk is full")
        checkpoint()

    def noted_reopen(restore: Callable[[], object], *, logs: bool, has_failed: bool) -> None:
        reopened.append(store.failure())
        if len(reopened) == 1:
            raise duckdb.IOException("the disk is full")
        reopen(restore, logs=logs, has_failed=has_failed)

    monkeypatch.setattr(applier, "CHECKPOINT_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(store.database, "checkpoint", fail_twice)
    monkeypatch.setattr(store.database, "reopen", noted_reopen)
    store.messages.append(WRITE, "c", "sarah", [draft("m1", text="kept")], ConversationDraft("c"))
    before = store.database.cursor()
    eventually(lambda: len(reopened) == 3 and not store.failure())

    kinds = [re.findall(r"\((\w+);", text) for text in reopened]
    assert kinds == [["FatalException"], ["IOException"], ["FatalException"]]
    assert store.database.cursor() is not before, "cursors of the failed one are not used again"
    store.messages.append(WRITE, "d", "sarah", [draft("m2", text="later")], ConversationDraft("d"))
    assert count(store) == 2
    store.close()
    again = open_store(tmp_path)
    assert [shown(again, name, "sarah")[0][2] for name in ("c", "d")] == ["kept", "later"]
    again.close()


def test_a_database_in_memory_that_failed_for_good_is_not_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(None)
    reopened: list[str] = []

    def fail() -> None:
        raise duckdb.FatalException("Failed to create checkpoint: Out of Memory Error")

    monkeypatch.setattr(store.database, "checkpoint", fail)
    monkeypatch.setattr(store.database, "reopen", lambda: reopened.append("empty"))
    store.messages.append(WRITE, "c", "sarah", [draft("m1", text="kept")], ConversationDraft("c"))
    eventually(lambda: "FatalException" in store.failure())

    assert "FatalException" in store.status().failure
    assert shown(store, "c", "sarah")[0][2] == "kept", "it is read from memory"
    assert not reopened, "it would be empty"
    store.close()


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    server = Sidecar(tmp_path, "--model", "none", "--segment-bytes", str(SEGMENT_BYTES))
    server.start()
    yield server
    server.kill()


def append(memory: Remora, name: str) -> None:
    """A message that no database makes smaller."""
    request = pb.AppendMessagesRequest(
        conversation_id=name,
        messages=[message_pb2.Message(id="m", role="user", text=name, parts=os.urandom(PART_BYTES))],
        create_if_missing=conversation_pb2.Conversation(),
    )
    memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)


def count_all(memory: Remora) -> int:
    """How many conversations the database has, once everything is applied."""
    request = pb.CountConversationsRequest()
    return memory.stubs.conversations.CountConversations(request, timeout=PATIENCE).count


def limit_files(sidecar: Sidecar, length: int) -> None:
    """Let the server's files be no longer than this."""
    resource.prlimit(sidecar.pid, resource.RLIMIT_FSIZE, (length, resource.RLIM_INFINITY))


def test_a_checkpoint_that_finds_no_room_is_made_up_for_when_there_is_room(sidecar: Sidecar) -> None:
    names = [f"c{number}" for number in range(80)]
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        for name in names:
            append(memory, name)
        assert count_all(memory) == len(names), "all is in the write-ahead log"
        # The journal's segments are as long as that; the file needs more when the checkpoint comes.
        limit_files(sidecar, SEGMENT_BYTES)
        eventually(lambda: "FatalException" in sidecar.log.read_text())
        append(memory, "with no room")

        limit_files(sidecar, resource.RLIM_INFINITY)
        eventually(lambda: memory.status().store.failure == "")
        assert count_all(memory) == len(names) + 1
        assert memory.status().store.applied_revision == memory.status().store.revision

    assert sidecar.stop() == 0
    sidecar.start()
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        texts = [memory.conversation(name).messages()[0].text for name in [*names, "with no room"]]
        assert texts == [*names, "with no room"]
