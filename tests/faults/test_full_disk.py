"""A disk that is really full, under each part of a store: writes are refused until there is room, reads go on, nothing
that was acknowledged is lost, and no restart is needed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from tests.faults.served_store import ServedStore, refused
from tests.faults.small_disk import SmallDisk
from tests.faults.watched import WATCHED, Watched
from tests.patience import PATIENCE, eventually

from remora.errors import RemoraError
from remora.v1.memory_service_pb2 import Profile, SearchMessagesRequest, SearchOptions

pytestmark = pytest.mark.slow

MEBIBYTE = 1 << 20
SEGMENT = MEBIBYTE
CONVERSATIONS = "remora.v1.ConversationService"
SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


class Store(ServedStore):
    """A server on a small disk, and what it acknowledged."""

    def __init__(self, directory: Path, size: int, segment: int) -> None:
        super().__init__(directory)
        self.sidecar = self.watched = Watched(directory, "--model", "none", f"--segment-bytes={segment}", *WATCHED)
        self.disk = SmallDisk(directory / "data", size)
        self.sidecar.prefix = self.disk.prefix

    def why_not_ready(self) -> str:
        """What the page of readiness says while it is not."""
        status, told = self.watched.page("/readyz")
        return "" if status == HTTPStatus.OK else told

    def wal_bytes(self) -> int:
        """The length of the database's write-ahead log."""
        return self.disk.size_of("remora.duckdb.wal")

    def found(self, text: str) -> str:
        """The message that a search by words finds first."""
        options = SearchOptions(profile=Profile.PROFILE_LEXICAL, k=1)
        request = SearchMessagesRequest(user_id="sarah", text=text, options=options)
        return self.memory.stubs.memory.SearchMessages(request, timeout=PATIENCE).hits[0].message.text

    def close(self) -> None:
        super().close()
        self.disk.close()


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Not started. The parameter: the disk's bytes, and those of a segment."""
    opened = Store(tmp_path_factory.mktemp("d"), *request.param)
    yield opened
    opened.close()


def assert_full(refusal: RemoraError | None) -> None:
    """It says that there is no room, and when to come again."""
    assert refusal is not None
    assert (refusal.code.name, refusal.reason) == ("RESOURCE_EXHAUSTED", "STORE_FULL")
    assert refusal.retry_delay is not None
    assert refusal.retry_delay > 0


@pytest.mark.parametrize("store", [(32 * MEBIBYTE, SEGMENT)], indirect=True)
def test_appends_on_a_full_disk_are_refused_until_there_is_room(store: Store) -> None:
    store.sidecar.start()
    store.append()
    eventually(store.applied)
    store.disk.fill(leave=4 * MEBIBYTE)

    assert_full(store.append_until_refused(size=100_000))
    assert store.listed() == store.acknowledged
    assert store.conversations() == ["held"], "what was acknowledged has room in the database"
    assert not store.status().store.writable

    store.disk.clear()
    eventually(lambda: refused(lambda: store.append(100_000)), until=lambda refusal: refusal is None)
    assert eventually(lambda: store.status().store.writable)
    assert store.listed() == store.acknowledged
    store.sidecar.kill()
    store.sidecar.start()
    assert store.listed() == store.acknowledged


@pytest.mark.parametrize("store", [(32 * MEBIBYTE, SEGMENT)], indirect=True)
def test_a_server_whose_disk_is_full_is_not_ready_until_there_is_room_and_alive_and_read_meanwhile(
    store: Store,
) -> None:
    store.sidecar.start()
    store.append()
    assert eventually(lambda: store.watched.page("/readyz")[0] == 200)
    store.disk.fill(leave=4 * MEBIBYTE)

    assert_full(store.append_until_refused(size=100_000))

    assert "no segment of the journal can be prepared" in eventually(store.why_not_ready)
    assert eventually(lambda: store.health("readiness") == NOT_SERVING)
    assert store.watched.metric("remora_ready") == store.watched.metric("remora_writable") == 0
    assert [store.watched.page(path)[0] for path in ("/livez", "/startupz")] == [200, 200]
    assert {store.health(name) for name in ("liveness", "startup", "", CONVERSATIONS)} == {SERVING}
    assert store.listed() == store.acknowledged

    store.disk.clear()
    eventually(store.why_not_ready, until=lambda reason: not reason)  # nobody has to write for that


