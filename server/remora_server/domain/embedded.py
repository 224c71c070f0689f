"""Vectors of texts that are stored with them, and of what is searched for among these: memory items and facts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from remora_server.domain.search import Embedder, EmbeddingFailed, WordsOnly

EMBEDDING_SHARE = 0.5
"""Of the time that a caller leaves a write, so much is spent on vectors at most: it is stored without them, too."""
EMBEDDING_SECONDS = 5.0
"""The same where a caller leaves it any time."""


class ItemVector(Struct, frozen=True):
    """What a model made of a text, little-endian f32: nothing where it refuses the text."""

    model: str
    values: bytes


class Question(Struct, frozen=True):
    """A text that is searched for: the tenant's model and the vector, or why there is none."""

    model: str = ""
    vector: bytes | None = None
    words_only: WordsOnly | None = None


def vectors(embedder: Embedder | None, texts: Sequence[str], deadline: float | None) -> list[ItemVector | None]:
    """The vectors of texts; None for an empty one, and for all where none are made now."""
    saying = [text for text in texts if text]
    if embedder is None or not saying:
        return [None] * len(texts)
    try:
        made = iter(embedder.embed_now(saying, _until(deadline)))
    except EmbeddingFailed:
        return [None] * len(texts)
    return [ItemVector(embedder.model, next(made).values) if text else None for text in texts]


def question(embedder: Embedder | None, text: str, deadline: float | None) -> Question:
    """A text to search for."""
    if embedder is None:
        return Question(words_only=WordsOnly.NO_MODEL)
    try:
        vector = embedder.embed_query(text, deadline).values or None
    except EmbeddingFailed:
        vector = None
    return Question(embedder.model, vector, None if vector is not None else WordsOnly.MODEL_UNREACHABLE)


def _until(deadline: float | None) -> float:
    now = time.monotonic()
    left = EMBEDDING_SECONDS if deadline is None else (deadline - now) * EMBEDDING_SHARE
    return now + min(left, EMBEDDING_SECONDS)
