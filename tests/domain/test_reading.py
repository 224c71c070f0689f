"""Reading a conversation for an agent's turn: what VoltAgent's memory makes of recent messages and of hits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.domain.conversing import CONVERSATION, READ, Conversations, message

from remora_server.domain.context import Merge
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.domain.reading import ConversationReader, Reading, ReadRequest
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.search import InConversation, OfTenant, SearchOptions, SearchQuery

MERGES = [*Merge]


def searched(k: int) -> SearchQuery:
    return SearchQuery(OfTenant(), "where", None, SearchOptions(k=k), index_wait=0.0)


def split(encoded: bytes) -> list[bytes]:
    return [entry for entry in encoded.split(b",") if entry]


def read(store: Conversations, request: ReadRequest) -> Reading:
    return ConversationReader(store, store, store, split).read(READ, request)


def sequences(reading: Reading) -> list[int]:
    return [int(each.encoded.split(b"/")[1]) for each in reading.messages]


def merged(recent: list[int], hits: Sequence[int], merge: Merge) -> list[int]:
    """What `Memory.mergeMessages` of @voltagent/core gives, and what comes in the order of time."""
    others = [hit for hit in hits if hit not in recent]
    if merge is Merge.EARLIER:
        return [*sorted(others), *recent]
    if merge is Merge.APPEND:
        return [*recent, *others]
    if merge is Merge.PREPEND:
        return [*others, *recent]
    order = []
    for place in range(max(len(recent), len(others))):
        order += others[place : place + 1] + recent[place : place + 1]
    return order


@given(
    count=st.integers(0, 12),
    recent=st.none() | st.integers(0, 14),
    k=st.integers(1, 14),
    merge=st.sampled_from(MERGES),
    data=st.data(),
)
def test_messages_are_joined_as_the_merge_says(
    count: int, recent: int | None, k: int, merge: Merge, data: st.DataObject
) -> None:
    stored = range(1, count + 1)
    ranking = data.draw(st.permutations(stored))
    store = Conversations([message(sequence) for sequence in stored], [(CONVERSATION, place) for place in ranking])

    reading = read(store, ReadRequest(CONVERSATION, recent_messages=recent, search=searched(k), merge=merge))

    newest = list(stored) if recent is None else list(stored)[max(0, count - recent) :]
    assert sequences(reading) == merged(newest, ranking[:k], merge)
    assert reading.first_sequence == (newest[0] if newest else 0)
    assert not reading.truncated


def test_only_what_was_found_has_a_score() -> None:
    store = Conversations([message(1), message(2), message(3)], [(CONVERSATION, 3), (CONVERSATION, 1)])

    reading = read(store, ReadRequest(CONVERSATION, recent_messages=2, search=searched(2), merge=Merge.APPEND))

    assert [(sequence, each.score) for sequence, each in zip(sequences(reading), reading.messages, strict=True)] == [
        (2, None),
        (3, None),
        (1, 0.9 - 0.01),
    ]


def test_the_search_is_of_the_users_part_of_the_conversation() -> None:
    store = Conversations([message(1)])

    read(store, ReadRequest(CONVERSATION, search=searched(3)))
    read(store, ReadRequest(CONVERSATION, "tom", search=searched(3)))

    assert [query.scope for query in store.searches] == [
        InConversation(CONVERSATION, "sarah"),
        InConversation(CONVERSATION, "tom"),
    ]


def test_only_the_owner_is_shown_the_conversation() -> None:
    store = Conversations([message(1)])

    shown = [read(store, ReadRequest(CONVERSATION, user_id)).conversation for user_id in ("", "sarah", "tom")]

    assert [conversation is not None for conversation in shown] == [True, True, False]


def test_nothing_is_searched_without_a_query() -> None:
    store = Conversations([message(1), message(2)], [(CONVERSATION, 1)])

    reading = read(store, ReadRequest(CONVERSATION, recent_messages=1))

    assert sequences(reading) == [2]
    assert (store.searches, reading.index) == ([], None)


def test_a_conversation_that_is_missing_is_named() -> None:
    with pytest.raises(ConversationNotFound, match="nowhere"):
        read(Conversations([]), ReadRequest("nowhere"))


class Long(Conversations):
    """Messages of which three pages of two fill more than a reply."""

    def list(self, read: object, query: MessageQuery) -> MessagePage:
        page = super().list(READ, replace(query, limit=min(2, query.limit)))
        return replace(page, encoded=page.encoded.replace(b"c1", b"c" * (REPLY_BYTES // 5)))


def test_a_reply_that_is_full_says_where_the_rest_begins() -> None:
    reading = read(Long([message(sequence) for sequence in range(1, 8)]), ReadRequest(CONVERSATION))

    assert sequences(reading) == [4, 5, 6, 7]
    assert (reading.first_sequence, reading.truncated) == (4, True)
