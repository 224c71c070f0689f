"""OpenAI's chat messages come back exactly as they went in."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora import Message, Role, ToolCall, errors, formats
from remora.messages import CHAT_KEYS, SPEAKING_KEYS, to_messages
from remora.v1 import message_pb2

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ROLE = st.sampled_from(["user", "assistant", "system", "developer"]) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=16
).map(Role.custom)
TOOL_CALL = st.fixed_dictionaries(
    {"id": TEXT, "type": st.just("function"), "function": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT})}
)
UNKNOWN = st.dictionaries(TEXT, JSON, max_size=3)
"""Keys that nobody knows."""
NEW_PART = UNKNOWN.map(lambda keys: {**keys, "type": "of tomorrow"})
CONTENT_PART = st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}) | NEW_PART


def speaks(message: dict[str, Any]) -> bool:
    """Whether it has a content that every role may have."""
    return message.get("content") not in (None, [])


CHAT_MESSAGE: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"role": ROLE},
    optional={
        "content": TEXT | st.none() | st.lists(CONTENT_PART, max_size=3),
        "name": TEXT | st.none(),
        "tool_calls": st.lists(st.builds(lambda call, keys: {**keys, **call}, TOOL_CALL, UNKNOWN), max_size=3)
        | st.none(),
        "tool_call_id": TEXT,
        "refusal": JSON,
        "audio": JSON,
    },
).filter(
    lambda message: (message["role"] == "assistant" and SPEAKING_KEYS & message.keys()) or speaks(message)
) | st.fixed_dictionaries({"role": st.just("tool"), "content": TEXT, "tool_call_id": TEXT})


def over_the_wire(message: Message) -> Message:
    wire = message.to_proto().SerializeToString()
    return Message.from_proto(message_pb2.Message.FromString(wire))


def identical(left: object, right: object) -> bool:
    """Equality that, unlike Python's, tells True from 1 and 1 from 1.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@given(CHAT_MESSAGE)
def test_any_chat_message_comes_back_as_it_went_in(message: dict[str, Any]) -> None:
    restored = over_the_wire(Message.from_openai(message)).to_openai()

    assert identical(restored, message)


def test_a_mapping_in_another_format_may_say_besides_too() -> None:
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}
    message = {"role": "user", "content": [block]}

    stored = over_the_wire(Message.of({**message, "id": "m1", "session_id": "s1"}))

    assert (stored.id, stored.session_id, stored.tool_result_ids) == ("m1", "s1", ("call_1",))
    assert formats.to_anthropic([stored]) == {"messages": [message]}


def test_the_id_of_a_providers_own_item_stays_in_it() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "x", "name": "ferries", "arguments": "{}"}

    stored = over_the_wire(Message.of(item))

    assert stored.id == ""
    assert formats.to_responses([stored]) == [item]


@given(st.dictionaries(TEXT.filter(lambda key: key not in CHAT_KEYS), JSON, max_size=4), ROLE)
def test_unknown_keys_of_a_models_own_objects_come_back(unknown: dict[str, Any], role: str) -> None:
    kept = {key: value for key, value in unknown.items() if value is not None}
    message = {**kept, "role": role, "content": "hello"}

    assert identical(over_the_wire(Message.from_openai(Model(message))).to_openai(), message)


@given(CHAT_MESSAGE, TEXT.filter(bool))
def test_what_a_mapping_says_besides_is_never_sent_to_a_model(message: dict[str, Any], message_id: str) -> None:
    extras = {"id": message_id, "sent_time": datetime(2026, 11, 21, tzinfo=UTC), "metadata": {"mood": "good"}}

    stored = over_the_wire(Message.from_openai({**message, **extras}))

    assert identical(stored.to_openai(), message)
    assert (stored.id, stored.sent_time, stored.metadata) == tuple(extras.values())


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hello"},
        {"role": "user", "content": "hello", "name": "Sarah"},
        {"role": "user", "content": ""},
        {"role": "tool", "content": "18 °C", "tool_call_id": "call_1"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
        },
    ],
)
def test_a_message_that_its_fields_say_completely_is_not_stored_twice(message: dict[str, Any]) -> None:
    converted = Message.from_openai(message)

    assert converted.parts == b""
    assert converted.to_openai() == message


@given(st.sampled_from(["user", "assistant", "system", "developer", Role.custom("narrator")]), TEXT)
def test_a_role_and_a_text_go_the_same_way_as_any_message(role: str, text: str) -> None:
    message = {"role": role, "content": text}

    assert to_messages(message) == to_messages([message]) == [Message.of(message).to_proto()]


def test_content_parts_are_kept_whole_and_their_texts_joined() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
    content = [{"type": "text", "text": "What is"}, image, {"type": "text", "text": "this?"}]

    converted = Message.from_openai({"role": "user", "content": content})

    assert converted.text == "What is\nthis?"
    assert converted.to_openai() == {"role": "user", "content": content}


