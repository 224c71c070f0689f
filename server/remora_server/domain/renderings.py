"""How a context is rendered: the order of its messages, and their costs in that order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.context import Merge, Section, joined
from remora_server.domain.context_messages import SYSTEM, USER, ContextMessage, Unit
from remora_server.domain.costs import REPLY_PRIMING, TOKENS_PER_MESSAGE, Counting
from remora_server.domain.memory_list import (
    CLOSING,
    ELEMENTS,
    IN_SYSTEM,
    KNOWN,
    KNOWN_ROLE,
    OPENING,
    before_memory,
    frame,
    line_of,
    memory_lines,
)
from remora_server.domain.quotation import DAY, Lines, Quotation, in_time
from remora_server.domain.tokens import APPROXIMATE, APPROXIMATE_CHARACTERS

EARLIER = "Earlier messages from memory, for reference; the conversation itself follows after them.\n"
"""The first line of a message that quotes recalled ones."""
EARLIER_ROLE = USER
"""The role of that message. It may quote anybody's words, so it must not have the system's authority."""

Share: TypeAlias = tuple[Hashable, int]
"""A cost that several messages share: its reason and its measure."""


class Measured(Struct, frozen=True):
    """What each of some messages adds to a context. `text_bytes` (in UTF-8) and the costs that it `shares` with others
    are those of messages that stand in a text of the reply; otherwise they are empty.
    """

    measures: Sequence[int]
    text_bytes: Sequence[int] = ()
    shares: Sequence[tuple[Share, ...]] = ()


class Chosen(Struct, frozen=True):
    """The content of a context: recalled units best first, recent ones by sequence, and facts by their section."""

    system: ContextMessage | None
    recalled: Sequence[Unit]
    recent: Sequence[Unit]
    summary: ContextMessage | None = None
    facts: Mapping[Section, Sequence[ContextMessage]] = {}
    working: Unit = ()

    @property
    def first(self) -> Unit:
        """What stands before all others."""
        return () if self.system is None else (self.system,)

    @property
    def second(self) -> Unit:
        """What stands behind the facts."""
        return self.working if self.summary is None else (*self.working, self.summary)


class Rendered(Struct, frozen=True):
    """A context in the order of reading. `tokens` are each message's; with `overhead` they are the whole cost.

    `text` is the whole as one text, `memory` the text that lists facts, `earlier` the one that quotes recalled
    messages; each may be empty.
    """

    messages: tuple[ContextMessage, ...]
    tokens: tuple[int, ...]
    overhead: int
    text: str = ""
    memory: str = ""
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

    def measured(self, section: Section, messages: Sequence[ContextMessage]) -> Measured:
        """What each message adds in a section."""

    def uncounted(self, section: Section, message: ContextMessage) -> tuple[str, ...]:
        """The parts of the message that are sent to a model and not counted."""

    def render(self, chosen: Chosen) -> Rendered: ...


class Scale(Struct, frozen=True):
    """Measures that add up: tokens, or characters in the approximate encoding, which rounds up once for a text."""

    counting: Counting
    unit: int
    """The measure of a token."""

    @classmethod
    def of(cls, counting: Counting) -> Scale:
        return cls(counting, APPROXIMATE_CHARACTERS if counting.encoding == APPROXIMATE else 1)

    def lines(self, lines: Sequence[str]) -> list[int]:
        """The measure of each line of a text."""
        if self.unit > 1:
            return [len(line) for line in lines]
        return self.counting.texts(lines)

    def listed(self, lines: Sequence[str], shares: Sequence[tuple[Share, ...]]) -> Measured:
        """Messages that are these lines of a text and share these costs."""
        return Measured(self.lines(lines), [len(line.encode()) for line in lines], shares)

    def tokens(self, measure: int) -> int:
        """A measure in tokens, rounded up."""
        return -(-measure // self.unit)

    def added(self, lines: Sequence[str]) -> list[int]:
        """The number of tokens that each line adds to the text before it."""
        added, total = [], 0
        for measure in self.lines(lines):
            before = self.tokens(total)
            total += measure
            added.append(self.tokens(total) - before)
        return added


class _Dates:
    """The lines over sessions as costs that messages share. Each is measured once."""

    def __init__(self, scale: Scale, quotation: Quotation) -> None:
        self._scale = scale
        self._quotation = quotation
        self._shares: dict[Hashable, Share] = {}

    def share(self, message: ContextMessage) -> Share:
        """The line over the message's session. Its date is that of the message."""
        key = message.conversation_id, message.session_id, message.sent_time // DAY
        share = self._shares.get(key)
        if share is None:
            measure = self._scale.lines([self._quotation.date_line(message)])[0]
            share = self._shares[key] = self._quotation.session(message), measure
        return share


