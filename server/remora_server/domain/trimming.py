"""Trimming: which messages of a history fit into a budget of tokens, with tool calls and their results kept together.

It knows neither the source nor the other content of the messages. `domain.langchain_trimming` trims as LangChain does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import chain

from msgspec import Struct

from remora_server.domain.chat_histories import CountedHistory, History, last_turn, system_messages, tool_spans
from remora_server.domain.costs import REPLY_PRIMING
from remora_server.domain.tool_pairs import whole_cuts


class Strategy(Enum):
    """Which end of a history stays."""

    LAST = "last"
    FIRST = "first"


class Reason(Enum):
    """Why messages are dropped."""

    OVER_BUDGET = "over_budget"
    TOOL_PAIR = "tool_pair"
    START_ON = "start_on"
    END_ON = "end_on"


class TrimOptions(Struct, frozen=True):
    """How to trim. Empty `start_on` and `end_on`: any role."""

    max_tokens: int
    strategy: Strategy = Strategy.LAST
    start_on: frozenset[str] = frozenset()
    end_on: frozenset[str] = frozenset()
    include_system: bool = True
    allow_partial: bool = False


class Dropped(Struct, frozen=True):
    """Dropped messages, from `begin` to before `end`."""

    begin: int
    end: int
    reason: Reason


class Cut(Struct, frozen=True):
    """A message that stays in part: with a text instead of its content, or with a range of its content blocks."""

    index: int
    text: str = ""
    blocks: tuple[int, int] | None = None


class Trimmed(Struct, frozen=True):
    """What stays and what goes. `head` messages at the beginning stay, then those from `begin` to before `end`."""

    head: int
    begin: int
    end: int
    tokens: int
    dropped: tuple[Dropped, ...] = ()
    cut: Cut | None = None

    @property
    def kept(self) -> list[int]:
        """The indexes of what stays."""
        return [*range(self.head), *range(self.begin, self.end)]


def trim(history: History, options: TrimOptions) -> Trimmed:
    """Trim a history.

    If nothing fits, the rest is over the budget: with LAST the last turn of the user and all after it, with FIRST the
    first message, each together with the calls or results of its messages.
    """
    return _first(history, options) if options.strategy is Strategy.FIRST else _last(history, options)


def _last(history: History, options: TrimOptions) -> Trimmed:
    counted = CountedHistory(history)
    head = system_messages(history) if options.include_system else 0
    end = _end(history, head, options.end_on)
    room = options.max_tokens - REPLY_PRIMING - counted.total(0, head)
    fitting = counted.fitting_suffix(head, end, room)
    whole, begin = _beginning(history, fitting, end, options.start_on)
    cut = None
    if options.allow_partial and head < fitting == whole:
        cut = _cut_beginning(counted, options, room - counted.total(fitting, end), fitting - 1)
    if cut is not None:
        begin = cut.index
    elif begin == end and head < len(history):
        return _last_turn(counted, head)
    dropped = ranges(
        (head, min(fitting, begin), Reason.OVER_BUDGET),
        (fitting, min(whole, begin), Reason.TOOL_PAIR),
        (whole, begin, Reason.START_ON),
        (end, len(history), Reason.END_ON),
    )
    return Trimmed(head, begin, end, _tokens(counted, head, begin, end, cut), dropped, cut)


def _beginning(history: History, fitting: int, end: int, start_on: frozenset[str]) -> tuple[int, int]:
    """Where the fitting messages may begin without separating a pair, and where with one of these roles. `end`:
    nowhere.
    """
    cuts = whole_cuts(tool_spans(history, fitting, end), fitting, end)
    whole = next(cuts)
    return whole, next((at for at in chain((whole,), cuts) if at < end and _is_one_of(history, at, start_on)), end)


def _last_turn(counted: CountedHistory, head: int) -> Trimmed:
    """The messages that stay if nothing fits."""
    size, begin = len(counted.history), last_turn(counted.history, head)
    dropped = ranges((head, begin, Reason.OVER_BUDGET))
    return Trimmed(head, begin, size, _tokens(counted, head, begin, size), dropped)


def _first(history: History, options: TrimOptions) -> Trimmed:
    counted = CountedHistory(history)
    size, room = len(history), options.max_tokens - REPLY_PRIMING
    fitting = counted.fitting_prefix(size, room)
    cuts = list(whole_cuts(tool_spans(history, 0, size), 0, size))
    whole = max(at for at in cuts if at <= fitting)
    end = max((at for at in cuts if 0 < at <= whole and _is_one_of(history, at - 1, options.end_on)), default=0)
    cut = None
    if options.allow_partial and size > fitting == whole:
        cut = _cut_end(counted, options, room - counted.total(0, fitting), fitting)
    if cut is not None:
        end = fitting + 1
    elif end == 0 and size:
        end = whole = fitting = cuts[1]
    dropped = ranges(
        (end, whole, Reason.END_ON),
        (max(whole, end), fitting, Reason.TOOL_PAIR),
        (max(fitting, end), size, Reason.OVER_BUDGET),
    )
    return Trimmed(0, 0, end, _tokens(counted, 0, 0, end, cut), dropped, cut)


def _tokens(counted: CountedHistory, head: int, begin: int, end: int, cut: Cut | None = None) -> int:
    """The cost of the first `head` messages and those of a range, one of them cut."""
    whole = REPLY_PRIMING + counted.total(0, head) + counted.total(begin, end)
    if cut is None:
        return whole
    history = counted.history
    return whole - history.tokens(history.divisible_text(cut.index)) + history.tokens(cut.text)


def _is_one_of(history: History, index: int, roles: frozenset[str]) -> bool:
    return not roles or history.role(index) in roles


def _end(history: History, head: int, end_on: frozenset[str]) -> int:
    """Where the history ends without the messages after the last one of these roles."""
    if not end_on:
        return len(history)
    cuts = whole_cuts(tool_spans(history, head, len(history)), head, len(history))
    return max((at for at in cuts if at > head and history.role(at - 1) in end_on), default=head)


def _cut_beginning(counted: CountedHistory, options: TrimOptions, room: int, index: int) -> Cut | None:
    """The last lines of a message, if it may be the first that stays."""
    if not _is_one_of(counted.history, index, options.start_on):
        return None
    return _cut(counted, index, room, lambda lines, count: lines[len(lines) - count :])


def _cut_end(counted: CountedHistory, options: TrimOptions, room: int, index: int) -> Cut | None:
    """The first lines of a message, if it may be the last that stays."""
    if not _is_one_of(counted.history, index, options.end_on):
        return None
    return _cut(counted, index, room, lambda lines, count: lines[:count])


def _cut(
    counted: CountedHistory, index: int, room: int, some: Callable[[Sequence[str], int], Sequence[str]]
) -> Cut | None:
    """As many lines of a message as `room` allows for; None if that is none, or the message cannot be cut."""
    history = counted.history
    text = history.divisible_text(index)
    if not text:
        return None
    room -= counted.total(index, index + 1) - history.tokens(text)
    lines = lines_of(text)
    fitting, least_over = 0, len(lines)
    while least_over - fitting > 1:
        middle = (fitting + least_over) // 2
        if history.tokens("".join(some(lines, middle))) <= room:
            fitting = middle
        else:
            least_over = middle
    kept = "".join(some(lines, fitting))
    return Cut(index, kept) if kept else None


def lines_of(text: str) -> list[str]:
    """The lines of a text, which together are the text."""
    *lines, last = text.split("\n")
    return [*(line + "\n" for line in lines), last]


def ranges(*given: tuple[int, int, Reason]) -> tuple[Dropped, ...]:
    """The ranges that are not empty."""
    return tuple(Dropped(begin, end, reason) for begin, end, reason in given if begin < end)
