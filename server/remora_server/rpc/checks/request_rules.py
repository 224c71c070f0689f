"""Compiles the rules of types of messages from the options that the contract states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from remora_server.rpc.checks import rules
from remora_server.rpc.checks.options import ContractOptions, Stated, stated
from remora_server.rpc.checks.rules import MessageRules, Rule, Violation

DERIVED = frozenset({"remora.v1.MemoryItem.indexed", "remora.v1.Fact.indexed"})
"""Maps that only exports have. An import makes them anew, so no value of them is refused."""


class RequestRules:
    """The rules of types of messages, each compiled once. A type may contain itself.

    `together` has the rule of a whole message, by the message's full name. `required_within` names, by the full name of
    a field, what the field's message must have besides what its type demands. `remembered` names fields whose messages
    come again and again.
    """

    def __init__(
        self,
        options: ContractOptions,
        together: Mapping[str, Rule],
        required_within: Mapping[str, Sequence[str]],
        remembered: Collection[str] = (),
    ) -> None:
        self._options = options
        self._together = together
        self._required_within = required_within
        self._remembered = remembered
        self._compiled: dict[str, MessageRules] = {}

    def of(self, descriptor: Descriptor) -> MessageRules:
        """The rules of the type of message with this descriptor.

        Raises TypeError for an unknown option, so that none is ignored, and KeyError for a field that the options'
        contract does not have.
        """
        name = descriptor.full_name
        if name not in self._compiled:
            self._compiled[name] = MessageRules()
            self._compile(descriptor, self._compiled[name])
        return self._compiled[name]

    def _compile(self, descriptor: Descriptor, compiled: MessageRules) -> None:
        for field in descriptor.fields:
            given = dict(self._options.of_field(field.full_name))
            is_required = given.pop("required", False)
            rule = self._of_field(field, given)
            compiled.of_fields[field] = rules.anything if rule is None else rule
            if is_required or _refuses_default(field, rule):
                compiled.require(descriptor, field.name)
        for oneof in descriptor.oneofs:
            if _only("required", self._options.of_oneof(oneof.full_name), oneof.full_name):
                compiled.require(descriptor, oneof.name)
        for choice in _only("oneof", self._options.of_message(descriptor.full_name), descriptor.full_name) or ():
            compiled.together.append(_at_most_one(descriptor, choice.fields))
        if descriptor.full_name in self._together:
            compiled.together.append(self._together[descriptor.full_name])

    def _of_field(self, field: FieldDescriptor, given: Stated) -> Rule | None:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return self._of_map(field, _only("map", given, field.full_name))
        if field.is_repeated:
            return self._of_list(field, _only("repeated", given, field.full_name))
        return self._of_value(field, given)

    def _of_list(self, field: FieldDescriptor, options: Message | None) -> Rule | None:
        settings = _settings(options)
        maximum, items = settings.pop("max_items", None), settings.pop("items", None)
        _require_none(settings, field.full_name)
        element = self._of_value(field, _settings(items))
        return None if maximum is None and element is None else rules.each(element, maximum=maximum)

    def _of_map(self, field: FieldDescriptor, options: Message | None) -> Rule:
        key, value = (_message_of(field).fields_by_name[name] for name in ("key", "value"))
        settings = _settings(options)
        maximum, keys = settings.pop("max_pairs"), settings.pop("keys")
        _require_none(settings, field.full_name)
        key_rule = self._of_value(key, _settings(keys))
        value_rule = rules.anything if field.full_name in DERIVED else self._of_value(value, {})
        if key_rule is None or value_rule is None:
            raise TypeError(f"{field.full_name}: no rule for keys or values of a map")
        return rules.entries(key_rule, value_rule, maximum=maximum)

    def _of_value(self, field: FieldDescriptor, given: Stated) -> Rule | None:
        """The rule of one value of a field; None if any value is allowed."""
        message = field.message_type
        if message is not None and message.full_name not in _WELL_KNOWN:
            _require_none(given, field.full_name)
            return self._of_message(field, message)
        kind = _KINDS[field.type] if message is None else _WELL_KNOWN[message.full_name]
        settings = _settings(_only(kind, given, field.full_name))
        rule = _BUILDERS[kind](field, settings)
        _require_none(settings, field.full_name)
        return rule

    def _of_message(self, field: FieldDescriptor, message: Descriptor) -> Rule:
        """The rule of a field's message."""
        names = self._required_within.get(field.full_name, ())
        rule = _both(self.of(message), _required(field, names)) if names else self.of(message)
        return rules.remembered(rule, GetMessageClass(message)) if field.full_name in self._remembered else rule