class _Listed(Struct, frozen=True):
    """A text with messages as its lines, as a message of a context. `overhead` is its cost besides the lines."""

    messages: Unit = ()
    tokens: tuple[int, ...] = ()
    overhead: int = 0
    text: str = ""


class ChatRenderer:
    """Chat messages, measured in tokens (`domain.costs`). Units stay in one piece.

    Working memories and the summary are messages of their own. Facts are lines of one message behind the system text.
    Recalled messages are lines of one message before the recent ones, or messages of their own in VoltAgent's orders.
    """

    def __init__(self, counting: Counting, merge: Merge, here: str) -> None:
        self._counting = counting
        self._scale = Scale.of(counting)
        self._merge = merge
        self._quotation = Quotation(here)
        self._dates = _Dates(self._scale, self._quotation)
        self._around: dict[str, Share] = {}
        self.fixed = REPLY_PRIMING * self._scale.unit

    def limit(self, max_tokens: int) -> int:
        return max_tokens * self._scale.unit

    def tokens(self, measure: int) -> int:
        return self._scale.tokens(measure)

    def measured(self, section: Section, messages: Sequence[ContextMessage]) -> Measured:
        if section in ELEMENTS:
            around = self._share(KNOWN, KNOWN_ROLE, KNOWN, OPENING, CLOSING), _element(self._scale, section)
            return self._scale.listed([line_of(section, message) for message in messages], [around] * len(messages))
        if self._quotes(section):
            heading = self._share(EARLIER, EARLIER_ROLE, EARLIER)
            shares = [(heading, self._dates.share(message)) for message in messages]
            return self._scale.listed([self._quotation.line(message) for message in messages], shares)
        return Measured(self._of_messages(messages))

    def _of_messages(self, messages: Sequence[ContextMessage]) -> list[int]:
        tokens, unit = self._counting.messages(messages), self._scale.unit
        return tokens if unit == 1 else [each * unit for each in tokens]

    def _share(self, key: str, role: str, *lines: str) -> Share:
        """What a message of these lines costs, which others have together; it is measured once."""
        share = self._around.get(key)
        if share is None:
            share = self._around[key] = key, self._frame(role, lines)
        return share

    def _frame(self, role: str, lines: Sequence[str]) -> int:
        """The measure of a message with these lines, with the most that rounding the whole may add."""
        rounding = self._scale.unit - 1
        return self._frame_tokens(role) * self._scale.unit + sum(self._scale.lines(lines)) + rounding

    def _frame_tokens(self, role: str) -> int:
        return TOKENS_PER_MESSAGE + self._counting.texts([role])[0]

    def _quotes(self, section: Section) -> bool:
        return section is Section.RECALLED and self._merge is Merge.EARLIER

    def uncounted(self, section: Section, message: ContextMessage) -> tuple[str, ...]:
        return () if self._quotes(section) else self._counting.uncounted(message)

    def render(self, chosen: Chosen) -> Rendered:
        memory, earlier = self._memory(chosen), self._earlier(chosen)
        recalled = () if earlier.messages else chosen.recalled
        body = _messages(joined(self._merge, recalled, chosen.recent))
        costs = tuple(self._counting.messages((*chosen.first, *chosen.second, *body)))
        first, second = len(chosen.first), len(chosen.first) + len(chosen.second)
        return Rendered(
            (*chosen.first, *memory.messages, *chosen.second, *earlier.messages, *body),
            (*costs[:first], *memory.tokens, *costs[first:second], *earlier.tokens, *costs[second:]),
            REPLY_PRIMING + memory.overhead + earlier.overhead,
            memory=memory.text,
            earlier=earlier.text,
        )

    def _memory(self, chosen: Chosen) -> _Listed:
        if not any(chosen.facts.values()):
            return _Listed()
        return self._listed(KNOWN_ROLE, KNOWN, memory_lines(chosen.facts))

    def _earlier(self, chosen: Chosen) -> _Listed:
        if self._merge is not Merge.EARLIER or not chosen.recalled:
            return _Listed()
        return self._listed(EARLIER_ROLE, EARLIER, self._quotation.lines(_messages(chosen.recalled)))

    def _listed(self, role: str, heading: str, listed: Lines) -> _Listed:
        added = self._scale.added([heading, *listed.lines])
        tokens = tuple([added[number + 1] for number in listed.shown])
        text = heading + "".join(listed.lines)
        overhead = self._frame_tokens(role) + self._counting.texts([text])[0] - sum(tokens)
        return _Listed(listed.messages, tokens, overhead, text)


