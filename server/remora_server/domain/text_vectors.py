"""The vector of a text that is searched for, by the model of a tenant."""

from __future__ import annotations

from remora_server.domain.calls import Read
from remora_server.domain.errors import InvalidField, ModelUnavailable, ModelUnreachable
from remora_server.domain.models import PerTenant
from remora_server.domain.search import Embedder, EmbeddingFailed


class TextVectors:
    """Makes vectors of the texts of queries."""

    def __init__(self, embedders: PerTenant[Embedder | None]) -> None:
        self._embedders = embedders

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
