"""What a forked child must make again: it cannot use the parent's connections and locks."""

import os
import weakref
from typing import Protocol


class ForkAware(Protocol):
    """Holds what does not survive a fork."""

    def prepare_fork(self) -> None:
        """Runs in the parent, before it forks."""

    def reset_after_fork(self) -> None:
        """Runs in the child, before any other code of it."""


_tracked: "weakref.WeakSet[ForkAware]" = weakref.WeakSet()


def track(holder: ForkAware) -> None:
    """Tells the holder of every fork of this process, as long as the holder lives."""
    _tracked.add(holder)


def _prepare_all() -> None:
    for holder in list(_tracked):
        holder.prepare_fork()


def _reset_all() -> None:
    for holder in list(_tracked):
        holder.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_prepare_all, after_in_child=_reset_all)
