"""The bound of a reply's size, and the elements of a list that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")

REPLY_BYTES = 3 << 20
"""The most bytes for the repeated fields of a reply. gRPC's clients accept 4 MiB by default."""
LEAST_AT_ONCE = 16
"""The number of elements in the first read, when their size is unknown."""


def fitting(elements: Iterable[T], size: Callable[[T], int], *, room: int = REPLY_BYTES, least: int = 1) -> list[T]:
    """The first elements that take at most `room` bytes together, but at least so many elements."""
    held: list[T] = []
    for element in elements:
        room -= size(element)
        if room < 0 and len(held) >= least:
            break
        held.append(element)
    return held


def read_fitting(
    keys: Sequence[K],
    read: Callable[[Sequence[K]], Iterable[T]],
    size: Callable[[T], int],
    *,
    most: int | None = None,
) -> list[T]:
    """The elements of the first keys, as many as a reply holds but at least one if there is any.

    `read` is given some keys at a time, because sizes are known only afterwards; never more than `most`.
    """
    return fitting(_in_groups(keys, read, size, most or len(keys)), size)


def _in_groups(
    keys: Sequence[K], read: Callable[[Sequence[K]], Iterable[T]], size: Callable[[T], int], most: int
) -> Iterator[T]:
    """The groups of elements that are read for the keys. Each group would fill the reply if its elements had the size
    of those before, but has at most four times as many as the last one.
    """
    taken, begin, at_once = 0, 0, min(LEAST_AT_ONCE, most)
    while begin < len(keys):
        for element in read(keys[begin : begin + at_once]):
            taken += size(element)
            yield element
        begin += at_once
        at_once = max(LEAST_AT_ONCE, min(4 * at_once, (REPLY_BYTES - taken) * begin // max(taken, 1)))
        at_once = min(at_once, most)
