"""Messages in the formats of providers: unchanged in their own, translated into others."""

from __future__ import annotations

import base64
import json
import struct
import sys
from functools import cache
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import TypeAdapter
from tests.client.provider_rules import check_anthropic, check_langchain, check_openai, check_responses
from tests.client.test_chat_format import identical, over_the_wire

from remora import Image, Media, Message, Role, formats

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 640, 480, 8, 2, 0, 0, 0) + bytes(4)
DATA = base64.b64encode(PNG).decode()

CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Which ferries are there?", "name": "Sarah"},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "x", "type": "function", "function": {"name": "ferries", "arguments": '{"to": "Elba"}'}},
            {"id": "y", "type": "function", "function": {"name": "today", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "x", "content": "09:00"},
    {"role": "tool", "tool_call_id": "y", "content": [{"type": "text", "text": "Monday"}]},
    {"role": "assistant", "content": "At nine.", "refusal": None},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}", "detail": "high"}},
        ],
    },
]
RESPONSES: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "Which ferries are there?"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "x", "name": "ferries", "arguments": '{"to": "Elba"}'},
    {"type": "function_call", "id": "fc_2", "call_id": "y", "name": "today", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "x", "output": "09:00"},
    {"type": "function_call_output", "call_id": "y", "output": [{"type": "input_text", "text": "Monday"}]},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "At nine.", "annotations": []}],
    },
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "And this?"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}", "detail": "high"},
        ],
    },
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "Which ferries are there?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I should look.", "signature": "c2ln"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "x", "name": "ferries", "input": {"to": "Elba"}},
            {"type": "tool_use", "id": "y", "name": "today", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "x", "content": "09:00"},
            {"type": "tool_result", "tool_use_id": "y", "content": [{"type": "text", "text": "Monday"}]},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "At nine."}]},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And this?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        ],
    },
]
LANGCHAIN: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("Which ferries are there?", id="run-1"),
    AIMessage(
        "Let me look.",
        tool_calls=[
            {"id": "x", "name": "ferries", "args": {"to": "Elba"}, "type": "tool_call"},
            {"id": "y", "name": "today", "args": {}, "type": "tool_call"},
        ],
        response_metadata={"model": "m"},
    ),
    ToolMessage("09:00", tool_call_id="x", artifact={"raw": [9, 0]}),
    ToolMessage("Monday", tool_call_id="y"),
    AIMessage("At nine."),
    HumanMessage(
        [
            {"type": "text", "text": "And this?"},
            {"type": "image", "base64": DATA, "mime_type": "image/png"},
        ]
    ),
]
TALKS: dict[str, list[Any]] = {
    "chat": CHAT, "responses": RESPONSES, "anthropic": ANTHROPIC, "langchain": LANGCHAIN
}  # fmt: skip


def stored(talk: list[Any]) -> list[Message]:
    return [over_the_wire(Message.of(message)) for message in talk]


def test_messages_come_back_unchanged_in_their_own_format() -> None:
    assert identical(formats.to_openai(stored(CHAT)), CHAT)
    assert identical(formats.to_responses(stored(RESPONSES)), RESPONSES)
    assert identical(formats.to_anthropic(stored(ANTHROPIC)), {"messages": ANTHROPIC})
    assert formats.to_langchain(stored(LANGCHAIN)) == LANGCHAIN


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
def test_the_server_reads_the_same_of_every_format(talk: list[Any]) -> None:
    messages = stored(talk)
    assert [call.id for message in messages for call in message.tool_calls] == ["x", "y"]
    assert [call.name for message in messages for call in message.tool_calls] == ["ferries", "today"]
    assert [id_ for message in messages for id_ in message.tool_result_ids] == ["x", "y"]
    texts = "\n".join(message.text for message in messages if message.text and message.role != "system")
    looking = "" if talk is RESPONSES else "Let me look.\n"
    assert texts == f"Which ferries are there?\n{looking}09:00\nMonday\nAt nine.\nAnd this?"
    assert messages[-1].media == Media((Image(640, 480, "high"),))


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
def test_messages_are_valid_in_every_format(talk: list[Any]) -> None:
    messages = stored(talk)
    check_openai(formats.to_openai(messages))
    check_responses(formats.to_responses(messages))
    check_anthropic(formats.to_anthropic(messages)["messages"])
    check_langchain(formats.to_langchain(messages))
    typed(openai.types.chat.ChatCompletionMessageParam, formats.to_openai(messages))
    typed(openai.types.responses.ResponseInputItemParam, formats.to_responses(messages))
    typed(anthropic.types.MessageParam, formats.to_anthropic(messages)["messages"])


