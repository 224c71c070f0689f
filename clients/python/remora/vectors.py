"""Vectors of collections, and what a search among them finds."""

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Protocol, Self, TypeAlias

from remora import _f32, _json, _refusals
from remora._arguments import checked_fields
from remora._bounds import Between, Id, Size
from remora._printable import printable, ranked
from remora._times import from_timestamp, optional_time
from remora._views import Decoders, View, unchanged, view
from remora.attributes import Attributes, attributes_from_proto, attributes_to_proto
from remora.embeddings import FLOAT_BYTES, Embedding
from remora.messages import shortened
from remora.v1 import vector_pb2, vector_service_pb2

MOST_DIMENSIONS = 4096
ACCEPTED = "numbers in a list or an array, or an Embedding"

Dimension: TypeAlias = Annotated[int, Between(1, MOST_DIMENSIONS)]
"""1 to 4,096."""
Content: TypeAlias = Annotated[str, Size(1 << 20)]


class Numbers(Protocol):
    """A list or a tuple of numbers, or an array of one dimension, such as numpy's."""

    def __len__(self) -> int:
        """How many there are."""

    def __iter__(self) -> Iterator[float]:
        """The numbers."""


def packed(numbers: Numbers | Embedding, name: str, expected: str = ACCEPTED) -> bytes:
    """The numbers as little-endian f32. Raises InvalidFieldError for anything but 1 to 4,096 finite ones."""
    if isinstance(numbers, Embedding):
        return numbers.data
    if isinstance(numbers, str | bytes | Mapping) or not hasattr(numbers, "__iter__"):
        raise _refusals.wrong_type(name, numbers, expected)
    dimensions = getattr(numbers, "ndim", 1)
    if dimensions != 1:
        raise _refusals.invalid(name, f"is an array of {dimensions} dimensions; give one row of numbers")
    if getattr(getattr(numbers, "dtype", None), "kind", "") == "c":
        raise _refusals.invalid(name, "is an array of complex numbers; give real ones, such as its `real`")
    values = tuple(numbers)
    if not 1 <= len(values) <= MOST_DIMENSIONS:
        raise _refusals.invalid(name, f"has {len(values):,} numbers; it must have 1 to {MOST_DIMENSIONS:,}")
    data = _f32.packed(values, name)
    if not math.isfinite(sum(map(float, values))):
        raise _f32.not_f32(values, name)
    return data


def unpacked(data: bytes) -> tuple[float, ...]:
    """The numbers of little-endian f32."""
    return struct.unpack(f"<{len(data) // FLOAT_BYTES}f", data)


def _on_wire(
    vector_id: str, values: Numbers | Embedding, content: str, metadata: object, attributes: Attributes
) -> vector_pb2.Vector:
    return vector_pb2.Vector(
        id=vector_id,
        values=packed(values, "values"),
        content=content,
        metadata=_json.to_opaque(metadata, "metadata", 256 << 10),
        attributes=attributes_to_proto(attributes),
    )


