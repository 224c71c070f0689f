"""Short-term policies: how many tokens the window of a conversation may have, and what happens when it has more."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from remora_server.domain.tokens import O200K_BASE, TokenEncoding


class Trim(Struct, frozen=True):
    """The oldest messages leave until at most so many tokens remain."""

    keep_tokens: int


class DeleteOldest(Struct, frozen=True):
    """So many of the oldest messages leave, again and again until the window is small enough."""

    messages: int


class Flush(Struct, frozen=True):
    """The oldest messages leave when there are more tokens than this share of the most, until half of that remains."""

    ratio: float


Overflow: TypeAlias = Trim | DeleteOldest | Flush


HALF = 0.5
"""The usual ratio of a Flush."""


class ShortTermPolicy(Struct, frozen=True):
    """How many tokens a window may have, and what happens when it has more."""

    max_tokens: int
    overflow: Overflow
    encoding: TokenEncoding = O200K_BASE

    @property
    def trigger(self) -> int:
        """With more tokens than this, messages leave."""
        if isinstance(self.overflow, Flush):
            return int(self.max_tokens * self.overflow.ratio)
        return self.max_tokens
