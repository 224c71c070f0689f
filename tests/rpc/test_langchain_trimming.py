"""Trimming as LangChain does, against langchain-core itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    trim_messages,
)
from langchain_core.messages.utils import count_tokens_approximately
from tests.examples import examples

from remora.trimming import langchain_to_proto
from remora.v1 import text_service_pb2 as pb
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.rpc.calls import NO_TIME, Call
from remora_server.rpc.handlers.trimming import TrimmingHandlers

CALL = Call("TrimMessages", "acme", NO_TIME)
HANDLERS = TrimmingHandlers(NativeTokenCounter())

TEXTS = st.text(st.sampled_from("ab \n'\"é你"), max_size=30)
NAMES = st.one_of(st.none(), st.sampled_from(["", "ann", "Zoë"]))
IDS = st.sampled_from(["c1", "c2", "call-'3'"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=3)
CALLS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["search", "é"]), "args": ARGUMENTS, "id": st.none() | IDS}),
    max_size=2,
)
BLOCKS = st.one_of(
    TEXTS,
    TEXTS.map(lambda text: {"type": "text", "text": text}),
    st.just({"type": "text"}),
    TEXTS.map(lambda url: {"type": "image_url", "image_url": {"url": url}}),
    st.just({"type": "image", "source_type": "base64", "data": "aGk=", "mime_type": "image/png"}),
    st.fixed_dictionaries({"type": st.just("tool_use"), "id": IDS, "name": st.just("search"), "input": ARGUMENTS}),
    ARGUMENTS.filter(lambda block: "text" not in block and "type" not in block),
)
CONTENTS = st.one_of(TEXTS, st.lists(BLOCKS, max_size=4))
USAGES = st.integers(0, 200).map(lambda total: {"input_tokens": total, "output_tokens": 0, "total_tokens": total})
PROVIDERS = st.sampled_from([{}, {"model_provider": "openai"}, {"model_provider": "anthropic"}])
REPORTED: dict[str, Any] = {"usage_metadata": st.none() | USAGES, "response_metadata": PROVIDERS}
OPENAIS = st.just({"model_provider": "openai"})
SYSTEMS = st.builds(SystemMessage, CONTENTS, name=NAMES)
MESSAGES = st.one_of(
    SYSTEMS,
    st.builds(lambda text: SystemMessage(text, additional_kwargs={"__openai_role__": "developer"}), TEXTS),
    st.builds(HumanMessage, CONTENTS, name=NAMES),
    st.builds(HumanMessageChunk, CONTENTS),
    st.builds(AIMessage, CONTENTS, name=NAMES, tool_calls=CALLS),
    st.builds(AIMessage, CONTENTS, tool_calls=CALLS, **REPORTED),
    st.builds(AIMessageChunk, TEXTS, **REPORTED),
    st.builds(ToolMessage, CONTENTS, tool_call_id=IDS, name=NAMES),
    st.builds(FunctionMessage, TEXTS, name=st.just("f")),
    st.builds(ChatMessage, TEXTS, role=st.just("moderator")),
)
HISTORIES = st.lists(MESSAGES, max_size=12)
ANSWERS = st.builds(AIMessage, CONTENTS, usage_metadata=st.none() | USAGES, response_metadata=OPENAIS)
REPORTING = st.lists(st.one_of(SYSTEMS, st.builds(HumanMessage, CONTENTS), ANSWERS, ANSWERS), min_size=2, max_size=12)
TYPES = st.lists(st.sampled_from(["human", "ai", "system", "tool", "function", "chat", "AIMessageChunk"]), max_size=3)


@st.composite
def limits(draw: st.DrawFn) -> dict[str, Any]:
    strategy = draw(st.sampled_from(["last", "last", "first"]))
    chosen = {"strategy": strategy, "allow_partial": draw(st.booleans()), "end_on": draw(TYPES)}
    if strategy == "last":
        chosen |= {"start_on": draw(TYPES), "include_system": draw(st.booleans())}
    return chosen


SCHEMAS = st.lists(st.dictionaries(TEXTS, VALUES, max_size=2), max_size=2)
SCALING: dict[str, Any] = {"use_usage_metadata_scaling": True}
FRACTIONS = st.floats(0, 10, allow_nan=False)
COUNTERS = st.fixed_dictionaries(
    {},
    optional={
        "chars_per_token": st.floats(0.5, 10),
        "extra_tokens_per_message": FRACTIONS,
        "count_name": st.booleans(),
        "tokens_per_image": st.integers(0, 100),
        "tools": SCHEMAS,
        "use_usage_metadata_scaling": st.booleans(),
    },
)


def request(messages: Sequence[Any], max_tokens: int, limits: dict[str, Any], counter: dict[str, Any]) -> Any:  # noqa: ANN401
    tools = [json.dumps(schema) for schema in counter.get("tools", [])]
    plain = {name: value for name, value in limits.items() if name != "strategy"}
    if limits["strategy"] == "first":
        plain.pop("include_system", None)
    return pb.TrimMessagesRequest(
        messages=list(map(langchain_to_proto, messages)),
        max_tokens=max_tokens,
        strategy=pb.TRIM_STRATEGY_FIRST if limits["strategy"] == "first" else pb.TRIM_STRATEGY_LAST,
        langchain=pb.LangChainCounter(**{**counter, "tools": tools}),
        **plain,
    )


def contents(messages: Sequence[BaseMessage], reply: pb.TrimMessagesResponse) -> list[Any]:
    """The contents that the reply leaves of messages."""
    kept = []
    for index in reply.kept:
        content: Any = messages[index].content
        if reply.HasField("cut") and reply.cut.index == index:
            blocks = reply.cut.blocks
            content = reply.cut.text if reply.cut.HasField("text") else content[blocks.begin : blocks.end]
        kept.append((messages[index].type, content))
    return kept


def check(messages: list[BaseMessage], data: st.DataObject, limits: dict[str, Any], options: dict[str, Any]) -> None:
    """What stays of messages within some budget is what langchain-core leaves."""

    def counter(given: list[BaseMessage]) -> int:
        return count_tokens_approximately(given, **options)

    max_tokens = data.draw(st.integers(1, counter(messages) + 5))
    expected = trim_messages(messages, max_tokens=max_tokens, token_counter=counter, **limits)

    reply = HANDLERS.trim_messages(CALL, request(messages, max_tokens, limits, options))

    assert contents(messages, reply) == [(message.type, message.content) for message in expected]
    assert reply.tokens == counter(expected)
    assert reply.over_budget == (reply.tokens > max_tokens)
    gone = {index for each in reply.dropped for index in range(each.begin, each.end)}
    assert gone == set(range(len(messages))) - set(reply.kept)


@pytest.mark.slow
@settings(max_examples=examples(2_000))
@given(HISTORIES, st.data(), limits(), COUNTERS)
def test_what_stays_is_what_langchain_leaves(
    messages: list[BaseMessage], data: st.DataObject, limits: dict[str, Any], options: dict[str, Any]
) -> None:
    check(messages, data, limits, options)


@pytest.mark.slow
@settings(max_examples=examples(1_000))
@given(REPORTING, st.data(), limits(), COUNTERS)
def test_counts_are_scaled_by_reported_usage_as_langchain_scales_them(
    messages: list[BaseMessage], data: st.DataObject, limits: dict[str, Any], options: dict[str, Any]
) -> None:
    check(messages, data, limits, {**options, "use_usage_metadata_scaling": True})


@pytest.mark.parametrize(
    ("total", "providers", "tokens"),
    [
        (5, ["openai", "openai"], 40),
        (11, ["openai", "openai"], 44),
        (1_000, ["openai", "openai"], 50),
        (10**30, ["openai", "openai"], 50),
        (1_000, ["openai", "anthropic"], 40),
        (1_000, [None, "openai"], 50),
        (1_000, ["openai", None], 40),
        (1_000, [None, None], 40),
    ],
)
def test_a_scale_is_bounded_and_of_one_provider(total: int, providers: list[str | None], tokens: int) -> None:
    usage = {"input_tokens": total, "output_tokens": 0, "total_tokens": total}
    first, second = ({"model_provider": provider} if provider else {} for provider in providers)
    messages = [
        AIMessage("x" * 19, response_metadata=first, usage_metadata=usage),
        HumanMessage("x" * 24),
        AIMessage("x" * 59, response_metadata=second),
    ]
    reply = HANDLERS.trim_messages(CALL, request(messages, 99, {"strategy": "last"}, SCALING))

    assert reply.tokens == tokens == count_tokens_approximately(messages, **SCALING)


def openai(role: str, content: object, **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


def calling(text: str | None, arguments: dict[str, Any], call_id: str) -> dict[str, object]:
    function = {"name": "search", "arguments": json.dumps(arguments)}
    return openai("assistant", text, tool_calls=[{"id": call_id, "type": "function", "function": function}])


PARTS = st.one_of(
    TEXTS.map(lambda text: {"type": "text", "text": text}),
    TEXTS.map(lambda url: {"type": "image_url", "image_url": {"url": url}}),
)
OPENAI = st.one_of(
    st.builds(openai, st.sampled_from(["user", "system", "developer"]), TEXTS),
    st.builds(openai, st.just("user"), st.lists(PARTS, min_size=1, max_size=3)),
    st.builds(openai, st.just("user"), TEXTS, name=st.sampled_from(["ann", "Zoë"])),
    st.builds(calling, st.none() | TEXTS, ARGUMENTS, IDS),
    st.builds(openai, st.just("tool"), TEXTS, tool_call_id=IDS),
)


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.lists(OPENAI, max_size=10), st.data(), limits())
def test_openai_messages_are_read_as_langchain_reads_them(
    given: list[dict[str, Any]], data: st.DataObject, limits: dict[str, Any]
) -> None:
    messages = convert_to_messages(given)
    max_tokens = data.draw(st.integers(1, count_tokens_approximately(messages) + 5))
    expected = trim_messages(messages, max_tokens=max_tokens, token_counter="approximate", **limits)

    reply = HANDLERS.trim_messages(CALL, request(given, max_tokens, limits, {}))

    assert contents(messages, reply) == [(message.type, message.content) for message in expected]
    assert reply.tokens == count_tokens_approximately(expected)
