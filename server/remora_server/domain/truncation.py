"""Truncates the texts of messages that must be in a context and do not fit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from remora_server.domain.context import Section
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.renderings import Renderer

LEAST_TOKENS = 32
"""The least measure of a truncated text with its mark. A shorter text would say nothing."""


class Truncation:
    """Truncates the longest texts to one length, so that short texts stay whole. Tool calls are not changed."""

    def __init__(self, renderer: Renderer, messages: Sequence[ContextMessage]) -> None:
        self._renderer = renderer
        self._messages = messages
        self._whole = self._measure(messages)
        self._bare = self._measure([_with_text(message, "") for message in messages])

    def _measure(self, messages: Sequence[ContextMessage]) -> Sequence[int]:
        return self._renderer.measured(Section.RECENT, messages).measures

    def _lengths(self, level: int) -> list[int]:
        """The measure of each message if no text is longer than `level`."""
        return [min(whole, bare + level) for whole, bare in zip(self._whole, self._bare, strict=True)]

    @property
    def saves(self) -> int:
        """By how much the messages can be made shorter."""
        return sum(self._whole) - sum(self._lengths(self._renderer.limit(LEAST_TOKENS)))

    def by(self, excess: int) -> list[ContextMessage]:
        """The messages that become shorter, by an excess in all that is at most what can be saved."""
        lengths = self._lengths(self._level(sum(self._whole) - excess))
        return [
            _shortened(message, self._renderer, length)
            for message, whole, length in zip(self._messages, self._whole, lengths, strict=True)
            if length < whole
        ]

    def _level(self, room: int) -> int:
        """The greatest length of texts for which the messages fit."""
        low, high = self._renderer.limit(LEAST_TOKENS), max(self._whole)
        while low < high:
            middle = (low + high + 1) // 2
            if sum(self._lengths(middle)) <= room:
                low = middle
            else:
                high = middle - 1
        return low


def _shortened(message: ContextMessage, renderer: Renderer, length: int) -> ContextMessage:
    """The message with the longest beginning of its text that measures at most `length` with its mark."""

    def beginning(characters: int) -> ContextMessage:
        return _with_text(message, message.text[:characters] + mark(characters, len(message.text)))

    def fits(characters: int) -> bool:
        return renderer.measured(Section.RECENT, [beginning(characters)]).measures[0] <= length

    reach = LEAST_TOKENS
    while reach < len(message.text) and fits(reach):
        reach *= 2
    low, high = 0, min(reach, len(message.text))
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return beginning(low)


def mark(shown: int, characters: int) -> str:
    """The mark at the end of a truncated text."""
    return f"\n[truncated: {shown:,} of {characters:,} characters shown]"


def _with_text(message: ContextMessage, text: str) -> ContextMessage:
    return replace(message, text=text, token_count=None, images=(), uncounted=())
