"""The settings of the short-term policy that conversations are created with where their callers name none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from remora_server.domain.short_term import (
    HALF,
    DeleteOldest,
    Flush,
    Overflow,
    ShortTermPolicy,
    Summarize,
    Trim,
    default_summary_tokens,
)
from remora_server.settings.embedding import ChoiceError

NONE, BALLERINA = "none", "ballerina"
PROFILES = (NONE, BALLERINA)
MAX_TOKENS = 100_000
"""How many tokens a window may have. This and the numbers below are those of the memory of Ballerina's agents."""
KEEP_MESSAGES = 2
KEEP_TOKENS = 500

_SUMMARIZE = "summarize"
_OVERFLOWS: Mapping[str, Callable[[int], Overflow]] = {
    _SUMMARIZE: lambda max_tokens: Summarize(default_summary_tokens(max_tokens), KEEP_MESSAGES),
    "trim": lambda max_tokens: Trim(min(KEEP_TOKENS, max_tokens)),
    "delete_oldest": lambda _max_tokens: DeleteOldest(1),
    "flush": lambda _max_tokens: Flush(HALF),
}
OVERFLOWS = tuple(_OVERFLOWS)
_OF_PROFILE = ("short_term_overflow", "short_term_max_tokens")


def choose(values: Mapping[str, Any]) -> ShortTermPolicy | None:
    """What the settings `short_term_*` come to; None if the profile is. Raises ChoiceError."""
    overflow, max_tokens = (values[name] for name in _OF_PROFILE)
    if values["short_term_profile"] == NONE:
        if given := [name for name in _OF_PROFILE if values[name] is not None]:
            raise ChoiceError(given[0], f"needs a short_term_profile other than {NONE}")
        return None
    most = max_tokens or MAX_TOKENS
    return ShortTermPolicy(most, _OVERFLOWS[overflow or _SUMMARIZE](most))
