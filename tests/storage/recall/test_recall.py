"""Searching the local store: what is found does not depend on what happens to be in memory."""

from __future__ import annotations

import math
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.examples import examples
from tests.patience import PATIENCE, with_more_and_more_time
from tests.storage.opening import READ, WRITE
from tests.storage.recall.opened import HERE, MODEL, Opened, decoded, embed, opened
from tests.store.asking import draft, searched

from remora.v1.message_pb2 import Message
from remora_server.domain.calls import Read
from remora_server.domain.errors import ConversationNotFound, DeadlineExceeded, InvalidField, RevisionUnknown
from remora_server.domain.messages import Append, Edit, MessageEmbedding, Remove, Replace
from remora_server.domain.search import (
    InConversation,
    OfTenant,
    OfUser,
    Profile,
    QueryVector,
    Scope,
    SearchOptions,
    SearchQuery,
    SearchResult,
    WordsOnly,
)
from remora_server.storage.recall.index import LoadedScope
from remora_server.storage.recall.loading import RecallLoader

LONG = 10 * PATIENCE
"""The wait of a search that ends by itself: who waited so long would find no end."""


@pytest.fixture
def here() -> Iterator[Opened]:
    with opened(None) as made:
        yield made


def test_a_message_is_found_by_words_as_soon_as_it_is_acknowledged(here: Opened) -> None:
    assert here.search("coffee", OfUser("sarah")).hits == ()
    here.append("I drink tea", "I drink coffee")
    found = here.search("coffee")
    assert decoded(found.hits[0]).text == "I drink coffee"
    assert (found.index.model, found.index.pending, found.index.words_only) == (MODEL, 2, None)
    assert found.hits[0].conversation_id == "c"
    here.append("Coffee is here", conversation="d")
    found = here.search("coffee", OfUser("sarah"), profile=Profile.LEXICAL)
    assert {hit.conversation_id: decoded(hit).text for hit in found.hits} == {
        "c": "I drink coffee",
        "d": "Coffee is here",
    }


def test_a_hit_comes_with_the_messages_of_its_user_around_it(here: Opened) -> None:
    here.append(*(f"message {number}" for number in range(5)))
    here.append("of another user", user="tom")
    here.append("in the middle", *(f"message {number}" for number in range(5, 10)))
    here.store.messages.delete(WRITE, "c", "sarah", ["message 5"])
    query = SearchQuery(HERE, "middle", None, SearchOptions(k=1, profile=Profile.LEXICAL), 0.0)

    for around, before, after in ((0, [], []), (2, [3, 4], [6, 7]), (9, [0, 1, 2, 3, 4], [6, 7, 8, 9])):
        (hit,) = searched(here.store, READ, replace(query, around=around)).hits
        sides = ([side[number] for number in range(len(side))] for side in (hit.before, hit.after))
        texts = [[Message.FromString(each).text for each in side] for side in sides]
        assert texts == [[f"message {number}" for number in side] for side in (before, after)]


def test_a_message_is_found_by_its_vector_once_it_is_embedded(here: Opened) -> None:
    here.append("abc", "xyz")
    assert here.search("cab", profile=Profile.VECTOR).hits == ()
    here.embed_all()
    found = here.search("cab", profile=Profile.VECTOR)
    assert [decoded(hit).text for hit in found.hits] == ["abc", "xyz"]
    assert math.isclose(found.hits[0].score, 1.0, abs_tol=1e-6)
    assert found.index.pending == 0


def test_scores_are_the_sum_of_their_components(here: Opened) -> None:
    here.append("the ocean is blue", "the sky is blue", "grass")
    here.embed_all()
    for hit in here.search("blue ocean").hits:
        assert math.isclose(hit.score, sum(each.value * each.weight for each in hit.components))


def test_a_search_waits_for_vectors_that_are_on_their_way(here: Opened) -> None:
    here.append("abc")
    here.search("abc")
    embedding = threading.Timer(0.05, here.embed_all)
    embedding.start()
    found = here.search("abc", wait=LONG)
    embedding.join()
    assert found.index.pending == 0
    assert found.hits[0].components[0].name == "cosine"


def test_a_wait_for_vectors_ends_before_the_deadline_and_says_what_is_missing(here: Opened) -> None:
    here.append("abc")

    def search(seconds: float) -> SearchResult:
        return here.search("abc", wait=LONG, read=replace(READ, deadline=time.monotonic() + seconds))

    assert with_more_and_more_time(search, DeadlineExceeded).index.pending == 1
    assert here.search("abc", wait=0.0).index.pending == 1


