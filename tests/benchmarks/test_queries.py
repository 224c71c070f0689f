"""The queries: each has one answer, in its own words where it shall have none of the message's."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest
from benchmarks.queries import material, scoring
from benchmarks.queries.asking import Asked
from benchmarks.queries.stores import LENGTH, NOTHING, SLICE, USERS, Query, Said, Stores, make

from remora_server import _native

HANDMADE = 100


@pytest.fixture(scope="module")
def stores() -> Stores:
    return make()


@pytest.mark.slow
def test_stores_are_the_same_each_time(stores: Stores) -> None:
    assert make() == stores


def test_every_user_has_a_thousand_messages(stores: Stores) -> None:
    lengths: Counter[int] = Counter()
    for conversation in stores.conversations:
        lengths[conversation.user] += len(conversation.messages)

    assert lengths == dict.fromkeys(range(USERS), LENGTH)


def test_every_slice_has_enough_queries(stores: Stores) -> None:
    counts = Counter(query.slice for query in stores.queries)

    assert counts.pop("paraphrase") >= HANDMADE
    assert set(counts.values()) == {SLICE}


def test_every_query_has_one_answer_of_its_own_user(stores: Stores) -> None:
    users = {id(said): talk.user for talk in stores.conversations for said in talk.messages}
    texts = Counter(said.text for talk in stores.conversations for said in talk.messages)

    for query in stores.queries:
        if query.slice == NOTHING:
            assert query.answer is None
        else:
            assert query.answer is not None
            assert users[id(query.answer)] == query.user
            assert texts[query.answer.text] == 1 or not query.everywhere


def test_what_changed_was_said_before(stores: Stores) -> None:
    times: dict[int, datetime] = {}
    for talk in stores.conversations:
        times.update((id(said), time) for said, time in zip(talk.messages, talk.times(), strict=True))
    changes = [(query.rival, query.answer) for query in stores.queries if query.rival]

    assert len(changes) == SLICE
    assert all(times[id(before)] < times[id(after)] for before, after in changes)


def test_a_paraphrase_has_no_word_of_its_message() -> None:
    for fact in material.facts():
        assert not _terms(fact.message) & _terms(fact.queries["paraphrase"]), fact


def test_a_handmade_word_is_one_of_the_message() -> None:
    for fact in material.facts():
        assert _terms(fact.queries["word"]) <= _terms(fact.message), fact


def test_the_worst_margin_is_that_of_the_slice_that_is_furthest_below() -> None:
    ranks = {"hybrid": (1, 11), "hybrid_late": (2, 2), "vector": (3, 10), "lexical": (None, 20)}
    runs = {
        profile: [_asked("word", first), _asked("id", second), _asked("update", 1, 2)]
        for profile, (first, second) in ranks.items()
    }

    figures = scoring.figures(runs)

    assert figures["worst_margin_hybrid"] == 100
    assert figures["worst_margin_hybrid_late"] == 0
    assert figures["exact_id_r1_hybrid"] == 0
    assert figures["mean_mrr_hybrid_over_best_single"] == pytest.approx((1 + 1 / 11 + 1) / (1 / 3 + 1 / 10 + 1))


def test_the_newest_counts_where_it_is_found_before_the_other() -> None:
    asked = [_asked("update", *ranks) for ranks in ((1, 2), (2, 1), (3, None), (None, None))]

    assert scoring.newest_first(asked) == 50


def _asked(slice_: str, rank: int | None, rival: int | None = None) -> Asked:
    return Asked(Query(f"{slice_}-0", slice_, "?", Said("answer"), 0), 1000, rank, rival)


def _terms(text: str) -> frozenset[str]:
    return frozenset(_native.analyze(text))
