"""Kills at named points: of a transaction, a checkpoint, a deletion of segments, a start, a migration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tests.faults.kills import KillRun
from tests.faults.sidecar import Sidecar

from remora_server import failpoints
from remora_server.storage.database.database import FILE_NAME, SCHEMA_VERSION

pytestmark = pytest.mark.slow

WRITERS = 3
KILLED, ABORTED = -9, -6
FOR_SEGMENTS = 1_500
"""Answers that each writer needs for the journal to have several segments. A store that is written to is not
checkpointed, and so no segment is deleted before it stops.
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[KillRun]:
    with KillRun(tmp_path, "points", writers=WRITERS).open() as opened:
        yield opened


@pytest.fixture
def filled(run: KillRun) -> KillRun:
    run.fill(50)
    return run


def test_an_unknown_failpoint_is_refused(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path)
    sidecar.failpoints = {failpoints.VARIABLE: "nowhere=abort"}

    sidecar.launch()

    assert sidecar.wait() == 2
    assert "'nowhere=abort' is not a failpoint" in sidecar.log.read_text()


def test_a_transaction_is_applied_whole_or_not_at_all_and_once(run: KillRun) -> None:
    assert run.die_under_load(transaction_written="abort@3") == KILLED
    run.start()
    run.look()

    run.sidecar.kill()
    assert run.die_under_load(transaction_committed="abort@3") == KILLED
    run.start()
    run.look()


def test_a_start_that_is_killed_again_and_again_goes_on_where_it_was(filled: KillRun) -> None:
    assert filled.die_under_load(transaction_written="abort@2") == KILLED

    assert filled.die_at_start(database_opened="abort") == KILLED
    assert filled.die_at_start(transaction_written="abort") == KILLED
    assert filled.die_at_start(transaction_committed="abort") == KILLED
    assert filled.die_at_start(store_recovered="abort") == KILLED

    filled.start()
    filled.look()


def test_a_start_that_is_killed_while_it_cuts_a_torn_end_leaves_it_to_the_next(filled: KillRun) -> None:
    tear(filled.sidecar.directory / "data" / "journal")

    assert filled.die_at_start(journal_cut_kept="abort") == ABORTED
    assert filled.die_at_start(journal_cut_erased="abort") == ABORTED
    assert filled.die_at_start(store_recovered="abort") == KILLED

    filled.start()
    filled.look()
    assert any((filled.sidecar.directory / "data" / "journal" / "damaged").iterdir()), "what was cut is kept"


def test_what_is_synced_when_the_journal_is_killed_is_kept(run: KillRun) -> None:
    assert run.die_under_load(journal_after_sync="abort@5") == ABORTED

    run.start()
    run.look()


def tear(journal: Path) -> None:
    """Leave what a batch leaves that was not written to its end."""
    newest = max(journal.glob("*.journal"))
    content = newest.read_bytes().rstrip(b"\0")
    with newest.open("r+b") as file:
        file.seek(len(content) + 100)
        file.write(b"torn" * 50)


@pytest.mark.parametrize(
    "point",
    [
        {"checkpoint_begun": "abort:3@1"},
        pytest.param({"checkpoint_begun": "abort@1"}, marks=pytest.mark.faults),
        pytest.param({"checkpoint_done": "abort@1"}, marks=pytest.mark.faults),
    ],
)
def test_a_checkpoint_that_is_killed_loses_nothing(run: KillRun, point: dict[str, str]) -> None:
    assert run.die_under_load("checkpoint_often", **point) == KILLED

    run.start("checkpoint_often")
    run.look()


@pytest.mark.faults
@pytest.mark.parametrize("point", ["segment_deleting", "segment_unlinked", "segment_deleted"])
def test_a_deletion_of_segments_that_is_killed_loses_nothing(run: KillRun, point: str) -> None:
    assert run.die_under_load("checkpoint_often", **{f"journal_{point}": "abort"}) == ABORTED

    run.start()
    run.look()


@pytest.mark.faults
def test_a_stop_that_is_killed_between_the_deletions_of_several_segments_loses_nothing(run: KillRun) -> None:
    assert run.die_at_stop(FOR_SEGMENTS, journal_segment_deleted="abort") == ABORTED

    left = list((run.sidecar.directory / "data" / "journal").glob("*.journal"))
    assert len(left) > 1, "the last one is written to; of those before it, not all were deleted"
    run.start()
    run.look()


FIRST_START = [
    {"directory_begun": "abort"},
    {"transaction_written": "abort"},
    {"transaction_committed": "abort"},
    {"database_opened": "abort"},
    {"journal_segment_prepared": "abort"},
    {"journal_segment_named": "abort"},
    {"store_recovered": "abort"},
]


def test_a_first_start_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    run = KillRun(tmp_path, "first", writers=1)
    for point in FIRST_START:
        assert run.die_at_start(**point) in (KILLED, ABORTED), point

    with run.open():
        run.fill(20)


@pytest.mark.parametrize(
    "point", ["transaction_written", pytest.param("transaction_committed", marks=pytest.mark.faults)]
)
def test_a_migration_that_is_killed_is_done_whole_by_the_next_start(filled: KillRun, point: str) -> None:
    filled.changes = ("next_schema",)

    assert filled.die_at_start(**{point: "abort"}) == KILLED
    filled.start()
    filled.look()

    filled.sidecar.kill()
    filled.fill(50)
    filled.start()
    assert filled.sidecar.stop() == 0
    assert facts(filled.sidecar)["schema_version"] == str(SCHEMA_VERSION + 1)
    filled.sidecar.changes = ()
    filled.sidecar.launch()
    assert filled.sidecar.wait() == 1, "an older server does not touch a newer schema"


def facts(sidecar: Sidecar) -> dict[str, str]:
    """What the database says of itself."""
    with duckdb.connect(str(sidecar.directory / "data" / FILE_NAME), read_only=True) as connection:
        return dict(connection.execute("SELECT key, value FROM meta").fetchall())
