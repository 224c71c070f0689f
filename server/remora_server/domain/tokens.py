"""Counting tokens: encodings, and the interface of counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.errors import InvalidField
from remora_server.domain.tool_pairs import ToolUse


class TokenEncoding(Struct, frozen=True):
    """A way to count. `margin` is the relative error that is usual for English text, 0 if counts are exact."""

    name: str
    exact: bool
    margin: float


O200K_BASE = TokenEncoding("o200k_base", exact=True, margin=0.0)
CL100K_BASE = TokenEncoding("cl100k_base", exact=True, margin=0.0)
APPROXIMATE = TokenEncoding("approximate", exact=False, margin=0.3)
APPROXIMATE_CHARACTERS = 4
"""The number of characters in a token of the approximate count, which rounds up (LangChain's
count_tokens_approximately).
"""

_ENCODINGS = {encoding.name: encoding for encoding in (O200K_BASE, CL100K_BASE, APPROXIMATE)}


def encoding_named(name: str) -> TokenEncoding:
    """The encoding of a name; empty: o200k_base. Raises InvalidField for `encoding.name`."""
    if not name:
        return O200K_BASE
    found = _ENCODINGS.get(name)
    if found is None:
        raise InvalidField("encoding.name", f"is not one of {', '.join(_ENCODINGS)}")
    return found


class TokenCounter(Protocol):
    """Counts the tokens of texts."""

    def encoding_for_model(self, model: str) -> TokenEncoding:
        """The encoding of a model; the approximate one if that is unknown."""

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        """The tokens of each text. Special tokens are counted as plain text."""


class EncodedMessages(Protocol):
    """Chat messages in wire form, by index. Ranges are half-open; a message is read when it is asked for."""

    def __len__(self) -> int: ...

    def costs(self, begin: int, end: int) -> tuple[list[int], list[int]]:
        """What each message of a range costs (`domain.costs.Counting.messages`), without its images; and the indexes of
        those that hold more for a model than was counted, or may.
        """

    def tool_uses(self, begin: int, end: int) -> Sequence[ToolUse]:
        """The tool calls and results of a range."""


class MessageCounter(TokenCounter, Protocol):
    """Also counts messages in wire form, much faster than from their values."""

    def encoded_messages(self, encoding: TokenEncoding, encoded: bytes) -> EncodedMessages:
        """Messages that are field 1 of an encoded message, whose other fields are skipped."""
