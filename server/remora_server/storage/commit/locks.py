"""Locks by key: a fixed number of stripes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, TypeVar

from remora_server.domain.calls import Access
from remora_server.domain.errors import DeadlineExceeded
from remora_server.locking import Level, new_lock
from remora_server.storage.commit.deadlines import remaining

STRIPES = 1024

T = TypeVar("T")

WITHOUT_END = -1.0
"""The timeout that means no limit for `threading.Lock`."""


class Held:
    """Locks, held while this is entered, taken in their order. Entering raises DeadlineExceeded if one is not free by a
    deadline.
    """

    __slots__ = ("_deadline", "_locks")

    def __init__(self, locks: Sequence[threading.Lock], deadline: float | None) -> None:
        self._locks = locks
        self._deadline = deadline

    def __enter__(self) -> None:
        taken: list[threading.Lock] = []
        try:
            for lock in self._locks:
                self._take(lock)
                taken.append(lock)
        except BaseException:
            _release(taken)
            raise

    def __exit__(self, *_: object) -> None:
        _release(self._locks)

    def _take(self, lock: threading.Lock) -> None:
        if lock.acquire(blocking=False):
            return
        patience = remaining(self._deadline)
        if not lock.acquire(timeout=WITHOUT_END if patience is None else patience):
            raise DeadlineExceeded


def _release(locks: Sequence[threading.Lock]) -> None:
    for lock in reversed(locks):
        lock.release()


class Locked(Generic[T]):
    """A value that is read under a lock: entering takes the lock, then reads."""

    __slots__ = ("_lock", "_look")

    def __init__(self, lock: AbstractContextManager[None], look: Callable[[], T]) -> None:
        self._lock = lock
        self._look = look

    def __enter__(self) -> T:
        self._lock.__enter__()
        try:
            return self._look()
        except BaseException as error:
            self._lock.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.__exit__(kind, error, trace)


class Locks:
    """A lock for each key of a tenant: a conversation's id, or the key of a record. Two keys may share one."""

    def __init__(self, level: Level) -> None:
        self._stripes = [new_lock(level, index) for index in range(STRIPES)]

    def of(self, access: Access, key: Hashable) -> Held:
        """The lock of one key. Never take a second one while holding it: use `all_of`."""
        return Held([self._stripes[_stripe(access, key)]], access.deadline)

    def all_of(self, access: Access, keys: Iterable[Hashable]) -> Held:
        """The locks of several keys, in one order for all."""
        stripes = sorted({_stripe(access, key) for key in keys})
        return Held([self._stripes[stripe] for stripe in stripes], access.deadline)

    def all(self, access: Access) -> Held:
        """All locks."""
        return Held(self._stripes, access.deadline)


def _stripe(access: Access, key: Hashable) -> int:
    return hash((access.tenant_id, key)) % STRIPES
