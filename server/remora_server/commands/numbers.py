"""Numbers of the command line, as people write and read them."""

from __future__ import annotations

import argparse
import math

LONGEST_SECONDS = 30 * 86_400


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 on")
    return int(text)


def whole(text: str) -> int:
    """A whole number, also below 0."""
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number")
    return int(text)


def duration(text: str) -> float:
    """A time limit for a call: above 0 and finite."""
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0, at most {LONGEST_SECONDS:,}")
    return given
