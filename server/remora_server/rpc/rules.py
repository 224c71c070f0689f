"""Rules that say what a field of a request may be. `limits` composes them; the first violation ends the check.

A rule is called with a value and returns nothing, or raises a Violation whose path starts at that value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

Rule: TypeAlias = Callable[[Any], None]

# The range of google.protobuf.Timestamp: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799


class Violation(Exception):
    """A value breaks a rule. `path` leads from the value that was checked to the part that is wrong."""

    def __init__(self, description: str, path: str = "") -> None:
        super().__init__(description)
        self.description = description
        self.path = path

    def under(self, name: str) -> Violation:
        """The same, seen from the value that holds this one."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return Violation(self.description, f"{name}{dot}{self.path}")


class Fields:
    """The rules of one type of message: one for each of its fields, none left out.

    `required` names fields and oneofs that must be set; `together` is a rule of the whole message.
    """

    def __init__(
        self,
        message_type: type[Message],
        *,
        required: Collection[str] = (),
        together: Rule | None = None,
        **rules: Rule,
    ) -> None:
        _require_complete(message_type, rules)
        self.message_type = message_type
        # By descriptor: each has one object, and to ask it for its name makes a string.
        self.rules = {message_type.DESCRIPTOR.fields_by_name[name]: rule for name, rule in rules.items()}
        self._present = [(name, _presence(message_type, name)) for name in required]
        self._together = together

    def __call__(self, message: Message) -> None:
        for field, value in message.ListFields():
            try:
                self.rules[field](value)
            except Violation as violation:
                raise violation.under(field.name) from None
        for name, present in self._present:
            if not present(message):
                raise Violation("is required", name)
        if self._together is not None:
            self._together(message)


def _require_complete(message_type: type[Message], rules: Collection[str]) -> None:
    descriptor = message_type.DESCRIPTOR
    differing = set(rules).symmetric_difference(descriptor.fields_by_name)
    if differing:
        raise TypeError(f"the rules of {descriptor.full_name} and its fields differ: {sorted(differing)}")


def _presence(message_type: type[Message], name: str) -> Callable[[Message], bool]:
    descriptor = message_type.DESCRIPTOR
    if name in descriptor.oneofs_by_name:
        return lambda message: message.WhichOneof(name) is not None
    field = descriptor.fields_by_name[name]
    if field.is_repeated or field.type != FieldDescriptor.TYPE_MESSAGE:
        return lambda message: bool(getattr(message, name))
    return lambda message: message.HasField(name)


def anything(_value: object) -> None:
    """No limit: what protobuf itself allows, or a field that is ignored."""


def text(maximum: int, *, minimum: int = 0) -> Rule:
    """Text of so many bytes in UTF-8."""

    def check(value: str) -> None:
        # A character takes at most 4 bytes: most texts are short enough without being encoded.
        if len(value) * 4 > maximum:
            _at_most(len(value.encode()), maximum, "bytes")
        if len(value) < minimum:
            raise Violation("must not be empty")

    return check


def data(maximum: int) -> Rule:
    """So many bytes."""
    return lambda value: _at_most(len(value), maximum, "bytes")


def whole(minimum: int, maximum: int | None = None) -> Rule:
    """An integer in a range."""

    def check(value: int) -> None:
        if value < minimum or (maximum is not None and value > maximum):
            raise Violation(f"is {value}; it must be {_range(minimum, maximum)}")

    return check


def at_most(maximum: int) -> Rule:
    """An unsigned integer up to a maximum."""

    def check(value: int) -> None:
        if value > maximum:
            raise Violation(f"is {value}; it must be at most {maximum}")

    return check


def _range(minimum: int, maximum: int | None) -> str:
    return f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"


def finite(value: float) -> None:
    """A double that is a number and not infinite."""
    if not math.isfinite(value):
        raise Violation("must be finite")


def weight(value: float) -> None:
    """A double from 0 to 100."""
    if not 0 <= value <= 100:
        raise Violation("must be from 0 to 100")


def known(enum: EnumDescriptor) -> Rule:
    """A value that the enum has."""
    numbers = frozenset(enum.values_by_number)

    def check(value: int) -> None:
        if value not in numbers:
            raise Violation(f"{value} is no {enum.name}")

    return check


def one_of(*words: str) -> Rule:
    """One of these words."""

    def check(value: str) -> None:
        if value not in words:
            raise Violation(f"must be one of {', '.join(words)}")

    return check


def each(rule: Rule, *, maximum: int | None = None) -> Rule:
    """A list of at most so many, each of which keeps the rule."""

    def check(values: Collection[object]) -> None:
        if maximum is not None:
            _at_most(len(values), maximum, "elements")
        for index, value in enumerate(values):
            try:
                rule(value)
            except Violation as violation:
                raise violation.under(f"[{index}]") from None

    return check


def entries(value_rule: Rule, *, maximum: int, key_bytes: int) -> Rule:
    """A map of at most so many entries with keys of 1 to so many bytes."""
    key_rule = text(key_bytes, minimum=1)

    def check(values: dict[str, object]) -> None:
        _at_most(len(values), maximum, "entries")
        for key, value in values.items():
            try:
                key_rule(key)
            except Violation as violation:
                raise Violation(f"has a key that {violation.description}") from None
            try:
                value_rule(value)
            except Violation as violation:
                raise violation.under(f'["{key}"]') from None

    return check


def timestamp(value: Timestamp) -> None:
    """A time from year 1 to year 9999."""
    if not FIRST_SECOND <= value.seconds <= LAST_SECOND:
        raise Violation("must be from 0001-01-01 to 9999-12-31", "seconds")
    if not 0 <= value.nanos <= 999_999_999:
        raise Violation("must be from 0 to 999999999", "nanos")


def duration(maximum: int) -> Rule:
    """A duration from zero to so many seconds."""

    def check(value: Duration) -> None:
        if not 0 <= value.nanos <= 999_999_999 or not 0 <= value.seconds + value.nanos / 1e9 <= maximum:
            raise Violation(f"must be from 0 to {maximum} s")

    return check


def _at_most(size: int, maximum: int, unit: str) -> None:
    if size > maximum:
        raise Violation(f"has {size:,} {unit}; at most {maximum:,} are allowed")
