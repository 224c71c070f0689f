"""Vectors that are stored with their texts (memory items, facts), and vectors of the queries among these."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from remora_server.domain.search import Embedder, EmbeddingFailed, WordsOnly

EMBEDDING_SHARE = 0.5
"""The share of a write's remaining time that vectors may take. Without vectors in time, the text is stored without
them.
"""
EMBEDDING_SECONDS = 5.0
"""The limit in seconds for a write without a deadline."""


class ItemVector(Struct, frozen=True):
    """A model's vector of a text, little-endian f32; empty if the model refuses the text."""

    model: str
    values: bytes


class Question(Struct, frozen=True):
    """The query of a search: the tenant's model and the vector, or why there is no vector."""

    model: str = ""
    vector: bytes | None = None
    words_only: WordsOnly | None = None


def vectors(embedder: Embedder | None, texts: Sequence[str], deadline: float | None) -> list[ItemVector | None]:
    """The vectors of texts; None for an empty text, and for all if none can be made now."""
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
