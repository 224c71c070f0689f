"""Reviews after a start, and what searches are told of them: 0 pending means that nothing is left to be done."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.storage.opening import READ, WRITE, open_store, take
from tests.store.asking import draft, searched

from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import StoreFailed
from remora_server.domain.search import (
    InConversation,
    MessageVector,
    OfTenant,
    OfUser,
    QueryVector,
    Scope,
    SearchOptions,
    SearchQuery,
    TextVector,
    Unembedded,
)
from remora_server.engine.indexer import Indexer
from remora_server.storage.embedding import review_schedule, reviews
from remora_server.storage.embedding.left_behind import LeftBehind
from remora_server.storage.embedding.review_schedule import ReviewSchedule
from remora_server.storage.embedding.scopes import Part, ResolvedScope
from remora_server.storage.local_store import LocalStore

MODEL = "lengths"
USERS = ("ann", "bob", "cy")
TENANT = ResolvedScope("acme")
SCOPES = [(InConversation("of ann"), 1), (OfUser("ann"), 1), (OfTenant(), len(USERS))]


def vector(text: str) -> bytes:
    return struct.pack("<2f", 1.0, len(text))


def embed(texts: Sequence[str]) -> list[TextVector]:
    return [TextVector(vector(text)) for text in texts]


def append(store: LocalStore, user: str, text: str, name: str = "") -> None:
    store.messages.append(WRITE, f"of {user}", user, [draft(text=text, name=name)], ConversationDraft(id=""))


def put(store: LocalStore, waiting: Sequence[Unembedded]) -> None:
    store.pending.put_embeddings([MessageVector(each, vector(each.text)) for each in waiting])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    """One that was closed before `tea with Bob` was embedded again, each user's first message."""
    before = open_store(tmp_path, model=MODEL)
    for user in USERS:
        append(before, user, "tea with Bob")
    put(before, take(before.pending, 100))
    for user in USERS:
        append(before, user, "sun", name="Bob")
    put(before, take(before.pending, len(USERS)))
    before.close()
    made = open_store(tmp_path, model=MODEL)
    yield made
    made.close()


def pending(store: LocalStore, scope: Scope, *, index_wait: float = 0.0) -> int:
    query = SearchQuery(scope, "tea", QueryVector(MODEL, vector("tea")), SearchOptions(), index_wait)
    return searched(store, READ, query).index.pending


@pytest.mark.parametrize(("scope", "parts"), SCOPES)
def test_what_is_not_compared_after_a_start_is_pending_in_every_scope(
    store: LocalStore, scope: Scope, parts: int
) -> None:
    assert pending(store, scope) == parts, "not compared yet"
    again = take(store.pending, 100)
    assert [message.text for message in again] == ["tea with"] * len(USERS)
    assert pending(store, scope) == parts, "compared, and to be embedded again"
    put(store, again)
    assert pending(store, scope) == 0


@pytest.mark.parametrize(("scope", "_parts"), SCOPES)
def test_a_search_waits_for_what_is_not_compared(store: LocalStore, scope: Scope, _parts: int) -> None:
    found: list[int] = []
    search = threading.Thread(target=lambda: found.append(pending(store, scope, index_wait=60.0)))
    search.start()
    indexer = Indexer(store.pending, embed)
    indexer.start()
    search.join()
    indexer.close()
    assert found == [0]


def test_a_scope_without_names_has_nothing_to_compare(store: LocalStore) -> None:
    append(store, "dan", "tea")
    assert pending(store, OfUser("dan")) == 1
    put(store, take(store.pending, 1))
    assert pending(store, OfUser("dan")) == 0


def test_the_model_has_work_while_reviews_are_left(store: LocalStore) -> None:
    assert store.status().embeddings[MODEL].pending == len(USERS)


def test_reviews_follow_each_other_without_a_pause(store: LocalStore) -> None:
    with patch.object(reviews, "MOST_AT_ONCE", 1), patch.object(store.pending._reviews, "_at_once", 1):
        while store.pending.count_reviews(TENANT):
            take(store.pending, 100, timeout=threading.TIMEOUT_MAX)


