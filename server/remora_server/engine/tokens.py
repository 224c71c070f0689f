"""Token counts by the engine: `domain.tokens.TokenCounter`."""

from __future__ import annotations

from collections.abc import Sequence

from remora_server import _native
from remora_server.domain.tokens import APPROXIMATE, TokenEncoding, encoding_named


class NativeTokenCounter:
    """Counts without the interpreter's lock. A vocabulary is loaded on its first use."""

    def encoding_for_model(self, model: str) -> TokenEncoding:
        name = _native.encoding_for_model(model)
        return APPROXIMATE if name is None else encoding_named(name)

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        if encoding.name == APPROXIMATE.name:
            return _native.approximate_tokens(list(texts))
        return _native.count_tokens(encoding.name, list(texts))
