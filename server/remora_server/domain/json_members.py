"""Comparing JSON: objects member by member (equal values have equal digests), and the content of strings."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

MOST_NESTED = 100
"""The deepest nesting of arrays and objects. Readers that use recursion may fail on more."""

LONGEST = 1_024
"""The longest member, as canonical JSON, that is compared where there may be many."""


class NotAnObject(ValueError):
    """JSON that is something else."""


def members(data: bytes) -> dict[str, object]:
    """The members of an object; none if there are no bytes. Raises ValueError if it is no object.

    Of two members with the same name the last counts, as in most parsers. Equal numbers become one, and no others do.
    """
    if not data:
        return {}
    try:
        found = _COMPARABLE.decode(data.decode())
    except RecursionError:
        raise ValueError("is nested too deep") from None
    if not isinstance(found, dict):
        raise NotAnObject("is not an object")
    _require_shallow(found)
    return found


def require_json(data: bytes) -> None:
    """Raise ValueError unless bytes are JSON in UTF-8: finite doubles, valid Unicode, at most MOST_NESTED deep."""
    try:
        found = _FINITE.decode(data.decode())
    except RecursionError:
        raise ValueError("is nested too deep") from None
    _require_shallow(found)
    if b"\\u" in data:  # only an escape can be half of a surrogate pair
        json.dumps(found, ensure_ascii=False).encode()


def digests(data: bytes) -> list[str]:
    """One text for each member of an object, by its name and its value. Raises ValueError if it is no object."""
    return [_digest(name, value) for name, value in members(data).items()]


def joined_digests(data: bytes) -> str:
    """The same as one text."""
    return "".join(digests(data))


def short_digests(data: bytes) -> str:
    """The same without members that are longer than LONGEST."""
    short = (each for each in members(data).items() if len(canonical(*each)) <= LONGEST)
    return "".join(_digest(*each) for each in short)


def text_of(data: bytes) -> str:
    """The content of a JSON string; for any other value, the bytes as text."""
    if data.startswith(b'"'):
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if isinstance(found, str):
            return found.encode("utf-8", "replace").decode()
    return data.decode("utf-8", "replace")


def canonical(name: str, value: object) -> str:
    """A member as JSON, which is the same for equal members."""
    encode = _BRIEF.get(type(value), _CANONICAL.encode)
    return f"[{encode_basestring_ascii(name)},{encode(value)}]"


def _digest(name: str, value: object) -> str:
    return f",{hashlib.blake2b(canonical(name, value).encode(), digest_size=16).hexdigest()}"


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is larger than a double can be")
    return value


def _refuse(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


def _require_shallow(value: object) -> None:
    """Raise ValueError if a value is nested deeper than MOST_NESTED."""
    level = [value]
    for _ in range(MOST_NESTED):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _within(one)]
        if not level:
            return
    raise ValueError(f"is nested more than {MOST_NESTED} levels deep")


def _within(value: dict[str, object] | list[object]) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value


_COMPARABLE = json.JSONDecoder(parse_float=_number, parse_constant=_refuse)
_FINITE = json.JSONDecoder(parse_int=_finite, parse_float=_finite, parse_constant=_refuse)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_BRIEF: Mapping[type, Callable[[Any], str]] = {str: encode_basestring_ascii, int: int.__repr__}
"""How it encodes the values that most members have. By itself, it takes several times as long to begin."""
