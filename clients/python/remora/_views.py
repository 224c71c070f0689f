"""Values from the wire that decode a field when it is first read."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from google.protobuf.message import Message

Decoders: TypeAlias = Mapping[str, Callable[[Any], object]]
"""How the field of each name is read from the message on the wire."""


def unchanged(*names: str) -> Decoders:
    """Decoders of fields that the message on the wire has under the same name and in the same form."""
    return {name: attrgetter(name) for name in names}


class View:
    """The base of a frozen dataclass under `view` that can be made of a message on the wire.

    Such a value keeps the message, and with it the whole reply, in memory.
    """

    _decoders: ClassVar[Decoders]

    @classmethod
    def _of(cls, wire: Message) -> Self:
        """The value of a message."""
        made = cls.__new__(cls)
        made.__dict__["_wire"] = wire
        return made

    def __getstate__(self) -> dict[str, object]:
        """What a copy and a pickle hold: the fields, without the message."""
        return {name: getattr(self, name) for name in self._decoders}


ViewT = TypeVar("ViewT", bound=View)


def view(cls: type[ViewT]) -> type[ViewT]:
    """Decorates a dataclass: a value of a message decodes a field when it is first read."""
    for field in fields(cls):  # type: ignore[arg-type] # a frozen dataclass: see View
        setattr(cls, field.name, _Decoded(field.name, cls._decoders[field.name]))
    return cls


class _Decoded:
    """Decodes a field when it is first read, and stores it in the instance, where it hides this non-data descriptor."""

    __slots__ = ("_decode", "_name")

    def __init__(self, name: str, decode: Callable[[Any], object]) -> None:
        self._name = name
        self._decode = decode

    def __get__(self, value: View | None, owner: type[View]) -> object:
        if value is None:
            return self
        kept = value.__dict__
        decoded = kept[self._name] = self._decode(kept["_wire"])
        return decoded
