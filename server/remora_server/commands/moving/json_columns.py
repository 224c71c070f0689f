"""Columns with JSON as JavaScript wrote it: checked, and otherwise left as it is, byte for byte."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from msgspec import MsgspecError, Raw
from msgspec.json import decode, encode

from remora_server.commands.moving.sqlite_file import Row


def data(row: Row, column: str) -> bytes:
    """The JSON of a column; empty for NULL, for an empty text, and if an older file has no such column."""
    text = row.optional_text(column)
    if text:
        value(row, column)
    return text.encode()


def value(row: Row, column: str) -> Any:  # noqa: ANN401 - whatever the column has
    """The value of a column; None if it has no JSON. Raises CommandFailed."""
    text = row.optional_text(column)
    try:
        return json.loads(text, parse_constant=_no_json) if text else None
    except (ValueError, RecursionError) as error:
        raise row.fault(column, f"is not JSON: {error}") from error


def members(row: Row, column: str) -> dict[str, Any]:
    """The members of a column's object, decoded; none for NULL."""
    found = value(row, column)
    if found is not None and not isinstance(found, dict):
        raise row.fault(column, "is not a JSON object")
    return found or {}


def raw_members(row: Row, column: str) -> dict[str, Raw]:
    """The members of a column's object as they are written; none for NULL."""
    members(row, column)
    try:
        return decode(data(row, column) or b"{}", type=dict[str, Raw])
    except MsgspecError as error:
        raise row.fault(column, f"is not JSON: {error}") from error


def written(given: dict[str, Raw]) -> bytes:
    """Members as an object; empty for none."""
    return encode(given) if given else b""


def _no_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")
