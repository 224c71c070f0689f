"""Bounds of times."""

from __future__ import annotations

from msgspec import Struct


class Between(Struct, frozen=True):
    """The times between two others, in microseconds, both exclusive; open where there is none."""

    after: int | None = None
    before: int | None = None


ANY_TIME = Between()
