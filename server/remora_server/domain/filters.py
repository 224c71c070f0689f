"""Filters: trees of conditions on attributes, or on what paths lead to in a JSON value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from msgspec import Struct

from remora_server.domain.conversations import AttributeValue


def path_key(steps: Iterable[str]) -> str:
    """The key of a condition on a path."""
    return json.dumps(list(steps), ensure_ascii=False)


class Operator(Enum):
    """How a condition compares."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LTE = "lte"
    GT = "gt"
    GTE = "gte"
    IN = "in"
    PRESENT = "present"
    ABSENT = "absent"


class Condition(Struct, frozen=True):
    """One condition on an attribute, or on a path by its `path_key`. Integers and doubles compare numerically."""

    key: str
    operator: Operator
    values: tuple[AttributeValue, ...]


class AllOf(Struct, frozen=True):
    """All of these conditions hold."""

    filters: tuple[Filter, ...]


class AnyOf(Struct, frozen=True):
    """At least one of these conditions holds."""

    filters: tuple[Filter, ...]


class Negated(Struct, frozen=True):
    """This condition does not hold."""

    negated: Filter


Filter: TypeAlias = "AllOf | AnyOf | Negated | Condition"

Values: TypeAlias = "Mapping[str, AttributeValue]"
"""What filters see, by key."""


def passes(given: Filter, values: Values) -> bool:
    """Whether values pass a filter, as the engine decides it for what it holds (`rust/filter`)."""
    match given:
        case AllOf(filters):
            return all(passes(each, values) for each in filters)
        case AnyOf(filters):
            return any(passes(each, values) for each in filters)
        case Negated(negated):
            return not passes(negated, values)
        case Condition():
            return _holds(given, values)


def _holds(condition: Condition, values: Values) -> bool:
    is_there = condition.key in values
    match condition.operator:
        case Operator.PRESENT:
            return is_there
        case Operator.ABSENT:
            return not is_there
        case Operator.NE:
            return not is_there or not _equals_any(values[condition.key], condition.values)
        case Operator.EQ | Operator.IN:
            return is_there and _equals_any(values[condition.key], condition.values)
    return is_there and _is_ordered(condition.operator, values[condition.key], condition.values[0])


def _equals_any(value: AttributeValue, others: Iterable[AttributeValue]) -> bool:
    return any(_type(value) is _type(other) and value == other for other in others)


def _is_ordered(operator: Operator, value: Any, other: Any) -> bool:  # noqa: ANN401 - of one type, as is looked at first
    if _type(value) is not _type(other) or _type(value) not in {float, str}:
        return False
    match operator:
        case Operator.LT:
            return bool(value < other)
        case Operator.LTE:
            return bool(value <= other)
        case Operator.GT:
            return bool(value > other)
    return bool(value >= other)


def _type(value: AttributeValue) -> type:
    """The type by which values compare: integers and doubles have one."""
    return float if type(value) is int else type(value)