@pytest.mark.parametrize("store", [(640 * MEBIBYTE, 64 * MEBIBYTE)], indirect=True)
def test_a_store_of_usual_segments_that_fills_its_disk_takes_writes_again_when_there_is_room(store: Store) -> None:
    store.page_size = 10
    store.sidecar.start()
    store.append()
    store.disk.fill(leave=180 * MEBIBYTE)
    while refused(lambda: store.append(size=200_000)) is None:
        """Journal, database and log grow until one of them finds no room."""

    def says_so() -> bool:
        """While the applier comes after the journal, there may be room again for a moment."""
        is_refused = refused(lambda: store.append(size=200_000)) is not None
        is_told = store.watched.metric("remora_writable") == 0 and not store.status().store.writable
        return is_refused and is_told and bool(store.why_not_ready())

    assert eventually(says_so)
    store.disk.clear()
    eventually(store.why_not_ready, until=lambda reason: not reason)
    store.append()
    assert store.conversations() == ["held"]
    assert store.listed() == store.acknowledged
    store.sidecar.kill()
    store.sidecar.start()
    assert store.status().store.messages == len(store.acknowledged)


@pytest.mark.parametrize("store", [(64 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_what_is_acknowledged_while_the_database_has_no_room_is_there_in_the_end(store: Store) -> None:
    store.sidecar.start()
    store.append()
    eventually(store.applied)
    store.disk.fill()

    while not (full := store.status().store.failure):
        store.append(size=10_000)
        time.sleep(0.05)

    assert "no room" in full
    assert store.listed() == store.acknowledged
    assert store.conversations() == ["held"]
    assert store.applied(), "what asked the database has waited for it"
    store.disk.clear()
    assert eventually(lambda: store.status().store.writable)
    store.append()
    assert store.listed() == store.acknowledged
    assert store.found_by_a_start() == store.acknowledged


@pytest.mark.parametrize("store", [(64 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_a_database_that_leaves_out_what_finds_no_room_is_found_out(store: Store) -> None:
    store.sidecar.changes = ("leave_out_what_finds_no_room",)
    store.sidecar.start()
    store.append()
    eventually(store.applied)
    store.disk.fill()
    for _ in range(100):
        store.append(size=10_000)
    assert eventually(lambda: store.applied() or store.status().store.failure), "it has met the full disk"

    store.disk.clear()
    assert store.conversations() == ["held"]
    store.append()

    assert store.found_by_a_start() != store.acknowledged


def kill_with_unapplied_records(store: Store) -> None:
    """A full disk, and a journal that holds what the database has no room for."""
    store.sidecar.start()
    store.append()
    eventually(store.applied)
    store.disk.fill()
    while not store.status().store.failure:
        refused(lambda: store.append(size=10_000))  # the journal may be full before the database has noticed
        time.sleep(0.05)
    store.sidecar.kill()
    # A start throws away the segment that is prepared for later, and would find room in its place.
    store.disk.remove("journal/spare.tmp")
    store.disk.fill()


@pytest.mark.parametrize("store", [(128 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_a_start_that_finds_no_room_serves_what_the_journal_holds(store: Store) -> None:
    kill_with_unapplied_records(store)

    store.sidecar.start()
    assert eventually(lambda: store.health("startup") == SERVING)
    assert eventually(lambda: store.health("readiness") == NOT_SERVING)
    assert "no room" in store.status().store.failure
    assert store.listed() == store.acknowledged
    assert [store.found(text) for text in store.acknowledged] == store.acknowledged
    assert store.conversations() == ["held"]
    assert_full(store.append_until_refused(size=100_000))
    assert store.listed() == store.acknowledged
    assert store.found(store.acknowledged[-1]) == store.acknowledged[-1]

    store.disk.clear()
    eventually(lambda: refused(store.append), until=lambda refusal: refusal is None)
    assert eventually(lambda: store.status().store.writable)
    assert eventually(lambda: store.health("readiness") == SERVING)
    assert store.conversations() == ["held"]
    assert store.listed() == store.acknowledged
    assert store.found_by_a_start() == store.acknowledged
    assert [store.found(text) for text in store.acknowledged] == store.acknowledged


@pytest.mark.parametrize("store", [(64 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_a_start_that_leaves_the_journal_out_is_found_out(store: Store) -> None:
    kill_with_unapplied_records(store)

    store.sidecar.changes = ("leave_the_journal_out",)
    store.sidecar.start()

    assert store.listed() != store.acknowledged


@pytest.mark.parametrize("store", [(64 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_a_start_that_needs_no_room_serves_what_is_there(store: Store) -> None:
    store.sidecar.start()
    store.append()
    store.sidecar.stop()
    store.disk.fill()

    store.sidecar.start()
    assert store.listed() == store.acknowledged
    assert store.conversations() == ["held"]

    store.disk.clear()
    eventually(lambda: refused(store.append), until=lambda refusal: refusal is None)
    assert store.listed() == store.acknowledged


@pytest.mark.parametrize("store", [(64 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_a_store_that_started_without_room_is_backed_up_without_a_restart(store: Store, tmp_path: Path) -> None:
    store.sidecar.start()
    store.append()
    store.sidecar.stop()
    store.disk.fill()
    store.sidecar.start()
    store.disk.clear()

    data, endpoint = f"--data={store.sidecar.directory / 'data'}", f"--endpoint={store.sidecar.endpoint}"
    remora = [*store.disk.prefix, sys.executable, "-m", "remora_server.main"]
    command = [*remora, "backup", str(tmp_path / "backup"), data, endpoint]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)

    assert ended.returncode == 0, ended.stderr
    assert "1 message, " in ended.stderr
    assert "operator" not in store.sidecar.log.read_text()


@pytest.mark.parametrize("store", [(4 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_a_store_that_finds_no_room_to_begin_says_so(store: Store) -> None:
    store.sidecar.launch()

    assert store.sidecar.wait() == 1
    assert "remora: there is no room on the disk of" in store.sidecar.log.read_text()


@pytest.mark.parametrize("store", [(64 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_a_checkpoint_waits_for_room(store: Store) -> None:
    store.sidecar.changes = ("checkpoint_often",)
    store.sidecar.start()
    store.append()
    eventually(lambda: store.applied() and store.wal_bytes() == 0)
    store.disk.fill(leave=3 * MEBIBYTE)

    while store.wal_bytes() < MEBIBYTE:
        store.append(size=100_000)
        assert store.conversations() == ["held"], "a read has it applied"
    assert eventually(lambda: store.status().store.failure)
    assert store.listed() == store.acknowledged
    assert store.conversations() == ["held"]
    store.append()

    store.disk.clear()
    eventually(lambda: store.wal_bytes() == 0)
    assert store.status().store.writable
    assert store.found_by_a_start() == store.acknowledged


@pytest.mark.parametrize("store", [(64 * MEBIBYTE, 16 * MEBIBYTE)], indirect=True)
def test_a_checkpoint_that_fails_for_want_of_room_leaves_a_database_that_reads(store: Store) -> None:
    store.sidecar.changes = ("checkpoint_soon", "checkpoint_without_looking")
    store.sidecar.start()
    while store.wal_bytes() < 3 * MEBIBYTE:
        store.append(size=100_000)
        store.conversations()
    eventually(store.applied)
    store.disk.fill(leave=MEBIBYTE)

    eventually(lambda: "FatalException" in store.sidecar.log.read_text())
    assert store.listed() == store.acknowledged
    assert store.conversations() == ["held"]
    store.disk.clear()
    eventually(lambda: store.status().store.writable and store.wal_bytes() == 0)
    store.append()
    assert store.found_by_a_start() == store.acknowledged
