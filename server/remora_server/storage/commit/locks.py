"""Locks by key: a fixed number of stripes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
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
    """A lock, held while this is entered. Entering raises DeadlineExceeded if it is not free by a deadline."""

    __slots__ = ("_deadline", "_lock")

    def __init__(self, lock: threading.Lock, deadline: float | None) -> None:
        self._lock = lock
        self._deadline = deadline

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        patience = remaining(self._deadline)
        if not self._lock.acquire(timeout=WITHOUT_END if patience is None else patience):
            raise DeadlineExceeded

    def __exit__(self, *_: object) -> None:
        self._lock.release()


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
        return Held(self._stripes[_stripe(access, key)], access.deadline)

    @contextmanager
    def all_of(self, access: Access, keys: Iterable[Hashable]) -> Iterator[None]:
        """Hold the locks of several keys, taken in one order for all. Raises DeadlineExceeded."""
        with ExitStack() as held:
            for stripe in sorted({_stripe(access, key) for key in keys}):
                held.enter_context(Held(self._stripes[stripe], access.deadline))
            yield

    @contextmanager
    def all(self, access: Access) -> Iterator[None]:
        """Hold all locks. Raises DeadlineExceeded."""
        with ExitStack() as held:
            for stripe in self._stripes:
                held.enter_context(Held(stripe, access.deadline))
            yield


def _stripe(access: Access, key: Hashable) -> int:
    return hash((access.tenant_id, key)) % STRIPES
