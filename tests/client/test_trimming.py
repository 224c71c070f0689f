"""Trimming, checking and clearing the caller's own messages."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    trim_messages,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool
from openai.types.chat import ChatCompletionMessage

from remora import Message, Remora, ToolCall, errors, testing
from remora.trimming import Dropped, LangChainCounter, TrimMode

memory, remora_server, remora_tenant = testing.memory, testing.remora_server, testing.remora_tenant

RESULT = "600 km by road, six hours"
FUNCTION = {"name": "search", "arguments": '{"q": "Lisbon"}'}
OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How far is it?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": FUNCTION}]},
    {"role": "tool", "tool_call_id": "a", "content": RESULT},
    {"role": "user", "content": "Thanks\nand good bye."},
]
LANGCHAIN: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("How far is it?"),
    AIMessage("", tool_calls=[{"name": "search", "args": {"q": "Lisbon"}, "id": "a"}]),
    ToolMessage(RESULT, tool_call_id="a", artifact={"km": 600}),
    HumanMessage("Thanks\nand good bye."),
]
OWN = [
    Message("system", "Be brief."),
    Message("user", "How far is it?"),
    Message("assistant", tool_calls=(ToolCall("a", "search", b'{"q": "Lisbon"}'),)),
    Message("tool", RESULT, tool_result_ids=("a",)),
    Message("user", "Thanks\nand good bye."),
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "How far is it?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "search", "input": {"q": "Lisbon"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": RESULT}]},
]
RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": "How far is it?"},
    {"type": "function_call", "call_id": "a", "name": "search", "arguments": '{"q": "Lisbon"}'},
    {"type": "function_call_output", "call_id": "a", "output": RESULT},
]
HISTORIES: dict[str, list[Any]] = {"openai": OPENAI, "langchain": LANGCHAIN, "own": OWN}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_what_stays_are_the_callers_own_messages(memory: Remora, history: list[Any]) -> None:
    left = memory.trim(history, memory.count_tokens([history[0], *history[3:]]).total)

    assert left.kept == (0, 4)
    assert left.messages[0] is history[0]
    assert left.messages[1] is history[4]
    assert left.dropped == (Dropped(1, 3, "over_budget"), Dropped(3, 4, "tool_pair"))
    assert (left.encoding, left.exact, left.over_budget) == ("o200k_base", True, False)
    assert left.tokens == memory.count_tokens(left.messages).total


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_message_that_is_cut_is_a_copy(memory: Remora, history: list[Any]) -> None:
    before = copy.deepcopy(history[4])

    left = memory.trim(history, 12, allow_partial=True, include_system=False)

    assert (left.kept, left.cut) == ((4,), 4)
    assert text(left.messages[0]) == "and good bye."
    assert type(left.messages[0]) is type(history[4])
    assert history[4] == before


def text(message: Any) -> str:  # noqa: ANN401 - of any format
    if isinstance(message, dict):
        return str(message["content"])
    return str(message.text if isinstance(message, Message) else message.content)


@pytest.mark.parametrize("max_tokens", range(1, 60, 3))
@pytest.mark.parametrize("strategy", ["first", "last"])
def test_langchains_mode_leaves_what_langchain_leaves(memory: Remora, max_tokens: int, strategy: Any) -> None:  # noqa: ANN401
    left = memory.trim(LANGCHAIN, max_tokens, strategy=strategy, mode="langchain", allow_partial=True)

    assert left.messages == trim_messages(
        LANGCHAIN, max_tokens=max_tokens, strategy=strategy, token_counter="approximate", allow_partial=True
    )


def test_blocks_of_a_list_go_whole(memory: Remora) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    history = [HumanMessage([{"type": "text", "text": "See:"}, picture, {"type": "text", "text": "Nice?"}])]

    left = memory.trim(history, 20, mode="langchain", allow_partial=True)

    assert left.messages == trim_messages(history, max_tokens=20, token_counter="approximate", allow_partial=True)
    assert left.messages[0].content == [{"type": "text", "text": "Nice?"}]


def test_the_counter_takes_langchains_options(memory: Remora) -> None:
    counter = LangChainCounter(chars_per_token=1, extra_tokens_per_message=0, tools=[{"name": "search"}])

    assert memory.trim([HumanMessage("hello")], 99, mode="langchain", langchain_counter=counter).tokens == 9 + 18


def test_a_counter_counts_tools_as_langchain_does(memory: Remora) -> None:
    @tool
    def search(query: str, limit: int = 3) -> str:
        """Searches the web."""
        return query * limit

    history: list[Any] = [HumanMessage("hello")]
    given: list[Any] = [search, {"name": "sum"}]
    counter = LangChainCounter(tools=given)

    counted = memory.trim(history, 99, mode="langchain", langchain_counter=counter).tokens

    assert counted == count_tokens_approximately(history, tools=given)
    with pytest.raises(
        errors.WrongTypeError, match=r"tools\[0\] is 7 \(an int\); it must be a mapping or one of LangChain's"
    ):
        memory.trim(history, 99, mode="langchain", langchain_counter=LangChainCounter(tools=[7]))


def test_counts_are_scaled_by_what_a_model_reported(memory: Remora) -> None:
    usage = UsageMetadata(input_tokens=90, output_tokens=10, total_tokens=100)
    answer = AIMessage("hi", usage_metadata=usage, response_metadata={"model_provider": "openai"})
    history = [HumanMessage("hello there"), answer]
    counter = LangChainCounter(use_usage_metadata_scaling=True)

    scaled = memory.trim(history, 99, mode="langchain", langchain_counter=counter).tokens

    assert scaled == count_tokens_approximately(history, use_usage_metadata_scaling=True)
    assert scaled > count_tokens_approximately(history)


@pytest.mark.parametrize("mode", ["pairs", "langchain"])
@pytest.mark.parametrize("artifact", [object(), b"\xff"], ids=["object", "bytes"])
def test_what_a_model_is_not_shown_need_not_be_json(memory: Remora, mode: TrimMode, artifact: object) -> None:
    history = [*LANGCHAIN[:3], ToolMessage(RESULT, tool_call_id="a", artifact=artifact), LANGCHAIN[4]]

    left = memory.trim(history, 999, mode=mode)
    cleared = memory.clear_tool_uses(history, trigger_tokens=0, keep=0)

    assert left.messages[3] is history[3]
    assert left.tokens == memory.trim(LANGCHAIN, 999, mode=mode).tokens
    assert memory.validate(history) == []
    assert (cleared.messages[3].artifact, text(cleared.messages[3])) == (None, "[cleared]")


def test_langchains_mode_takes_its_messages_as_it_writes_and_reads_them(memory: Remora) -> None:
    written = [message_to_dict(message) for message in LANGCHAIN]
    typed = [{"type": message.type, "content": message.content} for message in (LANGCHAIN[0], LANGCHAIN[1])]

    assert memory.trim(written, 35, mode="langchain").kept == memory.trim(LANGCHAIN, 35, mode="langchain").kept
    assert memory.trim(typed, 99, mode="langchain").tokens == count_tokens_approximately(typed)


def test_langchains_mode_takes_the_default_of_include_system_with_first(memory: Remora) -> None:
    left = memory.trim(LANGCHAIN, 20, mode="langchain", strategy="first", include_system=False)

    assert left.messages == trim_messages(LANGCHAIN, max_tokens=20, token_counter="approximate", strategy="first")


def test_repeated_ids_are_reported_in_every_format(memory: Remora) -> None:
    said = HumanMessage("hello", id="m1")
    histories: list[list[Any]] = [
        [said, said],
        [message_to_dict(said)] * 2,
        [{"role": "user", "content": "hello", "id": "m1"}] * 2,
        [Message("user", "hello", id="m1")] * 2,
    ]

    for history in histories:
        assert [(fault.index, fault.kind, fault.id) for fault in memory.validate(history)] == [
            (1, "duplicate_message_id", "m1")
        ]


def test_faults_are_reported(memory: Remora) -> None:
    assert memory.validate(OPENAI) == []

    faults = memory.validate([OPENAI[3], OPENAI[2]])

    assert [(fault.index, fault.kind, fault.id) for fault in faults] == [
        (0, "result_before_call", "a"),
        (1, "dangling_call", "a"),
    ]
    assert faults[1].description == "The tool call 'a' has no result."


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_cleared_results_are_copies(memory: Remora, history: list[Any]) -> None:
    before = copy.deepcopy(history)

    left = memory.clear_tool_uses(history, trigger_tokens=0, keep=0)

    assert left.cleared == (3,)
    assert text(left.messages[3]) == "[cleared]"
    assert left.messages[4] is history[4]
    assert history == before
    assert left.tokens_before == memory.count_tokens(history).total
    assert left.tokens_after == memory.count_tokens(left.messages).total


def test_cleared_inputs_are_empty_in_every_format(memory: Remora) -> None:
    cleared = {
        name: memory.clear_tool_uses(history, trigger_tokens=0, keep=0, clear_inputs=True).messages
        for name, history in (*HISTORIES.items(), ("anthropic", ANTHROPIC), ("responses", RESPONSES))
    }

    assert cleared["openai"][2]["tool_calls"][0]["function"] == {"name": "search", "arguments": "{}"}
    assert cleared["langchain"][2].tool_calls[0]["args"] == {}
    assert cleared["langchain"][3].artifact is None
    assert cleared["own"][2].tool_calls[0].arguments == b"{}"
    assert cleared["anthropic"][1]["content"][0]["input"] == {}
    assert cleared["anthropic"][2]["content"][0]["content"] == "[cleared]"
    assert cleared["responses"][1]["arguments"] == "{}"
    assert cleared["responses"][2]["output"] == "[cleared]"


def test_objects_of_other_packages_are_copied_where_they_are_cleared(memory: Remora) -> None:
    call = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, **OPENAI[2]})

    left = memory.clear_tool_uses([call, OPENAI[3]], trigger_tokens=0, keep=0, clear_inputs=True)

    assert left.messages[0]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert left.messages[1]["content"] == "[cleared]"


def test_a_stored_message_of_langchain_is_cleared_in_its_own_form(memory: Remora) -> None:
    stored = [Message.of(message) for message in LANGCHAIN]

    left = memory.clear_tool_uses(stored, trigger_tokens=0, keep=0, clear_inputs=True)

    assert left.messages[2].tool_calls[0].arguments == b"{}"
    assert left.messages[3].text == "[cleared]"


@pytest.mark.parametrize(
    ("messages", "options", "field"),
    [
        ([{"role": "user"}], {}, "messages[0]"),
        ("hello", {}, "messages"),
        ([OPENAI[0]] * 10_001, {}, "messages"),
        (OPENAI, {"langchain_counter": LangChainCounter()}, "langchain_counter"),
        (OPENAI, {"encoding": "cl100k_base", "mode": "langchain"}, "encoding"),
        (OPENAI, {"strategy": "first", "start_on": "user"}, "start_on"),
        (OPENAI, {"strategy": "first", "include_system": False}, "include_system"),
        (OPENAI, {"start_on": "human"}, "start_on"),
        (OPENAI, {"end_on": ["user", "bot"]}, "end_on"),
        (["hello"], {"mode": "langchain"}, "messages[0]"),
        ([("user", "hello")], {"mode": "langchain"}, "messages[0]"),
        ([None], {"mode": "langchain"}, "messages[0]"),
        ([AIMessage([{"type": "text", "text": "x", "n": float("nan")}])], {"mode": "langchain"}, "messages[0]"),
    ],
)
def test_what_cannot_be_trimmed_is_named(memory: Remora, messages: Any, options: Any, field: str) -> None:  # noqa: ANN401
    with pytest.raises(errors.InvalidArgumentError, match=field.replace("[", r"\[")):
        memory.trim(messages, 9, **options)
