"""Rules that say what a value of a request may be. `request_rules` composes them; the first violation ends the check.

A rule is called with a value and returns nothing, or raises a Violation whose path starts at that value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from operator import attrgetter, methodcaller
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

Rule: TypeAlias = Callable[[Any], None]

# The range of google.protobuf.Timestamp: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
MAX_NANOS = 999_999_999

REMEMBERED, REMEMBERED_BYTES = 1_024, 1_024
"""How many messages `remembered` keeps, and how long each is at most."""


class Violation(Exception):
    """A value breaks a rule. `path` leads from the value that was checked to the part that is wrong."""

    def __init__(self, description: str, path: str = "") -> None:
        super().__init__(description)
        self.description = description
        self.path = path

    def under(self, name: str) -> Violation:
        """The same violation, with a path from the value that holds this one."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return Violation(self.description, f"{name}{dot}{self.path}")


class MessageRules:
    """The rules of one type of message: of its fields, of what must be set, and of all of it together."""

    def __init__(self) -> None:
        # By descriptor, of which there is one object each. Its name would be a new string each time.
        self.of_fields: dict[FieldDescriptor, Rule] = {}
        self.required: list[tuple[str, Callable[[Message], object], str]] = []
        self.together: list[Rule] = []

    def __call__(self, message: Message) -> None:
        of_fields = self.of_fields
        for field, value in message.ListFields():
            try:
                of_fields[field](value)
            except Violation as violation:
                raise violation.under(field.name) from None
        for name, is_set, complaint in self.required:
            if not is_set(message):
                raise Violation(complaint, name)
        for rule in self.together:
            rule(message)

    def require(self, descriptor: Descriptor, name: str) -> None:
        """Demand that a field or a oneof is set."""
        self.required.append((name, presence(descriptor, name), _complaint(descriptor, name)))


def _complaint(descriptor: Descriptor, name: str) -> str:
    """What is said where it is not set. The name of a oneof is in no request, those of its fields are."""
    oneof = descriptor.oneofs_by_name.get(name)
    if oneof is None:
        return "is required"
    return f"is required: set one of {', '.join(field.name for field in oneof.fields)}"


def presence(descriptor: Descriptor, name: str) -> Callable[[Message], object]:
    """Tells whether a field or a oneof is set. A field without presence is set if it differs from its default."""
    if name in descriptor.oneofs_by_name:
        return methodcaller("WhichOneof", name)
    if descriptor.fields_by_name[name].has_presence:
        return methodcaller("HasField", name)
    return attrgetter(name)


def remembered(rule: Rule, kind: type[Message]) -> Rule:
    """The rule of messages that come again and again: those that passed are not checked again, unless they are long."""

    @lru_cache(REMEMBERED)
    def check_encoded(encoded: bytes) -> None:
        rule(kind.FromString(encoded))

    def check(value: Message) -> None:
        encoded = value.SerializeToString()
        if len(encoded) > REMEMBERED_BYTES:
            rule(value)
        else:
            check_encoded(encoded)

    return check


def anything(_value: object) -> None:
    """No limit but protobuf's own, also for a field that is ignored."""


def text(maximum: int, *, minimum: int = 0) -> Rule:
    """Text with a range of bytes in UTF-8."""

    def check(value: str) -> None:
        characters = len(value)
        # A character takes 1 to 4 bytes: most texts need not be encoded.
        if characters * 4 > maximum:
            _at_most(len(value.encode()), maximum, "bytes")
        if characters < minimum:
            _at_least(len(value.encode()), minimum)

    return check


def data(maximum: int) -> Rule:
    """Bytes with a range of lengths."""
    return lambda value: _at_most(len(value), maximum, "bytes")


def number(minimum: float | None, maximum: float | None) -> Rule:
    """A number in a range, one end of which may be open. NaN is in no range."""

    def check(value: float) -> None:
        if (minimum is not None and not value >= minimum) or (maximum is not None and not value <= maximum):
            raise Violation(f"is {value}; it must be {_range(minimum, maximum)}")

    return check


def _range(minimum: float | None, maximum: float | None) -> str:
    if minimum is None or maximum is None:
        return f"at most {maximum:,}" if minimum is None else f"at least {minimum:,}"
    return f"from {minimum:,} to {maximum:,}"


def finite(value: float) -> None:
    """A double that is a number and not infinite."""
    if not math.isfinite(value):
        raise Violation("must be finite")


def known(enum: EnumDescriptor) -> Rule:
    """One of the values that the enum defines."""
    numbers = frozenset(enum.values_by_number)

    def check(value: int) -> None:
        if value not in numbers:
            raise Violation(f"{value} is not a value of {enum.name}")

    return check


def one_of(words: Sequence[str]) -> Rule:
    """One of these words."""
    allowed = tuple(words)

    def check(value: str) -> None:
        if value not in allowed:
            raise Violation(f"must be one of {', '.join(allowed)}")

    return check


def mask(words: Sequence[str]) -> Rule:
    """A mask of these fields and their parts."""
    allowed = tuple(words)
    within = tuple(f"{word}." for word in words)

    def check_path(path: str) -> None:
        if path not in allowed and not path.startswith(within):
            raise Violation(f"must be one of {', '.join(allowed)}")

    return lambda value: _each(check_path, value.paths, "paths")


def each(rule: Rule | None = None, *, maximum: int | None = None) -> Rule:
    """A list with a range of lengths, in which each element keeps the rule."""

    def check(values: Collection[object]) -> None:
        if maximum is not None:
            _at_most(len(values), maximum, "elements")
        if rule is not None:
            _each(rule, values)

    return check


def _each(rule: Rule, values: Collection[object], name: str = "") -> None:
    for index, value in enumerate(values):
        try:
            rule(value)
        except Violation as violation:
            raise violation.under(f"{name}[{index}]") from None


def entries(key_rule: Rule, value_rule: Rule, *, maximum: int) -> Rule:
    """A map with a bound on its entries, in which keys and values keep these rules."""

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
    if not 0 <= value.nanos <= MAX_NANOS:
        raise Violation(f"must be from 0 to {MAX_NANOS}", "nanos")


def duration(minimum: Duration, maximum: Duration) -> Rule:
    """A duration between two bounds."""
    least, most = minimum.ToNanoseconds(), maximum.ToNanoseconds()

    def check(value: Duration) -> None:
        if not _is_duration(value) or not least <= value.ToNanoseconds() <= most:
            raise Violation(f"must be from {least / 1e9:.10g} to {most / 1e9:.10g} s")

    return check


def _is_duration(value: Duration) -> bool:
    """Whether seconds and nanoseconds have the same sign, and the nanoseconds are less than a second."""
    return -MAX_NANOS <= value.nanos <= MAX_NANOS and value.seconds * value.nanos >= 0


def _at_most(size: int, maximum: int, unit: str) -> None:
    if size > maximum:
        raise Violation(f"has {size:,} {unit}; at most {maximum:,} are allowed")


def _at_least(size: int, minimum: int) -> None:
    if size < minimum:
        raise Violation("must not be empty" if minimum == 1 else f"has {size:,} bytes; at least {minimum:,} are needed")
