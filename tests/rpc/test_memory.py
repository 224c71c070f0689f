"""The RPCs of searching and of assembling a context: what is asked, and what comes back."""

from __future__ import annotations

import re
import struct

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from tests.rpc.running_server import RunningServer

from remora.v1 import filter_pb2
from remora.v1 import memory_service_pb2 as pb
from remora.v1.message_pb2 import Embedding, Message
from remora.v1.scalar_pb2 import Scalar
from remora.v1.text_service_pb2 import Encoding
from remora_server.domain.context import Context, ContextRequest, Item, Merge, Rendering, Section
from remora_server.domain.filters import AllOf, AnyOf, Condition, Negated, Operator
from remora_server.domain.search import (
    Component,
    Hit,
    InConversation,
    IndexState,
    MessageFilter,
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
from remora_server.domain.times import Between
from remora_server.domain.tokens import CL100K_BASE, O200K_BASE, TokenEncoding

VECTOR = struct.pack("<3f", 1, 2, 3)
ONE_MORE = 1
"""A hit beyond the page, which says that there is another page."""
MESSAGE = Message(id="m", text="é" * 200, sequence=3)


def query_of(server: RunningServer, **fields: object) -> SearchQuery:
    server.call("SearchMessages", pb.SearchMessagesRequest(**{"user_id": "u", **fields}))  # type: ignore[arg-type]
    return server.searcher.queries[-1]


def test_a_search_by_text_is_hybrid_and_waits_a_quarter_of_a_second(server: RunningServer) -> None:
    query = query_of(server, text="where")

    assert query == SearchQuery(OfUser("u"), "where", None, SearchOptions(k=10 + ONE_MORE), index_wait=0.25)


@pytest.mark.parametrize(
    ("given", "scope"),
    [
        ({"conversation": pb.ConversationScope(conversation_id="c")}, InConversation("c")),
        ({"conversation": pb.ConversationScope(conversation_id="c", user_id="u")}, InConversation("c", "u")),
        ({"user_id": "u"}, OfUser("u")),
        ({"tenant": pb.TenantScope()}, OfTenant()),
    ],
)
def test_a_search_has_one_scope(server: RunningServer, given: dict[str, object], scope: Scope) -> None:
    server.call("SearchMessages", pb.SearchMessagesRequest(text="t", min_revision=4, **given))  # type: ignore[arg-type]

    [(read, query)] = server.searcher.asked
    assert query.scope == scope
    assert (read.tenant_id, read.min_revision) == ("default", 4)


@pytest.mark.parametrize("profile", [pb.PROFILE_UNSPECIFIED, pb.PROFILE_VECTOR])
def test_a_vector_selects_its_profile(server: RunningServer, profile: pb.Profile.ValueType) -> None:
    query = query_of(
        server, embedding=Embedding(model="minilm", values=VECTOR), options=pb.SearchOptions(profile=profile)
    )

    assert query.vector == QueryVector("minilm", VECTOR, field="embedding")
    assert (query.text, query.options.profile) == ("", Profile.VECTOR)


@pytest.mark.parametrize(
    ("given", "profile"),
    [
        (pb.PROFILE_UNSPECIFIED, Profile.HYBRID),
        (pb.PROFILE_HYBRID, Profile.HYBRID),
        (pb.PROFILE_VECTOR, Profile.VECTOR),
        (pb.PROFILE_LEXICAL, Profile.LEXICAL),
    ],
)
def test_a_text_is_ranked_as_asked(server: RunningServer, given: pb.Profile.ValueType, profile: Profile) -> None:
    assert query_of(server, text="t", options=pb.SearchOptions(profile=given)).options.profile is profile


@pytest.mark.parametrize(("given", "k"), [(0, 10), (1, 1), (1_000, 1_000)])
def test_ten_hits_are_wanted_unless_asked_otherwise(server: RunningServer, given: int, k: int) -> None:
    assert query_of(server, text="t", options=pb.SearchOptions(k=given)).options.k == k + ONE_MORE


@pytest.mark.parametrize("given", [-1, 1_001])
def test_more_than_1000_hits_are_refused(server: RunningServer, given: int) -> None:
    with pytest.raises(grpc.RpcError, match=r"options\.k") as refusal:
        query_of(server, text="t", options=pb.SearchOptions(k=given))
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def found(*sequences: int) -> SearchResult:
    hits = tuple(Hit(1, "c", sequence, 0.5, (), MESSAGE.SerializeToString()) for sequence in sequences)
    return SearchResult(hits, IndexState("minilm", 0, None), Profile.HYBRID, revision=7)


def page_of(server: RunningServer, request: pb.SearchMessagesRequest) -> pb.SearchMessagesResponse:
    reply = server.call("SearchMessages", request)
    assert isinstance(reply, pb.SearchMessagesResponse)
    return reply


def test_a_page_begins_with_what_no_page_before_had(server: RunningServer) -> None:
    request = pb.SearchMessagesRequest(user_id="u", text="t", options=pb.SearchOptions(k=2))
    server.searcher.result = found(3, 1, 2)
    first = page_of(server, request)
    server.searcher.result = found(2)
    request.page_token = first.next_page_token
    second = page_of(server, request)

    assert [query.seen for query in server.searcher.queries] == [(), ((1, 3), (1, 1))]
    assert (len(first.hits), len(second.hits)) == (2, 1)
    assert first.next_page_token
    assert not second.next_page_token


def test_a_page_token_is_of_one_request(server: RunningServer) -> None:
    request = pb.SearchMessagesRequest(user_id="u", text="t", options=pb.SearchOptions(k=2))
    server.searcher.result = found(3, 1, 2)
    token = page_of(server, request).next_page_token

    with pytest.raises(grpc.RpcError, match="page_token"):
        query_of(server, text="another", options=pb.SearchOptions(k=2), page_token=token)


def test_pages_end_after_1000_hits(server: RunningServer) -> None:
    request = pb.SearchMessagesRequest(user_id="u", text="t", options=pb.SearchOptions(k=600))
    server.searcher.result = found(*range(601))
    request.page_token = page_of(server, request).next_page_token
    server.searcher.result = found(*range(600, 1001))
    last = page_of(server, request)

    assert server.searcher.queries[-1].options.k == 400 + ONE_MORE
    assert (len(last.hits), last.next_page_token) == (400, "")


def test_a_half_life_is_taken_over_in_search_and_context(server: RunningServer) -> None:
    options = pb.SearchOptions(recency_half_life=Duration(seconds=86_400))

    assert query_of(server, text="t", options=options).options.half_life == 86_400.0
    context = asked_for(server, search=options)
    assert context.search is not None
    assert context.search.half_life == 86_400.0


def leaf(key: str, operator: filter_pb2.Operator.ValueType, *values: Scalar) -> filter_pb2.Filter:
    return filter_pb2.Filter(condition=filter_pb2.Condition(key=key, operator=operator, values=values))


def all_of(*filters: filter_pb2.Filter) -> filter_pb2.Filter:
    return filter_pb2.Filter(all_of=filter_pb2.Filters(filters=filters))


def any_of(*filters: filter_pb2.Filter) -> filter_pb2.Filter:
    return filter_pb2.Filter(any_of=filter_pb2.Filters(filters=filters))


def negated(filter_: filter_pb2.Filter, times: int = 1) -> filter_pb2.Filter:
    return filter_ if times == 0 else filter_pb2.Filter(negated=negated(filter_, times - 1))


ONE = Scalar(integer=1)
IS_NULL = leaf("a", filter_pb2.OPERATOR_EQ, Scalar(null_value=0))  # type: ignore[arg-type]
IS_IN = leaf("b", filter_pb2.OPERATOR_IN, ONE, Scalar(text="x"))
IS_ABSENT = leaf("c", filter_pb2.OPERATOR_ABSENT)
IS_UNKNOWN = leaf("d", 10, ONE)  # type: ignore[arg-type]
IS_WITHOUT_A_VALUE = leaf("e", filter_pb2.OPERATOR_EQ)
OF_A_BODY = filter_pb2.Filter(
    condition=filter_pb2.Condition(
        path=filter_pb2.Path(steps=["a", "0"]), operator=filter_pb2.OPERATOR_EQ, values=[ONE]
    )
)


def filtered(where: filter_pb2.Filter) -> pb.SearchOptions:
    return pb.SearchOptions(filter=pb.MessageFilter(where=where))


def test_options_and_filters_are_taken_over(server: RunningServer) -> None:
    given = pb.SearchOptions(
        threshold=0.0,
        weights=pb.Weights(bm25=0.0),
        filter=pb.MessageFilter(
            roles=["user"],
            sent_after=Timestamp(seconds=1),
            sent_before=Timestamp(seconds=2, nanos=5_999),
            received_after=Timestamp(seconds=3),
            where=all_of(IS_NULL, any_of(IS_IN, negated(IS_ABSENT))),
        ),
    )

    query = query_of(server, text="t", options=given, index_wait=Duration(seconds=1, nanos=500_000_000))

    is_in, is_absent = Condition("b", Operator.IN, (1, "x")), Condition("c", Operator.ABSENT, ())
    expected = MessageFilter(
        roles=("user",),
        sent=Between(1_000_000, 2_000_005),
        received=Between(3_000_000, None),
        where=AllOf((Condition("a", Operator.EQ, (None,)), AnyOf((is_in, Negated(is_absent))))),
    )
    assert query.options == SearchOptions(k=10 + ONE_MORE, threshold=0.0, filter=expected, weights={"bm25": 0.0})
    assert query.index_wait == 1.5


@pytest.mark.parametrize(
    ("where", "refusal"),
    [
        (all_of(IS_ABSENT, IS_WITHOUT_A_VALUE), ".all_of.filters[1].condition.values: OPERATOR_EQ takes one value"),
        (any_of(IS_UNKNOWN), ".any_of.filters[0].condition.operator: 10 is not a value of Operator"),
        (negated(any_of(OF_A_BODY)), ".negated.any_of.filters[0].condition.path: bodies of messages are opaque"),
        (filter_pb2.Filter(), ".kind: is required"),
        (all_of(), ".all_of.filters: is required"),
        (negated(IS_ABSENT, 8), f"{'.negated' * 8}: is more than 8 levels deep"),
        (all_of(*[any_of(*[IS_ABSENT] * 13)] * 5), ": has more than 64 conditions"),
    ],
)
def test_what_cannot_be_understood_of_a_filter_is_named_by_its_place(
    server: RunningServer, where: filter_pb2.Filter, refusal: str
) -> None:
    with pytest.raises(grpc.RpcError, match=re.escape(f"options.filter.where{refusal}")):
        query_of(server, text="t", options=filtered(where))


@pytest.mark.parametrize("where", [negated(IS_ABSENT, 7), all_of(*[any_of(*[IS_ABSENT] * 16)] * 4)])
def test_a_filter_may_be_8_levels_deep_with_64_conditions(server: RunningServer, where: filter_pb2.Filter) -> None:
    assert query_of(server, text="t", options=filtered(where)).options.filter.where is not None


@pytest.mark.parametrize("explain", [False, True])
def test_hits_hold_the_messages_as_they_are_stored(server: RunningServer, explain: bool) -> None:
    components = (Component("cosine", 0.5, 1.0), Component("bm25", 1.0, 0.3))
    hits = tuple(Hit(1, f"c{number}", 3, 0.8 - number, components, MESSAGE.SerializeToString()) for number in range(3))
    server.searcher.result = SearchResult(hits, IndexState("minilm", 2, None), Profile.HYBRID, revision=7)

    reply = server.call("SearchMessages", pb.SearchMessagesRequest(user_id="u", text="t", explain=explain))

    explained = [pb.Component(name=each.name, value=each.value, weight=each.weight) for each in components]
    assert reply == pb.SearchMessagesResponse(
        hits=[
            pb.Hit(
                message=MESSAGE,
                conversation_id=f"c{number}",
                score=0.8 - number,
                components=explained if explain else [],
            )
            for number in range(3)
        ],
        revision=7,
        index=pb.IndexState(model="minilm", pending=2),
        profile=pb.PROFILE_HYBRID,
    )


def asked_for(server: RunningServer, **fields: object) -> ContextRequest:
    request = pb.AssembleContextRequest(**{"conversation_id": "c", "max_tokens": 9, **fields})  # type: ignore[arg-type]
    server.call("AssembleContext", request)
    assert server.assembler.asked is not None
    return server.assembler.asked[1]


def test_a_context_is_of_recent_messages_unless_asked_otherwise(server: RunningServer) -> None:
    assert asked_for(server) == ContextRequest("c", 9, encoding=O200K_BASE, index_wait=0.25)


def test_a_context_is_assembled_as_asked(server: RunningServer) -> None:
    request = asked_for(
        server,
        user_id="u",
        query="q",
        recent_messages=0,
        search=pb.SearchOptions(k=3),
        search_user_scope=True,
        merge=pb.MERGE_INTERLEAVE,
        rendering=pb.RENDERING_TRANSCRIPT,
        index_wait=Duration(),
        encoding=Encoding(model="gpt-4"),
        system="be brief",
        allow_partial=True,
        include_unrelated=True,
    )

    assert request == ContextRequest(
        "c",
        9,
        user_id="u",
        query="q",
        recent_messages=0,
        search=SearchOptions(k=3),
        search_user_scope=True,
        merge=Merge.INTERLEAVE,
        rendering=Rendering.TRANSCRIPT,
        index_wait=0.0,
        encoding=CL100K_BASE,
        model="gpt-4",
        system="be brief",
        allow_partial=True,
        include_unrelated=True,
    )


def test_a_context_recalls_for_a_vector_by_the_profile_that_it_selects(server: RunningServer) -> None:
    embedding = Embedding(model="minilm", values=VECTOR)

    request = asked_for(server, query_embedding=embedding, search=pb.SearchOptions(k=3))

    assert request == ContextRequest(
        "c",
        9,
        vector=QueryVector("minilm", VECTOR, field="query_embedding"),
        search=SearchOptions(k=3, profile=Profile.VECTOR),
        index_wait=0.25,
    )


@pytest.mark.parametrize(
    ("given", "merge"), [(0, Merge.EARLIER), (1, Merge.APPEND), (2, Merge.PREPEND), (4, Merge.EARLIER)]
)
def test_recalled_messages_are_marked_as_earlier_unless_asked_otherwise(
    server: RunningServer, given: int, merge: Merge
) -> None:
    assert asked_for(server, merge=given).merge is merge


@pytest.mark.parametrize(
    ("given", "encoding"), [({"name": "cl100k_base"}, CL100K_BASE), ({"model": "gpt-4"}, CL100K_BASE), ({}, O200K_BASE)]
)
def test_tokens_are_counted_as_asked(server: RunningServer, given: dict[str, str], encoding: TokenEncoding) -> None:
    assert asked_for(server, encoding=given).encoding == encoding


@pytest.mark.parametrize("index", [None, IndexState("", 0, WordsOnly.PROFILE)])
def test_a_context_comes_back_with_its_costs(server: RunningServer, index: IndexState | None) -> None:
    encoded = MESSAGE.SerializeToString()
    items = (
        Item(encoded, "c", 3, Section.RECALLED, 0.5, 11, "because"),
        Item(encoded, "d", 4, Section.RECENT, None, 12, "recent", ("audio",), partial=True),
    )
    server.assembler.context = Context(
        items, "text", 26, 3, 2, exact=False, revision=7, index=index, earlier="quoted", unanswered=4, unrelated=5
    )
    by_words = pb.IndexState(words_only=True, words_only_reason=pb.WORDS_ONLY_REASON_PROFILE)

    reply = server.call("AssembleContext", pb.AssembleContextRequest(conversation_id="c", max_tokens=30))

    assert reply == pb.AssembleContextResponse(
        items=[
            pb.Item(
                message=MESSAGE,
                conversation_id="c",
                section=pb.SECTION_RECALLED,
                score=0.5,
                tokens=11,
                reason="because",
            ),
            pb.Item(
                message=MESSAGE,
                conversation_id="d",
                section=pb.SECTION_RECENT,
                tokens=12,
                reason="recent",
                uncounted=["audio"],
                partial=True,
            ),
        ],
        text="text",
        tokens_used=26,
        overhead_tokens=3,
        left_out=2,
        uncounted_parts=1,
        exact=False,
        revision=7,
        index=by_words if index else None,
        earlier=Message(role="user", text="quoted"),
        unanswered=4,
        unrelated=5,
    )
