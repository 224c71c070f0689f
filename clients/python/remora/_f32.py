"""Numbers as vectors have them on the wire: little-endian IEEE 754 f32."""

import math
import struct
from numbers import Real
from typing import Any

from remora import _refusals


def packed(numbers: tuple[float, ...], name: str) -> bytes:
    """The numbers as little-endian f32. Raises InvalidFieldError for what 32 bits cannot hold."""
    try:
        return struct.pack(f"<{len(numbers)}f", *numbers)
    except (struct.error, OverflowError):
        raise not_f32(numbers, name) from None


def not_f32(numbers: tuple[object, ...], name: str) -> Exception:
    """The refusal of numbers of which at least one is no finite f32; it is about the first."""
    position, value = next((position, value) for position, value in enumerate(numbers) if not _is_f32(value))
    if not isinstance(value, Real):
        return _refusals.wrong_type(f"{name}[{position}]", value, "a number")
    return _refusals.invalid(
        f"{name}[{position}]", f"is {_refusals.shown_alone(value)}; it must be a finite number that 32 bits can hold"
    )


def _is_f32(value: Any) -> bool:  # noqa: ANN401 - whatever the caller put there
    try:
        return math.isfinite(struct.unpack("<f", struct.pack("<f", value))[0])
    except (struct.error, OverflowError):
        return False
