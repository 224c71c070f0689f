"""Publication: after it, readers see an accepted write, and the write may be acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Publication(Protocol):
    """The revision up to which everything accepted is durable and visible. Revisions only grow."""

    def published(self) -> int:
        """The newest revision that readers see."""

    def has_ended(self) -> bool:
        """Whether nothing will be published any more."""

    def follow(self, changed: Callable[[], None]) -> bool:
        """Have `changed` called after each publication and at the end, in the thread that publishes, so that it must be
        brief. False if another follower exists.
        """
