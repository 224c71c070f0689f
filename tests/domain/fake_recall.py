"""An index and an embedder without an engine: they remember what they were asked and give what tests expect."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from remora_server.domain.calls import Read
from remora_server.domain.search import (
    EmbeddingFailed,
    IndexState,
    Profile,
    Scope,
    SearchQuery,
    SearchResult,
    TextVector,
    WordsOnly,
)
from remora_server.domain.status import ModelStatus

NAME = "Tom's "
"""The one that the index leaves out of texts."""
MISTYPED = "shelfish"
"""A word that the model does not know."""
REFUSED = "a text that the model refuses"


@dataclass
class FakeIndex:
    """Answers every search with `result`, as an index and as a searcher."""

    result: SearchResult = field(
        default_factory=lambda: SearchResult((), IndexState("", 0, WordsOnly.NO_MODEL), Profile.HYBRID, 9)
    )
    asked: list[tuple[Read, SearchQuery]] = field(default_factory=list)
    opened: int = 0
    """How many scopes."""

    @property
    def queries(self) -> list[SearchQuery]:
        return [query for _, query in self.asked]

    @contextmanager
    def open(self, read: Read, scope: Scope) -> Iterator[FakeScope]:
        self.opened += 1
        yield FakeScope(self, read)

    def search(self, read: Read, query: SearchQuery) -> SearchResult:
        self.asked.append((read, query))
        return self.result


@dataclass
class FakeScope:
    """What the index has opened for a read."""

    index: FakeIndex
    read: Read

    def without_names(self, text: str) -> str:
        return text.replace(NAME, "")

    def search(self, query: SearchQuery) -> SearchResult:
        return self.index.search(self.read, query)


class FakeEmbedder:
    """Gives each text but REFUSED a vector that is its own, and word pieces where it is a late one."""

    model = "minilm"

    def __init__(self, failure: EmbeddingFailed | None = None, *, late: bool = False) -> None:
        self.failure, self.late = failure, late
        self.told = str(failure or "")

    def status(self) -> ModelStatus:
        return ModelStatus(self.model, dimension=3, precision="f32", provider="builtin", failure=self.told)

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        return [self.embed_query(text, None) for text in texts]

    def embed_now(self, texts: Sequence[str], _deadline: float | None) -> list[TextVector]:
        return self.embed(texts)

    def embed_query(self, text: str, _deadline: float | None) -> TextVector:
        if self.failure:
            raise self.failure
        return TextVector(vector_of(text) if text != REFUSED else b"", b"pieces" if self.late else None)

    def unknown_words(self, text: str) -> list[str]:
        return [MISTYPED] if MISTYPED in text else []


def vector_of(text: str) -> bytes:
    """What the embedder makes of a text: three numbers."""
    return struct.pack("<3f", len(text), sum(text.encode()), 0)
