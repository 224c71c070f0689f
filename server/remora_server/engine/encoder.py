"""The model that embeds, in this process: `domain.search.Embedder`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from remora_server._native import BackgroundEncoder, Encoder, EncoderPanicked, ModelError
from remora_server.domain.search import TextVector
from remora_server.domain.status import ModelStatus
from remora_server.engine.model_files import MODEL, ModelFilesError, find, verify
from remora_server.engine.processors import Priority, give_way
from remora_server.engine.query_vectors import QueryVectors

PROVIDER = "builtin"
HARMLESS = "tea"
"""Any working encoder embeds this text."""

logger = logging.getLogger(__name__)


class LocalEmbedder:
    """all-MiniLM-L6-v2. It caches the vectors of queries."""

    def __init__(self, encoder: Encoder, *, late: bool = False) -> None:
        """`late`: it also makes vectors of word pieces."""
        self._encoder = encoder
        self._late = late
        self._queries = QueryVectors()

    @property
    def model(self) -> str:
        """The model and its precision. Vectors with different names are never compared."""
        return f"{MODEL}/{self.precision}"

    @property
    def dimension(self) -> int:
        return self._encoder.dimension

    @property
    def precision(self) -> str:
        """The precision of the computation, `f32` or `int8`. A processor that is slow at int8 always uses f32."""
        return self._encoder.precision

    @property
    def kernels(self) -> str:
        """The instruction set in use."""
        return self._encoder.level

    def status(self) -> ModelStatus:
        return ModelStatus(self.model, self.dimension, self.precision, PROVIDER)

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        return _encoded(self._encoder, list(texts), late=self._late)

    def embed_now(self, texts: Sequence[str], _deadline: float | None) -> list[TextVector]:
        return self.embed(texts)

    def embed_query(self, text: str, _deadline: float | None) -> TextVector:
        kept = self._queries.get(text)
        if kept is None:
            [kept] = self.embed([text])
            self._queries.keep(text, kept)
        return kept

    def unknown_words(self, text: str) -> list[str]:
        return self._encoder.unknown_words(text)

    def in_background(self, priority: Priority) -> BackgroundEmbedder:
        """The same model in a thread of its own."""
        return BackgroundEmbedder(BackgroundEncoder(self._encoder), priority, late=self._late)


class BackgroundEmbedder:
    """The model in a thread of low priority."""

    def __init__(self, encoder: BackgroundEncoder, priority: Priority, *, late: bool) -> None:
        self._encoder = encoder
        self._late = late
        give_way(encoder.thread_id, priority)

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        """As LocalEmbedder.embed, but a text on which the model panics gets a vector without values.

        Raises EncoderClosed once it is closed, EncoderPanicked where the model panics with any text.
        """
        try:
            return self._made(texts)
        except EncoderPanicked:
            self._made([HARMLESS])
        # It may have been the thread and none of the texts.
        return self._each_that_can(texts)

    def _made(self, texts: Sequence[str]) -> list[TextVector]:
        return _encoded(self._encoder, list(texts), late=self._late)

    def _each_that_can(self, texts: Sequence[str]) -> list[TextVector]:
        """The vectors of texts; without values where the model panics with a text alone."""
        try:
            return self._made(texts)
        except EncoderPanicked:
            if len(texts) > 1:
                middle = len(texts) // 2
                return self._each_that_can(texts[:middle]) + self._each_that_can(texts[middle:])
        logger.warning("the model panics with a text: it is found by words only")
        return [TextVector(b"", b"" if self._late else None)]

    def close(self) -> None:
        """End the thread at once."""
        self._encoder.close()


def _encoded(encoder: Encoder | BackgroundEncoder, texts: list[str], *, late: bool) -> list[TextVector]:
    if late:
        values, pieces = encoder.encode_with_pieces(texts)
        return list(map(TextVector, _split(values, encoder.dimension), pieces))
    return list(map(TextVector, _split(encoder.encode(texts), encoder.dimension)))


def _split(values: bytes, dimension: int) -> list[bytes]:
    size = dimension * 4
    return [values[at : at + size] for at in range(0, len(values), size)]


def load_embedder(
    model_dir: Path, precision: str = "f32", kernels: str | None = None, *, late: bool = False
) -> LocalEmbedder | None:
    """The model in a directory; None if its files are missing.

    `kernels` forces an instruction set; `late` also makes vectors of word pieces. Raises ModelFilesError where
    the files are not the right ones, ValueError for an unknown precision or instruction set.
    """
    if find(model_dir) is None:
        return None
    verify(model_dir)
    try:
        return LocalEmbedder(Encoder(str(model_dir), precision, kernels), late=late)
    except ModelError as error:
        raise ModelFilesError(f"the model in {model_dir} cannot be used: {error}") from error
