"""How a context is rendered: in which order a model sees its messages, and what they cost so."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from remora_server.domain.context import Merge, Section, joined
from remora_server.domain.context_messages import USER, ContextMessage, Unit
from remora_server.domain.costs import REPLY_PRIMING, TOKENS_PER_MESSAGE, Counting
from remora_server.domain.quotation import Quotation
from remora_server.domain.tokens import APPROXIMATE, APPROXIMATE_CHARACTERS

EARLIER = "Earlier messages from memory, for reference; the conversation itself follows after them.\n"
"""The first line of a message that quotes recalled ones."""
EARLIER_ROLE = USER
"""Whose message that is: what is quoted may be anybody's words, so it must not speak with the system's authority."""

Share: TypeAlias = tuple[Hashable, int]
"""A cost that several messages have together: what it is for, and its measure."""


class Chosen(Struct, frozen=True):
    """What a context shows: recalled units best first, recent ones by sequence."""

    system: ContextMessage | None
    recalled: Sequence[Unit]
    recent: Sequence[Unit]
    summary: ContextMessage | None = None

    @property
    def head(self) -> Unit:
        """What stands before all others."""
        return tuple([message for message in (self.system, self.summary) if message is not None])


class Rendered(Struct, frozen=True):
    """A context in the order of reading. `tokens` are each message's; with `overhead` they are the whole cost.

    `text` is the whole as one text, `earlier` the text that quotes recalled messages; both may be empty.
    """

    messages: tuple[ContextMessage, ...]
    tokens: tuple[int, ...]
    overhead: int
    text: str = ""
    earlier: str = ""

    @property
    def tokens_used(self) -> int:
        return sum(self.tokens) + self.overhead


class Renderer(Protocol):
    """One rendering. Its measure adds up: the whole measures what is `fixed`, each message's own measure, and each
    different share of them. The tokens are at most that many.
    """

    @property
    def fixed(self) -> int: ...

    def limit(self, max_tokens: int) -> int:
        """The measure of as many tokens."""

    def tokens(self, measure: int) -> int:
        """The least number of tokens that hold a measure."""

    def measure(self, section: Section, messages: Sequence[ContextMessage]) -> list[int]:
        """The measure of each message in a section."""

    def shares(self, section: Section, message: ContextMessage) -> tuple[Share, ...]:
        """What the message costs together with others."""

    def text_bytes(self, section: Section, message: ContextMessage) -> int:
        """How long the message is in a text of the reply, in UTF-8; 0 where it is in none."""

    def uncounted(self, section: Section, message: ContextMessage) -> tuple[str, ...]:
        """What of the message is sent to a model and not counted."""

    def render(self, chosen: Chosen) -> Rendered: ...


class Scale(Struct, frozen=True):
    """Measures in which costs add up: tokens, or characters in the approximate encoding, which rounds up once for a
    text.
    """

    counting: Counting

    @property
    def unit(self) -> int:
        """The measure of a token."""
        return APPROXIMATE_CHARACTERS if self.counting.encoding == APPROXIMATE else 1

    def lines(self, lines: Sequence[str]) -> list[int]:
        """The measure of each line of a text."""
        if self.unit > 1:
            return [len(line) for line in lines]
        return self.counting.texts(lines)

    def tokens(self, measure: int) -> int:
        """A measure in tokens, rounded up."""
        return -(-measure // self.unit)

    def added(self, lines: Sequence[str]) -> list[int]:
        """What each line adds to the tokens of the text before it."""
        added, total = [], 0
        for measure in self.lines(lines):
            before = self.tokens(total)
            total += measure
            added.append(self.tokens(total) - before)
        return added


class ChatRenderer:
    """Chat messages, measured in tokens (`domain.costs`). Units stay in one piece.

    Recalled messages are lines of one message before the recent ones, or messages of their own in VoltAgent's orders.
    """

    def __init__(self, counting: Counting, merge: Merge, here: str) -> None:
        self._counting = counting
        self._scale = Scale(counting)
        self._merge = merge
        self._quotation = Quotation(here)
        self.fixed = REPLY_PRIMING * self._scale.unit

    def limit(self, max_tokens: int) -> int:
        return max_tokens * self._scale.unit

    def tokens(self, measure: int) -> int:
        return self._scale.tokens(measure)

    def measure(self, section: Section, messages: Sequence[ContextMessage]) -> list[int]:
        if self._quotes(section):
            return self._scale.lines([self._quotation.line(message) for message in messages])
        return [tokens * self._scale.unit for tokens in self._counting.messages(messages)]

    def shares(self, section: Section, message: ContextMessage) -> tuple[Share, ...]:
        if not self._quotes(section):
            return ()
        date_line = self._scale.lines([self._quotation.date_line(message)])[0]
        return (EARLIER, self._frame()), (self._quotation.session(message), date_line)

    def _frame(self) -> int:
        """The measure of an empty quotation, with what the rounding of the whole may add."""
        rounding = self._scale.unit - 1
        return self._frame_tokens() * self._scale.unit + self._scale.lines([EARLIER])[0] + rounding

    def _frame_tokens(self) -> int:
        return TOKENS_PER_MESSAGE + self._counting.texts([EARLIER_ROLE])[0]

    def _quotes(self, section: Section) -> bool:
        return section is Section.RECALLED and self._merge is Merge.EARLIER

    def text_bytes(self, section: Section, message: ContextMessage) -> int:
        return len(self._quotation.line(message).encode()) if self._quotes(section) else 0

    def uncounted(self, section: Section, message: ContextMessage) -> tuple[str, ...]:
        return () if self._quotes(section) else self._counting.uncounted(message)

    def render(self, chosen: Chosen) -> Rendered:
        if self._merge is Merge.EARLIER and chosen.recalled:
            return self._quoting(chosen.head, chosen.recalled, _messages(chosen.recent))
        messages = (*chosen.head, *_messages(joined(self._merge, chosen.recalled, chosen.recent)))
        return Rendered(messages, tuple(self._counting.messages(messages)), REPLY_PRIMING)

    def _quoting(self, head: Unit, recalled: Sequence[Unit], recent: Unit) -> Rendered:
        quoted = self._quotation.lines(_messages(recalled))
        added = self._scale.added([EARLIER, *quoted.lines])
        shown = [added[number + 1] for number in quoted.shown]
        costs = self._counting.messages([*head, *recent])
        tokens = (*costs[: len(head)], *shown, *costs[len(head) :])
        earlier = EARLIER + "".join(quoted.lines)
        quotation = self._frame_tokens() + self._counting.texts([earlier])[0]
        overhead = REPLY_PRIMING + quotation - sum(shown)
        return Rendered((*head, *quoted.messages, *recent), tokens, overhead, earlier=earlier)


class TranscriptRenderer:
    """One text of lines (`domain.quotation`): the system text, the summary, then all messages in the order of time."""

    fixed = 0

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._scale = Scale(counting)
        self._quotation = Quotation()

    def limit(self, max_tokens: int) -> int:
        return max_tokens * self._scale.unit

    def tokens(self, measure: int) -> int:
        return self._scale.tokens(measure)

    def measure(self, _section: Section, messages: Sequence[ContextMessage]) -> list[int]:
        return self._scale.lines([self._quotation.line(message) for message in messages])

    def shares(self, section: Section, message: ContextMessage) -> tuple[Share, ...]:
        if section in (Section.SYSTEM, Section.SUMMARY):
            return ()
        return ((self._quotation.session(message), self._scale.lines([self._quotation.date_line(message)])[0]),)

    def text_bytes(self, _section: Section, message: ContextMessage) -> int:
        return len(self._quotation.line(message).encode())

    def uncounted(self, _section: Section, _message: ContextMessage) -> tuple[str, ...]:
        return ()

    def render(self, chosen: Chosen) -> Rendered:
        head = chosen.head
        quoted = self._quotation.lines([*_messages(chosen.recent), *_messages(chosen.recalled)])
        lines = [*(self._quotation.line(message) for message in head), *quoted.lines]
        shown = [*range(len(head)), *(len(head) + number for number in quoted.shown)]
        added = self._scale.added(lines)
        text = "".join(lines)
        tokens = tuple([added[number] for number in shown])
        overhead = self._counting.texts([text])[0] - sum(tokens)
        return Rendered((*head, *quoted.messages), tokens, overhead, text)


def _messages(units: Sequence[Unit]) -> Unit:
    return tuple([message for unit in units for message in unit])
