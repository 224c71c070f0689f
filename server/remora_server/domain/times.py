"""Bounds of times."""

from __future__ import annotations

from msgspec import Struct


class Between(Struct, frozen=True):
    """The times between two bounds in microseconds, both exclusive. A missing bound is open."""

    after: int | None = None
    before: int | None = None


ANY_TIME = Between()
