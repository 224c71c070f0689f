"""A recall in memory that holds given messages, and searches of it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from remora.v1.message_pb2 import Message
from remora_server._native import Core, Recall, SearchResult

MODEL = "model"


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def filled(*messages: Message, vectors: Sequence[list[tuple[str, bytes, bool, bytes]]] | None = None) -> Recall:
    """A recall that holds the messages as one part of ann's."""
    recall = Core(None, store_id=bytes(16), applied_revision=0).recall
    for place, message in enumerate(messages, start=1):
        message.sequence, message.revision = place, place
    assert recall.begin_part("acme", "ann", 7)
    encoded = [message.SerializeToString() for message in messages]
    recall.fill_part("acme", "ann", 7, "chat", encoded, vectors or [[] for _ in messages], through=None)
    return recall


def search(recall: Recall, **changes: object) -> SearchResult:
    asked: dict[str, Any] = {
        "user_id": "ann",
        "uid": 7,
        "text": "boat",
        "doubtful": [],
        "source": None,
        "vector": None,
        "pieces": b"",
        "model": MODEL,
        "profile": "hybrid",
        "k": 10,
        "threshold": None,
        "weights": {},
        "roles": [],
        "sent": (None, None),
        "received": (None, None),
        "expression": None,
        "exclude": [],
        "without_roles": [],
        "seen": [],
        "half_life": None,
        "around": 0,
        "published": 0,
    }
    return recall.search("acme", **(asked | changes))


def ranked_by_words(documents: list[str], query: str) -> list[tuple[int, float]]:
    """The numbers of the documents that share a term with the query, best first, with their scores."""
    recall = filled(*(Message(role="user", text=document) for document in documents))
    found = search(recall, text=query, profile="lexical", k=len(documents))
    return [(hit.sequence - 1, hit.score) for hit in found.hits]
