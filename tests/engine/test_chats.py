"""Chat messages in wire form, against the values that they encode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.v1.message_pb2 import Image, Media, Message, ToolCall
from remora.v1.text_service_pb2 import TrimMessagesRequest
from remora_server import _native
from remora_server.domain.costs import Counting
from remora_server.domain.tokens import APPROXIMATE, CL100K_BASE, O200K_BASE, TokenEncoding
from remora_server.domain.tool_pairs import uses_of
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.rpc.handlers import decode

TOKENS = NativeTokenCounter()
TEXTS = st.text(max_size=30)
IDS = st.lists(st.sampled_from(["a", "b", "é"]), max_size=3)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool"]),
    name=st.sampled_from(["", "Ann"]),
    text=TEXTS,
    parts=st.sampled_from([b"", b"p"]),
    tool_calls=st.lists(
        st.builds(ToolCall, id=st.just("a"), name=st.just("search"), arguments=st.binary(max_size=9)), max_size=2
    ),
    tool_result_ids=IDS,
    media=st.sampled_from([None, Media(), Media(uncounted=["audio"]), Media(images=[Image()])]),
    sequence=st.integers(0, 1 << 60),
)


def encoded(messages: list[Message]) -> bytes:
    return TrimMessagesRequest(messages=messages, max_tokens=7, start_on=["user"]).SerializeToString()


@given(st.lists(MESSAGES, max_size=6), st.sampled_from([O200K_BASE, CL100K_BASE, APPROXIMATE]), st.data())
def test_they_cost_what_their_values_cost(
    messages: list[Message], encoding: TokenEncoding, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(messages)))
    end = data.draw(st.integers(begin, len(messages)))
    read = TOKENS.encoded_messages(encoding, encoded(messages))

    values = list(map(decode.chat_message, messages[begin:end]))
    costs, holding_more = read.costs(begin, end)
    assert len(read) == len(messages)
    assert costs == Counting(TOKENS, encoding).messages(values)
    assert holding_more == [
        index
        for index, message in enumerate(messages[begin:end], start=begin)
        if (message.media.ListFields() if message.HasField("media") else message.parts)
    ]


@given(st.lists(MESSAGES, max_size=6))
def test_their_tools_are_found(messages: list[Message]) -> None:
    read = TOKENS.encoded_messages(O200K_BASE, encoded(messages))

    assert read.tool_uses(0, len(messages)) == [
        use
        for index, message in enumerate(messages)
        for use in uses_of(index, (call.id for call in message.tool_calls), message.tool_result_ids)
    ]


def test_what_is_not_there_or_no_message_is_refused() -> None:
    read = _native.EncodedMessages(encoded([Message(role="user")]))

    with pytest.raises(IndexError):
        read.costs("o200k_base", 0, 2)
    with pytest.raises(IndexError):
        read.tool_uses(2, 1)
    with pytest.raises(ValueError, match="unknown encoding"):
        read.costs("p50k_base", 0, 1)
    with pytest.raises(ValueError, match="not an encoded message"):
        _native.EncodedMessages(b"\x0a\x05")