def test_tool_calls_and_results_become_fields_that_the_server_reads() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}

    asking = Message.from_openai({"role": "assistant", "content": None, "tool_calls": [call]})
    answering = Message.from_openai({"role": "tool", "tool_call_id": "call_1", "content": "sunny"})

    assert asking.tool_calls == (ToolCall("call_1", "weather", b'{"city": "Rome"}'),)
    assert answering.tool_result_ids == ("call_1",)


class Model:
    """An object as pydantic's are: it dumps itself, with None for what is not set."""

    def __init__(self, fields: dict[str, object] | None = None, /, **named: object) -> None:
        self._fields = {**(fields or {}), **named}

    def model_dump(self) -> dict[str, object]:
        return dict(self._fields)


def test_a_model_goes_in_without_the_fields_that_it_does_not_set() -> None:
    reply = Model(role="assistant", content="Yes.", refusal=None, tool_calls=None, function_call=None, audio=None)

    converted = Message.from_openai(reply)

    assert converted.parts == b""
    assert converted.to_openai() == {"role": "assistant", "content": "Yes."}


def test_a_model_that_only_calls_tools_keeps_its_empty_content() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    reply = Model(role="assistant", content=None, tool_calls=[call], refusal=None)

    assert Message.from_openai(reply).to_openai() == {"role": "assistant", "content": None, "tool_calls": [call]}


def test_models_inside_a_mapping_are_taken_too() -> None:
    function = Model(name="weather", arguments="{}")
    message = {"role": "assistant", "content": None, "tool_calls": [Model(id="c", type="function", function=function)]}

    assert Message.from_openai(message).tool_calls == (ToolCall("c", "weather", b"{}"),)


def test_an_object_with_role_and_content_is_a_message() -> None:
    assert Message.from_openai(SimpleNamespace(role="user", content="hi")).to_openai() == {
        "role": "user",
        "content": "hi",
    }


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        (SimpleNamespace(role="user", text="hi"), "a message needs content"),
        (SimpleNamespace(role="assistant", text="hi"), "a message needs content"),
        (Model(role="user", text="hi"), "a message needs content"),
        (SimpleNamespace(role="user", content=None), "content is None; it must be a str or a list of parts"),
        (SimpleNamespace(role="user", content=[SimpleNamespace(type="text", text="hi")]), r"it must be a dict such as"),
        (SimpleNamespace(role="tool", content="sunny"), "a tool message needs tool_call_id"),
    ],
)
def test_an_object_that_says_nothing_to_a_model_is_refused(message: object, refusal: str) -> None:
    with pytest.raises(errors.InvalidFieldError, match=refusal):
        Message.of(message)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (Model(id="c", choices=[]), r"is a whole Model; append its choices\[0\].message"),
        ({"id": "c", "choices": []}, r"is a whole reply; append its choices\[0\].message"),
        (Model(index=0, message={"role": "assistant", "content": "hi"}), "append its message"),
        (Model(id="r", output=[]), "append its output"),
    ],
)
def test_a_whole_reply_is_refused_with_where_its_message_is(reply: object, advice: str) -> None:
    with pytest.raises(errors.InvalidFieldError, match=advice):
        Message.of(reply)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["message", "output"])
def test_a_text_under_a_wrong_key_is_no_reply(key: str) -> None:
    with pytest.raises(errors.InvalidFieldError, match=f"a message has no key '{key}'"):
        Message.of({key: "hello"})


def test_a_message_of_a_message_is_the_same_with_what_is_given_besides() -> None:
    assert Message.of(Message("user", "hi"), id="m1") == Message("user", "hi", id="m1")  # type: ignore[arg-type]


@pytest.mark.parametrize("message", ["hello", {"content": "hello"}, {"role": 7}, object(), ["user", "hello"]])
def test_what_has_no_role_is_refused(message: object) -> None:
    with pytest.raises(errors.InvalidFieldError, match="role"):
        Message.from_openai(message)  # type: ignore[arg-type] # what is refused


def test_keys_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(errors.UnknownFieldError, match="no key 7"):
        Message.from_openai({"role": "user", "content": "", 7: "seven"})  # type: ignore[dict-item] # what is refused


def test_values_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        Message.from_openai({"role": "user", "content": "", "audio": float("nan")})


@pytest.mark.parametrize(
    "parts",
    [
        b'{"role":"user","parts":[{"type":"text","text":"hello"}]}',
        b'{"role":"user","content":"something else"}',
        b'{"role":["user"],"content":"hello"}',
        b'["hello"]',
        b"\xff\x00",
        b"[" * 100_000,
    ],
)
def test_parts_of_another_framework_or_text_are_passed_over(parts: bytes) -> None:
    assert Message("user", "hello", parts=parts).to_openai() == {"role": "user", "content": "hello"}


@given(st.binary(max_size=64))
def test_no_bytes_in_parts_break_the_conversion(parts: bytes) -> None:
    assert Message("user", "hello", parts=parts).to_openai()["role"] == "user"
