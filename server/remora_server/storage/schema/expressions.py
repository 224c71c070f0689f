"""Filters as the engine takes them."""

from __future__ import annotations

from typing import Any

from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated


def expression(given: Filter) -> tuple[Any, ...]:
    """A filter as an expression of `_native.Recall.search`."""
    match given:
        case AllOf(filters):
            return "all", [expression(each) for each in filters]
        case AnyOf(filters):
            return "any", [expression(each) for each in filters]
        case Negated(negated):
            return "not", expression(negated)
        case Condition(key, operator, values):
            return "condition", key, operator.value, list(values)
