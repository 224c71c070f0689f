"""An OpenAI-compatible endpoint of embeddings on a port of this machine, which does what tests ask of it."""

from __future__ import annotations

import base64
import json
import struct
from collections import Counter
from collections.abc import Sequence

from tests.engine.endpoint_server import Answer, Asked, EndpointServer, error

LETTERS = 26


def vector(text: str, dimension: int) -> list[float]:
    """The letters of a text, counted, and a constant: never zero."""
    counts = Counter(text.lower())
    letters = [float(counts[chr(97 + place % LETTERS)]) for place in range(dimension - 1)]
    return [1.0, *letters]


def texts_of(asked: Asked) -> list[str]:
    """The texts that a request asks for."""
    return list(asked.body["input"])


class EmbeddingServer(EndpointServer):
    """Serves vectors while it is entered."""

    def __init__(self, dimension: int = 8, *, knows_base64: bool = True) -> None:
        super().__init__()
        self.dimension = dimension
        self.knows_base64 = knows_base64

    @property
    def texts(self) -> list[str]:
        """All texts that were asked for, in their order."""
        return [text for asked in list(self.asked) for text in texts_of(asked)]

    def healthy(self, asked: Asked) -> Answer:
        return self.embeddings(asked)

    def embeddings(self, asked: Asked, *, dimension: int | None = None) -> Answer:
        """A healthy endpoint's answer."""
        if asked.body.get("encoding_format") == "base64" and not self.knows_base64:
            return error(400, "unknown_parameter")
        vectors = [vector(text, dimension or self.dimension) for text in texts_of(asked)]
        return listing(vectors, as_base64=asked.body.get("encoding_format") == "base64")


def listing(vectors: Sequence[Sequence[float]], *, as_base64: bool, order: Sequence[int] | None = None) -> Answer:
    """A reply with vectors; `order` is that in which they are sent."""
    items = [{"object": "embedding", "index": place, "embedding": v} for place, v in enumerate(vectors)]
    for item in items if as_base64 else ():
        values = vectors[item["index"]]  # type: ignore[call-overload]
        item["embedding"] = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    placed = [items[place] for place in order] if order else items
    return Answer(body=json.dumps({"object": "list", "data": placed, "model": "m"}).encode())
