"""How a context is rendered: in which order a model sees its messages, and what they cost so."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import date
from itertools import groupby, zip_longest
from typing import Protocol

from msgspec import Struct

from remora_server.domain.context import Merge
from remora_server.domain.context_messages import ContextMessage, Unit
from remora_server.domain.costs import REPLY_PRIMING, message_costs
from remora_server.domain.tokens import APPROXIMATE, APPROXIMATE_CHARACTERS, TokenCounter, TokenEncoding

DAY = 86_400_000_000
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class Rendered(Struct, frozen=True):
    """A context in the order of reading. `tokens` are each message's; with `overhead` they are the whole cost."""

    messages: tuple[ContextMessage, ...]
    tokens: tuple[int, ...]
    overhead: int
    text: str = ""

    @property
    def tokens_used(self) -> int:
        return sum(self.tokens) + self.overhead


class Renderer(Protocol):
    """One rendering. Its measure adds up: the whole measures what is `fixed`, each message's own measure, and
    `sitting_measure` for each different sitting.
    """

    @property
    def fixed(self) -> int: ...

    @property
    def sitting_measure(self) -> int: ...

    def limit(self, max_tokens: int) -> int:
        """The measure of as many tokens."""

    def measure(self, messages: Sequence[ContextMessage]) -> list[int]:
        """The measure of each message."""

    def sitting(self, message: ContextMessage) -> Hashable:
        """The sitting that a message belongs to; None where sittings do not count."""

    def text_bytes(self, message: ContextMessage) -> int:
        """How long the message is in the text, in UTF-8; 0 where there is no text."""

    def render(self, recent: Sequence[Unit], recalled: Sequence[Unit]) -> Rendered:
        """Render; recent units by sequence, recalled ones best first."""


class ChatRenderer:
    """Chat messages, measured in tokens (`domain.costs`). Units stay in one piece."""

    fixed = REPLY_PRIMING
    sitting_measure = 0

    def __init__(self, tokens: TokenCounter, encoding: TokenEncoding, merge: Merge) -> None:
        self._tokens = tokens
        self._encoding = encoding
        self._merge = merge

    def limit(self, max_tokens: int) -> int:
        return max_tokens

    def measure(self, messages: Sequence[ContextMessage]) -> list[int]:
        return message_costs(self._tokens, self._encoding, messages)

    def sitting(self, _message: ContextMessage) -> Hashable:
        return None

    def text_bytes(self, _message: ContextMessage) -> int:
        return 0

    def render(self, recent: Sequence[Unit], recalled: Sequence[Unit]) -> Rendered:
        messages = tuple(message for unit in self._merged(recent, recalled) for message in unit)
        return Rendered(messages, tuple(self.measure(messages)), self.fixed)

    def _merged(self, recent: Sequence[Unit], recalled: Sequence[Unit]) -> list[Unit]:
        match self._merge:
            case Merge.APPEND:
                return [*recent, *recalled]
            case Merge.PREPEND:
                return [*recalled, *recent]
            case Merge.INTERLEAVE:
                return [unit for pair in zip_longest(recalled, recent) for unit in pair if unit is not None]


class TranscriptRenderer:
    """One text of lines, each ended by a newline: `[YYYY-MM-DD]` for a sitting, then `speaker: text` for each message.

    A sitting is a session of a conversation or, where a message names none, a day (UTC). Sittings stand in the order of
    their first messages that are shown, dated by these.

    The measure is tokens; in the approximate encoding, which rounds up once for the whole text, it is characters. Lines
    add up to the text, because o200k_base and cl100k_base let no token reach over a newline, unless a blank or a slash
    follows: a speaker starts with neither.
    """

    fixed = 0

    def __init__(self, tokens: TokenCounter, encoding: TokenEncoding) -> None:
        self._tokens = tokens
        self._encoding = encoding
        self._scale = APPROXIMATE_CHARACTERS if encoding == APPROXIMATE else 1
        self.sitting_measure = self._measure([_date_line(0)])[0]

    def limit(self, max_tokens: int) -> int:
        return max_tokens * self._scale

    def measure(self, messages: Sequence[ContextMessage]) -> list[int]:
        return self._measure([_line(message) for message in messages])

    def _measure(self, lines: list[str]) -> list[int]:
        if self._encoding == APPROXIMATE:
            return [len(line) for line in lines]
        return self._tokens.count(self._encoding, lines)

    def sitting(self, message: ContextMessage) -> Hashable:
        return message.conversation_id, message.session_id or message.sent_time // DAY

    def text_bytes(self, message: ContextMessage) -> int:
        return len(_line(message).encode())

    def render(self, recent: Sequence[Unit], recalled: Sequence[Unit]) -> Rendered:
        messages = self._in_order([message for unit in (*recent, *recalled) for message in unit])
        lines: list[str] = []
        shown: list[int] = []
        for _, sitting in groupby(messages, self.sitting):
            for number, message in enumerate(sitting):
                if number == 0:
                    lines.append(_date_line(message.sent_time))
                shown.append(len(lines))
                lines.append(_line(message))
        return self._rendered(messages, lines, shown)

    def _in_order(self, messages: list[ContextMessage]) -> tuple[ContextMessage, ...]:
        """By sitting, and by time within."""
        ordered = sorted(messages, key=_moment)
        first: dict[Hashable, int] = {}
        for number, message in enumerate(ordered):
            first.setdefault(self.sitting(message), number)
        return tuple(sorted(ordered, key=lambda message: first[self.sitting(message)]))

    def _rendered(self, messages: tuple[ContextMessage, ...], lines: list[str], shown: list[int]) -> Rendered:
        text = "".join(lines)
        shares = self._shares(self._measure(lines))
        tokens = tuple(shares[number] for number in shown)
        whole = self._tokens.count(self._encoding, [text])[0]
        return Rendered(messages, tokens, whole - sum(tokens), text)

    def _shares(self, measures: list[int]) -> list[int]:
        """What each line adds to the tokens of the text before it."""
        shares, total = [], 0
        for measure in measures:
            before = -(-total // self._scale)
            total += measure
            shares.append(-(-total // self._scale) - before)
        return shares


def _moment(message: ContextMessage) -> tuple[int, str, int]:
    return message.sent_time, *message.place


def _line(message: ContextMessage) -> str:
    speaker = _one_line(message.name) or _one_line(message.role)
    return f"{speaker}: {message.text}\n"


def _one_line(speaker: str) -> str:
    return " ".join(speaker.split()).lstrip("/ ")


def _date_line(time: int) -> str:
    return f"[{date.fromordinal(EPOCH_ORDINAL + time // DAY).isoformat()}]\n"
