"""Every place of a request where a value may stand, found by its descriptors, and requests with a value there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from remora_server.rpc.checks.request_rules import DERIVED

KEY = "a"
"""The key under which a place within a map lies."""


@dataclass(frozen=True)
class Place:
    """A field of a request, or one within it: `fields` leads there, through first elements and the map's entry KEY.

    `of_element` means the field's first element (or KEY's value), not all of them.
    """

    request: Descriptor
    fields: tuple[FieldDescriptor, ...]
    of_element: bool = False

    @property
    def field(self) -> FieldDescriptor:
        return self.fields[-1]

    @property
    def holder(self) -> Descriptor:
        """The type of the message whose field it is."""
        return cast("Descriptor", self.field.containing_type)

    @property
    def names(self) -> str:
        """The path without places in lists: `messages.attributes.text`."""
        return ".".join(field.name for field in self.fields)

    @property
    def path(self) -> str:
        """The path as an error gives it: `messages[0].attributes["a"].text`."""
        steps = [step(field) for field in self.fields[:-1]]
        return ".".join([*steps, step(self.field) if self.of_element else self.field.name])

    def __str__(self) -> str:
        return f"{self.request.name} {self.path}"


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def step(field: FieldDescriptor) -> str:
    """A field that is passed through on the way to a place, as a part of the path."""
    if is_map(field):
        return f'{field.name}["{KEY}"]'
    return f"{field.name}[0]" if field.is_repeated else field.name


def value_type(field: FieldDescriptor) -> Descriptor:
    """The message that the values of a map are."""
    entry = cast("Descriptor", field.message_type)
    return cast("Descriptor", entry.fields_by_name["value"].message_type)


def inner(field: FieldDescriptor) -> Descriptor | None:
    """The message that a field holds, or its elements are; None where it holds none. A duration is one value."""
    message = value_type(field) if is_map(field) else field.message_type
    return None if message is None or message.full_name == Duration.DESCRIPTOR.full_name else message


def places(request: Descriptor) -> Iterator[Place]:
    """All places of a request that are looked at.

    Of a message that can hold another of its type, those within the first.
    """
    return _places(request, request, ())


def _places(request: Descriptor, message: Descriptor, above: tuple[FieldDescriptor, ...]) -> Iterator[Place]:
    for field in message.fields:
        fields = (*above, field)
        yield Place(request, fields)
        within = inner(field)
        if field.full_name in DERIVED:
            continue
        if within is not None and all(within != one.containing_type for one in fields):
            yield from _places(request, within, fields)
        elif within is None and field.is_repeated:
            yield Place(request, fields, of_element=True)


def holder(request: Message, place: Place, templates: Mapping[str, Mapping[str, Any]]) -> Any:  # noqa: ANN401
    """The message within a request whose field a place is, made from templates (by full name) where it is not there."""
    message: Any = request
    for field in place.fields[:-1]:
        message = _within(message, field, templates)
    return message


def _within(message: Any, field: FieldDescriptor, templates: Mapping[str, Mapping[str, Any]]) -> Any:  # noqa: ANN401
    held = getattr(message, field.name)
    within = cast("Descriptor", inner(field))
    least = templates.get(field.full_name) or templates.get(within.full_name, {})
    template = cast("Any", GetMessageClass(within))(**least)
    if is_map(field):
        if KEY not in held:
            held[KEY].CopyFrom(template)
        return held[KEY]
    if field.is_repeated:
        if not held:
            held.append(template)
        return held[0]
    if not message.HasField(field.name):
        held.CopyFrom(template)
    return held


def put(request: Message, place: Place, value: Any, templates: Mapping[str, Mapping[str, Any]]) -> Message:  # noqa: ANN401
    """The request with a value at a place; None: nothing there."""
    message, field = holder(request, place, templates), place.field
    message.ClearField(field.name)
    held = getattr(message, field.name)
    if value is None:
        return request
    if is_map(field):
        for key, entry in value.items():
            held[key].CopyFrom(_message(value_type(field), entry))
    elif field.is_repeated:
        values = [value] if place.of_element else value
        held.extend(values if field.message_type is None else (_message(field.message_type, one) for one in values))
    elif field.message_type is not None:
        held.CopyFrom(_message(field.message_type, value))
    else:
        setattr(message, field.name, value)
    return request


def _message(kind: Descriptor, value: Any) -> Message:  # noqa: ANN401
    return value if isinstance(value, Message) else cast("Any", GetMessageClass(kind))(**value)
