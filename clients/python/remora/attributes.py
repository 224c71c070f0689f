"""Typed values that stand beside messages and conversations, and the conditions by which a search filters on them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from google.protobuf.struct_pb2 import NULL_VALUE

from remora.v1 import scalar_pb2

Scalar: TypeAlias = bool | int | float | str | None
"""An attribute's value: integers are signed 64-bit, numbers finite, text up to 1,024 bytes in UTF-8."""

Attributes: TypeAlias = Mapping[str, Scalar]
"""At most 64 values by keys of 1 to 256 bytes."""

Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "in", "present", "absent"]

_OPERATORS: Mapping[Comparison, scalar_pb2.Operator.ValueType] = {
    "==": scalar_pb2.OPERATOR_EQ,
    "!=": scalar_pb2.OPERATOR_NE,
    "<": scalar_pb2.OPERATOR_LT,
    "<=": scalar_pb2.OPERATOR_LTE,
    ">": scalar_pb2.OPERATOR_GT,
    ">=": scalar_pb2.OPERATOR_GTE,
    "in": scalar_pb2.OPERATOR_IN,
    "present": scalar_pb2.OPERATOR_PRESENT,
    "absent": scalar_pb2.OPERATOR_ABSENT,
}


@dataclass(frozen=True, slots=True, init=False)
class Condition:
    """One condition on an attribute: `Condition("age", ">=", 18)`, `Condition("topic", "in", "travel", "leave")`.

    Integers and numbers compare numerically; `<` and its like take numbers or text. A missing key, and a value of
    another type, match only `!=` and (when the key is missing) `absent`.
    """

    key: str
    comparison: Comparison
    values: tuple[Scalar, ...]

    def __init__(self, key: str, comparison: Comparison, *values: Scalar) -> None:
        if comparison not in _OPERATORS:
            raise ValueError(f"no comparison: {comparison!r}; there are {', '.join(_OPERATORS)}")
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "comparison", comparison)
        object.__setattr__(self, "values", values)

    def to_proto(self) -> scalar_pb2.Condition:
        """The condition on the wire."""
        return scalar_pb2.Condition(
            key=self.key, operator=_OPERATORS[self.comparison], values=map(scalar_to_proto, self.values)
        )


Conditions: TypeAlias = Attributes | Iterable[Condition]
"""Conditions that must all hold; a mapping holds where each key equals its value."""


def conditions_to_proto(conditions: Conditions) -> list[scalar_pb2.Condition]:
    """The conditions on the wire."""
    if isinstance(conditions, Mapping):
        return [Condition(key, "==", value).to_proto() for key, value in conditions.items()]
    return [condition.to_proto() for condition in conditions]


def scalar_to_proto(value: Scalar) -> scalar_pb2.Scalar:
    """The value on the wire. Raises TypeError for what is no scalar, ValueError for an integer beyond 64 bits."""
    match value:
        case None:
            return scalar_pb2.Scalar(null_value=NULL_VALUE)
        case bool():
            return scalar_pb2.Scalar(boolean=value)
        case int():
            return scalar_pb2.Scalar(integer=value)
        case float():
            return scalar_pb2.Scalar(number=value)
        case str():
            return scalar_pb2.Scalar(text=value)
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
