"""Types of the Rust engine, one section per module of the crate."""

from typing import final

# lexical

@final
class LexicalSegment:
    """A BM25 index (k1 0.9, b 0.75) of documents in slots, changed in place; safe to share between threads."""

    def __init__(self) -> None: ...
    def upsert(self, slot: int, text: str) -> None:
        """Put a text in a slot (0 to 2**24 - 1; ValueError above), in place of the one that was there."""

    def remove(self, slot: int) -> bool:
        """Empty a slot; return whether it held a document."""

    def search(self, query: str, k: int) -> list[tuple[int, float]]:
        """Return at most k slots that share a term with the query, best first, with their scores; ties by slot."""

    def bytes(self) -> int:
        """Return an estimate of the memory held."""

    def __len__(self) -> int: ...

def analyze(text: str) -> list[str]:
    """Return the terms of a text in its order, repeats included: folded, stemmed, without English stop words."""
