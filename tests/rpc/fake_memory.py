"""Assembling and counting without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from remora_server.domain.calls import Read
from remora_server.domain.context import Context, ContextRequest
from remora_server.domain.tokens import APPROXIMATE, CL100K_BASE, O200K_BASE, TokenEncoding


@dataclass
class FakeAssembler:
    context: Context = field(default_factory=lambda: Context((), "", 3, 3, 0, exact=True, revision=9, index=None))
    asked: tuple[Read, ContextRequest] | None = None

    def assemble(self, read: Read, request: ContextRequest) -> Context:
        self.asked = (read, request)
        return self.context


class FakeTokens:
    """Counts words."""

    def encoding_for_model(self, model: str) -> TokenEncoding:
        return {"gpt-4": CL100K_BASE, "gpt-4o": O200K_BASE}.get(model, APPROXIMATE)

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]
