"""What the tests of inputs write and read is everything: a kind of records that they leave out is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.input.callers import DirectCaller, direct_caller
from tests.input.contents import digest, write_something_of_everything
from tests.input.table import MODEL
from tests.storage.opening import WRITE, open_store
from tests.storage.written import OF_CALLERS

from remora_server.domain.calls import Outcome
from remora_server.storage.commit import changes
from remora_server.storage.local_store import LocalStore
from remora_server.storage.schema.kinds import Kind


@pytest.fixture
def store() -> LocalStore:
    return open_store(None)


@pytest.fixture
def caller(store: LocalStore) -> Iterator[DirectCaller]:
    with direct_caller(MODEL, WRITE.tenant_id, opened=store.bundle()) as direct:
        write_something_of_everything(direct)
        yield direct


@pytest.mark.parametrize("kind", OF_CALLERS, ids=lambda kind: kind.name)
def test_a_record_of_every_kind_is_written_and_read(store: LocalStore, caller: DirectCaller, kind: Kind) -> None:
    store.commits.settle()
    uids = [uid for (uid,) in store.database.rows(f"SELECT DISTINCT conversation_uid FROM {kind.name}")]
    assert uids, "something is written"
    before = digest(caller)

    moves = [changes.remove_prefix(kind, uid, b"") for uid in uids]
    gone = store.commits.accept(WRITE, store.clock(), moves, Outcome(revision=0))
    store.commits.wait_published(gone.revision, None)

    assert digest(caller) != before
