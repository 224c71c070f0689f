"""Clearing tool results: which older results a placeholder replaces when a history is long.

The rules are those of LangChain's ClearToolUsesEdit, except that a result finds its call at any distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain import costs
from remora_server.domain.costs import REPLY_PRIMING, Counting, ToolCall
from remora_server.domain.images import Image
from remora_server.domain.tool_pairs import pair_tools, uses_among

NO_ARGUMENTS = "{}"


class ChatMessage(costs.ChatMessage, Protocol):
    """The parts of a message that clearing looks at."""

    @property
    def tool_result_ids(self) -> Sequence[str]: ...


class ClearOptions(Struct, frozen=True):
    """When and what to clear: see the contract's ClearToolUsesRequest."""

    trigger_tokens: int = 100_000
    keep: int = 3
    clear_at_least: int = 0
    placeholder: str = "[cleared]"
    exclude_tools: frozenset[str] = frozenset()
    clear_inputs: bool = False


class Cleared(Struct, frozen=True):
    """The indexes of the messages with a placeholder as their content; the calls with cleared arguments, by index and
    id; the cost of the history before and after.
    """

    results: tuple[int, ...]
    inputs: tuple[tuple[int, str], ...]
    tokens_before: int
    tokens_after: int


def clear_tool_uses(messages: Sequence[ChatMessage], options: ClearOptions, counting: Counting) -> Cleared:
    """What to clear of a history, oldest first."""
    before = sum(counting.messages(messages)) + REPLY_PRIMING
    if before <= options.trigger_tokens:
        return Cleared((), (), before, before)
    return _clear(messages, _candidates(messages, options), options, counting, before)


def _candidates(messages: Sequence[ChatMessage], options: ClearOptions) -> dict[int, list[tuple[int, ToolCall]]]:
    """The messages of tool results that may be cleared, each with the calls that it answers and their indexes."""
    calls = _answered(messages)
    results = [index for index, message in enumerate(messages) if message.tool_result_ids]
    older = results[: max(0, len(results) - options.keep)]
    return {
        index: calls[index]
        for index in older
        if len(calls.get(index, ())) == len(messages[index].tool_result_ids)
        and not any((messages[index].name or call.name) in options.exclude_tools for _, call in calls[index])
        and messages[index].text != options.placeholder
    }


def _answered(messages: Sequence[ChatMessage]) -> dict[int, list[tuple[int, ToolCall]]]:
    """The calls that each message of results answers, with the indexes of the messages that call."""
    found: dict[int, list[tuple[int, ToolCall]]] = {}
    for caller, result in pair_tools(uses_among(messages)).answers:
        ids = messages[result].tool_result_ids
        for call in messages[caller].tool_calls:
            if call.id in ids and (caller, call) not in found.setdefault(result, []):
                found[result].append((caller, call))
    return found


def _clear(
    messages: Sequence[ChatMessage],
    candidates: dict[int, list[tuple[int, ToolCall]]],
    options: ClearOptions,
    counting: Counting,
    before: int,
) -> Cleared:
    results: list[int] = []
    inputs: list[tuple[int, str]] = []
    saved = 0
    for index, calls in candidates.items():
        saved += _saving(messages[index], options.placeholder, counting)
        results.append(index)
        if options.clear_inputs:
            saved += sum(_input_saving(call, counting) for _, call in calls)
            inputs += [(caller, call.id) for caller, call in calls]
        if options.clear_at_least and saved >= options.clear_at_least:
            break
    return Cleared(tuple(results), tuple(inputs), before, before - saved)


class _Result(Struct, frozen=True):
    """A message of tool results as it is counted."""

    role: str
    name: str
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    token_count: int | None = None
    images: tuple[Image, ...] = ()
    uncounted: tuple[str, ...] = ()


def _saving(message: ChatMessage, placeholder: str, counting: Counting) -> int:
    """How much less a message costs with the placeholder as its content."""
    cleared = _Result(message.role, message.name, placeholder, tuple(message.tool_calls))
    whole, rest = counting.messages([message, cleared])
    return whole - rest


def _input_saving(call: ToolCall, counting: Counting) -> int:
    whole, rest = counting.texts([call.arguments, NO_ARGUMENTS])
    return whole - rest
