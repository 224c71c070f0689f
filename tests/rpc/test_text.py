"""The RPCs of counting tokens and of embedding."""

from __future__ import annotations

from typing import cast

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from tests.domain.fake_recall import REFUSED, FakeEmbedder, vector_of
from tests.rpc.running_server import RunningServer, detail

from remora.v1 import text_service_pb2 as pb
from remora.v1.message_pb2 import IMAGE_DETAIL_LOW, Embedding, Image, Media, Message, ToolCall
from remora_server.domain.search import EmbeddingFailed


def count(server: RunningServer, **fields: object) -> pb.CountTokensResponse:
    return cast("pb.CountTokensResponse", server.call("CountTokens", pb.CountTokensRequest(**fields)))  # type: ignore[arg-type]


def test_texts_are_counted_one_by_one(server: RunningServer) -> None:
    reply = count(server, texts=["one two", "", "three"])

    assert reply == pb.CountTokensResponse(counts=[2, 0, 1], total=3, encoding="o200k_base", exact=True)


def test_messages_cost_what_a_chat_model_charges_and_3_once(server: RunningServer) -> None:
    call = ToolCall(id="i", name="look up", arguments=b'{"a": 1}')
    messages = [
        Message(role="user", text="one two"),
        Message(role="assistant", name="Ann", text="three", tool_calls=[call], parts=b"image"),
    ]

    reply = count(server, messages=messages)

    assert list(reply.counts) == [3 + 1 + 2, 3 + 1 + 1 + 1 + 1 + 2 + 2]
    assert reply.total == sum(reply.counts) + 3
    assert reply.uncounted_parts == 1


@pytest.mark.parametrize(
    ("media", "tokens", "uncounted"),
    [
        (Media(images=[Image(width=1024, height=1024)]), 765, 0),
        (Media(images=[Image(detail=IMAGE_DETAIL_LOW)]), 85, 0),
        (Media(images=[Image()]), 0, 1),
        (Media(uncounted=["audio"]), 0, 1),
        (Media(), 0, 0),
        (None, 0, 1),
    ],
)
def test_media_are_counted_by_the_rule_of_the_model(
    server: RunningServer, media: Media | None, tokens: int, uncounted: int
) -> None:
    reply = count(server, messages=[Message(role="user", parts=b"p", media=media)], encoding={"model": "gpt-4o"})

    assert list(reply.counts) == [3 + 1 + tokens]
    assert (reply.uncounted_parts, reply.exact) == (uncounted, not uncounted)


def test_nothing_costs_nothing(server: RunningServer) -> None:
    assert count(server) == pb.CountTokensResponse(encoding="o200k_base", exact=True)


@pytest.mark.parametrize(
    ("given", "name", "exact"),
    [
        ({"name": "approximate"}, "approximate", False),
        ({"name": "cl100k_base"}, "cl100k_base", True),
        ({"model": "gpt-4"}, "cl100k_base", True),
        ({"model": "unheard-of"}, "approximate", False),
    ],
)
def test_the_reply_says_what_counted(server: RunningServer, given: dict[str, str], name: str, exact: bool) -> None:
    reply = count(server, texts=["t"], encoding=given)

    assert (reply.encoding, reply.exact, reply.margin > 0) == (name, exact, not exact)


def test_texts_are_embedded_in_order(server: RunningServer) -> None:
    reply = server.call("Embed", pb.EmbedRequest(texts=["a", "bcd"]))

    embeddings = [Embedding(model="minilm", values=vector_of(text)) for text in ("a", "bcd")]
    assert reply == pb.EmbedResponse(embeddings=embeddings, dimension=3)


def test_without_a_model_nothing_is_embedded() -> None:
    with RunningServer(embedder=None) as server, pytest.raises(grpc.RpcError) as raised:
        server.call("Embed", pb.EmbedRequest(texts=["a"]))

    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert info.reason == "MODEL_UNAVAILABLE"


def test_a_model_that_does_not_answer_is_said_to_be_unreachable() -> None:
    embedder = FakeEmbedder(EmbeddingFailed("down"))
    with RunningServer(embedder=embedder) as server, pytest.raises(grpc.RpcError) as raised:
        server.call("Embed", pb.EmbedRequest(texts=["a"]))

    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert info.reason == "MODEL_UNREACHABLE"
    assert "down" in str(raised.value.details())


def test_a_text_that_the_model_refuses_is_named(server: RunningServer) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        server.call("Embed", pb.EmbedRequest(texts=["a", REFUSED]))

    wrong = detail(raised.value, BadRequest)
    assert wrong is not None
    assert [violation.field for violation in wrong.field_violations] == ["texts[1]"]
