"""Chat histories from any source: how their messages are counted, and where they may be cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from remora_server.domain.context_messages import SYSTEM_ROLES
from remora_server.domain.tool_pairs import Span, ToolUse, pair_tools, whole_cuts

BLOCK = 128
"""How many messages are counted at once. Messages far from the end that stays are never counted."""


class History(Protocol):
    """Messages, oldest first, by index. Ranges are half-open."""

    def __len__(self) -> int: ...

    def role(self, index: int) -> str:
        """Who speaks."""

    def opens_turn(self, index: int) -> bool:
        """Whether a message is said by a user and not by a tool."""

    def tool_uses(self, begin: int, end: int) -> Sequence[ToolUse]:
        """The tool calls and results of a range."""

    def costs(self, begin: int, end: int) -> Sequence[int]:
        """What each message of a range costs (`domain.costs.Counting.messages`)."""

    def divisible_text(self, index: int) -> str:
        """The text of a message that has only text for a model; empty for any other message."""

    def tokens(self, text: str) -> int:
        """The tokens of a text."""


class CountedHistory:
    """A history whose messages are counted in blocks, each once, when they are asked for."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._blocks: dict[int, Sequence[int]] = {}

    def total(self, begin: int, end: int) -> int:
        """The cost of the messages of a range."""
        return sum(sum(costs) for costs in self._costs(begin, end))

    def fitting_suffix(self, begin: int, end: int, room: int) -> int:
        """Where the longest run of messages up to `end` begins that costs at most `room`."""
        at = end
        for costs in self._costs(begin, end, backward=True):
            for cost in reversed(costs):
                room -= cost
                if room < 0:
                    return at
                at -= 1
        return at

    def fitting_prefix(self, end: int, room: int) -> int:
        """Where the longest run of messages from the first on ends that costs at most `room`."""
        at = 0
        for costs in self._costs(0, end):
            for cost in costs:
                room -= cost
                if room < 0:
                    return at
                at += 1
        return at

    def _costs(self, begin: int, end: int, *, backward: bool = False) -> Iterator[Sequence[int]]:
        """The costs of a range, by blocks."""
        numbers = range(begin // BLOCK, (max(begin, end) + BLOCK - 1) // BLOCK)
        for number in reversed(numbers) if backward else numbers:
            first = number * BLOCK
            yield self._block(number)[max(begin - first, 0) : max(end - first, 0)]

    def _block(self, number: int) -> Sequence[int]:
        if number not in self._blocks:
            first = number * BLOCK
            self._blocks[number] = self.history.costs(first, min(first + BLOCK, len(self.history)))
        return self._blocks[number]


def system_messages(history: History) -> int:
    """How many system messages are at the head."""
    size = len(history)
    head = next((index for index in range(size) if history.role(index) not in SYSTEM_ROLES), size)
    uses = history.tool_uses(0, head)
    return uses[0][0] if uses else head


def tool_spans(history: History, begin: int, end: int) -> list[Span]:
    """Calls and their results, for results in a range. Looks before the range for their calls."""
    reach = BLOCK
    while True:
        lower = max(0, begin - reach)
        pairing = pair_tools(history.tool_uses(lower, end))
        if lower == 0 or all(index < begin for index, _ in pairing.orphans):
            return [span for span in pairing.spans if span[1] >= begin]
        reach *= 4


def last_turn(history: History, head: int) -> int:
    """Where the last turn of the user begins, or the last message if no user speaks."""
    size = len(history)
    last = next((index for index in range(size - 1, head - 1, -1) if history.opens_turn(index)), size - 1)
    return max(at for at in whole_cuts(tool_spans(history, head, size), head, size) if at <= last)
