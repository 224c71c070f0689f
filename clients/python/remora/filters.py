"""Filters: conditions on attributes, joined by `&`, `|` and `~`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from remora import _refusals
from remora._arguments import checked_fields
from remora._bounds import Items, Name
from remora.attributes import Attributes, Key, Scalar, scalar_to_proto
from remora.v1 import filter_pb2

Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "in", "present", "absent"]

_OPERATORS: Mapping[Comparison, filter_pb2.Operator.ValueType] = {
    "==": filter_pb2.OPERATOR_EQ,
    "!=": filter_pb2.OPERATOR_NE,
    "<": filter_pb2.OPERATOR_LT,
    "<=": filter_pb2.OPERATOR_LTE,
    ">": filter_pb2.OPERATOR_GT,
    ">=": filter_pb2.OPERATOR_GTE,
    "in": filter_pb2.OPERATOR_IN,
    "present": filter_pb2.OPERATOR_PRESENT,
    "absent": filter_pb2.OPERATOR_ABSENT,
}


Step: TypeAlias = Annotated[str, Name(256, optional=True)]
"""Up to 256 bytes."""

_COUNTS: Mapping[Comparison, tuple[int, int]] = {"in": (1, 256), "present": (0, 0), "absent": (0, 0)}
"""How many values a comparison takes, at least and at most, if not one."""


def _require_count(comparison: Comparison, count: int) -> None:
    least, most = _COUNTS.get(comparison, (1, 1))
    if not least <= count <= most:
        wanted = "one value" if most == 1 else "1 to 256 values, each an argument" if most else "no value"
        raise _refusals.invalid("values", f"are {count}; {comparison!r} takes {wanted}")


def _require_ordered(comparison: Comparison, values: Sequence[Scalar]) -> None:
    """What is compared by its order is a number or a text."""
    if comparison in ("<", "<=", ">", ">=") and (values[0] is None or isinstance(values[0], bool)):
        raise _refusals.wrong_type("values[0]", values[0], f"a number or a str, as {comparison!r} compares them")


class Filter(ABC):
    """A condition, or several joined: `Condition("age", ">=", 18) & ~Condition("topic", "==", "visa")`.

    At most 8 levels deep, with at most 64 conditions.
    """

    __slots__ = ()

    def __and__(self, other: Filter) -> Filter:
        """Both hold."""
        return AllOf((*_parts(self, AllOf), *_parts(other, AllOf)))

    def __or__(self, other: Filter) -> Filter:
        """At least one of them holds."""
        return AnyOf((*_parts(self, AnyOf), *_parts(other, AnyOf)))

    def __invert__(self) -> Filter:
        """This does not hold."""
        return Not(self)

    def __bool__(self) -> bool:
        """Raises WrongTypeError: `and`, `or` and `not` would drop a part of what was meant."""
        raise _refusals.wrong_operator()

    @abstractmethod
    def to_proto(self) -> filter_pb2.Filter:
        """The filter on the wire."""


Parts: TypeAlias = Annotated[tuple[Filter, ...], Items(64, least=1)]
"""1 to 64 filters."""


@checked_fields
@dataclass(frozen=True, slots=True)
class AllOf(Filter):
    """All of these filters hold; there is at least one.

    Attributes:
        filters: The filters that must all hold, 1 to 64.
    """

    filters: Parts

    def to_proto(self) -> filter_pb2.Filter:
        """The filter on the wire."""
        return filter_pb2.Filter(all_of=_filters(self.filters))


@checked_fields
@dataclass(frozen=True, slots=True)
class AnyOf(Filter):
    """At least one of these filters holds; there is at least one.

    Attributes:
        filters: The filters of which one must hold, 1 to 64.
    """

    filters: Parts

    def to_proto(self) -> filter_pb2.Filter:
        """The filter on the wire."""
        return filter_pb2.Filter(any_of=_filters(self.filters))


@checked_fields
@dataclass(frozen=True, slots=True)
class Not(Filter):
    """This filter does not hold.

    Attributes:
        filter: The filter that must not hold.
    """

    filter: Filter

    def to_proto(self) -> filter_pb2.Filter:
        """The filter on the wire."""
        return filter_pb2.Filter(negated=self.filter.to_proto())


@checked_fields
@dataclass(frozen=True, slots=True, init=False)
class Condition(Filter):
    """One condition on an attribute: `Condition("age", ">=", 18)`, `Condition("topic", "in", "travel", "leave")`.

    Integers and numbers compare numerically; `<` and the like take numbers or text. A missing key, and a value of
    another type, match only `!=` and (when the key is missing) `absent`.

    Attributes:
        key: The attribute, 1 to 256 bytes.
        comparison: How it is compared: `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `present` or `absent`.
        values: What with: one value, 1 to 256 for `in`, none for `present` and `absent`.
    """

    key: str
    comparison: Comparison
    values: tuple[Scalar, ...]

    def __init__(self, key: Key, comparison: Comparison, *values: Scalar) -> None:
        _require_count(comparison, len(values))
        _require_ordered(comparison, values)
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "comparison", comparison)
        object.__setattr__(self, "values", values)

    def to_proto(self) -> filter_pb2.Filter:
        """The filter on the wire."""
        values = map(scalar_to_proto, self.values)
        condition = filter_pb2.Condition(key=self.key, operator=_OPERATORS[self.comparison], values=values)
        return filter_pb2.Filter(condition=condition)


@checked_fields
@dataclass(frozen=True, slots=True, init=False)
class PathCondition(Filter):
    """One condition on a value within JSON: `PathCondition(["address", "city"], "==", "Rome")`.

    It compares as `Condition` does. Only what the server reads as JSON has paths, such as the metadata of memory items.

    Attributes:
        path: The way to the value: 1 to 16 names of members, or indexes of arrays as text, up to 256 bytes each.
        comparison: How it is compared, as in `Condition`.
        values: What with, as in `Condition`.
    """

    path: tuple[str, ...]
    comparison: Comparison
    values: tuple[Scalar, ...]

    def __init__(self, path: Annotated[Sequence[Step], Items(16)], comparison: Comparison, *values: Scalar) -> None:
        _require_count(comparison, len(values))
        _require_ordered(comparison, values)
        if not path:
            raise _refusals.invalid("path", "is empty; it must have 1 to 16 steps")
        object.__setattr__(self, "path", tuple(path))
        object.__setattr__(self, "comparison", comparison)
        object.__setattr__(self, "values", values)

    def to_proto(self) -> filter_pb2.Filter:
        """The filter on the wire."""
        path, values = filter_pb2.Path(steps=self.path), map(scalar_to_proto, self.values)
        condition = filter_pb2.Condition(path=path, operator=_OPERATORS[self.comparison], values=values)
        return filter_pb2.Filter(condition=condition)


Where: TypeAlias = Attributes | Filter | Iterable[Filter]
"""A filter; filters that must all hold; or a mapping, which holds if each key equals its value."""


def where_to_proto(where: Where) -> filter_pb2.Filter | None:
    """The filter on the wire; None if everything passes."""
    if isinstance(where, Mapping):
        where = [Condition(key, "==", value) for key, value in where.items()]
    if isinstance(where, Filter):
        return where.to_proto()
    filters = tuple(where)
    return AllOf(filters).to_proto() if filters else None


def _parts(filter_: Filter, kind: type[AllOf | AnyOf]) -> tuple[Filter, ...]:
    return filter_.filters if isinstance(filter_, kind) else (filter_,)


def _filters(filters: Iterable[Filter]) -> filter_pb2.Filters:
    return filter_pb2.Filters(filters=[part.to_proto() for part in filters])
