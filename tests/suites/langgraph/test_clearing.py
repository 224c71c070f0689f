"""Cleared tool results, beside LangChain's own ClearToolUsesEdit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_client

from remora import Remora

TOOLS = ("search", "look_up", "plot")


@pytest.fixture
def memory(server: Server, tenant: str) -> Iterator[Remora]:
    with patient_client(server.endpoint, tenant=tenant) as memory:
        yield memory


def history(chance: random.Random) -> list[AnyMessage]:
    """Turns that call up to three tools; some results are missing, some answer no call, some name another tool."""
    messages: list[AnyMessage] = []
    for turn in range(chance.randrange(8)):
        calls = [
            ToolCall(name=chance.choice(TOOLS), args={"q": "x" * chance.randrange(9)}, id=f"{turn}-{number}")
            for number in range(chance.randrange(4))
        ]
        results = [
            ToolMessage("found " * chance.randrange(20), tool_call_id=call["id"], name=name_of(call, chance))
            for call in calls
            if chance.random() < 0.8
        ]
        stray = [ToolMessage("a stray result", tool_call_id="none")] if chance.random() < 0.1 else []
        messages += [HumanMessage("and now?"), AIMessage("I look.", tool_calls=calls), *results, *stray]
    return messages


def name_of(call: ToolCall, chance: random.Random) -> str | None:
    return chance.choice([None, call["name"], call["name"], *TOOLS])


def seen(messages: Sequence[AnyMessage]) -> list[tuple[str, object, object]]:
    """What a model is shown of messages."""
    calls = [
        [(call["name"], call["args"], call["id"]) for call in getattr(each, "tool_calls", ())] for each in messages
    ]
    return [(each.type, each.content, called) for each, called in zip(messages, calls, strict=True)]


def test_what_is_cleared_is_what_langchain_clears(memory: Remora) -> None:
    cleared = 0
    for seed in range(200):
        chance = random.Random(seed)
        messages = history(chance)
        keep, inputs = chance.randrange(5), chance.random() < 0.5
        exclude = chance.sample(TOOLS, chance.randrange(2))
        expected = list(messages)
        edit = ClearToolUsesEdit(trigger=0, keep=keep, clear_tool_inputs=inputs, exclude_tools=exclude)
        edit.apply(expected, count_tokens=lambda given: len(list(given)))

        view = memory.clear_tool_uses(messages, trigger_tokens=0, keep=keep, clear_inputs=inputs, exclude_tools=exclude)

        assert seen(view.messages) == seen(expected), f"history {seed}"
        cleared += len(view.cleared)
    assert cleared > 200
