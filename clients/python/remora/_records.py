"""Records that callers make and that the server gives back: how each of their fields is written and read."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

from google.protobuf.message import Message

from remora import _json
from remora._bounds import Between, Items, Name
from remora._times import optional_time, to_timestamp
from remora._views import Decoders

KIB, MIB = 1 << 10, 1 << 20

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object."""
Members: TypeAlias = Annotated[JsonObject, Items(16)]
"""Members that a JSON object must have with equal values."""
Label: TypeAlias = Annotated[str, Name(64, optional=True)]
"""Up to 64 bytes."""
Index: TypeAlias = Annotated[int, Between(0, 2**31 - 1)]
"""A place, from 0."""
Sequence64: TypeAlias = Annotated[int, Between(-(2**63), 2**63 - 1)]
"""A signed integer of 64 bits."""

WordT = TypeVar("WordT", bound=str)


class Field(NamedTuple):
    """One field of a record. Both functions also get its name."""

    write: Callable[[Any, str], object]
    """What a message on the wire is made with; None leaves the field unset."""
    read: Callable[[Any, str], object]
    """The value of a message on the wire."""


Fields: TypeAlias = Mapping[str, Field]
"""The fields of a record by their names, which are the same on the wire."""


def plain(*names: str) -> Fields:
    """Fields that have the same form on the wire."""
    return dict.fromkeys(names, Field(lambda value, _name: value, getattr))


def given_back(*names: str) -> Fields:
    """Fields that only the server sets."""
    return dict.fromkeys(names, Field(lambda _value, _name: None, getattr))


def optional(*names: str) -> Fields:
    """Fields in the same form on the wire that may be None."""
    return dict.fromkeys(
        names,
        Field(lambda value, _name: value, lambda wire, name: getattr(wire, name) if wire.HasField(name) else None),
    )


def opaque(most: int, *names: str) -> Fields:
    """Fields with anything that JSON can hold, or bytes: at most `most` bytes."""
    return dict.fromkeys(
        names,
        Field(
            lambda value, name: _json.to_opaque(value, name, most),
            lambda wire, name: _json.from_opaque(getattr(wire, name)),
        ),
    )


def json_objects(most: int, *names: str) -> Fields:
    """Fields with a JSON object of at most `most` bytes."""
    return dict.fromkeys(
        names,
        Field(
            lambda value, name: _json.to_opaque(None if value is None else dict(value), name, most),
            lambda wire, name: _json.loads_or_none(getattr(wire, name)),
        ),
    )


def texts(name: str) -> Fields:
    """A field with several texts."""
    return {name: Field(lambda value, _name: value, lambda wire, _name: tuple(getattr(wire, name)))}


def times(*names: str) -> Fields:
    """Fields with a time, or None."""
    return dict.fromkeys(
        names,
        Field(lambda value, _name: None if value is None else to_timestamp(value), optional_time),
    )


def word(name: str, numbers: Mapping[WordT, int], unknown: WordT) -> Fields:
    """A field with one of a few words; `unknown` stands for those of servers to come."""
    words = {number: written for written, number in numbers.items()}
    return {
        name: Field(lambda value, _name: numbers[value], lambda wire, _name: words.get(getattr(wire, name), unknown))
    }


def members(wanted: Members | None, name: str) -> bytes:
    """The members on the wire; none admit any object."""
    return _json.to_opaque(dict(wanted) if wanted else None, name, 64 * KIB)


def encoded(fields: Fields, values: Mapping[str, object]) -> dict[str, Any]:
    """What a message on the wire is made of, for some or all of the fields."""
    return {name: fields[name].write(value, name) for name, value in values.items()}


def values_of(record: object, fields: Fields) -> dict[str, object]:
    """The values of a record by the names of their fields."""
    return {name: getattr(record, name) for name in fields}


def decoders(fields: Fields) -> Decoders:
    """How a view of the record decodes its fields."""
    return {name: _decoder(name, field) for name, field in fields.items()}


def _decoder(name: str, field: Field) -> Callable[[Message], object]:
    return lambda wire: field.read(wire, name)
