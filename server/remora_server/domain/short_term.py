"""Short-term policies: how many tokens the window of a conversation may have, and what happens when it has more."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from remora_server.domain.tokens import O200K_BASE, TokenEncoding


class Trim(Struct, frozen=True):
    """The oldest messages leave until at most `keep_tokens` remain."""

    keep_tokens: int


class DeleteOldest(Struct, frozen=True):
    """A number of the oldest messages leave, repeatedly until the window is small enough."""

    messages: int


class Flush(Struct, frozen=True):
    """The oldest messages leave when there are more tokens than this share of the most, until half of that remains.

    `extract_facts`: what they say of their user is added to its facts before.
    """

    ratio: float
    extract_facts: bool = False


class Summarize(Struct, frozen=True):
    """A summary takes the place of all messages but the newest, when there are more tokens than there may be.

    An empty prompt is the server's own. `by_client`: a client writes the summaries, and the server none.
    """

    max_summary_tokens: int
    keep_messages: int
    prompt: str = ""
    by_client: bool = False


Overflow: TypeAlias = Trim | DeleteOldest | Flush | Summarize


KEEP_MESSAGES = 10
"""The default for how many of the newest messages are not summarised."""
SUMMARY_SHARE, MOST_SUMMARY_TOKENS = 4, 1_000
"""A summary has at most one in so many of a policy's tokens where nothing else is said, and at most so many."""


def default_summary_tokens(max_tokens: int) -> int:
    """The default for the length of a summary."""
    return max(1, min(max_tokens // SUMMARY_SHARE, MOST_SUMMARY_TOKENS))


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


def gives_facts(policy: ShortTermPolicy) -> bool:
    """Whether messages give their facts before they leave."""
    return isinstance(policy.overflow, Flush) and policy.overflow.extract_facts