def typed(kind: Any, messages: list[dict[str, Any]]) -> None:  # noqa: ANN401 - a form for types
    """The messages are of a package's type."""
    adapter(kind).validate_python(messages)


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a form for types
    return TypeAdapter(list[kind])


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
def test_translated_messages_say_the_same(talk: list[Any]) -> None:
    def said(messages: list[Message]) -> tuple[str, list[tuple[str, str]], list[str], list[Image]]:
        return (
            "\n".join(message.text for message in messages if message.text and message.role != "system"),
            [(call.name, json.dumps(json.loads(call.arguments))) for each in messages for call in each.tool_calls],
            [id_ for message in messages for id_ in message.tool_result_ids],
            [image for message in messages if message.media for image in message.media.images],
        )

    messages = stored(talk)
    translations: list[list[Any]] = [
        formats.to_openai(messages),
        formats.to_responses(messages),
        formats.to_anthropic(messages)["messages"],
        formats.to_langchain(messages),
    ]
    assert [said(stored(translation)) for translation in translations] == [said(messages)] * 4


def test_a_reply_of_each_package_is_a_message() -> None:
    block = anthropic.types.TextBlock(type="text", text="At nine.")
    usage = anthropic.types.Usage(input_tokens=1, output_tokens=1)
    reply = anthropic.types.Message(
        id="m", model="claude", role="assistant", type="message", content=[block], stop_reason="end_turn", usage=usage
    )
    call = openai.types.responses.ResponseFunctionToolCall(
        type="function_call", call_id="x", name="ferries", arguments="{}"
    )
    answer = openai.types.chat.ChatCompletionMessage(role="assistant", content="At nine.")

    assert formats.to_anthropic([Message.of(reply)]) == {
        "messages": [{"role": "assistant", "content": [{"type": "text", "text": "At nine."}]}]
    }
    assert Message.of(call).tool_calls[0].name == "ferries"
    assert Message.of(answer) == Message("assistant", "At nine.")


def test_a_reply_goes_back_without_the_nulls_that_nobody_sent() -> None:
    sent = {"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "Rome", "unit": None}}
    reply = anthropic.types.Message.model_validate({
        "id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [sent],
        "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    })  # fmt: skip

    back = formats.to_anthropic([Message.of(reply)])["messages"]

    assert back == [{"role": "assistant", "content": [sent]}]


def test_reasoning_goes_only_to_the_provider_that_made_it() -> None:
    talk = stored([*RESPONSES[2:4], RESPONSES[5], *ANTHROPIC[1:3]])
    told = str([formats.to_openai(talk), formats.to_langchain(talk)])
    assert "reasoning" not in told
    assert "thinking" not in told
    assert talk[0].media == Media((), ("reasoning",))


def test_reasoning_without_what_it_led_to_does_not_go_to_the_responses_api() -> None:
    question, reasoning, call, answer = RESPONSES[1:4] + RESPONSES[7:8]
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    result = {"type": "function_call_output", "call_id": "x", "output": "09:00"}

    for talk, kept in [
        ([question, reasoning, question], [question, question]),
        ([question, reasoning], [question]),
        ([question, reasoning, reasoning, search, reasoning, answer], None),
        ([question, reasoning, call, reasoning, result, answer], [question, reasoning, call, result, answer]),
    ]:
        assert formats.to_responses(stored(talk)) == (kept or talk)


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content", "reasoning_details"])
def test_reasoning_beside_the_content_of_a_chat_message_goes_to_no_other_format(key: str) -> None:
    reply = {"role": "assistant", "content": "At nine.", key: "I looked."}
    [message] = stored([reply])

    assert formats.to_openai([message]) == [reply]
    assert formats.to_responses([message]) == [{"role": "assistant", "content": "At nine."}]
    assert formats.to_anthropic([message])["messages"][0]["content"] == [{"type": "text", "text": "At nine."}]
    assert formats.to_langchain([message])[0].content == "At nine."
    assert message.media == Media((), (key,))


def test_a_reply_without_content_and_calls_goes_to_openai_as_an_empty_text() -> None:
    empty = [{"role": "assistant", "content": None}, {"role": "assistant", "content": None, "tool_calls": []}]
    refusal = {"role": "assistant", "content": None, "refusal": "I may not."}

    assert formats.to_openai(stored([*empty, refusal])) == [*[{"role": "assistant", "content": ""}] * 2, refusal]


def test_blank_texts_do_not_go_to_anthropic() -> None:
    talk = [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": " \n"}, CHAT[1]]
    messages = formats.to_anthropic(stored(talk))["messages"]

    check_anthropic(messages)
    assert len(messages) == 2


def test_blank_blocks_do_not_go_to_anthropic_and_all_else_of_their_message_does() -> None:
    thought = {"type": "thinking", "thinking": "Ferries.", "signature": "sig"}
    call = {"type": "tool_use", "id": "x", "name": "ferries", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "x", "is_error": True}
    talk = [
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Which?"}]},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "\n\n"}, call]},
        {"role": "user", "content": [{**result, "content": [{"type": "text", "text": " "}]}]},
        {"role": "user", "content": [{"type": "text", "text": " "}]},
    ]
    messages = formats.to_anthropic(stored(talk))["messages"]

    check_anthropic(messages)
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "Which?"}]},
        {"role": "assistant", "content": [thought, call]},
        {"role": "user", "content": [result]},
    ]


