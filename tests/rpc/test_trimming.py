"""The RPCs of trimming, checking and clearing histories."""

from __future__ import annotations

from typing import Any, cast

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest
from tests.rpc.running_server import RunningServer, detail

from remora.v1 import text_service_pb2 as pb
from remora.v1.message_pb2 import Image, Media, Message, ToolCall

USER, ANSWER = Message(role="user", text="hello there"), Message(role="assistant", text="hi")
CALL = Message(role="assistant", tool_calls=[ToolCall(id="a", name="search", arguments=b"{}")])
LANGCHAIN = pb.LangChainCounter()
RESULT = Message(role="tool", text="ten results", tool_result_ids=["a"])


def trim(server: RunningServer, **fields: Any) -> pb.TrimMessagesResponse:  # noqa: ANN401 - any field
    return cast("pb.TrimMessagesResponse", server.call("TrimMessages", pb.TrimMessagesRequest(**fields)))


def refused(server: RunningServer, request: pb.TrimMessagesRequest) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        server.call("TrimMessages", request)
    wrong = detail(raised.value, BadRequest)
    assert wrong is not None
    return wrong.field_violations[0].field


def test_the_reply_names_what_stays_and_why_the_rest_goes(server: RunningServer) -> None:
    reply = trim(server, messages=[USER, CALL, RESULT, ANSWER], max_tokens=16)

    assert list(reply.kept) == [3]
    assert list(reply.dropped) == [
        pb.DroppedMessages(begin=0, end=2, reason=pb.DROP_REASON_OVER_BUDGET),
        pb.DroppedMessages(begin=2, end=3, reason=pb.DROP_REASON_TOOL_PAIR),
    ]
    assert (reply.encoding, reply.exact, reply.over_budget) == ("o200k_base", True, False)


def test_images_count_by_the_rule_of_the_model(server: RunningServer) -> None:
    picture = Message(role="user", media=Media(images=[Image(width=1024, height=1024)]))

    reply = trim(server, messages=[picture, ANSWER], max_tokens=1_000, encoding={"model": "gpt-4o"})
    without = trim(server, messages=[picture, ANSWER], max_tokens=1_000)

    assert (reply.tokens, reply.exact) == (without.tokens + 765, True)
    assert (without.uncounted_parts, without.exact) == (1, False)


def test_where_nothing_fits_the_reply_says_so(server: RunningServer) -> None:
    reply = trim(server, messages=[USER, CALL, RESULT], max_tokens=1)

    assert (list(reply.kept), reply.over_budget) == ([0, 1, 2], True)


def test_a_message_that_is_cut_comes_with_its_text(server: RunningServer) -> None:
    long = Message(role="user", text="one two\nthree")

    reply = trim(server, messages=[long, ANSWER], max_tokens=15, allow_partial=True)

    assert (list(reply.kept), reply.cut) == ([0, 1], pb.CutMessage(index=0, text="three"))


@pytest.mark.parametrize(
    ("parts", "media", "is_cut"),
    [
        (b"", Media(), True),
        (b"p", Media(), True),
        (b"p", None, False),
        (b"", Media(images=[Image()]), False),
        (b"", Media(uncounted=["audio"]), False),
    ],
)
def test_only_messages_of_nothing_but_text_are_cut(
    server: RunningServer, parts: bytes, media: Media | None, is_cut: bool
) -> None:
    long = Message(role="user", text="one two\nthree", parts=parts, media=media)

    assert trim(server, messages=[long, ANSWER], max_tokens=15, allow_partial=True).HasField("cut") == is_cut


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        (b"{", "messages[0].parts"),
        (b'{"no": "message"}', "messages[0].parts"),
        (b'{"role": "narrator", "content": "x"}', "messages[0].parts"),
        (b'{"role": "user", "content": 7}', "messages[0].parts"),
        (b'{"role": "user", "content": [7]}', "messages[0].parts"),
        (b'{"type": "remove", "data": {"content": ""}}', "messages[0].parts"),
        (b"[" * 100_000, "messages[0].parts"),
        (b'{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"n","arguments":"{"}}]}',
         "messages[0].parts"),
    ],
)  # fmt: skip
def test_parts_that_langchain_cannot_read_are_named(server: RunningServer, parts: bytes, field: str) -> None:
    message = Message(role="user", parts=parts)

    assert refused(server, pb.TrimMessagesRequest(messages=[message], max_tokens=9, langchain=LANGCHAIN)) == field


def test_arguments_that_are_no_json_are_named(server: RunningServer) -> None:
    call = Message(role="assistant", tool_calls=[ToolCall(id="a", name="n", arguments=b"{")])

    request = pb.TrimMessagesRequest(messages=[USER, call], max_tokens=9, langchain=LANGCHAIN)
    assert refused(server, request) == "messages[1].tool_calls[0].arguments"


def test_a_role_that_langchain_does_not_know_is_counted_as_it_is(server: RunningServer) -> None:
    narrator = Message(role="narrator", text="Night falls.")

    reply = trim(server, messages=[narrator], max_tokens=9, langchain=LANGCHAIN, end_on=["chat"])

    assert (list(reply.kept), reply.tokens, reply.encoding) == ([0], 5 + 3, "langchain")


def test_faults_are_reported_with_their_messages(server: RunningServer) -> None:
    reply = server.call("ValidateHistory", pb.ValidateHistoryRequest(messages=[RESULT, USER, CALL]))

    faults = cast("pb.ValidateHistoryResponse", reply).faults
    assert [(fault.index, fault.kind, fault.id) for fault in faults] == [
        (0, pb.HISTORY_FAULT_KIND_RESULT_BEFORE_CALL, "a"),
        (2, pb.HISTORY_FAULT_KIND_DANGLING_CALL, "a"),
    ]
    assert faults[1].description == "The tool call 'a' has no result."


def test_older_results_are_cleared(server: RunningServer) -> None:
    long = Message(role="tool", text="ten results " * 20, tool_result_ids=["a"])
    request = pb.ClearToolUsesRequest(
        messages=[USER, CALL, long, CALL, RESULT], trigger_tokens=0, keep=1, clear_inputs=True
    )

    reply = cast("pb.ClearToolUsesResponse", server.call("ClearToolUses", request))

    assert (list(reply.cleared), reply.placeholder) == ([2], "[cleared]")
    assert list(reply.inputs) == [pb.ClearedInput(index=1, call_id="a")]
    assert reply.tokens_before - reply.tokens_after > 30
    assert (reply.encoding, reply.exact) == ("o200k_base", True)


def test_nothing_is_cleared_by_default_of_a_short_history(server: RunningServer) -> None:
    reply = server.call("ClearToolUses", pb.ClearToolUsesRequest(messages=[CALL, RESULT]))

    assert not cast("pb.ClearToolUsesResponse", reply).cleared
