"""Messages to store: 500 bytes of invented words, a few of them frequent and most of them rare, as in speech."""

from __future__ import annotations

import itertools
import random

MESSAGE_BYTES = 500
VOCABULARY = 4_000


def texts(seed: int, count: int) -> list[str]:
    """So many texts of 500 bytes; the same for the same seed."""
    return [_text(random.Random(f"{seed}.{number}")) for number in range(count)]


def _words() -> list[str]:
    chance = random.Random("words")
    syllables = ["".join(pair) for pair in itertools.product("bdfglmnprstv", "aeiou")]
    return ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(VOCABULARY)]


WORDS = _words()
WEIGHTS = [1 / rank for rank in range(1, VOCABULARY + 1)]


def _text(chance: random.Random) -> str:
    words = chance.choices(WORDS, WEIGHTS, k=MESSAGE_BYTES // 3)
    return " ".join(words)[:MESSAGE_BYTES].ljust(MESSAGE_BYTES, ".")
