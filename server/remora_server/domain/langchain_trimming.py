"""LangChain's trim_messages and count_tokens_approximately, to the token (langchain-core 1.7).

trim_messages ignores tool calls: it separates them from their results. `domain.trimming` keeps them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.langchain_messages import Content, LangChainMessage, images, text_of
from remora_server.domain.trimming import Cut, Reason, Strategy, Trimmed, TrimOptions, lines_of, ranges

LEAST_SCALE, MOST_SCALE = 1.0, 1.25
"""The bounds of what a count is multiplied by where answers report their tokens."""
_Part: TypeAlias = Callable[[int, int], tuple[int, int]]
"""The range of the lines or blocks of a message that stay, given how many stay and how many there are."""


class Count(Struct, frozen=True):
    """What some messages cost. `scale` is the tokens that the newest answer with a usage reports, as a multiple of what
    the messages up to it cost. LangChain uses it only if all answers name the same `provider` of models.
    """

    unscaled: float
    messages: int = 0
    scale: float = LEAST_SCALE
    provider: object = None
    is_mixed: bool = False

    @property
    def tokens(self) -> float:
        """The cost. At most a whole number means at most that number also when it is rounded up."""
        if self.messages < 2 or self.is_mixed or self.provider is None:
            return self.unscaled
        return self.unscaled * min(MOST_SCALE, max(LEAST_SCALE, self.scale))


class ApproximateCounter(Struct, frozen=True):
    """count_tokens_approximately with its options; `tools` are the characters of each tool's schema.

    Its sums are floating-point, in the order of the messages, so that fractions of tokens add up as in LangChain.
    """

    chars_per_token: float = 4.0
    extra_tokens_per_message: float = 3.0
    count_name: bool = True
    tokens_per_image: int = 85
    tools: int = 0
    use_usage_metadata_scaling: bool = False

    @property
    def none(self) -> Count:
        """The cost of no messages."""
        return Count(math.ceil(self.tools / self.chars_per_token))

    def add(self, before: Count, message: LangChainMessage, content: Content | None = None) -> Count:
        """The cost with one more message, which may have another content."""
        content = message.content if content is None else content
        tokens = before.unscaled
        for _ in range(images(content)):
            tokens += self.tokens_per_image
        characters = message.characters(content, count_name=self.count_name)
        tokens = tokens + math.ceil(characters / self.chars_per_token) + self.extra_tokens_per_message
        number = before.messages + 1
        if not (self.use_usage_metadata_scaling and message.is_answer):
            return Count(tokens, number, before.scale, before.provider, before.is_mixed)
        scale = before.scale if message.total_tokens is None else message.total_tokens / tokens
        provider = message.provider if before.provider is None else before.provider
        return Count(tokens, number, scale, provider, before.is_mixed or provider != message.provider)

    def count(self, messages: Sequence[LangChainMessage]) -> int:
        """The cost of messages."""
        return math.ceil(self.counts(messages)[-1].tokens)

    def counts(self, messages: Sequence[LangChainMessage]) -> list[Count]:
        """The cost of the first messages, for each number of them from none to all."""
        return list(accumulate(messages, self.add, initial=self.none))


def trim(messages: Sequence[LangChainMessage], options: TrimOptions, counter: ApproximateCounter) -> Trimmed:
    """Trim messages as trim_messages does."""
    way = _first if options.strategy is Strategy.FIRST else _last
    trimmed = way(messages, options, counter)
    kept = [messages[index] for index in trimmed.kept]
    if trimmed.cut is not None:
        kept[trimmed.kept.index(trimmed.cut.index)] = _cut_message(messages, trimmed.cut)
    return replace(trimmed, tokens=counter.count(kept))


def _cut_message(messages: Sequence[LangChainMessage], cut: Cut) -> LangChainMessage:
    message = messages[cut.index]
    return replace(message, content=cut.text if cut.blocks is None else message.content[slice(*cut.blocks)])


def _first(messages: Sequence[LangChainMessage], options: TrimOptions, counter: ApproximateCounter) -> Trimmed:
    prefix = _prefix(messages, options, options.max_tokens, _leading, counter)
    end = _drop_others(messages[: prefix.size], options.end_on)
    dropped = ranges((end, prefix.size, Reason.END_ON), (prefix.size, len(messages), Reason.OVER_BUDGET))
    return Trimmed(0, 0, end, 0, dropped, prefix.cut_of(prefix.size - 1) if end == prefix.size else None)


def _last(messages: Sequence[LangChainMessage], options: TrimOptions, counter: ApproximateCounter) -> Trimmed:
    end = _drop_others(messages, options.end_on)
    head = int(options.include_system and end > 0 and messages[0].is_system)
    room = max(0, options.max_tokens - counter.count(messages[:1])) if head else options.max_tokens
    newest_first = messages[head:end][::-1]
    prefix = _prefix(newest_first, options, room, _trailing, counter)
    begin = end - _drop_others(newest_first[: prefix.size], options.start_on)
    fitting = end - prefix.size
    dropped = ranges(
        (head, fitting, Reason.OVER_BUDGET), (fitting, begin, Reason.START_ON), (end, len(messages), Reason.END_ON)
    )
    return Trimmed(head, begin, end, 0, dropped, prefix.cut_of(fitting) if begin == fitting else None)


def _drop_others(messages: Sequence[LangChainMessage], kinds: frozenset[str]) -> int:
    """How many messages are left if those after the last of these kinds go; no kinds: all."""
    if not kinds:
        return len(messages)
    return next((size for size in range(len(messages), 0, -1) if messages[size - 1].kind in kinds), 0)


def _leading(count: int, _total: int) -> tuple[int, int]:
    return 0, count


def _trailing(count: int, total: int) -> tuple[int, int]:
    return total - count, total


class _Prefix(Struct, frozen=True):
    """How many messages fit, and the content that stays of the last one if it is cut."""

    size: int
    text: str | None = None
    blocks: tuple[int, int] | None = None

    def cut_of(self, index: int) -> Cut | None:
        """The cut content, if it is that of the message with this index."""
        if self.text is None and self.blocks is None:
            return None
        return Cut(index, self.text or "", self.blocks)


def _prefix(
    messages: Sequence[LangChainMessage],
    options: TrimOptions,
    max_tokens: int,
    part: _Part,
    counter: ApproximateCounter,
) -> _Prefix:
    """The prefix that trim_messages finds. It is the longest that fits, unless counts are scaled: those of longer ones
    may be smaller then.
    """
    counts = counter.counts(messages)
    if counts[-1].tokens <= max_tokens:
        return _Prefix(len(messages))
    size = _most(len(messages), lambda size: counts[size].tokens <= max_tokens)
    if not options.allow_partial or size == len(messages):
        return _Prefix(size)
    message, count = messages[size], counts[size]
    return (
        _with_blocks(message, size, part, lambda content: counter.add(count, message, content).tokens <= max_tokens)
        or _with_lines(message, size, part, _text_fits(message, count, max_tokens, counter))
        or _Prefix(size)
    )


def _most(number: int, fits: Callable[[int], bool]) -> int:
    """The most of a number that fit, by the halving of trim_messages."""
    least, most = 0, number
    while least < most:
        middle = (least + most + 1) // 2
        if fits(middle):
            least = middle
        else:
            most = middle - 1
    return least


def _with_blocks(message: LangChainMessage, size: int, part: _Part, fits: Callable[[Content], bool]) -> _Prefix | None:
    """The prefix with as many content blocks of the next message as fit, but not all."""
    content = message.content
    if isinstance(content, str):
        return None
    for count in range(len(content) - 1, 0, -1):
        begin, end = part(count, len(content))
        if fits(content[begin:end]):
            return _Prefix(size + 1, blocks=(begin, end))
    return None


def _text_fits(
    message: LangChainMessage, before: Count, max_tokens: int, counter: ApproximateCounter
) -> Callable[[str], bool]:
    """Whether a text fits as the content of a message. trim_messages counts it alone, so that tools count again."""
    base = math.ceil(before.tokens)
    return lambda text: base + math.ceil(counter.add(counter.none, message, text).tokens) <= max_tokens


def _with_lines(message: LangChainMessage, size: int, part: _Part, fits: Callable[[str], bool]) -> _Prefix | None:
    """The prefix with as many lines of the next message as fit; of a list, of the block at the end that stays."""
    text = _text(message.content, part)
    if not text:
        return None
    lines = lines_of(text)
    count = _most(len(lines), lambda count: fits("".join(lines[slice(*part(count, len(lines)))])))
    begin, end = part(count, len(lines))
    return _Prefix(size + 1, text="".join(lines[begin:end])) if count else None


def _text(content: Content, part: _Part) -> str:
    if isinstance(content, str):
        return content
    begin, end = part(min(1, len(content)), len(content))
    return next(map(text_of, content[begin:end]), "")
