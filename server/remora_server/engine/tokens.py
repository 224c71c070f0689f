"""Token counts by the engine: `domain.tokens.MessageCounter`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from remora_server import _native
from remora_server.domain.tokens import APPROXIMATE, EncodedMessages, TokenEncoding, encoding_named
from remora_server.domain.tool_pairs import ToolUse


class NativeTokenCounter:
    """Counts without the interpreter's lock. A vocabulary is loaded on its first use."""

    def encoding_for_model(self, model: str) -> TokenEncoding:
        name = _native.encoding_for_model(model)
        return APPROXIMATE if name is None else encoding_named(name)

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        if encoding.name == APPROXIMATE.name:
            return _native.approximate_tokens(list(texts))
        return _native.count_tokens(encoding.name, list(texts))

    def encoded_messages(self, encoding: TokenEncoding, encoded: bytes) -> EncodedMessages:
        return _Messages(encoding.name, _native.EncodedMessages(encoded))


class _Messages(Struct, frozen=True):
    """Messages that are counted in one encoding."""

    encoding: str
    native: _native.EncodedMessages

    def __len__(self) -> int:
        return len(self.native)

    def costs(self, begin: int, end: int) -> tuple[list[int], list[int]]:
        return self.native.costs(self.encoding, begin, end)

    def tool_uses(self, begin: int, end: int) -> Sequence[ToolUse]:
        return self.native.tool_uses(begin, end)
