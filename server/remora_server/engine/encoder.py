"""The model that embeds, in this process: `domain.search.Embedder`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from remora_server._native import Encoder, ModelError
from remora_server.domain.search import TextVector
from remora_server.engine.model_files import MODEL, ModelFilesError, find, verify

CACHED_QUERIES = 1024
CACHED_CHARACTERS = 1024
"""Of the longest text whose vector is kept."""


class LocalEmbedder:
    """all-MiniLM-L6-v2. Vectors of texts that come alone, as queries do, are kept for when they come again."""

    def __init__(self, encoder: Encoder, *, late: bool = False) -> None:
        """`late`: word pieces are made, too."""
        self._encoder = encoder
        self._late = late
        self._cached = lru_cache(CACHED_QUERIES)(self._encode_one)

    @property
    def model(self) -> str:
        """The model and what it computes in: vectors that were made otherwise are never compared."""
        return f"{MODEL}/{self.precision}"

    @property
    def dimension(self) -> int:
        return self._encoder.dimension

    @property
    def precision(self) -> str:
        """`f32` or `int8`: what is computed in, f32 also where int8 was asked for and the processor is slow at it."""
        return self._encoder.precision

    @property
    def kernels(self) -> str:
        """The instruction set in use."""
        return self._encoder.level

    def embed(self, texts: list[str]) -> list[TextVector]:
        if len(texts) == 1 and len(texts[0]) <= CACHED_CHARACTERS:
            return [self._cached(texts[0])]
        return self._encode(texts)

    def _encode_one(self, text: str) -> TextVector:
        return self._encode([text])[0]

    def _encode(self, texts: list[str]) -> list[TextVector]:
        if self._late:
            values, pieces = self._encoder.encode_with_pieces(texts)
            return list(map(TextVector, self._split(values), pieces))
        return list(map(TextVector, self._split(self._encoder.encode(texts))))

    def _split(self, values: bytes) -> list[bytes]:
        size = self.dimension * 4
        return [values[at : at + size] for at in range(0, len(values), size)]


def load_embedder(
    model_dir: Path, precision: str = "f32", kernels: str | None = None, *, late: bool = False
) -> LocalEmbedder | None:
    """The model in a directory, None where its files are not there.

    `kernels` forces an instruction set; with `late` word pieces are made, too. Raises ModelFilesError where
    the files are not the right ones, ValueError for an unknown precision or instruction set.
    """
    if find(model_dir) is None:
        return None
    verify(model_dir)
    try:
        return LocalEmbedder(Encoder(str(model_dir), precision, kernels), late=late)
    except ModelError as error:
        raise ModelFilesError(f"the model in {model_dir} cannot be used: {error}") from error
