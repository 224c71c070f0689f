"""Embedding messages in the background: what waits for a vector, and what the indexer asks of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A message with text that has no vector of the server's model. `revision` is the message's own."""

    tenant_id: str
    conversation_uid: int
    conversation_id: str
    user_id: str
    sequence: int
    revision: int
    text: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vector of a message: little-endian f32. It is ignored where the message has moved on since."""

    message: Unembedded
    values: bytes


class EmbeddingStore(Protocol):
    """Where the indexer finds its work and leaves it. Messages that came with the caller's embedding never wait."""

    def next_unembedded(self, model: str, limit: int, timeout: float) -> list[Unembedded]:
        """At most `limit` messages that wait for a vector of `model`, the oldest first.

        Waits up to `timeout` seconds for the first. A message is given again until its vector is put or it goes.
        """

    def put_embeddings(self, model: str, embedded: Sequence[Embedded]) -> None:
        """Make the vectors durable. Raises StoreFull, StoreFailed."""
