"""What a forked child must make anew: the parent's connections and locks are not its own."""

import os
import weakref
from typing import Protocol


class ForkAware(Protocol):
    """Holds what does not survive a fork."""

    def reset_after_fork(self) -> None:
        """Runs in the child, before any other code of it."""


_tracked: "weakref.WeakSet[ForkAware]" = weakref.WeakSet()


def track(holder: ForkAware) -> None:
    """Has the holder reset in every child of this process, for as long as it lives."""
    _tracked.add(holder)


def _reset_all() -> None:
    for holder in list(_tracked):
        holder.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
