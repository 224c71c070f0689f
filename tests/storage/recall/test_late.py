"""Word pieces for late interaction: where they are kept, and what is without them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.patience import PATIENCE
from tests.storage.opening import READ, SMALL, WRITE, one_model, take
from tests.store.asking import draft, searched

from remora.v1 import message_pb2
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.search import (
    WEIGHTS,
    InConversation,
    MessageVector,
    Profile,
    QueryVector,
    SearchOptions,
    SearchQuery,
)
from remora_server.storage.local_store import LocalStore, StoreOptions

MODEL = "letters"
TEXTS = ("a red boat", "a green lantern", "the garden")
CODE = 128


def values(text: str) -> bytes:
    return struct.pack("<3f", 1.0, len(text), text.count("e"))


def pieces(text: str) -> bytes:
    """One piece for each word: its length is its id and the direction of its code."""
    lengths = [len(word) for word in text.split()]
    ids = b"".join(struct.pack("<H", length) for length in lengths)
    return ids + b"".join(bytes(127 if place == length else 0 for place in range(CODE)) for length in lengths)


@contextmanager
def opened(directory: Path, *, late: bool) -> Iterator[LocalStore]:
    options = StoreOptions(directory, segment_bytes=SMALL, queue_bytes=SMALL)
    store = LocalStore(options, count_tokens=lambda texts: [1 for _ in texts], models=one_model(MODEL, late=late))
    try:
        yield store
    finally:
        store.close()


def append(store: LocalStore, *texts: str) -> None:
    store.messages.append(WRITE, "c", "ann", [draft(text, text) for text in texts], ConversationDraft(id=""))


def embed_all(store: LocalStore) -> list[str]:
    """Embed what waits, with word pieces where the store keeps them; the texts."""
    done: list[str] = []
    while waiting := take(store.pending, 100, timeout=0.01):
        store.pending.put_embeddings(
            [
                MessageVector(each, values(each.text), pieces(each.text) if store.models.default.late else None)
                for each in waiting
            ]
        )
        done += [each.text for each in waiting]
    return sorted(done)


def unembedded(store: LocalStore) -> int:
    """How many messages wait, once the database has everything."""
    store.commits.settle()
    return store.status().embeddings[MODEL].pending


def coverages(store: LocalStore, query: str) -> dict[str, float]:
    """How much more than the cosine each message's `late` is."""
    vector = QueryVector(MODEL, values(query), pieces(query))
    options = SearchOptions(k=10, profile=Profile.HYBRID_LATE, weights=WEIGHTS[Profile.HYBRID_LATE])
    found = searched(store, READ, SearchQuery(InConversation("c"), query, vector, options, 0.0))
    excess = {}
    for hit in found.hits:
        parts = {part.name: part.value for part in hit.components}
        excess[message_pb2.Message.FromString(hit.encoded).text] = round(parts["late"] - parts["cosine"], 3)
    return excess


@pytest.mark.slow
def test_word_pieces_count_at_once_and_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path, late=True) as store:
        append(store, *TEXTS)
        embed_all(store)
        before = coverages(store, "crimson lantern")
    with opened(tmp_path, late=True) as store:
        after = coverages(store, "crimson lantern")
        assert embed_all(store) == []

    assert before == after
    assert max(before, key=lambda text: before[text]) == "a green lantern"
    assert len(set(before.values())) > 1


@pytest.mark.slow
def test_messages_without_word_pieces_get_them_when_these_are_switched_on(tmp_path: Path) -> None:
    with opened(tmp_path, late=False) as store:
        append(store, *TEXTS)
        assert embed_all(store) == sorted(TEXTS)
        assert unembedded(store) == 0
        assert set(coverages(store, "crimson lantern").values()) == {0.0}
    with opened(tmp_path, late=True) as store:
        assert unembedded(store) == len(TEXTS)
        assert set(coverages(store, "crimson lantern").values()) == {0.0}
        assert embed_all(store) == sorted(TEXTS)
        assert len(set(coverages(store, "crimson lantern").values())) > 1
        assert unembedded(store) == 0


def test_word_pieces_are_not_loaded_when_they_are_switched_off(tmp_path: Path) -> None:
    with opened(tmp_path, late=True) as store:
        append(store, *TEXTS)
        embed_all(store)
        coverages(store, "lantern")
        with_pieces = store.status().engine.index_bytes
    with opened(tmp_path, late=False) as store:
        assert set(coverages(store, "crimson lantern").values()) == {0.0}
        assert embed_all(store) == []
        assert store.status().engine.index_bytes < with_pieces - len(TEXTS) * CODE


def test_a_message_that_has_no_word_pieces_yet_has_its_cosine_instead(tmp_path: Path) -> None:
    with opened(tmp_path, late=True) as store:
        append(store, *TEXTS)
        embed_all(store)
        append(store, "a blue kite")
        [waiting] = take(store.pending, 1, timeout=PATIENCE)
        store.pending.put_embeddings([MessageVector(waiting, values(waiting.text))])

        found = coverages(store, "crimson lantern")

    assert found["a blue kite"] == 0.0
    assert abs(sum(found.values())) < 0.01


def test_a_text_of_no_word_pieces_is_not_embedded_again(tmp_path: Path) -> None:
    with opened(tmp_path, late=True) as store:
        append(store, "\u200b")
        [waiting] = take(store.pending, 1, timeout=PATIENCE)
        store.pending.put_embeddings([MessageVector(waiting, values("x"), b"")])
        assert unembedded(store) == 0


@pytest.mark.slow
def test_a_message_that_the_model_refuses_waits_no_more(tmp_path: Path) -> None:
    with opened(tmp_path, late=True) as store:
        append(store, *TEXTS)
        store.pending.put_embeddings([MessageVector(each, b"", b"") for each in take(store.pending, 100)])
        assert unembedded(store) == 0
    with opened(tmp_path, late=True) as store:
        assert (unembedded(store), store.status().embeddings[MODEL].refused) == (0, len(TEXTS))
        assert embed_all(store) == []
