"""Pairs of tool calls and the messages that answer them, and calls and results without a counterpart.

A result belongs to the newest call of its id before it, because ids may be used again once they were answered. A
message may answer several calls, a call may lack its result, and other messages may be between both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

from msgspec import Struct

ToolUse: TypeAlias = tuple[int, str, bool]
"""A call of a tool, or its result: the index of its message, the id of the call, and whether it is a result."""
Alone: TypeAlias = tuple[int, str]
"""A message's index, and the id of a call or a result that has no counterpart."""
Span: TypeAlias = tuple[int, int]
"""The index of a message that calls a tool, and of one that answers it."""


class Pairing(Struct, frozen=True):
    """The pairing of all calls and results.

    `answers` are the first results of calls, `repeats` further ones. `orphans` are results without an earlier call,
    `dangling` calls without a result. `renewed` are calls with the id of one that had no result yet.
    """

    answers: list[Span]
    repeats: list[tuple[int, int, str]]
    orphans: list[Alone]
    dangling: list[Alone]
    renewed: list[Alone]

    @property
    def spans(self) -> list[Span]:
        """The calls and results that belong together."""
        return [*self.answers, *((caller, result) for caller, result, _ in self.repeats)]


class ToolCall(Protocol):
    """A call of a tool."""

    @property
    def id(self) -> str: ...


class UsesTools(Protocol):
    """A message that may call tools and answer calls."""

    @property
    def tool_calls(self) -> Iterable[ToolCall]: ...

    @property
    def tool_result_ids(self) -> Iterable[str]: ...


def uses_among(messages: Iterable[UsesTools]) -> Iterator[ToolUse]:
    """The tool calls and results of messages, whose indexes are their positions."""
    for index, message in enumerate(messages):
        yield from uses_of(index, (call.id for call in message.tool_calls), message.tool_result_ids)


def uses_of(index: int, call_ids: Iterable[str], result_ids: Iterable[str]) -> Iterator[ToolUse]:
    """The tool calls and results of one message. It calls before it answers."""
    for call_id in call_ids:
        yield index, call_id, False
    for call_id in result_ids:
        yield index, call_id, True


def pair_tools(uses: Iterable[ToolUse]) -> Pairing:
    """The pairing of tool calls and results, which are given in the order of their messages."""
    pairing = Pairing([], [], [], [], [])
    answers = pairing.answers
    callers: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for index, call_id, is_result in uses:
        if not is_result:
            if call_id in waiting:
                pairing.renewed.append((index, call_id))
                if waiting[call_id] != index:
                    pairing.dangling.append((waiting[call_id], call_id))
            callers[call_id] = waiting[call_id] = index
        elif (caller := waiting.pop(call_id, None)) is not None:
            answers.append((caller, index))
        elif call_id in callers:
            pairing.repeats.append((callers[call_id], index, call_id))
        else:
            pairing.orphans.append((index, call_id))
    pairing.dangling.extend((index, call_id) for call_id, index in waiting.items())
    return pairing


def whole_cuts(spans: Iterable[Span], begin: int, end: int) -> Iterator[int]:
    """The positions from `begin` to `end` at which a cut separates no span, ascending.

    A position is the index of the first message after the cut.
    """
    by_caller = sorted(spans)
    passed, reach = 0, -1
    for position in range(begin, end + 1):
        while passed < len(by_caller) and by_caller[passed][0] < position:
            reach = max(reach, by_caller[passed][1])
            passed += 1
        if reach < position:
            yield position
