"""What the contract's options say that a field may be, as values: some that are accepted and some that are not.

This reads the options for itself: the server's rules are what it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from tests.input.places import Place

from remora_server.rpc.checks import options

OPTIONS = options.of_contract()
LARGE = (2**31, 2**32, 2**53, 2**62, 2**63 - 1)
"""Numbers at which what is smaller inside ends."""
NANOSECONDS = 1_000_000_000
MOST = ("max_bytes", "max_len", "max_items")
"""The options that bound the size of a text, of bytes and of a list."""


@dataclass(frozen=True)
class Values:
    """Values of a field that are accepted, and values that are not."""

    accepted: tuple[Any, ...] = ()
    refused: tuple[Any, ...] = ()


def most_of(field: str) -> int:
    """The most bytes or items that a field of the contract may have: `Message.field`."""
    given = dict(OPTIONS.of_field(f"remora.v1.{field}"))
    given.pop("required", None)
    [message] = given.values()
    [most] = (value for name, value in options.stated(message).items() if name in MOST)
    return int(most)


def texts(least: int, most: int) -> Values:
    """Texts at and beyond these sizes, in letters of one and of two bytes."""
    long = ("a" * (most + 1), "é" * (most // 2 + 1))
    fit = ("\0", "a" * most, "é" * (most // 2))
    return Values(fit, ("", *long)) if least else Values(("", *fit), long)


def chunks(most: int, *, required: bool) -> Values:
    """Anything that long: bytes that are no text, and JSON nested deep, which nobody reads."""
    fit = (b"\xff\0" * (most // 2), b"[" * most)
    return Values(fit, (b"", bytes(most + 1))) if required else Values((b"", *fit), (bytes(most + 1),))


def numbers(field: FieldDescriptor, settings: Mapping[str, Any], *, required: bool) -> Values:
    """The ends of a range, and what lies beside it. Zero is not set where something must be."""
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return _doubles(settings)
    bits, unsigned = (32 if field.type == FieldDescriptor.TYPE_INT32 else 64), field.type == FieldDescriptor.TYPE_UINT64
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    first, last = max(settings.get("gte", least), 1 if required else least), settings.get("lte", most)
    beside = {first - 1, last + 1, least, most}
    large = (one for one in LARGE if first < one < last)
    return Values((first, *large, last), tuple(sorted(one for one in beside - {first, last} if least <= one <= most)))


def _doubles(settings: Mapping[str, Any]) -> Values:
    no_number = (math.nan, math.inf, -math.inf)
    if settings.get("finite"):
        return Values((0.0, -1.0, 1e300, 5e-324), no_number)
    first, last = settings["gte"], settings["lte"]
    return Values((first, last), (first - 0.1, last + 0.1, 1e300, *no_number))


def enum_values(field: FieldDescriptor, *, required: bool) -> Values:
    """All values that there are, and some that are not."""
    assert field.enum_type is not None
    known = tuple(number for number in field.enum_type.values_by_number if number or not required)
    unset = (0,) if required else ()
    return Values(known, (*unset, max(known) + 1, -1, 2**31 - 1, -(2**31)))


def durations(settings: Mapping[str, Any]) -> Values:
    """The ends of a range, what lies beside it, and what is no duration at all."""
    first, last = settings["gte"].ToNanoseconds(), settings["lte"].ToNanoseconds()
    return Values(
        tuple(_of_nanoseconds(each) for each in (first, first + 1, last)),
        (
            *(_of_nanoseconds(each) for each in (first - 1, last + 1, -NANOSECONDS)),
            Duration(nanos=NANOSECONDS),
            Duration(seconds=2**63 - 1),
            Duration(seconds=-(2**63)),
        ),
    )


def _of_nanoseconds(count: int) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(count)
    return duration


def words(allowed: Sequence[str]) -> Values:
    """All words that there are, and some that are not."""
    return Values(tuple(allowed), ("", "\0", allowed[0] + "x", allowed[0].upper(), "*"))


def lists(element: object, most: int, *, required: bool) -> Values:
    """The shortest and the longest list of an element, and longer ones."""
    least: list[Any] = [element] if required else []
    too_short: tuple[Any, ...] = ([],) if required else ()
    return Values((least, [element] * most), (*too_short, [element] * (most + 1)))


def maps(value: object, most: int, key_bytes: int) -> Values:
    """Maps of few and of many entries, and of short and of long keys."""
    return Values(
        ({}, {str(n): value for n in range(most)}, *({key: value} for key in texts(1, key_bytes).accepted)),
        ({str(n): value for n in range(most + 1)}, *({key: value} for key in texts(1, key_bytes).refused)),
    )


def stated(place: Place, element: object, *, required: bool) -> Values | None:
    """What the options say of a place, whose elements may be `element`; None where they say nothing.

    `required` says that it must be set in its place, whatever the options say.
    """
    given = dict(OPTIONS.of_field(place.field.full_name))
    required = bool(given.pop("required", False)) or required
    if not given:
        return Values((), (None,)) if required else None
    [(kind, message)] = given.items()
    settings = dict(options.stated(message))
    if kind == "map":
        return maps(element, settings["max_pairs"], settings["keys"].string.max_bytes)
    if kind == "repeated" and not place.of_element:
        return lists(element, settings["max_items"], required=required)
    if kind == "repeated":
        return _of_elements(place.field, settings)
    return _of_kind(place.field, kind, settings, required=required)


def _of_elements(field: FieldDescriptor, settings: Mapping[str, Any]) -> Values | None:
    if "items" not in settings:
        return None
    [(kind, message)] = options.stated(settings["items"]).items()
    return _of_kind(field, kind, options.stated(message), required=False)


def _of_kind(field: FieldDescriptor, kind: str, settings: Mapping[str, Any], *, required: bool) -> Values | None:
    match kind:
        case "string" if "in" in settings:
            return words(settings["in"])
        case "string":
            return texts(1 if required else settings.get("min_bytes", 0), settings["max_bytes"])
        case "bytes":
            return chunks(settings["max_len"], required=required)
        case "duration":
            return durations(settings)
        case "field_mask":
            return None
    return enum_values(field, required=required) if kind == "enum" else numbers(field, settings, required=required)


def masked(field: FieldDescriptor) -> Values:
    """What a mask may name, and what it may not: also not a part of a field."""
    allowed = list(options.stated(OPTIONS.of_field(field.full_name)["field_mask"])["in"])
    values = words(allowed)
    return Values(values.accepted, (*values.refused, f"{allowed[0]}.x"))
