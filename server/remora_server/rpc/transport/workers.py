"""The thread pool that answers calls, and how many calls it has accepted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from remora_server.locking import Level, new_lock

P = ParamSpec("P")
T = TypeVar("T")


class Workers(ThreadPoolExecutor):
    """A pool of threads, with a bound on waiting calls.

    It accepts every call: callers check `is_full` first.
    """

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self.capacity = threads + waiting
        self._lock = new_lock(Level.LEAF)
        self._taken = 0

    def is_full(self) -> bool:
        """Whether every thread is busy and there is no room for another waiting call."""
        return self._taken >= self.capacity

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call when a thread is free."""
        with self._lock:
            self._taken += 1
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(self._finished)
        return future

    def _finished(self, _future: Future[T]) -> None:
        with self._lock:
            self._taken -= 1