def _settings(options: Message | None) -> dict[str, Any]:
    return {} if options is None else dict(stated(options))


def _only(name: str, given: Stated, of: str) -> Any:  # noqa: ANN401 - of the option
    """The option of this name; None if it is not set. Raises TypeError if others are set."""
    _require_none(set(given) - {name}, of)
    return given.get(name)


def _require_none(left: Collection[str], of: str) -> None:
    if left:
        raise TypeError(f"{of} has options that the server does not know: {sorted(left)}")


def _refuses_default(field: FieldDescriptor, rule: Rule | None) -> bool:
    """Whether a field without presence must be set. Its default is not checked otherwise."""
    if rule is None or field.has_presence or field.is_repeated:
        return False
    try:
        rule(field.default_value)
    except Violation:
        return True
    return False


def _required(field: FieldDescriptor, names: Sequence[str]) -> Rule:
    found = [(name, rules.presence(_message_of(field), name)) for name in names]

    def check(message: Message) -> None:
        for name, is_set in found:
            if not is_set(message):
                raise Violation("is required", name)

    return check


def _message_of(field: FieldDescriptor) -> Descriptor:
    return cast("Descriptor", field.message_type)


def _both(first: Rule, second: Rule) -> Rule:
    def check(value: object) -> None:
        first(value)
        second(value)

    return check


def _at_most_one(descriptor: Descriptor, names: Sequence[str]) -> Rule:
    """Require that at most one of these fields is set."""
    found = [(name, rules.presence(descriptor, name)) for name in names]

    def check(message: Message) -> None:
        given = [name for name, is_set in found if is_set(message)]
        if len(given) > 1:
            raise Violation(f"must be empty where {given[0]} are given", given[1])

    return check


Builder: TypeAlias = Callable[[FieldDescriptor, dict[str, Any]], Rule | None]
"""Makes the rule of a value from the settings of its kind, and removes the settings that it knows."""


def _text(_field: FieldDescriptor, settings: dict[str, Any]) -> Rule | None:
    words = settings.pop("in", None)
    if words is not None:
        return rules.one_of(words)
    if not settings:
        return None
    return rules.text(settings.pop("max_bytes"), minimum=settings.pop("min_bytes", 0))


def _data(_field: FieldDescriptor, settings: dict[str, Any]) -> Rule | None:
    return rules.data(settings.pop("max_len")) if settings else None


def _number(_field: FieldDescriptor, settings: dict[str, Any]) -> Rule | None:
    if settings.pop("finite", False):
        return rules.finite
    if not settings:
        return None
    return rules.number(settings.pop("gte", None), settings.pop("lte", None))


def _known(field: FieldDescriptor, settings: dict[str, Any]) -> Rule | None:
    return rules.known(cast("EnumDescriptor", field.enum_type)) if settings.pop("defined_only", False) else None


def _timestamp(_field: FieldDescriptor, _settings: dict[str, Any]) -> Rule:
    return rules.timestamp


def _duration(_field: FieldDescriptor, settings: dict[str, Any]) -> Rule:
    return rules.duration(settings.pop("gte"), settings.pop("lte"))


def _mask(_field: FieldDescriptor, settings: dict[str, Any]) -> Rule:
    return rules.mask(settings.pop("in"))


def _anything(_field: FieldDescriptor, _settings: dict[str, Any]) -> None:
    return None


_KINDS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_ENUM: "enum",
}

_WELL_KNOWN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "google.protobuf.FieldMask": "field_mask",
}

_BUILDERS: Mapping[str, Builder] = {
    "string": _text,
    "bytes": _data,
    "int32": _number,
    "int64": _number,
    "uint64": _number,
    "double": _number,
    "bool": _anything,
    "enum": _known,
    "timestamp": _timestamp,
    "duration": _duration,
    "field_mask": _mask,
}
