"""How often a property is tried: as often as it says in `make faults`, less in `make check` and `make test`."""

from __future__ import annotations

import hypothesis

USUAL = 100
"""The examples of a property that does not say how many, in `make faults`."""


def examples(count: int) -> int:
    """As many as this, or the part of it that Hypothesis' profile leaves."""
    return max(1, count * hypothesis.settings().max_examples // USUAL)
