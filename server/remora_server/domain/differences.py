"""How one value differs from another: which bytes are copied from the base, and which are new.

A serialised list that grows keeps nearly all of its bytes, but its length may be at the beginning, and a removal moves
the rest. So a difference copies any runs of the base, in their order. It is fast to find, but not minimal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct

STRIDE = 100
"""One in so many values is stored as its difference from the last such value, the others from their parents'. A read
puts together fewer than twice as many differences, and a value that grows is not stored whole again and again.
"""
GREATEST_DEPTH = STRIDE * STRIDE
"""A value is stored whole where it would be so many values after the last whole one."""
MOST_PIECES = 500
_LEAST_RUN = 16
"""The shortest run that is copied: a shorter one would need more bytes than it saves."""
_PROBE = 32
_PROBED = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
"""How far after a differing byte a run of the base is looked for."""
_MOST_PROBES = 256
_AT_ONCE = 512
"""How many bytes are searched for the first one that differs."""
_LONG_RUN = 256
"""Records of a list share names, so that a short run may belong to another record. The search goes on for a longer run.
"""


class Piece(Struct, frozen=True):
    """A number of new bytes, then a run of the base."""

    literal: int
    offset: int
    length: int


class Difference(Struct, frozen=True):
    """Pieces, and all their new bytes in `data`, one after the other."""

    data: bytes
    pieces: tuple[Piece, ...]


def difference(base: bytes, value: bytes) -> Difference:
    """The difference that makes a value from a base."""
    data, pieces, literal_from = [], [], 0
    for begin, offset, length in _runs(base, value):
        data.append(value[literal_from:begin])
        pieces.append(Piece(begin - literal_from, offset, length))
        literal_from = begin + length
    if literal_from < len(value):
        data.append(value[literal_from:])
        pieces.append(Piece(len(value) - literal_from, 0, 0))
    return Difference(b"".join(data), tuple(pieces))


def applied(base: bytes, given: Difference) -> bytes:
    """The value that a difference makes from its base."""
    parts: list[bytes] = []
    at = 0
    for piece in given.pieces:
        parts.extend((given.data[at : at + piece.literal], base[piece.offset : piece.offset + piece.length]))
        at += piece.literal
    return b"".join(parts)


def flat(pieces: Sequence[Piece]) -> list[int]:
    """Pieces as numbers, three for each."""
    return list(chain.from_iterable((piece.literal, piece.offset, piece.length) for piece in pieces))


def of_flat(numbers: Sequence[int]) -> tuple[Piece, ...]:
    """The reverse. Raises ValueError if the count is no multiple of three."""
    if len(numbers) % 3:
        raise ValueError(f"{len(numbers)} numbers are not pieces")
    return tuple(Piece(*numbers[at : at + 3]) for at in range(0, len(numbers), 3))


def _runs(base: bytes, value: bytes) -> Iterator[tuple[int, int, int]]:
    """Where runs of the base begin in the value, where they begin in the base, and how long they are."""
    tail = _common_tail(base, value)
    between = _Between(base, len(base) - tail, value, len(value) - tail)
    yield from between.runs()
    if tail >= _LEAST_RUN:
        yield between.value_end, between.base_end, tail


class _Between(Struct, frozen=True):
    """Two byte strings without their common tail."""

    base: bytes
    base_end: int
    value: bytes
    value_end: int

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """The runs of the base in the value, in the order of both."""
        at = near = count = probes = 0
        while at < self.value_end and near < self.base_end and count < MOST_PIECES - 2 and probes < _MOST_PROBES:
            length = self._common_head(near, at)
            if length >= _LEAST_RUN:
                yield at, near, length
                at, near, count = at + length, near + length, count + 1
            found, tried = self._next(near, at)
            if found is None:
                return
            (at, near), probes = found, probes + tried

    def _next(self, near: int, at: int) -> tuple[tuple[int, int] | None, int]:
        """Where the value continues with a run of the base, after two places, and how many places were tried. It is the
        first long run, or else the longest one.
        """
        best, longest, tried = None, 0, 0
        for behind in _PROBED:
            probe = at + behind
            if near >= self.base_end or probe + _PROBE > self.value_end or longest >= _LONG_RUN:
                break
            tried += 1
            place = self.base.find(self.value[probe : probe + _PROBE], near, self.base_end)
            length = self._common_head(place, probe) if place >= 0 else 0
            if length > longest:
                back = _common_tail(self.base[max(near, place - behind) : place], self.value[at:probe])
                best, longest = (probe - back, place - back), length
        return best, tried

    def _common_head(self, near: int, at: int) -> int:
        """How many bytes are equal after two places."""
        known, most, step = 0, min(self.base_end - near, self.value_end - at), _AT_ONCE
        while known < most:
            size = min(step, most - known)
            mine = self.base[near + known : near + known + size]
            other = self.value[at + known : at + known + size]
            if mine == other:
                known, step = known + size, step * 2
            elif size > _AT_ONCE:
                step = size // 2
            else:
                return known + _equal(mine, other, "big")
        return known


def _common_tail(base: bytes, value: bytes) -> int:
    """How many bytes at the end are equal."""
    known, most, step = 0, min(len(base), len(value)), _AT_ONCE
    while known < most:
        size = min(step, most - known)
        mine = base[len(base) - known - size : len(base) - known]
        other = value[len(value) - known - size : len(value) - known]
        if mine == other:
            known, step = known + size, step * 2
        elif size > _AT_ONCE:
            step = size // 2
        else:
            return known + _equal(mine, other, "little")
    return known


def _equal(mine: bytes, other: bytes, order: Literal["big", "little"]) -> int:
    """How many bytes of two strings of one length are equal, from the beginning ("big") or from the end ("little"): as
    numbers, the strings differ up to the first bit that is not equal.
    """
    differing = int.from_bytes(mine, order) ^ int.from_bytes(other, order)
    return len(mine) - -(-differing.bit_length() // 8)
