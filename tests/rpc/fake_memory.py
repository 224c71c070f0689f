"""Searching, assembling, counting and embedding without an engine: they remember what they were asked."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from remora_server.domain.calls import Read
from remora_server.domain.context import Context, ContextRequest
from remora_server.domain.search import (
    EmbeddingFailed,
    IndexState,
    Profile,
    SearchQuery,
    SearchResult,
    TextVector,
    WordsOnly,
)
from remora_server.domain.status import ModelStatus
from remora_server.domain.tokens import APPROXIMATE, CL100K_BASE, TokenEncoding


@dataclass
class FakeSearcher:
    result: SearchResult = field(
        default_factory=lambda: SearchResult((), IndexState("", 0, WordsOnly.NO_MODEL), Profile.HYBRID, 9)
    )
    asked: tuple[Read, SearchQuery] | None = None

    def search(self, read: Read, query: SearchQuery) -> SearchResult:
        self.asked = (read, query)
        return self.result


@dataclass
class FakeAssembler:
    context: Context = field(default_factory=lambda: Context((), "", 3, 3, 0, 0, exact=True, revision=9, index=None))
    asked: tuple[Read, ContextRequest] | None = None

    def assemble(self, read: Read, request: ContextRequest) -> Context:
        self.asked = (read, request)
        return self.context


class FakeTokens:
    """Counts words."""

    def encoding_for_model(self, model: str) -> TokenEncoding:
        return CL100K_BASE if model == "gpt-4" else APPROXIMATE

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


REFUSED = "a text that the model refuses"


class FakeEmbedder:
    """Gives each text a vector that begins with its length."""

    model = "minilm"

    def __init__(self, failure: EmbeddingFailed | None = None) -> None:
        self.failure = failure

    def status(self) -> ModelStatus:
        return ModelStatus("minilm", dimension=3, precision="f32", provider="builtin", failure=str(self.failure or ""))

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        return [self.embed_query(text, None) for text in texts]

    def embed_now(self, texts: Sequence[str], _deadline: float | None) -> list[TextVector]:
        return self.embed(texts)

    def embed_query(self, text: str, _deadline: float | None) -> TextVector:
        if self.failure:
            raise self.failure
        return TextVector(struct.pack("<3f", len(text), 0, 0) if text != REFUSED else b"")
