"""JSON as it is stored: compact, in the order given, the same bytes for the same value."""

import json
from typing import Any

from remora import _refusals


def dumps(value: object) -> bytes:
    """The value as UTF-8. Raises TypeError or ValueError for what JSON cannot hold (NaN, objects)."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def loads(data: bytes) -> Any:  # noqa: ANN401 - only the caller knows what the JSON holds
    """The value. Raises ValueError for what is not JSON in UTF-8."""
    return json.loads(data.decode())


def loads_or_none(data: bytes) -> Any:  # noqa: ANN401 - only the caller knows what the JSON holds
    """The value; None for what is not JSON in UTF-8, or nested beyond what Python parses."""
    try:
        return loads(data)
    except (ValueError, RecursionError):
        return None


def to_opaque(value: object, field: str, most: int) -> bytes:
    """What the server keeps for a value of a field: bytes as they are, None as nothing, anything else as JSON.

    Raises InvalidFieldError for what JSON cannot hold, RequestTooLargeError for more than `most` bytes.
    """
    if value is None:
        return b""
    data = value if isinstance(value, bytes) else _encoded(value, field)
    if len(data) > most:
        raise _refusals.too_large(field, len(data), most)
    return data


def _encoded(value: object, field: str) -> bytes:
    try:
        return dumps(value)
    except UnicodeEncodeError as error:
        raise _refusals.half_of_pair(field, error) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusals.invalid(
            field, f"cannot be stored as JSON: {error}; give what JSON can hold, or bytes"
        ) from error


def from_opaque(data: bytes) -> Any:  # noqa: ANN401 - only the caller knows what the JSON holds
    """The value that `to_opaque` wrote; bytes that it would not have written so are returned as they are."""
    if not data:
        return None
    value = loads_or_none(data)
    return data if value is None or not _is_written(value, data) else value


def _is_written(value: object, data: bytes) -> bool:
    try:
        return dumps(value) == data
    except ValueError:  # a lone surrogate, or a number beyond all bounds, that only escapes can write
        return False
