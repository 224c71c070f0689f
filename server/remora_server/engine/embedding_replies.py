"""Requests to an OpenAI-compatible endpoint of embeddings, and the checks of its replies.

After OpenAI's API reference, "Create embeddings". An embedding comes as base64 of little-endian f32, if that was
asked for and the endpoint knows it, or else as a list of numbers.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Sequence
from typing import Any

from remora_server.domain.vectors import FLOAT_BYTES, MAX_DIMENSION


class WrongReply(Exception):
    """A reply without a vector for each text. The message says why, without contents."""


def encode_request(model: str, texts: Sequence[str], dimensions: int | None, *, as_base64: bool) -> bytes:
    """The body of a request."""
    body: dict[str, object] = {"model": model, "input": list(texts)}
    if dimensions is not None:
        body["dimensions"] = dimensions
    if as_base64:
        body["encoding_format"] = "base64"
    return json.dumps(body).encode()


def decode_reply(body: bytes, count: int) -> list[bytes]:
    """A unit vector (little-endian f32) for each of `count` texts, in their order; empty for those without direction:
    not finite, or zero. All others have one dimension. Raises WrongReply.
    """
    try:
        placed = _placed(json.loads(body)["data"], count)
        vectors = [_unit(_values(item["embedding"])) for item in placed]
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, struct.error, RecursionError) as error:
        raise WrongReply("the reply is not a list of embeddings") from error
    sizes = {len(vector) // FLOAT_BYTES for vector in vectors if vector}
    if len(sizes) > 1:
        raise WrongReply(f"the reply has vectors of {' and '.join(map(str, sorted(sizes)))} values")
    if max(sizes, default=0) > MAX_DIMENSION:
        raise WrongReply(f"the reply has vectors of {max(sizes)} values, more than {MAX_DIMENSION}")
    return vectors


def _placed(data: Sequence[Any], count: int) -> list[Any]:
    """The items in the order of their indexes, or in that of the reply if they have none."""
    if len(data) != count:
        raise WrongReply(f"the reply has {len(data)} embeddings for {count} texts")
    indexes = [item.get("index", index) for index, item in enumerate(data)]
    if sorted(indexes) != list(range(count)):
        raise WrongReply("the indexes of the reply's embeddings are not those of the texts")
    return [item for _, item in sorted(zip(indexes, data, strict=True), key=lambda placed: placed[0])]


def _values(embedding: str | Sequence[float]) -> Sequence[float]:
    if not isinstance(embedding, str):
        return [float(value) for value in embedding]
    try:
        encoded = base64.b64decode(embedding, validate=True)
    except binascii.Error as error:
        raise ValueError("is not base64") from error
    return struct.unpack(f"<{len(encoded) // FLOAT_BYTES}f", encoded)


def _unit(values: Sequence[float]) -> bytes:
    norm = math.hypot(*values)
    if not math.isfinite(norm) or norm == 0.0:
        return b""
    return struct.pack(f"<{len(values)}f", *(value / norm for value in values))
