"""JSON Schemas of callers, and the check of values against them. They cannot refer to anything outside themselves."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Protocol

import jsonschema_rs
from msgspec import Struct

from remora_server.domain import json_members
from remora_server.domain.errors import InvalidField

LONGEST_REASON = 300
"""The greatest length of a schema's complaint, which may quote the value, in characters."""


class Validator(Protocol):
    """The library's compiled schema."""

    def validate(self, instance: object) -> None: ...


class JsonSchema(Struct, frozen=True):
    """A schema, ready to check values. Any number of threads may use it."""

    validator: Validator

    def require(self, field: str, value: object) -> None:
        """Raise InvalidField if a value of this field does not match."""
        try:
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
    schema or in the drafts themselves.
    """
    data = text.encode()
    try:
        json_members.require_json(data)
        schema = json.loads(data)
        if not isinstance(schema, dict | bool):
            raise InvalidField(field, "must be a JSON Schema: an object, true or false")
        return JsonSchema(
            jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions(), offline=True)
        )
    except jsonschema_rs.ValidationError as error:
        raise InvalidField(field, f"is not a JSON Schema at {_path(error)}: {_shortened(error.message)}") from None
    except jsonschema_rs.ReferencingError as error:
        raise InvalidField(field, f"refers to what it does not hold: {_shortened(str(error))}") from None
    except ValueError as error:
        raise InvalidField(field, f"must be JSON: {error}") from None


def _path(error: jsonschema_rs.ValidationError) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)


def _shortened(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."
