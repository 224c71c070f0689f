"""Counting tokens: encodings, and the interface of counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.errors import InvalidField


class TokenEncoding(Struct, frozen=True):
    """A way to count. `margin` is the relative error that is usual for English text, 0 where counts are exact."""

    name: str
    exact: bool
    margin: float


O200K_BASE = TokenEncoding("o200k_base", exact=True, margin=0.0)
CL100K_BASE = TokenEncoding("cl100k_base", exact=True, margin=0.0)
APPROXIMATE = TokenEncoding("approximate", exact=False, margin=0.3)
APPROXIMATE_CHARACTERS = 4
"""Characters of a token in the approximate count, which rounds up (LangChain's count_tokens_approximately)."""

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
        """The encoding that a model reads; the approximate one where that is not known."""

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        """The tokens of each text. Special tokens are counted as plain text."""