@checked_fields
@view
@dataclass(frozen=True, init=False)
class Vector(View):
    """A vector of a collection, with what it stands for: `Vector("doc-1", [0.1, 0.9], content="Leave in Rome")`.

    Attributes:
        id: Unique for its user in its collection, 1 to 512 bytes. Storing a known id replaces the vector.
        values: 1 to 4,096 finite numbers, rounded to 32 bits: given as a list, a tuple, an array such as numpy's, or an
            `Embedding`. Empty where a search was asked to omit them.
        content: The text that it stands for, up to 1 MiB. It is neither embedded nor indexed.
        metadata: The caller's metadata, up to 256 KiB: bytes, or what JSON can hold. Bytes of compact JSON are returned
            parsed.
        attributes: Typed values that filters see.
        user_id: Whose vector it is; empty: nobody's. Set by the server.
        update_time: When it was last written. Set by the server.
        revision: The revision that last wrote it. Set by the server.
    """

    id: str
    values: tuple[float, ...] = field(repr=False)
    content: str
    metadata: Any
    attributes: Attributes
    user_id: str = field(init=False)
    update_time: datetime | None = field(init=False)
    revision: int = field(init=False)

    def __init__(
        self,
        id: Id,  # noqa: A002 - the field's name
        values: Numbers | Embedding,
        *,
        content: Content = "",
        metadata: Any = None,  # noqa: ANN401 - whatever JSON holds
        attributes: Attributes | None = None,
    ) -> None:
        self.__dict__["_wire"] = _on_wire(id, values, content, metadata, attributes or {})

    def to_proto(self) -> vector_pb2.Vector:
        """The vector on the wire."""
        return _on_wire(self.id, self.values, self.content, self.metadata, self.attributes)

    @classmethod
    def from_proto(cls, vector: vector_pb2.Vector) -> Self:
        """The vector from the wire, which must not change from then on."""
        return cls._of(vector)

    _decoders: ClassVar[Decoders] = {
        **unchanged("id", "content", "user_id", "revision"),
        "values": lambda wire: unpacked(wire.values),
        "metadata": lambda wire: _json.from_opaque(wire.metadata),
        "attributes": lambda wire: attributes_from_proto(wire.attributes),
        "update_time": lambda wire: optional_time(wire, "update_time"),
    }


@view
@dataclass(frozen=True)
class VectorHit(View):
    """A vector that was found. `print` shows it as a line.

    Attributes:
        vector: The vector.
        score: (1 + cosine) / 2, from 0 to 1.
    """

    vector: Vector
    score: float

    def __str__(self) -> str:
        content = shortened(" ".join(self.vector.content.split()))
        return printable(f"{self.score:.3f}  {self.vector.id}  {content}".rstrip())

    @classmethod
    def from_proto(cls, hit: vector_service_pb2.VectorHit) -> Self:
        """The hit from the wire, which must not change from then on."""
        return cls._of(hit)

    _decoders: ClassVar[Decoders] = {
        **unchanged("score"),
        "vector": lambda wire: Vector.from_proto(wire.vector),
    }


@dataclass(frozen=True, slots=True)
class VectorSearchResult:
    """The nearest vectors, the nearest first; ties by id. `print` shows a line of each.

    Attributes:
        hits: The hits, the nearest first.
        revision: The revision that the result shows.
        truncated: Whether hits are missing because the reply would be larger than 3 MiB.
    """

    hits: tuple[VectorHit, ...]
    revision: int
    truncated: bool = False

    def __getitem__(self, position: int) -> VectorHit:
        return self.hits[position]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[VectorHit]:
        return iter(self.hits)

    def __str__(self) -> str:
        return "\n".join(ranked(self.hits))

    @classmethod
    def from_proto(cls, response: vector_service_pb2.SearchVectorsResponse) -> Self:
        """The result from the wire."""
        return cls(tuple(map(VectorHit.from_proto, response.hits)), response.revision, response.truncated)


@dataclass(frozen=True, slots=True)
class VectorCollection:
    """A set of vectors of one dimension, which are searched together.

    Attributes:
        id: Unique in its tenant.
        dimension: The dimension that it was created with; None: that of its first vector.
        current_dimension: The dimension that its vectors have; None: there has been none since it was created or
            cleared.
        create_time: When it was created.
    """

    id: str
    dimension: int | None
    current_dimension: int | None
    create_time: datetime

    @classmethod
    def from_proto(cls, collection: vector_pb2.VectorCollection) -> Self:
        """The collection from the wire."""
        return cls(
            id=collection.id,
            dimension=collection.dimension or None,
            current_dimension=collection.current_dimension or None,
            create_time=from_timestamp(collection.create_time),
        )


@dataclass(frozen=True, slots=True)
class CollectionStats:
    """A collection with its statistics.

    Attributes:
        collection: The collection.
        vectors: How many vectors it has, of all users.
        bytes: How many bytes these take where they are stored, with all of their fields.
    """

    collection: VectorCollection
    vectors: int
    bytes: int

    @classmethod
    def from_proto(cls, found: vector_service_pb2.GetCollectionResponse) -> Self:
        """The collection from the wire."""
        return cls(VectorCollection.from_proto(found.collection), found.vectors, found.bytes)
