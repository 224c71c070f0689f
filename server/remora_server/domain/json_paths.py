"""The values within a JSON object, each under one key that says where it is, as filters compare them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from remora_server.domain import json_members
from remora_server.domain.conversations import AttributeValue
from remora_server.domain.filters import path_key

MOST_STEPS = 16
"""How deep a filter sees, which is the greatest length of a path."""
LONGEST_STEP = 256
"""The greatest length of a name in a path, in bytes."""

OF_ANOTHER_TYPE = float("nan")
"""Stands for an object, an array, or a text without UTF-8: the value exists, but equals nothing."""

_INT64 = range(-(2**63), 2**63)


def values_of(data: bytes) -> Iterator[tuple[str, AttributeValue]]:
    """The values within an object, without the object itself, as deep as paths lead. Raises ValueError if it is no
    object.
    """
    json_members.members(data)  # raises if it is no object, or is nested too deep
    found = json.loads(data.decode(), parse_int=_integer) if data else {}
    yield from _within((), found)


def _within(above: tuple[str, ...], value: object) -> Iterator[tuple[str, AttributeValue]]:
    if len(above) == MOST_STEPS:
        return
    for name, inner in _members(value):
        if _may_be_named(name):
            steps = (*above, name)
            yield path_key(steps), _scalar(inner)
            yield from _within(steps, inner)


def _members(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(index), inner) for index, inner in enumerate(value))


def _scalar(value: object) -> AttributeValue:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and _encodes(value):
        return value
    return OF_ANOTHER_TYPE


def _may_be_named(name: str) -> bool:
    """Whether a path may have the name."""
    return _encodes(name) and len(name.encode()) <= LONGEST_STEP


def _encodes(text: str) -> bool:
    """Whether a text has UTF-8. JSON can contain halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _integer(text: str) -> int | float:
    value = int(text)
    return value if value in _INT64 else float(text)