@pytest.mark.slow
def test_searches_that_wait_for_vectors_leave_threads_to_others() -> None:
    waiters, threads = 1, 4
    opened_here = Opened(None, waiting_searches=waiters)
    opened_here.append("abc")
    with ThreadPoolExecutor(threads) as workers:
        searches = [workers.submit(opened_here.search, "abc", wait=LONG) for _ in range(3 * threads)]
        conversation, _ = workers.submit(opened_here.store.conversations.get, READ, "c", "").result(timeout=PATIENCE)
        answered = list(islice(as_completed(searches, timeout=PATIENCE), len(searches) - waiters))
        opened_here.embed_all()
    opened_here.store.close()

    assert conversation.draft.id == "c"
    assert [search.result().index.pending for search in answered] == [1] * len(answered)
    assert [search.result().index.pending for search in searches if search not in answered] == [0]


def by_vector(model: str, *values: float) -> SearchQuery:
    vector = QueryVector(model, struct.pack(f"<{len(values)}f", *values))
    return SearchQuery(HERE, "", vector, SearchOptions(profile=Profile.VECTOR), index_wait=0.0)


def test_a_vector_of_another_dimension_than_its_models_in_the_scope_is_refused(here: Opened) -> None:
    here.put(draft("m1", "one", embedding=MessageEmbedding("theirs", struct.pack("<2f", 0.0, 1.0))))

    with pytest.raises(InvalidField, match="2 dimensions") as refused:
        searched(here.store, READ, by_vector("theirs", 1.0, 0.0, 0.0))

    assert refused.value.field == "embedding.values"
    assert searched(here.store, READ, by_vector("nobody's", 1.0, 0.0, 0.0)).hits == ()


def test_messages_wait_only_for_vectors_of_the_servers_model(here: Opened) -> None:
    here.append("one")

    assert searched(here.store, READ, by_vector("theirs", 1.0, 0.0)).index.pending == 0
    assert here.search("one").index.pending == 1


def test_vectors_of_callers_are_searched_in_their_own_model(here: Opened) -> None:
    vector = struct.pack("<2f", 0.0, 1.0)
    here.put(draft("m1", "one", embedding=MessageEmbedding("theirs", vector)), draft("m2", "two"))
    query = SearchQuery(HERE, "", QueryVector("theirs", vector), SearchOptions(profile=Profile.VECTOR), index_wait=1.0)
    found = searched(here.store, READ, query)
    assert [decoded(hit).id for hit in found.hits] == ["m1"]
    assert here.search("one").index.pending == 1


def test_words_alone_are_said_to_have_ranked(here: Opened) -> None:
    here.append("tea")
    found = here.search("tea", profile=Profile.LEXICAL)
    assert (found.index.model, found.index.pending, found.index.words_only) == ("", 0, WordsOnly.PROFILE)


def test_users_and_tenants_are_apart(here: Opened) -> None:
    here.append("tea of sarah")
    here.append("tea of tom", user="tom")
    here.append("tea of another tenant", tenant="other")
    assert here.texts("tea") == ["tea of sarah"]
    assert here.texts("tea", InConversation("c", "tom")) == ["tea of tom"]
    assert here.texts("tea", OfUser("tom")) == ["tea of tom"]
    assert sorted(here.texts("tea", OfTenant())) == ["tea of sarah", "tea of tom"]
    assert here.texts("tea", OfUser("nobody")) == []
    with pytest.raises(ConversationNotFound):
        here.search("tea", InConversation("elsewhere"))


def test_a_revision_that_was_never_given_out_is_refused(here: Opened) -> None:
    here.append("tea")
    with pytest.raises(RevisionUnknown):
        here.search("tea", read=replace(READ, min_revision=1000))


def test_what_was_edited_or_deleted_is_not_found(here: Opened) -> None:
    here.append("one tea", "two tea", "three tea")
    here.embed_all()
    assert len(here.texts("tea")) == 3
    edits: list[Edit] = [
        Remove("two tea"),
        Replace(draft("three tea", "three coffee")),
        Append(draft("m4", "four tea")),
    ]
    here.store.messages.edit(WRITE, "c", "", edits, allow_missing=False)
    assert here.texts("tea", profile=Profile.LEXICAL) == ["one tea", "four tea"]
    here.store.messages.delete(WRITE, "c", "", ["one tea"])
    assert here.texts("tea", profile=Profile.LEXICAL) == ["four tea"]
    here.store.messages.clear(WRITE, "c", "sarah")
    assert here.texts("tea", OfUser("sarah")) == []
    here.append("five tea")
    here.store.conversations.delete(WRITE, "c", "", allow_missing=False)
    assert here.texts("tea", OfUser("sarah")) == []


