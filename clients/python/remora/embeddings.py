"""Vectors made by the caller, or by the server for the caller."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Self, TypeAlias

from remora import _refusals
from remora._arguments import checked
from remora._bounds import Name
from remora._f32 import packed
from remora.v1 import message_pb2

FLOAT_BYTES = 4

Model: TypeAlias = Annotated[str, Name(256)]
"""The name of an embedding model, 1 to 256 bytes."""


@checked
@dataclass(frozen=True, slots=True)
class Embedding:
    """A vector and the model that made it; the server never compares vectors of different models.

    Attributes:
        model: The model's name.
        data: The vector: little-endian IEEE 754 f32, 4 bytes per dimension.
    """

    model: Model
    data: bytes

    def __post_init__(self) -> None:
        """Raises InvalidFieldError for bytes that are no numbers."""
        if len(self.data) % FLOAT_BYTES:
            raise _refusals.invalid(
                "data", f"has {len(self.data):,} bytes; it must have 4 for each dimension: Embedding.of() makes them"
            )

    @classmethod
    def of(cls, model: str, values: Iterable[float]) -> Self:
        """The embedding of these values, rounded to f32."""
        return cls(model, packed(tuple(values), "values"))

    @property
    def values(self) -> tuple[float, ...]:
        """The vector's values."""
        return struct.unpack(f"<{self.dimension}f", self.data)

    @property
    def dimension(self) -> int:
        """How many values the vector has."""
        return len(self.data) // FLOAT_BYTES

    def to_proto(self) -> message_pb2.Embedding:
        """The embedding on the wire."""
        return message_pb2.Embedding(model=self.model, values=self.data)

    @classmethod
    def from_proto(cls, embedding: message_pb2.Embedding) -> Self:
        """The embedding from the wire."""
        return cls(embedding.model, embedding.values)
