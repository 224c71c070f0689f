"""What providers refuse in messages, beyond what their packages' types say, as their documentation has it.

OpenAI: "Function calling": an assistant message with `tool_calls` is followed by tool messages that respond to each of
them. "Reasoning models": a reasoning item is refused "without its required following item". Anthropic: "Tool use": the
results of all `tool_use` blocks are at the beginning of the next user message; the first message is a user's; text is
not empty. LangChain passes all of it on; its ChatAnthropic takes system messages only at the beginning.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any


def check_openai(messages: list[dict[str, Any]]) -> None:
    """The rules of OpenAI's chat messages."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, "a call is followed by its results"
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
    assert not open_calls


def check_responses(items: list[dict[str, Any]]) -> None:
    """The rules of the Responses API: each output has its call before it, and each call an output; reasoning is
    followed by what the model did next.
    """
    assert "reasoning" not in [item.get("type") for item in items[-1:]]
    for reasoning, item in pairwise(items):
        if reasoning.get("type") == "reasoning":
            assert item.get("role", "assistant") == "assistant"
            assert item.get("type") != "function_call_output"
    open_calls: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            open_calls.add(item["call_id"])
        if item.get("type") == "function_call_output":
            open_calls.remove(item["call_id"])
    assert not open_calls


def check_anthropic(messages: list[dict[str, Any]]) -> None:
    """The rules of Anthropic's messages, of which neighbours of one role are one to the API."""
    turns = [
        (role, [block for message in neighbours for block in _blocks(message)])
        for role, neighbours in groupby(messages, key=lambda message: message["role"])
    ]
    assert not turns or turns[0][0] == "user"
    called: set[str] = set()
    for role, blocks in turns:
        assert blocks
        assert role in ("user", "assistant")
        returned = [block.get("content") for block in blocks if block["type"] == "tool_result"]
        inner = [block for content in returned if isinstance(content, list) for block in content]
        assert all(block["type"] != "text" or block["text"].strip() for block in [*blocks, *inner])
        kinds = [block["type"] for block in blocks]
        assert role != "assistant" or kinds[-1] not in ("thinking", "redacted_thinking")
        results = kinds.count("tool_result")
        assert kinds[:results] == ["tool_result"] * results, "results come first"
        assert [block["tool_use_id"] for block in blocks[:results]] == sorted(
            {block["tool_use_id"] for block in blocks[:results]}, key=[b.get("tool_use_id") for b in blocks].index
        )
        assert {block["tool_use_id"] for block in blocks[:results]} == called
        called = {block["id"] for block in blocks if block["type"] == "tool_use"}
    assert not called


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def check_langchain(messages: list[Any]) -> None:
    """The rules of all providers that LangChain has."""
    kinds = [message.type for message in messages]
    assert "system" not in kinds[kinds.count("system") :]
    check_openai(
        [
            {"role": "tool", "tool_call_id": message.tool_call_id}
            if message.type == "tool"
            else {"role": message.type, "tool_calls": getattr(message, "tool_calls", [])}
            for message in messages
        ]
    )
