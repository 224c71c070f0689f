"""Typed values of messages and conversations, by which searches filter."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Annotated, TypeAlias

from google.protobuf.struct_pb2 import NULL_VALUE

from remora._bounds import Between, Finite, Items, Name, Size
from remora.v1 import scalar_pb2

Scalar: TypeAlias = (
    bool | Annotated[int, Between(-(2**63), 2**63 - 1)] | Annotated[float, Finite()] | Annotated[str, Size(1024)] | None
)
"""An attribute's value: integers are signed 64-bit, numbers finite, text up to 1,024 bytes in UTF-8."""

Key: TypeAlias = Annotated[str, Name(256)]
"""1 to 256 bytes."""

Attributes: TypeAlias = Annotated[Mapping[Key, Scalar], Items(64)]
"""At most 64 values by keys of 1 to 256 bytes."""


def scalar_to_proto(value: Scalar) -> scalar_pb2.Scalar:
    """The value on the wire."""
    given: object = value  # numpy's numbers are none of Python's classes
    match given:
        case None:
            return scalar_pb2.Scalar(null_value=NULL_VALUE)
        case bool():
            return scalar_pb2.Scalar(boolean=given)
        case Integral():
            return scalar_pb2.Scalar(integer=int(given))
        case Real():
            return scalar_pb2.Scalar(number=float(given))
        case str():
            return scalar_pb2.Scalar(text=given)
    raise TypeError(f"an attribute is None, a bool, an int, a float or a str, not {type(value).__name__}")


def scalar_from_proto(scalar: scalar_pb2.Scalar) -> Scalar:
    """The value from the wire; None for one of a kind that this client does not know."""
    match scalar.WhichOneof("kind"):
        case "boolean":
            return scalar.boolean
        case "integer":
            return scalar.integer
        case "number":
            return scalar.number
        case "text":
            return scalar.text
    return None


def attributes_to_proto(attributes: Attributes) -> dict[str, scalar_pb2.Scalar]:
    """The attributes on the wire."""
    return {key: scalar_to_proto(value) for key, value in attributes.items()}


def attributes_from_proto(attributes: Mapping[str, scalar_pb2.Scalar]) -> dict[str, Scalar]:
    """The attributes from the wire."""
    return {key: scalar_from_proto(value) for key, value in attributes.items()}
