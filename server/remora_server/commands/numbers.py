"""Numbers of the command line, as people write and read them."""

from __future__ import annotations

import argparse
import math

LONGEST_SECONDS = 30 * 86_400
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1 on")
    return int(text)


def duration(text: str) -> float:
    """A time limit for a call: above 0 and finite."""
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0, at most {LONGEST_SECONDS:,}")
    return given


def size(count: int) -> str:
    """A number of bytes for people: 64 MiB, 1.5 GiB."""
    power = min(max(0, count.bit_length() - 1) // 10, len(_UNITS) - 1)
    if round(count / (1 << 10 * power), 1) >= 1024 and power < len(_UNITS) - 1:
        power += 1
    shown = round(count / (1 << 10 * power), 1)
    return f"{shown:,g} {_UNITS[power]}"