def test_a_message_to_anthropic_does_not_end_with_thinking() -> None:
    thought = {"type": "thinking", "thinking": "Ferries.", "signature": "sig"}
    blank = {"type": "text", "text": "\n"}
    talk = [
        {"role": "user", "content": "Which?"},
        {"role": "assistant", "content": [thought, blank]},
        {"role": "assistant", "content": [{"type": "text", "text": "The one at nine."}, thought, blank]},
    ]
    messages = formats.to_anthropic(stored(talk))["messages"]

    check_anthropic(messages)
    assert messages == [
        {"role": "user", "content": "Which?"},
        {"role": "assistant", "content": [{"type": "text", "text": "The one at nine."}]},
    ]


def test_roles_that_the_responses_api_does_not_have_are_the_users() -> None:
    talk = [
        {"role": "function", "name": "today", "content": "Monday"},
        Message(Role.custom("narrator"), "Night falls."),
    ]
    items = formats.to_responses(stored(talk))
    assert items == [{"role": "user", "content": "Monday"}, {"role": "user", "content": "Night falls."}]


def test_what_a_format_cannot_say_is_named() -> None:
    audio = {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]}
    [message] = stored([audio])
    assert message.media == Media((), ("input_audio",))
    assert formats.to_openai([message]) == [audio]
    assert formats.to_anthropic([message])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "[input_audio]"}]}
    ]


def test_a_truncated_result_is_written_anew() -> None:
    cut = Message("user", "09:00\n[truncated]", tool_result_ids=("x", "y"))
    assert formats.to_anthropic([cut])["messages"][0]["content"] == [
        {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "09:00\n[truncated]"}]},
        {"type": "tool_result", "tool_use_id": "y"},
    ]


def test_a_message_that_is_several_of_openais_says_so() -> None:
    with pytest.raises(ValueError, match="2 chat messages"):
        Message.of(ANTHROPIC[2]).to_openai()


def test_a_message_that_is_none_of_openais_says_so() -> None:
    with pytest.raises(ValueError, match="0 chat messages"):
        Message.of(RESPONSES[2]).to_openai()


KEYS = st.sampled_from(
    ["role", "type", "content", "data", "tool_calls", "call_id", "name", "id", "output", "text", "input"]
)
WORDS = st.sampled_from(
    ["user", "assistant", "tool", "ai", "message", "function_call", "tool_use", "tool_result", "text"]
)
ANYTHING = st.recursive(
    st.none() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@given(parts=st.dictionaries(KEYS, ANYTHING, max_size=6), role=st.sampled_from(["user", "assistant", "tool"]))
def test_parts_that_others_wrote_are_ignored(parts: dict[str, Any], role: str) -> None:
    message = Message(role, "hello", parts=json.dumps(parts).encode())
    for written in (formats.to_openai, formats.to_responses, formats.to_langchain):
        assert "hello" in str(written([message]))
    assert "hello" in str(formats.to_anthropic([message]))


def gif() -> bytes:
    return b"GIF89a" + struct.pack("<HH", 640, 480)


def jpeg() -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", 7_000) + bytes(6_998)
    return b"\xff\xd8" + exif + b"\xff\xc2" + struct.pack(">HBHH", 17, 8, 480, 640) + bytes(12)


def webp(kind: bytes) -> bytes:
    lossy = bytes(6) + struct.pack("<HH", 640, 480)
    lossless = b"\x2f" + struct.pack("<I", 639 | 479 << 14)
    extended = bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
    body = {b"VP8 ": lossy, b"VP8L": lossless, b"VP8X": extended}[kind]
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + body


@pytest.mark.parametrize("image", [PNG, gif(), jpeg(), webp(b"VP8 "), webp(b"VP8L"), webp(b"VP8X")], ids=str)
def test_the_size_of_an_image_is_read_from_its_data(image: bytes) -> None:
    url = f"data:image/any;base64,{base64.b64encode(image).decode()}"
    content = [{"type": "image_url", "image_url": {"url": url}}]
    assert Message.of({"role": "user", "content": content}).media == Media((Image(640, 480),))


@pytest.mark.parametrize("url", ["https://a/b.png", "data:image/png;base64,!", "data:image/png;base64,iVBORw0KGgo="])
def test_the_size_of_other_images_is_unknown(url: str) -> None:
    content = [{"type": "image_url", "image_url": {"url": url, "detail": "low"}}]
    assert Message.of({"role": "user", "content": content}).media == Media((Image(0, 0, "low"),))


def test_who_has_no_langchain_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.messages", None)

    with pytest.raises(ImportError, match="LangChain's messages need langchain-core: pip install langchain-core"):
        formats.to_langchain([Message("user", "hello")])
