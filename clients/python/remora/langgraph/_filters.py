"""LangGraph's filters of items as the contract has them. Makes no calls."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from remora.v1 import filter_pb2 as wire
from remora.v1.scalar_pb2 import Scalar

Path: TypeAlias = tuple[str, ...]

_REFUSED_IN_KEYS = re.compile(r"""['"`\\\x00-\x1f]""")
_INTEGERS = range(-(2**63), 2**63)
_ORDERS = {
    "$gt": wire.OPERATOR_GT,
    "$gte": wire.OPERATOR_GTE,
    "$lt": wire.OPERATOR_LT,
    "$lte": wire.OPERATOR_LTE,
}

_UNSUPPORTED = frozenset({"$and", "$or", "$nor", "$not", "$eq", "$ne", *_ORDERS})
"""Operators that stand where a filter has the name of a member: an item with such a member cannot be meant."""


def item_filter(given: Mapping[str, Any]) -> wire.Filter:
    """All of the members of a filter: a value to equal, or operators with their values.

    A member that is named with dots is also a path. Raises ValueError for what cannot be compared.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"filter is {given!r}; it must be a dict of members and values")
    try:
        return _all_of([_member(key, value) for key, value in given.items()])
    except RecursionError as error:
        raise ValueError("filter is nested too deeply") from error


def _member(key: Any, value: object) -> wire.Filter:  # noqa: ANN401 - any dict's
    if not isinstance(key, str) or not key or _REFUSED_IN_KEYS.search(key):
        raise ValueError(f"Invalid filter key: {key!r}. It is the name of a member, or names with dots between them.")
    if key in _UNSUPPORTED:
        raise ValueError(
            f"Unsupported operator: {key}. A filter is a dict of members, all of which must match: "
            'for a range, {"member": {"$gte": 1, "$lt": 5}}; for one of several, search once for each.'
        )
    if "." not in key:
        return _compared((key,), value)
    # A member may be named so itself; only without one, the name is a path.
    own = _all_of([_present((key,)), _compared((key,), value)])
    within = _all_of([_negated(_present((key,))), _compared(tuple(key.split(".")), value)])
    return _any_of([own, within])


def _compared(path: Path, value: object) -> wire.Filter:
    """What equals a value or, if that has operators, passes all of them."""
    if isinstance(value, Mapping) and any(str(name).startswith("$") for name in value):
        return _all_of([_operated(path, str(name), operand) for name, operand in value.items()])
    return _equal(path, value)


def _operated(path: Path, operator: str, value: object) -> wire.Filter:
    if operator == "$eq":
        return _equal(path, value)
    if operator == "$ne":
        return _negated(_equal(path, value))
    if operator not in _ORDERS:
        raise ValueError(f"Unsupported operator: {operator}")
    if isinstance(value, str):
        return _condition(path, _ORDERS[operator], value)
    if isinstance(value, int | float):
        return _ordered(path, operator, _number(value))
    raise ValueError(f"{operator} compares numbers and text, not {value!r}")


def _ordered(path: Path, operator: str, value: int | float) -> wire.Filter:
    """What is less or greater than a number: of the infinite ones, all numbers are, or none."""
    if math.isfinite(value):
        return _condition(path, _ORDERS[operator], value)
    if value == (math.inf if operator.startswith("$lt") else -math.inf):
        return _condition(path, _ORDERS[f"{operator[:3]}e"], math.copysign(sys.float_info.max, value))
    return _never(path)


def _number(value: int | float) -> int | float:
    """A number as the contract has it: 64 bits, or a double."""
    if isinstance(value, float) or value in _INTEGERS:
        return value if isinstance(value, float) else int(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _equal(path: Path, value: object) -> wire.Filter:
    """What equals a value: a missing member equals None, an object any part of it, a list only the whole list."""
    if value is None:
        return _any_of([_condition(path, wire.OPERATOR_EQ, None), _negated(_present(path))])
    if isinstance(value, Mapping):
        return _all_of([_composite(path), *(_compared((*path, str(name)), each) for name, each in value.items())])
    if isinstance(value, list | tuple):
        return _equal_list(path, value)
    if isinstance(value, int | float) and not math.isfinite(_number(value)):
        return _never(path)
    return _condition(path, wire.OPERATOR_EQ, value)


def _equal_list(path: Path, values: Sequence[object]) -> wire.Filter:
    each = [_element((*path, str(index)), value) for index, value in enumerate(values)]
    return _all_of([*(each or [_composite(path)]), _negated(_present((*path, str(len(values)))))])


def _element(at: Path, value: object) -> wire.Filter:
    """What equals an element: it is there, also where it is null."""
    return _condition(at, wire.OPERATOR_EQ, None) if value is None else _equal(at, value)


def _composite(path: Path) -> wire.Filter:
    """An object or a list: what is there and is no scalar."""
    scalars = [
        _condition(path, wire.OPERATOR_LT, 0),
        _condition(path, wire.OPERATOR_GTE, 0),
        _condition(path, wire.OPERATOR_GTE, ""),
        _condition(path, wire.OPERATOR_IN, None, True, False),
    ]
    return _all_of([_present(path), _negated(_any_of(scalars))])


def _never(path: Path) -> wire.Filter:
    return _all_of([_present(path), _negated(_present(path))])


def _present(path: Path) -> wire.Filter:
    return _condition(path, wire.OPERATOR_PRESENT)


def _condition(path: Path, operator: wire.Operator.ValueType, *values: object) -> wire.Filter:
    condition = wire.Condition(path=wire.Path(steps=path), operator=operator, values=map(_scalar, values))
    return wire.Filter(condition=condition)


def _all_of(filters: Sequence[wire.Filter]) -> wire.Filter:
    """All of them. Those that are all of some themselves are taken apart: the contract has few levels."""
    return _joined("all_of", filters)


def _any_of(filters: Sequence[wire.Filter]) -> wire.Filter:
    return _joined("any_of", filters)


def _joined(how: Literal["all_of", "any_of"], filters: Sequence[wire.Filter]) -> wire.Filter:
    parts = [part for each in filters for part in (getattr(each, how).filters if each.HasField(how) else [each])]
    return parts[0] if len(parts) == 1 else wire.Filter(**{how: wire.Filters(filters=parts)})


def _negated(given: wire.Filter) -> wire.Filter:
    """Not this: negations stand at the conditions, so that what is around them can be taken apart."""
    match given.WhichOneof("kind"):
        case "all_of":
            return _any_of([_negated(each) for each in given.all_of.filters])
        case "any_of":
            return _all_of([_negated(each) for each in given.any_of.filters])
        case "negated":
            return given.negated
    return wire.Filter(negated=given)


def _scalar(value: object) -> Scalar:
    match value:
        case None:
            return Scalar(null_value=cast("Any", 0))
        case bool():
            return Scalar(boolean=value)
        case int() | float():
            number = _number(value)
            return Scalar(number=number) if isinstance(number, float) else Scalar(integer=number)
        case str():
            return Scalar(text=value)
    raise ValueError(f"a filter compares JSON values, not {value!r}")
