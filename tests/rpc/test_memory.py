"""The RPCs of searching and of assembling a context: what is asked, and what comes back."""

from __future__ import annotations

import struct

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from tests.rpc.running_server import RunningServer

from remora.v1 import memory_service_pb2 as pb
from remora.v1.message_pb2 import Embedding, Message
from remora.v1.scalar_pb2 import Condition as ConditionMessage
from remora.v1.scalar_pb2 import Operator as OperatorMessage
from remora.v1.scalar_pb2 import Scalar
from remora_server.domain.context import Context, ContextRequest, Item, Merge, Rendering, Section
from remora_server.domain.search import (
    Component,
    Condition,
    Hit,
    InConversation,
    IndexState,
    MessageFilter,
    OfTenant,
    OfUser,
    Operator,
    Profile,
    QueryVector,
    Scope,
    SearchOptions,
    SearchQuery,
    SearchResult,
    WordsOnly,
)
from remora_server.domain.tokens import CL100K_BASE, O200K_BASE, TokenEncoding

VECTOR = struct.pack("<3f", 1, 2, 3)
MESSAGE = Message(id="m", text="é" * 200, sequence=3)


def query_of(server: RunningServer, **fields: object) -> SearchQuery:
    server.call("SearchMessages", pb.SearchMessagesRequest(**{"user_id": "u", **fields}))  # type: ignore[arg-type]
    return server.searcher.queries[-1]


def test_a_search_by_text_is_hybrid_and_waits_a_quarter_of_a_second(server: RunningServer) -> None:
    query = query_of(server, text="where")

    assert query == SearchQuery(OfUser("u"), "where", None, SearchOptions(k=10), index_wait=0.25)


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

    assert query.vector == QueryVector("minilm", VECTOR)
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


@pytest.mark.parametrize(("given", "k"), [(0, 10), (1, 1), (1_000, 1_000), (1_001, 1_000)])
def test_ten_hits_are_wanted_unless_asked_otherwise_and_1000_at_most(server: RunningServer, given: int, k: int) -> None:
    assert query_of(server, text="t", options=pb.SearchOptions(k=given)).options.k == k


def test_options_and_filters_are_taken_over(server: RunningServer) -> None:
    conditions = [
        ConditionMessage(key="a", operator=OperatorMessage.OPERATOR_EQ, values=[Scalar(null_value=0)]),  # type: ignore[arg-type]
        ConditionMessage(key="b", operator=OperatorMessage.OPERATOR_IN, values=[Scalar(integer=1), Scalar(text="x")]),
        ConditionMessage(key="c", operator=OperatorMessage.OPERATOR_ABSENT),
    ]
    given = pb.SearchOptions(
        threshold=0.0,
        weights=pb.Weights(bm25=0.0),
        filter=pb.MessageFilter(
            roles=["user"],
            after_time=Timestamp(seconds=1),
            before_time=Timestamp(seconds=2, nanos=5_999),
            conditions=conditions,
        ),
    )

    query = query_of(server, text="t", options=given, index_wait=Duration(seconds=1, nanos=500_000_000))

    expected = MessageFilter(
        roles=("user",),
        after_time=1_000_000,
        before_time=2_000_005,
        conditions=(
            Condition("a", Operator.EQ, (None,)),
            Condition("b", Operator.IN, (1, "x")),
            Condition("c", Operator.ABSENT, ()),
        ),
    )
    assert query.options == SearchOptions(threshold=0.0, filter=expected, weights={"bm25": 0.0})
    assert query.index_wait == 1.5


def test_a_condition_that_cannot_be_understood_is_named_by_its_place(server: RunningServer) -> None:
    conditions = [
        ConditionMessage(key="a", operator=OperatorMessage.OPERATOR_PRESENT),
        ConditionMessage(key="b", operator=OperatorMessage.OPERATOR_EQ),
    ]

    with pytest.raises(grpc.RpcError, match=r"options\.filter\.conditions\[1\]\.values: OPERATOR_EQ takes one value"):
        query_of(server, text="t", options=pb.SearchOptions(filter=pb.MessageFilter(conditions=conditions)))


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
    )


@pytest.mark.parametrize(("given", "merge"), [(0, Merge.PREPEND), (1, Merge.APPEND), (2, Merge.PREPEND)])
def test_recalled_messages_come_first_unless_asked_otherwise(server: RunningServer, given: int, merge: Merge) -> None:
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
        Item(encoded, "d", 4, Section.RECENT, None, 12, "recent"),
    )
    server.assembler.context = Context(items, "text", 26, 3, 2, 1, exact=True, revision=7, index=index)
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
            pb.Item(message=MESSAGE, conversation_id="d", section=pb.SECTION_RECENT, tokens=12, reason="recent"),
        ],
        text="text",
        tokens_used=26,
        overhead_tokens=3,
        left_out=2,
        uncounted_parts=1,
        exact=True,
        revision=7,
        index=by_words if index else None,
    )
