"""The queues of messages to embed: one for each model, with the messages of its tenants alone."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.storage.opening import SMALL, WRITE, take
from tests.store.asking import draft, searched

from remora_server.domain.calls import Read
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.models import ServedModel, ServedModels
from remora_server.domain.search import (
    MessageVector,
    OfUser,
    Profile,
    QueryVector,
    SearchOptions,
    SearchQuery,
    SearchResult,
    WordsOnly,
)
from remora_server.domain.status import EmbeddingStatus
from remora_server.storage.local_store import LocalStore, StoreOptions

SMALL_MODEL, LARGE_MODEL, SILENT = ServedModel("small"), ServedModel("large"), ServedModel()
DIMENSIONS = {"small": 2, "large": 5}
BOTH = ServedModels(SMALL_MODEL, {"big": LARGE_MODEL, "quiet": SILENT})


@contextmanager
def opened(directory: Path | None, models: ServedModels = BOTH) -> Iterator[LocalStore]:
    options = StoreOptions(directory, segment_bytes=SMALL, queue_bytes=SMALL)
    store = LocalStore(options, count_tokens=lambda texts: [1 for _ in texts], models=models)
    try:
        yield store
    finally:
        store.close()


def append(store: LocalStore, tenant: str, *texts: str) -> None:
    drafts = [draft(text, text) for text in texts]
    store.messages.append(replace(WRITE, tenant_id=tenant), "c", "ann", drafts, ConversationDraft(id=""))


def vector(model: ServedModel, text: str) -> bytes:
    dimension = DIMENSIONS[model.name]
    return struct.pack(f"<{dimension}f", *([1.0, float(len(text))] + [0.5] * (dimension - 2)))


def embed(store: LocalStore, model: ServedModel, *, refused: str = "") -> list[tuple[str, str]]:
    """Embed what waits for a model; the tenants and texts."""
    done: list[tuple[str, str]] = []
    queue = store.queues.of(model)
    while waiting := take(queue, 100, timeout=0.01):
        queue.put_embeddings(
            [MessageVector(each, b"" if each.text == refused else vector(model, each.text)) for each in waiting]
        )
        done += [(each.tenant_id, each.text) for each in waiting]
    return sorted(done)


def search(
    store: LocalStore, tenant: str, model: ServedModel, profile: Profile = Profile.VECTOR, *, reached: bool = True
) -> SearchResult:
    query = SearchQuery(OfUser("ann"), "tea", None, SearchOptions(profile=profile), index_wait=0.0)
    if reached:
        query = replace(query, vector=QueryVector(model.name, vector(model, "tea")))
    else:
        query = replace(query, words_only=WordsOnly.MODEL_UNREACHABLE)
    return searched(store, Read(tenant), query)


def status(store: LocalStore) -> dict[str, EmbeddingStatus]:
    """By model, but for how fast it was."""
    store.commits.settle()
    return {name: replace(each, per_second=0.0) for name, each in store.status().embeddings.items()}


def test_each_model_embeds_the_messages_of_its_tenants(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for tenant in ("some", "big", "quiet", "other"):
            append(store, tenant, f"{tenant} tea")
        assert status(store) == {"small": EmbeddingStatus(pending=2), "large": EmbeddingStatus(pending=1)}
        assert embed(store, LARGE_MODEL) == [("big", "big tea")]
        assert embed(store, SMALL_MODEL) == [("other", "other tea"), ("some", "some tea")]
        assert embed(store, SILENT) == []
        assert status(store) == {"small": EmbeddingStatus(), "large": EmbeddingStatus()}
        assert (store.queues.of(SMALL_MODEL).dimension(), store.queues.of(LARGE_MODEL).dimension()) == (2, 5)


@pytest.mark.slow
def test_what_was_left_by_an_earlier_process_goes_to_the_model_of_its_tenant(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for tenant in ("some", "big", "quiet"):
            append(store, tenant, f"{tenant} tea")
    with opened(tmp_path) as store:
        assert embed(store, SMALL_MODEL) == [("some", "some tea")]
        assert embed(store, LARGE_MODEL) == [("big", "big tea")]


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True])
def test_vectors_of_two_models_never_meet(tmp_path: Path, restarted: bool) -> None:
    with opened(tmp_path) as store:
        append(store, "big", "tea", "more tea")
        embed(store, LARGE_MODEL)
        assert len(search(store, "big", LARGE_MODEL).hits) == 2
    changed = replace(BOTH, tenants={})
    with opened(tmp_path, changed) as store:
        assert status(store) == {"small": EmbeddingStatus(pending=2)}
        found = search(store, "big", SMALL_MODEL)
        assert (found.hits, found.index.pending) == ((), 2)
        assert len(search(store, "big", SMALL_MODEL, Profile.HYBRID).hits) == 2
        if not restarted:
            assert len(embed(store, SMALL_MODEL)) == 2
            assert len(search(store, "big", SMALL_MODEL).hits) == 2
            store.commits.settle()
            assert store.database.rows("SELECT DISTINCT model FROM embeddings") == [("small",)], "the old ones are gone"
    with opened(tmp_path, changed) as store:
        assert len(embed(store, SMALL_MODEL)) == (2 if restarted else 0)
        assert len(search(store, "big", SMALL_MODEL).hits) == 2
        assert status(store) == {"small": EmbeddingStatus()}


@pytest.mark.slow
def test_a_refused_message_waits_for_no_vector_after_a_restart_either(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        append(store, "big", "tea", "poison tea")
        embed(store, LARGE_MODEL, refused="poison tea")
        assert search(store, "big", LARGE_MODEL).index.pending == 0
        assert status(store)["large"] == EmbeddingStatus(pending=0, refused=1)
    with opened(tmp_path) as store:
        assert embed(store, LARGE_MODEL) == []
        found = search(store, "big", LARGE_MODEL, Profile.HYBRID)
        assert (len(found.hits), found.index.pending) == (2, 0)
        assert len(search(store, "big", LARGE_MODEL).hits) == 1
        assert store.queues.of(LARGE_MODEL).dimension() == 5
        append(store, "big", "poison tea")
        assert search(store, "big", LARGE_MODEL).index.pending == 1, "another version"
        assert embed(store, LARGE_MODEL) == [("big", "poison tea")]
        assert status(store)["large"] == EmbeddingStatus()


def test_a_model_has_the_dimension_of_the_first_vector_that_it_makes(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        append(store, "big", "poison tea")
        embed(store, LARGE_MODEL, refused="poison tea")
        assert status(store)["large"] == EmbeddingStatus(refused=1)
        assert store.queues.of(LARGE_MODEL).dimension() == 0
        append(store, "big", "tea")
        embed(store, LARGE_MODEL)
        store.commits.settle()
        assert store.queues.of(LARGE_MODEL).dimension() == 5


def test_a_search_that_does_not_reach_the_model_says_what_waits_for_it(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        append(store, "big", "coffee", "milk")
        embed(store, LARGE_MODEL)
        append(store, "big", "tea")
        found = search(store, "big", LARGE_MODEL, Profile.HYBRID, reached=False)

    assert len(found.hits) == 1
    assert (found.index.model, found.index.pending) == ("large", 1)
    assert found.index.words_only is WordsOnly.MODEL_UNREACHABLE


def test_a_text_never_goes_to_the_model_that_its_tenant_had(tmp_path: Path) -> None:
    with opened(tmp_path, replace(BOTH, tenants={})) as store:
        append(store, "big", "Ann's tea")
        assert embed(store, SMALL_MODEL) == [("big", "Ann's tea")]
    with opened(tmp_path) as store:
        named = [draft("n", "hello", name="Ann")]
        store.messages.append(replace(WRITE, tenant_id="big"), "c", "ann", named, None)
        store.commits.settle()
        assert embed(store, SMALL_MODEL) == []
        assert ("big", "tea") in embed(store, LARGE_MODEL)
