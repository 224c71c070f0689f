"""Publication: from then on readers see an accepted write, and it may be acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Publication(Protocol):
    """Says up to which revision everything accepted is durable and visible. Revisions only grow."""

    def published(self) -> int:
        """The newest revision that readers see."""

    def has_ended(self) -> bool:
        """Whether nothing will be published any more."""

    def follow(self, changed: Callable[[], None]) -> bool:
        """Have `changed` called whenever something was published and when publication ends, in the thread that does it:
        it must be short. False where another follows already.
        """