@pytest.mark.parametrize(("messages", "left"), [(2, [2, 1, 0]), (100, [2, 0, 0])])
def test_groups_of_reviews_become_as_large_as_they_may(store: LocalStore, messages: int, left: list[int]) -> None:
    found = []
    with patch.object(reviews, "MESSAGES_AT_ONCE", messages), patch.object(store.pending._reviews, "_at_once", 1):
        for _ in left:
            take(store.pending, 100)
            found.append(store.pending.count_reviews(TENANT))
    assert found == left


def test_a_review_that_fails_is_made_again(store: LocalStore) -> None:
    with (
        patch.object(review_schedule, "GONE_SECONDS", 0.0),
        patch.object(LeftBehind, "parts", side_effect=StoreFailed),
        pytest.raises(StoreFailed),
    ):
        take(store.pending, 100)
    assert pending(store, OfTenant()) == len(USERS)
    assert len(take(store.pending, 100)) == len(USERS)


PARTS: list[Part] = [(tenant, user, uid) for tenant in "ab" for user in "uv" for uid in (1, 2)]
RESOLVED = [
    *(ResolvedScope(tenant) for tenant in "ab"),
    *(ResolvedScope(tenant, user) for tenant in "ab" for user in "uv"),
    *(ResolvedScope(*part) for part in PARTS),
]


class ReviewScheduleComparison(RuleBasedStateMachine):
    """A schedule beside the sets of what waits and what is taken. Nothing that is gathered becomes due by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule = ReviewSchedule()
        self.waiting: set[Part] = set()
        self.taken: set[Part] = set()

    @rule(part=st.sampled_from(PARTS))
    def now(self, part: Part) -> None:
        self.schedule.now(part)
        self.waiting.add(part)

    @rule(parts=st.lists(st.sampled_from(PARTS)), seconds=st.sampled_from([0.0, 3600.0]))
    def soon(self, parts: list[Part], seconds: float) -> None:
        with patch.object(review_schedule, "GONE_SECONDS", seconds):
            self.schedule.soon(parts)
        self.waiting.update(parts)

    @rule(parts=st.lists(st.sampled_from(PARTS)))
    def past(self, parts: list[Part]) -> None:
        self.schedule.past(parts)
        self.waiting.update(parts)

    @rule(limit=st.integers(1, 3))
    def take(self, limit: int) -> None:
        found = self.schedule.take(limit, 0.0)
        assert len(found) <= limit
        assert set(found) <= self.waiting
        self.waiting -= set(found)
        self.taken |= set(found)

    @rule(fails=st.booleans())
    def end(self, fails: bool) -> None:
        self.schedule.end(self.taken, again=self.taken if fails else ())
        self.waiting |= self.taken if fails else set()
        self.taken = set()

    @rule(scope=st.sampled_from(RESOLVED))
    def hurry(self, scope: ResolvedScope) -> None:
        self.schedule.hurry(scope)

    @invariant()
    def every_scope_is_counted(self) -> None:
        there = self.waiting | self.taken
        assert [self.schedule.count(scope) for scope in RESOLVED] == [
            sum(map(scope.holds, there)) for scope in RESOLVED
        ]
        assert self.schedule.total() == len(there)

    def teardown(self) -> None:
        for part in PARTS:
            self.schedule.hurry(ResolvedScope(*part))
        assert set(self.schedule.take(len(PARTS), 0.0)) == self.waiting, "none is forgotten"


TestReviewSchedule = ReviewScheduleComparison.TestCase


def test_what_is_hurried_is_taken_first() -> None:
    schedule = ReviewSchedule()
    schedule.past(PARTS)
    schedule.hurry(ResolvedScope("b", "u"))
    schedule.hurry(ResolvedScope("a", "v", 2))
    assert schedule.take(3, 0.0) == [("a", "v", 2), ("b", "u", 1), ("b", "u", 2)]
