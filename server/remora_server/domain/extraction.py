"""Extractive summaries: the most central sentences of a conversation, unchanged and in their order.

A sentence is central if it is near the mean of all (D. Radev et al., "Centroid-based summarization of multiple
documents", 2004), by the vectors of a model or, without one, by words weighted by their rarity.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import mul
from struct import unpack
from typing import TypeAlias

from msgspec import Struct

from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.vectors import FLOAT_BYTES

EXTRACTIVE = "extractive"
"""The recorded author of such a summary."""
MOST_SENTENCES = 1_000
"""The greatest number of sentences that are compared. If there are more, the longest are taken."""
EARLIER_SHARE = 2
"""An earlier summary keeps at most one in so many of the tokens, before other sentences are chosen."""
SAME = 0.8
"""Sentences that share this part of their words count as equal, and only the more central one is taken."""

Vectors: TypeAlias = Sequence[bytes]
"""Little-endian f32 of unit length; empty if there is none."""
Count: TypeAlias = Callable[[Sequence[str]], list[int]]
Embed: TypeAlias = Callable[[Sequence[str]], Vectors | None]

_BREAK = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
_WORD = re.compile(r"\w+")


class Sentence(Struct, frozen=True):
    """A sentence of the earlier summary, or of somebody who speaks."""

    text: str
    speaker: str = ""

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text

    @property
    def words(self) -> list[str]:
        return _WORD.findall(self.text.lower())


def extract(earlier: str, messages: Sequence[ContextMessage], most_tokens: int, count: Count, embed: Embed) -> str:
    """A summary of an earlier one and of messages: lines of about `most_tokens` together, one of them at least."""
    sentences = _longest([*_earlier(earlier), *_said(messages)])
    if not sentences:
        return ""
    tokens = [each + 1 for each in count([sentence.line for sentence in sentences])]
    ranked = _ranked(sentences, embed)
    old = [index for index in ranked if not sentences[index].speaker]
    chosen = _taken(old, [], sentences, tokens, most_tokens // EARLIER_SHARE)
    chosen = _taken(ranked, chosen, sentences, tokens, most_tokens) or ranked[:1]
    return "\n".join(sentences[index].line for index in sorted(chosen))


def _earlier(text: str) -> Iterator[Sentence]:
    """The lines of an earlier summary: an extracted one has a sentence in each, with its speaker."""
    return map(Sentence, filter(None, map(str.strip, text.splitlines())))


def _said(messages: Sequence[ContextMessage]) -> list[Sentence]:
    """The sentences of messages, those of tools only if nobody else speaks."""
    spoken = [message for message in messages if not message.tool_result_ids and message.role != "tool"]
    return [
        Sentence(text, message.name or message.role)
        for message in (spoken if any(message.text.strip() for message in spoken) else messages)
        for text in filter(None, map(str.strip, _BREAK.split(message.text)))
    ]


def _longest(sentences: list[Sentence]) -> list[Sentence]:
    if len(sentences) <= MOST_SENTENCES:
        return sentences
    kept = sorted(range(len(sentences)), key=lambda index: (-len(sentences[index].text), index))[:MOST_SENTENCES]
    return [sentences[index] for index in sorted(kept)]


def _ranked(sentences: Sequence[Sentence], embed: Embed) -> list[int]:
    """The indexes of sentences, the most central first."""
    vectors = embed([sentence.text for sentence in sentences])
    scores = _by_words(sentences) if vectors is None else _by_vectors(vectors)
    return sorted(range(len(sentences)), key=lambda index: (-scores[index], index))


def _by_vectors(encoded: Vectors) -> list[float]:
    vectors = [unpack(f"<{len(values) // FLOAT_BYTES}f", values) for values in encoded]
    mean = list(map(math.fsum, zip(*filter(None, vectors), strict=True)))
    return [math.fsum(map(mul, vector, mean)) for vector in vectors]


def _by_words(sentences: Sequence[Sentence]) -> list[float]:
    counted = [Counter(sentence.words) for sentence in sentences]
    found = Counter(word for words in counted for word in words)
    vectors = [
        _unit({word: n * math.log1p(len(counted) / found[word]) for word, n in each.items()}) for each in counted
    ]
    mean: Counter[str] = Counter()
    for vector in vectors:
        mean.update(vector)
    return [math.fsum(weight * mean[word] for word, weight in vector.items()) for vector in vectors]


def _unit(weights: Mapping[str, float]) -> Mapping[str, float]:
    norm = math.hypot(*weights.values())
    return {word: weight / norm for word, weight in weights.items()} if norm else {}


def _taken(
    ranked: Sequence[int], before: Sequence[int], sentences: Sequence[Sentence], tokens: Sequence[int], most: int
) -> list[int]:
    """The sentences that were chosen before, and the best of the others that fit and differ from them."""
    chosen = list(before)
    room = most - sum(tokens[index] for index in chosen)
    words = [set(sentences[index].words) for index in chosen]
    for index in ranked:
        own = set(sentences[index].words)
        if index in before or tokens[index] > room or any(_overlap(own, other) >= SAME for other in words):
            continue
        chosen.append(index)
        words.append(own)
        room -= tokens[index]
    return chosen


def _overlap(one: set[str], other: set[str]) -> float:
    """The share of words that two sentences have in common (Jaccard's)."""
    return len(one & other) / len(one | other) if one | other else 1.0
