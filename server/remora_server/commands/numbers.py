"""Numbers of the command line, as people write and read them."""

from __future__ import annotations

import argparse
import math

LONGEST_SECONDS = 30 * 86_400
LARGEST_COUNT = 1_000_000_000


def positive(text: str, most: int = LARGEST_COUNT) -> int:
    """A whole number from 1 to `most`."""
    digits = text.lstrip("0")
    if not digits.isascii() or not digits.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 on")
    # Python converts no number of more than 4,300 digits.
    if len(digits) > len(str(most)) or int(digits) > most:
        raise argparse.ArgumentTypeError(f"{text} is more than {most:,}")
    return int(digits)


def whole(text: str) -> int:
    """A whole number, also below 0."""
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number")
    return int(text)


def counted(count: int, one: str, several: str = "") -> str:
    """`1 message`, `2,000 messages`. `several` are the words for other numbers, where they are not `one` with an s."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def duration(text: str) -> float:
    """A time limit for a call: above 0 and finite."""
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0, at most {LONGEST_SECONDS:,}")
    return given
