"""JSON Schemas of callers, and the check of values against them. They cannot refer to anything outside themselves."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote

import jsonschema_rs
from msgspec import Struct

from remora_server.domain import json_members
from remora_server.domain.errors import InvalidField

LONGEST_REASON = 300
"""The greatest length of a schema's complaint, which may quote the value, in characters."""
MOST_UNFOLDED = 100_000
"""How many parts a schema may have where each reference is replaced by what it refers to: the library may check each of
them, and a short schema may have more than there is time for. Types that refer to each other count as often as ways
lead to them: eight whose two members may each be any of the eight have 78,730 parts.
"""
MOST_EXPLAINED = 10_000
"""The same where the library is asked why a value does not match, for references that return as often as the value is
deep: it collects the complaints of all alternatives, and of theirs.
"""
_DEFINITIONS = ("$defs", "definitions")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_NAMES = ("$id", "id", *_ANCHORS)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Validator(Protocol):
    """The library's compiled schema."""

    def is_valid(self, instance: object) -> bool: ...

    def validate(self, instance: object) -> None: ...


class Unfolded(Struct, frozen=True):
    """What a schema is where each reference is replaced by what it refers to: how many `parts` it has, and how many of
    its references `return` to what they are in, where they are not followed.
    """

    parts: int = 0
    returns: int = 0

    def explains(self, value: object) -> bool:
        """Whether the library may say why a value does not match."""
        most: int = self.parts * max(1, self.returns) ** _depth(value)
        return most <= MOST_EXPLAINED


class JsonSchema(Struct, frozen=True):
    """A schema, ready to check values. Any number of threads may use it."""

    validator: Validator
    unfolded: Unfolded

    def require(self, field: str, value: object) -> None:
        """Raise InvalidField if a value of this field does not match."""
        try:
            if self.validator.is_valid(value):
                return
            if not self.unfolded.explains(value):
                raise InvalidField(field, "does not match the schema, which has too many references to say where")
            self.validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            raise InvalidField(
                field, f"does not match the schema at {_path(error)}: {_shortened(error.message)}"
            ) from None
        except ValueError as error:  # nested more deeply than the library supports
            raise InvalidField(field, f"cannot be compared with the schema: {_shortened(str(error))}") from None


@lru_cache(maxsize=64)
def json_schema(field: str, text: str) -> JsonSchema:
    """The schema in a text of this field. Raises InvalidField.

    The draft is 2020-12 if `$schema` names none. Patterns match in linear time. A `$ref` finds only what is in the
    schema or in the drafts themselves. All of them followed, there are at most MOST_UNFOLDED parts.
    """
    data = text.encode()
    try:
        json_members.require_json(data)
        schema = json.loads(data)
        if not isinstance(schema, dict | bool):
            raise InvalidField(field, "must be a JSON Schema: an object, true or false")
        unfolded = _unfolded(schema)
        if unfolded.parts > MOST_UNFOLDED:
            raise InvalidField(field, f"has more than {MOST_UNFOLDED:,} parts where its references are followed")
        validator = jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions(), offline=True)
        return JsonSchema(validator, unfolded)
    except jsonschema_rs.ValidationError as error:
        raise InvalidField(field, f"is not a JSON Schema at {_path(error)}: {_shortened(error.message)}") from None
    except jsonschema_rs.ReferencingError as error:
        raise InvalidField(field, f"refers to what it does not hold: {_shortened(str(error))}") from None
    except ValueError as error:
        raise InvalidField(field, f"must be JSON: {error}") from None


def _unfolded(schema: object) -> Unfolded:
    references = _References(schema)
    known: dict[int, Unfolded | None] = {}
    waiting = [(schema, False)]
    while waiting:
        part, are_its_parts_known = waiting.pop()
        if are_its_parts_known:
            within = [known[id(each)] for each in references.parts(part)]
            there = [each for each in within if each is not None]
            known[id(part)] = Unfolded(
                min(MOST_UNFOLDED, sum(each.parts for each in there)) + 1,
                min(MOST_UNFOLDED, sum(each.returns for each in there) + len(within) - len(there)),
            )
        elif id(part) not in known:
            known[id(part)] = None  # until its parts are known: one that refers to it returns
            waiting.append((part, True))
            waiting += [(each, False) for each in references.parts(part)]
    return known[id(schema)] or Unfolded()


class _References:
    """The objects and arrays of a schema, and what they refer to."""

    def __init__(self, schema: object) -> None:
        self._schema = schema
        self._based: list[object] = []
        self._anchored: defaultdict[str, list[object]] = defaultdict(list)
        for part in _all_within(schema):
            if isinstance(part, dict):
                self._note(part)

    def _note(self, part: dict[str, object]) -> None:
        """Keep a part where it has a name, or references within it a base of their own."""
        for keyword in _NAMES:
            name = part.get(keyword)
            if not isinstance(name, str):
                continue
            if keyword in _ANCHORS or name.startswith("#"):
                self._anchored[name.removeprefix("#")].append(part)
            elif part is not self._schema:  # whose base is that of all references, if none is named
                self._based.append(part)

    def parts(self, part: object) -> list[object]:
        """What is right within a part, and what that refers to. Definitions count where they are referred to."""
        if not isinstance(part, dict):
            return _within(part)
        if part is self._schema:
            part = {keyword: value for keyword, value in part.items() if keyword not in _DEFINITIONS}
        referred = {id(each): each for each in self._referred(part)}
        return [*_within(part), *referred.values()]

    def _referred(self, part: dict[str, object]) -> Iterator[object]:
        """What is referred to. Where that depends on bases, all that may be."""
        for keyword in _REFERENCES:
            reference = part.get(keyword)
            if isinstance(reference, str):
                fragment = unquote(reference.partition("#")[2])
                yield from self._based
                yield from self._anchored.get(fragment, ()) if fragment else ()
                yield from _at(self._schema, fragment)


def _at(schema: object, pointer: str) -> Iterator[object]:
    """The object or array at a JSON Pointer, if there is one."""
    first, *steps = pointer.split("/")
    found = None if first else schema
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name in map(str, range(len(found))):
            found = found[int(name)]
        else:
            return
    if isinstance(found, dict | list):
        yield found


def _all_within(value: object) -> Iterator[object]:
    """The objects and arrays of a value, itself included."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += _within(part)


def _within(value: object) -> list[object]:
    """The objects and arrays right within a value."""
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for each in found if isinstance(each, dict | list)]


def _depth(value: object) -> int:
    """How deep objects and arrays are within each other."""
    return max((1 + _depth(each) for each in _within(value)), default=0)


def _path(error: jsonschema_rs.ValidationError) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)


def _shortened(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."
