"""The vectors of queries and of stored texts, by the model of a tenant."""

from __future__ import annotations

import time
from collections.abc import Collection

from remora_server.domain.calls import Access, Read
from remora_server.domain.errors import DeadlineExceeded, InvalidField, ModelUnavailable, ModelUnreachable
from remora_server.domain.models import PerTenant
from remora_server.domain.search import Embedder, EmbeddingFailed


class TextVectors:
    """Makes vectors of texts."""

    def __init__(self, embedders: PerTenant[Embedder | None]) -> None:
        self._embedders = embedders

    def of_all(self, access: Access, texts: Collection[str]) -> tuple[str, list[bytes]]:
        """The name of the model, and the vectors of some texts; each text is embedded once.

        Raises ModelUnavailable, ModelUnreachable, DeadlineExceeded, and InvalidField for a text that is refused.
        """
        embedder = self._embedders.of(access.tenant_id)
        if embedder is None:
            raise ModelUnavailable
        if access.deadline is not None and access.deadline <= time.monotonic():
            raise DeadlineExceeded
        different = list(dict.fromkeys(texts))
        try:
            made = embedder.embed_now(different, access.deadline)
        except EmbeddingFailed as error:
            raise ModelUnreachable(str(error), error.wait) from error
        if not all(each.values for each in made):
            raise InvalidField("text", "is refused by the model")
        values = {text: each.values for text, each in zip(different, made, strict=True)}
        return embedder.model, [values[text] for text in texts]

    def of(self, read: Read, text: str) -> bytes:
        """The vector of a text, little-endian f32. Raises ModelUnavailable, ModelUnreachable, InvalidField."""
        embedder = self._embedders.of(read.tenant_id)
        if embedder is None:
            raise ModelUnavailable
        try:
            made = embedder.embed_query(text, read.deadline)
        except EmbeddingFailed as error:
            raise ModelUnreachable(str(error), error.wait) from error
        if not made.values:
            raise InvalidField("text", "is refused by the model")
        return made.values