class SystemPromptRenderer(ChatRenderer):
    """Chat messages whose system message holds all that is remembered, behind its own text: facts and recalled messages
    in the elements of the proposal for Ballerina's agents.
    """

    def __init__(self, counting: Counting, system: ContextMessage | None) -> None:
        super().__init__(counting, Merge.EARLIER, "")
        self._system = system

    def measured(self, section: Section, messages: Sequence[ContextMessage]) -> Measured:
        if section in IN_SYSTEM:
            around = self._system_share(), _element(self._scale, section)
            return self._scale.listed([line_of(section, message) for message in messages], [around] * len(messages))
        measures = self._of_messages(messages)
        if section is not Section.SYSTEM:
            return Measured(measures)
        return Measured(measures, [len(message.text.encode()) for message in messages], [()] * len(messages))

    def _system_share(self) -> Share:
        """What the memory adds to the system text, which it takes the place of. They are counted together, because a
        token may reach over the end of the system text. It is never below 0, so that more candidates never cost less.
        """
        if self._system is None:
            return self._share(OPENING, SYSTEM, OPENING, CLOSING)
        share = self._around.get(OPENING)
        if share is None:
            whole = self._frame(SYSTEM, [before_memory(self._system.text) + OPENING, CLOSING])
            share = self._around[OPENING] = OPENING, max(0, whole - self._of_messages([self._system])[0])
        return share

    def uncounted(self, section: Section, message: ContextMessage) -> tuple[str, ...]:
        return () if section in IN_SYSTEM else self._counting.uncounted(message)

    def render(self, chosen: Chosen) -> Rendered:
        listed = memory_lines(
            {**chosen.facts, Section.RECALLED: in_time(_messages(chosen.recalled))}, elements=IN_SYSTEM
        )
        others = (*chosen.second, *_messages(chosen.recent))
        costs = tuple(self._counting.messages((*chosen.first, *others)))
        first = len(chosen.first)
        before = before_memory(chosen.first[0].text if chosen.first else "")
        added = self._scale.added([before, *listed.lines])
        tokens = tuple([added[number + 1] for number in listed.shown])
        text = before + "".join(listed.lines) if listed.lines else ""
        overhead = 0
        if text:
            whole = self._frame_tokens(SYSTEM) + self._counting.texts([text])[0]
            overhead = whole - sum(tokens) - sum(costs[:first])
        return Rendered(
            (*chosen.first, *listed.messages, *others),
            (*costs[:first], *tokens, *costs[first:]),
            REPLY_PRIMING + overhead,
            memory=text,
        )


class TranscriptRenderer:
    """One text of lines (`domain.quotation`): the system text, the facts, working memories, the summary, then all
    messages in the order of time.
    """

    fixed = 0

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._scale = Scale.of(counting)
        self._quotation = Quotation()
        self._dates = _Dates(self._scale, self._quotation)

    def limit(self, max_tokens: int) -> int:
        return max_tokens * self._scale.unit

    def tokens(self, measure: int) -> int:
        return self._scale.tokens(measure)

    def measured(self, section: Section, messages: Sequence[ContextMessage]) -> Measured:
        if section in ELEMENTS:
            around = (OPENING, sum(self._scale.lines([OPENING, f"{CLOSING}\n"]))), _element(self._scale, section)
            return self._scale.listed([line_of(section, message) for message in messages], [around] * len(messages))
        is_dated = section not in (Section.SYSTEM, Section.WORKING_MEMORY, Section.SUMMARY)
        shares = [(self._dates.share(message),) if is_dated else () for message in messages]
        return self._scale.listed([self._quotation.line(message) for message in messages], shares)

    def uncounted(self, _section: Section, _message: ContextMessage) -> tuple[str, ...]:
        return ()

    def render(self, chosen: Chosen) -> Rendered:
        parts = transcript(self._quotation, chosen)
        lines = [line for part in parts for line in part.lines]
        shown: list[int] = []
        before = 0
        for part in parts:
            shown += [before + number for number in part.shown]
            before += len(part.lines)
        added = self._scale.added(lines)
        text = "".join(lines)
        tokens = tuple([added[number] for number in shown])
        overhead = self._counting.texts([text])[0] - sum(tokens)
        return Rendered(tuple([message for part in parts for message in part.messages]), tokens, overhead, text)


def transcript(quotation: Quotation, chosen: Chosen) -> list[Lines]:
    """The parts of a context as one text."""
    facts = memory_lines(chosen.facts)
    return [
        _plain(quotation, chosen.first),
        replace(facts, lines=(*facts.lines[:-1], f"{CLOSING}\n")) if facts.lines else facts,
        _plain(quotation, chosen.second),
        quotation.lines([*_messages(chosen.recent), *_messages(chosen.recalled)]),
    ]


def _plain(quotation: Quotation, messages: Unit) -> Lines:
    """Messages as lines without dates."""
    return Lines(tuple(map(quotation.line, messages)), messages, tuple(range(len(messages))))


def _element(scale: Scale, section: Section) -> Share:
    """The shared cost of the facts of a section."""
    return section, sum(scale.lines(frame(section)))


def _messages(units: Sequence[Unit]) -> Unit:
    return tuple([message for unit in units for message in unit])
