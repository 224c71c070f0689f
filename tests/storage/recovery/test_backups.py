"""Snapshots: what they hold, that they are verified, and that a failure leaves the store as it was."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tests.faults.small_disk import not_mounted
from tests.patience import PATIENCE
from tests.storage.opening import READ, WRITE, open_store
from tests.store.asking import draft

from remora_server.domain.backups import Backup
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import BackupNotFound, BackupUnavailable, StoreFull
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.directory import sync_file
from remora_server.storage.local_store import LocalStore
from remora_server.storage.recovery import backups


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = open_store(tmp_path / "data")
    yield opened
    opened.close()


def append(store: LocalStore, count: int = 1, text: str = "hello") -> None:
    messages = [draft(text=f"{text} {number}") for number in range(count)]
    store.messages.append(WRITE, "c", "u", messages, ConversationDraft("c", "u"))


def create(store: LocalStore) -> Backup:
    return store.backups.create(time.monotonic() + PATIENCE)


def snapshots(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "data" / "backups"
    return sorted(folder.iterdir()) if folder.exists() else []


def messages_in(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        return int(connection.execute("SELECT count(*) FROM messages").fetchall()[0][0])


@pytest.mark.slow
def test_a_snapshot_holds_what_was_acknowledged_a_moment_before(store: LocalStore, tmp_path: Path) -> None:
    for count in range(1, 6):
        append(store)

        made = create(store)

        assert made.revision == store.core.published()
        assert made.rows["messages"] == count
        [file] = snapshots(tmp_path)
        assert messages_in(file) == count


def test_a_snapshot_that_waited_for_nothing_would_miss_it(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof that the test before can fail."""
    monkeypatch.setattr(Commits, "begin_query", lambda *_: 0)
    append(store)

    assert create(store).rows["messages"] == 0


def test_a_snapshot_is_read_in_parts_that_make_the_file(store: LocalStore, tmp_path: Path) -> None:
    append(store, 1000)
    made = create(store)
    content = b""
    while part := store.backups.read(made.id, len(content)):
        content += part

    [file] = snapshots(tmp_path)
    assert content == file.read_bytes()
    assert len(content) == made.size > backups.READ_BYTES


def test_deleted_content_is_not_in_a_snapshot(store: LocalStore, tmp_path: Path) -> None:
    append(store, text="a secret that was deleted")
    create(store)
    [file] = snapshots(tmp_path)
    assert b"a secret that was deleted" in file.read_bytes()
    store.messages.clear(WRITE, "c", "u")

    create(store)

    [file] = snapshots(tmp_path)
    assert b"a secret that was deleted" not in file.read_bytes()


def test_a_copy_that_is_not_the_same_is_refused_and_removed(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(store)

    def lose_a_row(file: Path) -> None:
        with duckdb.connect(str(file)) as connection:
            connection.execute("UPDATE messages SET text = 'hullo'")
        sync_file(file)

    with monkeypatch.context() as patched:
        patched.setattr(backups, "sync_file", lose_a_row)
        with pytest.raises(RuntimeError, match="does not hold what the database held"):
            create(store)

    assert snapshots(tmp_path) == []
    append(store)
    assert create(store).rows["messages"] == 2


def test_a_second_backup_at_the_same_time_is_refused(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    append(store)
    begun, going_on = threading.Event(), threading.Event()

    def wait(*_: object) -> int:
        begun.set()
        assert going_on.wait(PATIENCE)
        return 0

    monkeypatch.setattr(Commits, "begin_query", wait)
    first = threading.Thread(target=create, args=(store,))
    first.start()
    assert begun.wait(PATIENCE)

    with pytest.raises(BackupUnavailable, match="another backup is under way"):
        create(store)

    going_on.set()
    first.join(PATIENCE)


def test_a_store_in_memory_makes_none() -> None:
    store = open_store(None)

    with pytest.raises(BackupUnavailable, match="in memory only"):
        create(store)
    with pytest.raises(BackupNotFound):
        store.backups.read("b", 0)

    store.close()


def test_what_a_process_before_left_is_removed_at_start(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    append(store)
    create(store)
    assert len(snapshots(tmp_path)) == 1
    store.close()

    store = open_store(tmp_path / "data")

    assert snapshots(tmp_path) == []
    store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(mount)]
    mounted = subprocess.run(command, check=False, capture_output=True)
    if mounted.returncode:
        not_mounted(mounted.stderr)
    yield mount
    subprocess.run(["umount", "--lazy", mount], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("is_seen_before", [True, False])
def test_a_full_disk_is_said_and_harms_nothing(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, *, is_seen_before: bool
) -> None:
    data = small_disk / "data"
    store = open_store(data)
    append(store)
    ballast = data / "ballast"
    with ballast.open("wb") as stream:
        while shutil.disk_usage(small_disk).free > 1 << 20:
            stream.write(bytes(1 << 19))
            stream.flush()
    if not is_seen_before:
        monkeypatch.setattr(store.database, "bytes", lambda: 0)

    with pytest.raises(StoreFull):
        create(store)

    folder = data / "backups"
    assert not folder.exists() or list(folder.iterdir()) == []
    append(store)
    assert store.conversations.count(READ, "", "")[0] == 1
    ballast.unlink()
    assert create(store).rows["messages"] == 2
    store.close()
