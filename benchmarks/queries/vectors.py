"""The vectors of texts, kept from run to run: `domain.search.Embedder` with a file behind it.

What a text is embedded to depends on nothing else, so that only new texts take time. A file belongs to one encoder: its
name has a digest of what that makes of a few texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from remora_server.domain.search import TextVector
from remora_server.domain.status import ModelStatus
from remora_server.engine.encoder import LocalEmbedder, load_embedder
from remora_server.engine.processors import processors

PROBES = ("tea", "The ferry to Kestrel Lane leaves at 7:15.", "¿Dónde está la llave?")
AT_ONCE = 64
"""Texts that one thread embeds at once."""


class KeptVectors:
    """An embedder that has made what it was asked for before."""

    def __init__(self, model_dir: Path, folder: Path) -> None:
        """Raises FileNotFoundError where the model is not there."""
        embedder = load_embedder(model_dir, late=True)
        if embedder is None:
            raise FileNotFoundError(f"no model in {model_dir}")
        self._embedder: LocalEmbedder = embedder
        made = msgspec.msgpack.encode(embedder.embed(PROBES))
        self._file = folder / f"vectors-{hashlib.sha256(made).hexdigest()[:16]}.msgpack"
        self._kept: dict[bytes, TextVector] = {}
        if self._file.is_file():
            self._kept = msgspec.msgpack.decode(self._file.read_bytes(), type=dict[bytes, TextVector])

    @property
    def model(self) -> str:
        return self._embedder.model

    def status(self) -> ModelStatus:
        return self._embedder.status()

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        """On all processors; a new text is embedded once."""
        missing = list({key: text for text in texts if (key := _key(text)) not in self._kept}.items())
        parts = [missing[start : start + AT_ONCE] for start in range(0, len(missing), AT_ONCE)]
        with ThreadPoolExecutor(processors()) as pool:
            for part, made in zip(parts, pool.map(self._made, parts), strict=True):
                self._kept.update(zip([key for key, _ in part], made, strict=True))
        return [self._kept[_key(text)] for text in texts]

    def embed_now(self, texts: Sequence[str], _deadline: float | None) -> list[TextVector]:
        return self.embed(texts)

    def embed_query(self, text: str, _deadline: float | None) -> TextVector:
        return self.embed([text])[0]

    def unknown_words(self, text: str) -> list[str]:
        return self._embedder.unknown_words(text)

    def _made(self, part: Sequence[tuple[bytes, str]]) -> list[TextVector]:
        return self._embedder.embed([text for _, text in part])

    def save(self) -> None:
        """Keep what was made, in one step."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.msgpack.encode(self._kept))
        part.replace(self._file)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
