"""Writes and syncs that the system refuses with EIO, under the journal and under the database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from tests.faults.preloading import RefusedIo
from tests.faults.served_store import ServedStore, refused
from tests.patience import eventually

pytestmark = pytest.mark.slow

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
JOURNAL, DATABASE, DATABASE_LOG = ".journal", "remora.duckdb", "remora.duckdb.wal"


class Store(ServedStore):
    """A server whose writes can be refused."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        super().__init__(directory, *arguments)
        self.io = RefusedIo(directory)
        self.sidecar.preloaded = self.io.variables

    def has_everything(self) -> bool:
        """All that was acknowledged is there in its order, and of the rest at most what was asked for."""
        listed = self.listed()
        kept = [text for text in listed if text in self.acknowledged]
        return kept == self.acknowledged and set(listed) <= {*self.acknowledged, *self.refused}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_journal_that_cannot_be_written_leaves_a_store_that_reads_until_it_is_restarted(
    store: Store, kind: str
) -> None:
    store.sidecar.start()
    store.append()
    assert eventually(lambda: store.health("readiness") == SERVING)

    store.io.begin(kind, JOURNAL)
    refusal = refused(store.append)

    assert refusal is not None
    assert (refusal.code.name, refusal.reason) == ("UNAVAILABLE", "STORE_FAILED")
    assert [hit.split()[0] for hit in store.io.hits()] == [kind], "it is not tried again"
    assert eventually(lambda: store.health("readiness") == NOT_SERVING)
    assert store.health("liveness") == SERVING
    assert store.listed() == store.acknowledged
    assert store.conversations() == ["held"]
    assert not store.status().store.writable

    store.io.end()
    assert refused(store.append) is not None, "what comes after a failed write is not trusted"
    assert store.listed() == store.acknowledged
    assert store.health("readiness") == NOT_SERVING

    store.sidecar.kill()
    store.sidecar.start()
    assert store.has_everything()
    store.append()
    assert store.has_everything()
    assert eventually(lambda: store.health("readiness") == SERVING)


@pytest.mark.parametrize(("kind", "file"), [("write", DATABASE_LOG), ("sync", DATABASE_LOG), ("sync", DATABASE)])
def test_a_database_that_cannot_be_written_makes_the_server_not_ready_and_loses_nothing(
    store: Store, kind: str, file: str
) -> None:
    store.sidecar.changes = ("checkpoint_soon",)
    store.sidecar.start()
    store.append()
    eventually(store.applied)

    store.io.begin(kind, file)
    store.append()

    assert eventually(lambda: store.health("readiness") == NOT_SERVING)
    assert any(hit.startswith(kind) and hit.endswith(file) for hit in store.io.hits())
    assert store.health("liveness") == SERVING
    assert store.listed() == store.acknowledged
    store.append()
    store.sidecar.kill()

    store.io.end()
    store.sidecar.start()
    assert store.listed() == store.acknowledged
    assert store.conversations() == ["held"]
    store.append()
    assert eventually(store.applied)


def test_a_database_that_can_be_written_again_has_everything_without_a_restart(store: Store) -> None:
    store.sidecar.start()
    store.append()
    eventually(store.applied)
    store.io.begin("sync", DATABASE_LOG)
    store.append()
    assert eventually(lambda: store.health("readiness") == NOT_SERVING)
    assert store.io.hits()

    store.io.end()

    assert eventually(lambda: store.health("readiness") == SERVING)
    assert store.status().store.writable
    assert eventually(store.applied)
    store.append()
    assert store.conversations() == ["held"]
    assert store.found_by_a_start() == store.acknowledged


def test_a_server_that_acknowledges_what_is_not_written_is_found_out(tmp_path: Path) -> None:
    store = Store(tmp_path, "--transport=grpcio")
    store.sidecar.changes = ("acknowledge_before_it_is_written",)
    store.sidecar.start()
    store.append()
    eventually(lambda: refused(store.listed), until=lambda refusal: refusal is None)

    store.io.begin("write", JOURNAL)
    store.append()

    assert eventually(lambda: store.health("readiness") == NOT_SERVING)
    assert store.io.hits()
    assert not store.has_everything()
    store.close()
