"""Assembling and counting without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from remora_server.domain.calls import Read
from remora_server.domain.context import Context, ContextRequest
from remora_server.domain.receipts import ReceiptDraft
from remora_server.domain.tokens import APPROXIMATE, CL100K_BASE, O200K_BASE, TokenEncoding


@dataclass
class FakeAssembler:
    context: Context = field(default_factory=lambda: Context((), "", 3, 3, 0, exact=True, revision=9, index=None))
    asked: tuple[Read, ContextRequest] | None = None

    def assemble(self, read: Read, request: ContextRequest) -> Context:
        self.asked = (read, request)
        return self.context


@dataclass
class FakeReceipts:
    """Takes what it is given where `ids` are left, and writes nothing."""

    ids: list[str] = field(default_factory=list)
    left: list[ReceiptDraft] = field(default_factory=list)

    def new_id(self) -> str:
        return self.ids.pop(0) if self.ids else ""

    def leave(self, draft: ReceiptDraft) -> None:
        self.left.append(draft)

    def settle(self, deadline: float | None, *receipt_ids: str) -> None:
        pass


class FakeTokens:
    """Counts words."""

    def encoding_for_model(self, model: str) -> TokenEncoding:
        return {"gpt-4": CL100K_BASE, "gpt-4o": O200K_BASE}.get(model, APPROXIMATE)

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]
