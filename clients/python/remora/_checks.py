"""Turns an annotation into a check of values at run time.

The annotations are those that type checkers read, so there is nothing to keep in step with them: classes, unions,
Literal, TypedDict, collections, and the bounds of `_bounds` in Annotated. Protocols admit anything.
"""

import functools
import numbers
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from remora import _refusals
from remora._bounds import IfMissing, OfClient, Secret, utf8_size

Require: TypeAlias = Callable[[Any, str], object]
"""Raises an InvalidFieldError unless it accepts a value, which is in the field of this name."""


class Check(NamedTuple):
    """What one annotation demands."""

    expected: str
    """In words: `an int`."""
    admits: Callable[[Any], bool]
    """Whether a value is of the type, without a look inside."""
    inside: Require | None = None
    """The rest, for a value that was admitted."""
    secret: bool = False
    """Whether the value is never shown."""

    def require(self, value: object, field: str) -> None:
        """Raises an InvalidFieldError unless the value is acceptable."""
        if not self.admits(value):
            raise _refusals.wrong_type(field, value, self.expected, secret=self.secret)
        if self.inside is not None:
            self.inside(value, field)


@functools.cache
def check_of(annotation: Any) -> Check:  # noqa: ANN401 - annotations have no type in common
    """The check of an annotation."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _bounded(check_of(arguments[0]), arguments[1:])
    if origin in (Union, types.UnionType):
        texts = _FILE_NAME if os.PathLike[str] in arguments else _SCALARS[str]
        return _either([texts if argument is str else check_of(argument) for argument in arguments])
    if origin is Literal:
        return _one_of(arguments)
    if is_typeddict(annotation):
        return _options(options_of(annotation))
    return _of_class(origin or annotation, arguments)


def options_of(keys: Any) -> dict[str, Check]:  # noqa: ANN401 - a TypedDict has no type of its own
    """The check of each key of a TypedDict."""
    return {name: check_of(hint) for name, hint in get_type_hints(keys, include_extras=True).items()}


def _is_int(value: object) -> bool:
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def _is_number(value: object) -> bool:
    return type(value) is float or (isinstance(value, numbers.Real) and not isinstance(value, bool))


def _instance_of(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


_ANYTHING = Check("anything", lambda _value: True)

_SCALARS: Mapping[object, Check] = {
    Any: _ANYTHING,
    object: _ANYTHING,
    types.NoneType: Check("None", lambda value: value is None),
    int: Check("an int", _is_int),
    float: Check("a number", _is_number),
    bool: Check("a bool", _instance_of(bool)),
    str: Check("a str", _instance_of(str), utf8_size),
    bytes: Check("bytes", _instance_of(bytes)),
    datetime: Check("a datetime", _instance_of(datetime)),
    OfClient: Check("left out, which stands for the client's", _instance_of(OfClient)),
}

_FILE_NAME = Check("a str", _instance_of(str))
"""A system's file names need not be UTF-8: Python writes other bytes of them as halves of surrogate pairs."""


def _of_class(kind: Any, arguments: tuple[Any, ...]) -> Check:  # noqa: ANN401
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return _ANYTHING
    if issubclass(kind, Mapping):
        return _mapping(*map(check_of, arguments)) if arguments else Check("a dict", _instance_of(kind))
    if kind.__module__ in ("builtins", "collections.abc") and issubclass(kind, Iterable):
        return _collection(kind, check_of(arguments[0]) if arguments else _ANYTHING)
    return Check(_refusals.with_article(kind.__name__), _instance_of(kind))


def _bounded(check: Check, bounds: Iterable[Any]) -> Check:
    for bound in bounds:
        if isinstance(bound, Secret):
            check = check._replace(secret=True)
        elif not isinstance(bound, IfMissing):
            check = check._replace(inside=_both(check.inside, bound.require))
    return check


def _both(first: Require | None, second: Require) -> Require:
    if first is None:
        return second

    def require(value: object, field: str) -> None:
        first(value, field)
        second(value, field)

    return require


def _utf8_if_text(value: object, field: str) -> None:
    if isinstance(value, str):
        utf8_size(value, field)


def _either(checks: list[Check]) -> Check:
    if _ANYTHING in checks:
        return _ANYTHING._replace(inside=_utf8_if_text) if _SCALARS[str] in checks else _ANYTHING

    def admits(value: object) -> bool:
        return any(check.admits(value) for check in checks)

    def inside(value: object, field: str) -> None:
        next(check for check in checks if check.admits(value)).require(value, field)

    expected = _refusals.listed([check.expected for check in checks], "or")
    return Check(expected, admits, inside, secret=any(check.secret for check in checks))


def _one_of(words: tuple[Any, ...]) -> Check:
    expected = _refusals.listed([repr(word) for word in words], "or")

    def inside(value: str, field: str) -> None:
        if value not in words:
            meant = _refusals.meant(value, words)
            suggestion = f"; did you mean {meant!r}?" if meant else ""
            raise _refusals.invalid(field, f"is {_refusals.shown_alone(value)}; it must be {expected}{suggestion}")

    return Check(expected, _instance_of(str), inside)


def _options(checks: Mapping[str, Check]) -> Check:
    def inside(value: Mapping[str, object], field: str) -> None:
        for name, item in value.items():
            check = checks.get(name)
            if check is None:
                raise _refusals.unknown(field, name, checks)
            check.require(item, f"{field}[{name!r}]")

    return Check("a dict", _instance_of(Mapping), inside)


def _mapping(key_check: Check, item_check: Check) -> Check:
    def inside(value: Mapping[object, object], field: str) -> None:
        for key, item in value.items():
            key_check.require(key, f"a key of {field}")
            item_check.require(item, f"{field}[{key!r}]")

    return Check("a dict", _instance_of(Mapping), inside)


def _collection(kind: type, item_check: Check) -> Check:
    wanted = Iterable if kind is Iterable else Collection
    expected = "a list" if item_check is _ANYTHING else f"a list, each item {item_check.expected}"

    def admits(value: object) -> bool:
        return isinstance(value, wanted) and not isinstance(value, str | bytes | Mapping)

    def inside(value: Iterable[object], field: str) -> None:
        if isinstance(value, Collection):  # what can be read only once is left to its reader
            for position, item in enumerate(value):
                item_check.require(item, f"{field}[{position}]")

    return Check(expected, admits, None if item_check is _ANYTHING else inside)
