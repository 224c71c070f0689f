"""Filters: trees of conditions on attributes, or on what paths lead to in a JSON value."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from typing import TypeAlias

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