def comparable(found: SearchResult) -> tuple[object, ...]:
    """A result without the order of the fields in the wire form of its messages."""
    hits = [(replace(hit, encoded=b"", before=(), after=()), decoded(hit)) for hit in found.hits]
    return hits, found.index, found.revision


SCOPES: st.SearchStrategy[Scope] = st.sampled_from(
    [HERE, InConversation("c", "tom"), OfUser("sarah"), OfUser("tom"), OfTenant()]
)
WORDS = st.lists(st.sampled_from(["tea", "coffee", "ocean", "grass", "blue"]), min_size=1, max_size=4).map(" ".join)
WRITES = st.lists(
    st.tuples(st.sampled_from(["c", "d"]), st.sampled_from(["sarah", "tom"]), WORDS, st.booleans()),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=WRITES, removed=st.sets(st.integers(0, 11)), query=WORDS, data=st.data())
def test_a_store_that_was_reopened_finds_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[tuple[str, str, str, bool]],
    removed: set[int],
    query: str,
    data: st.DataObject,
) -> None:
    scope: Scope = data.draw(SCOPES)
    directory = tmp_path_factory.mktemp("store") / "data"
    with opened(directory) as before:
        before.append("tea", conversation="c")
        before.search(query, scope)
        for number, (conversation, user, text, embedded) in enumerate(writes):
            before.put(draft(f"m{number}", text), conversation=conversation, user=user)
            if embedded:
                before.embed_all()
            if number in removed:
                before.store.messages.delete(WRITE, conversation, user, [f"m{number // 2}"])
        expected = comparable(before.search(query, scope))
    with opened(directory) as after:
        assert comparable(after.search(query, scope)) == expected


def test_more_than_memory_holds_is_searched_all_the_same(tmp_path: Path) -> None:
    with opened(tmp_path / "data", recall_bytes=1) as here:
        for number in range(30):
            here.append(f"tea {number}", conversation=f"c{number}", user=f"user {number % 3}")
        assert len(here.texts("tea", OfUser("user 0"))) == 10
        assert len(here.texts("tea", OfTenant())) == 30
        assert here.texts("tea", InConversation("c7")) == ["tea 7"]


@pytest.mark.slow
def test_users_that_leave_memory_while_a_tenants_search_waits_are_searched_all_the_same(tmp_path: Path) -> None:
    with opened(tmp_path / "data", recall_bytes=1 << 16) as here:
        for number in range(4):
            here.append(f"tea {number} " + "word " * 5_000, conversation=f"c{number}", user=f"user {number}")
        here.append("tea", conversation="other", tenant="other")
        waits = iter([1.2])

        def wait(*_: object) -> None:
            if seconds := next(waits, 0.0):
                time.sleep(seconds)
                here.texts("tea", OfUser("sarah"), read=Read("other"))

        with patch.object(LoadedScope, "_wait_for_vectors", wait):
            assert len(here.texts("tea", OfTenant())) == 4


@pytest.mark.slow
def test_vectors_of_other_models_of_the_server_stay_on_disk(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as here:
        here.append("abc")
        here.embed_all()
    later = Opened(tmp_path / "data", model="newer")
    query = SearchQuery(HERE, "abc", QueryVector(MODEL, embed("abc")), SearchOptions(profile=Profile.VECTOR), 0.0)
    assert searched(later.store, READ, query).hits == ()
    later.store.close()


@pytest.mark.parametrize("scope", [HERE, OfUser("sarah"), OfTenant()])
def test_a_load_that_failed_is_made_again(tmp_path: Path, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "data") as here:
        here.append("tea")
    with opened(tmp_path / "data") as here:
        with monkeypatch.context() as broken:
            broken.setattr(RecallLoader, "_settle", _deadline_exceeded)
            with pytest.raises(DeadlineExceeded):
                here.search("tea", scope)
        here.append("more tea")
        assert sorted(here.texts("tea", scope)) == ["more tea", "tea"]


def _deadline_exceeded(_loader: RecallLoader, _read: Read, _revision: int) -> None:
    raise DeadlineExceeded


def test_searches_from_many_threads_while_messages_come(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as here:
        for number in range(20):
            here.append(f"tea {number}", conversation=f"c{number}")
    with opened(tmp_path / "data") as here:
        found: list[list[str]] = []
        searches = [threading.Thread(target=lambda: found.append(here.texts("tea", OfUser("sarah")))) for _ in range(6)]
        for thread in searches:
            thread.start()
        for number in range(20, 30):
            here.append(f"tea {number}", conversation=f"c{number}")
        for thread in searches:
            thread.join()
        assert len(found) == len(searches)
        assert all(len(set(texts)) == len(texts) >= 20 for texts in found)
        assert len(here.texts("tea", OfUser("sarah"))) == 30
