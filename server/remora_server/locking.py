"""The locks of the server, and the order in which a thread takes them.

A thread takes only locks of a higher level than those that it holds, so that no two threads wait for each other. Tests
have this checked (`check_order`): a lock that is taken out of order, or again by the thread that holds it, raises
LockOrderError instead of waiting for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from enum import IntEnum
from typing import cast


class Level(IntEnum):
    """What a lock is for, in the order in which locks are taken."""

    BACKUP = 1
    """One backup at a time."""
    REQUESTS = 2
    """One run at a time of a request in several records: stripes, one at a time."""
    CONVERSATIONS = 3
    """What has been accepted of conversations: stripes, in their own order."""
    RECORDS = 4
    """The same of partitions of records."""
    LARGE_SEARCH = 5
    """One search that takes much memory at a time."""
    LOAD = 6
    """What a search has loaded: stripes, one at a time."""
    SCAN = 7
    """One scan for messages without vectors at a time."""
    COPY = 8
    """DuckDB is copied, and not opened again."""
    READ = 9
    """Turns to read DuckDB."""
    REOPENED = 10
    """Which connection DuckDB has."""
    SPEAKERS = 11
    """The names in parts of conversations."""
    QUEUE = 12
    """Messages that wait for a vector."""
    LEAF = 13
    """Whatever is held for a moment in which no other lock is taken."""


class LockOrderError(AssertionError):
    """A thread takes a lock while it holds one that comes behind it, or the same."""


_is_checked = False


class _Held(threading.local):
    """What a thread holds, in the order of taking."""

    def __init__(self) -> None:
        self.ranks: list[tuple[Level, int]] = []


_held = _Held()


def check_order() -> None:
    """Have the order checked of all locks that are made from now on."""
    global _is_checked  # noqa: PLW0603 - of a process, as its failpoints are
    _is_checked = True


def new_lock(level: Level, index: int = 0) -> threading.Lock:
    """A lock. Those of one level that a thread may hold together have indexes, by which they are taken."""
    return cast("threading.Lock", _CheckedLock((level, index))) if _is_checked else threading.Lock()


def new_condition(level: Level) -> threading.Condition:
    """A condition with a lock of its own."""
    return threading.Condition(new_lock(level))


class Turns:
    """So many threads go on at a time. A thread has one turn, or all of them."""

    def __init__(self, level: Level, count: int) -> None:
        self._rank = (level, 0)
        self._count = count
        self._free = threading.BoundedSemaphore(count)
        self._for_all = threading.Lock()
        """Held by who waits for all turns: two that did would wait for each other's."""

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a turn and have it."""
        with _in_order(self._rank), self._free:
            yield

    @contextmanager
    def all(self) -> Iterator[None]:
        """Wait until nobody else has one, and let nobody have one meanwhile."""
        with _in_order(self._rank), self._for_all, ExitStack() as turns:
            for _ in range(self._count):
                turns.enter_context(self._free)
            yield


class _CheckedLock:
    """A `threading.Lock`, also for a condition, that its thread takes in order."""

    def __init__(self, rank: tuple[Level, int]) -> None:
        self._rank = rank
        self._lock = threading.Lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        _require_order(self._rank)
        is_taken = self._lock.acquire(blocking, timeout)
        if is_taken:
            _held.ranks.append(self._rank)
        return is_taken

    def release(self) -> None:
        _held.ranks.remove(self._rank)
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_owned(self) -> bool:
        """Whether this thread holds it: what a condition asks before it waits."""
        return self._rank in _held.ranks


def _in_order(rank: tuple[Level, int]) -> AbstractContextManager[None]:
    return _entered(rank) if _is_checked else nullcontext()


@contextmanager
def _entered(rank: tuple[Level, int]) -> Iterator[None]:
    _require_order(rank)
    _held.ranks.append(rank)
    try:
        yield
    finally:
        _held.ranks.remove(rank)


def _require_order(rank: tuple[Level, int]) -> None:
    if _held.ranks and max(_held.ranks) >= rank:
        raise LockOrderError(f"{_told(rank)} is taken by a thread that holds {', '.join(map(_told, _held.ranks))}")


def _told(rank: tuple[Level, int]) -> str:
    level, index = rank
    return f"{level.name}[{index}]"
