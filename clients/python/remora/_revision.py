"""The greatest revision that a client has written: what its reads must see."""

import threading

from remora import _forks


class LatestRevision:
    """A revision that only grows, shared by all threads of a client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value = 0
        _forks.track(self)

    @property
    def value(self) -> int:
        """The revision; 0 before the first."""
        return self._value

    def advance(self, revision: int) -> None:
        """Raises the revision to this one if it is greater."""
        with self._lock:
            self._value = max(self._value, revision)

    def forget(self) -> None:
        """Starts again at 0: the store of that revision is gone."""
        with self._lock:
            self._value = 0

    def prepare_fork(self) -> None:
        """Needs nothing."""

    def reset_after_fork(self) -> None:
        """Replaces the lock, which another thread of the parent may have held; the revision stays valid."""
        self._lock = threading.Lock()
