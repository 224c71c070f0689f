"""Numbers of bytes, as people read them."""

from __future__ import annotations

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """A number of bytes: 64 MiB, 1.5 GiB."""
    power = min(max(0, count.bit_length() - 1) // 10, len(_UNITS) - 1)
    if round(count / (1 << 10 * power), 1) >= 1024 and power < len(_UNITS) - 1:
        power += 1
    shown = round(count / (1 << 10 * power), 1)
    return f"{shown:,g} {_UNITS[power]}"
