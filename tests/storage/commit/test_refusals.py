"""A write is refused once readers see what it is refused for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.storage.opening import WRITE, open_store
from tests.store.asking import draft

from remora_server.domain.calls import Outcome
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import CollectionExists, ConversationExists, ConversationNotFound, RemoraError
from remora_server.domain.vectors import CollectionDraft
from remora_server.storage.local_store import LocalStore

TIMES = 50
"""The disk is seldom as fast as all of that many writes."""
ACCEPTED = replace(WRITE, waits_for_disk=False)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = open_store(tmp_path / "data")
    yield opened
    opened.close()


def create(store: LocalStore, name: str) -> Outcome:
    return store.conversations.create(ACCEPTED, ConversationDraft(id=name))


def delete(store: LocalStore, name: str) -> Outcome:
    create(store, name)
    return store.conversations.delete(ACCEPTED, name, "", allow_missing=False)


def create_collection(store: LocalStore, name: str) -> Outcome:
    return store.collections.create(ACCEPTED, CollectionDraft(id=name))


REFUSED: dict[str, tuple[Callable[..., Outcome], Callable[..., object], type[RemoraError]]] = {
    "exists": (create, create, ConversationExists),
    "is gone": (
        delete,
        lambda store, name: store.messages.append(ACCEPTED, name, "", [draft()], None),
        ConversationNotFound,
    ),
    "record exists": (create_collection, create_collection, CollectionExists),
}


@pytest.mark.parametrize(("first", "refused", "error"), REFUSED.values(), ids=REFUSED)
def test_readers_see_what_a_write_is_refused_for(
    store: LocalStore, first: Callable[..., Outcome], refused: Callable[..., object], error: type[RemoraError]
) -> None:
    for number in range(TIMES):
        revision = first(store, f"c{number}").revision

        with pytest.raises(error):
            refused(store, f"c{number}")
        assert store.core.published() >= revision
