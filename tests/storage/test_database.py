"""What the database answers is what is in it."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest
from tests.storage.opening import open_store
from tests.store.asking import Tenant
from tests.store.test_workflows import save_steps, step

from remora_server.domain.workflows import PartName
from remora_server.storage.database.database import Database

NEWEST = """
SELECT partition, revision, ordinal FROM workflow_steps WHERE tenant_id = ? AND id = ?
ORDER BY revision DESC, ordinal DESC
"""
ROUNDS = 150


@pytest.mark.slow
def test_the_first_of_some_rows_is_not_missed_right_after_it_was_written() -> None:
    """Every round begins while the rows of the last one are removed by a checkpoint."""
    store = open_store(None)
    try:
        for number in range(ROUNDS):
            tenant = Tenant(store.bundle(), f"tenant-{number}")
            for run in ("one", "two"):
                save_steps(tenant, step("s", run_id=run))
            store.commits.begin_query(tenant.read)
            [first] = store.database.rows(f"{NEWEST} LIMIT 1", [tenant.id, "s"])
            assert first == store.database.rows(NEWEST, [tenant.id, "s"])[0]
            store.workflow_steps.delete(tenant.write, PartName("s"))
    finally:
        store.close()


def test_a_checkpoint_waits_until_nobody_reads(tmp_path: Path) -> None:
    database = Database(tmp_path, memory_bytes=64 << 20)
    checkpoint = threading.Thread(target=database.checkpoint)
    is_beside = []

    def read(_cursor: duckdb.DuckDBPyConnection) -> None:
        checkpoint.start()
        checkpoint.join(0.2)
        is_beside.append(not checkpoint.is_alive())

    try:
        database.snapshot(read)
        checkpoint.join()
        assert is_beside == [False]
    finally:
        database.close()
