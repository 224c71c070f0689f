"""Locks of conversations: a fixed number of stripes, so that none has to be made or forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Generic, TypeVar

from remora_server.domain.calls import Terms
from remora_server.domain.errors import DeadlineExceeded
from remora_server.storage.deadlines import remaining

STRIPES = 1024

T = TypeVar("T")

WITHOUT_END = -1.0
"""What `threading.Lock` calls no limit."""


class Held:
    """A lock to be held for a while, where it can be had by a deadline: entering raises DeadlineExceeded."""

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
    """What is found under a lock: entering takes the lock, then looks."""

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


class ConversationLocks:
    """A lock for each (tenant, conversation); two conversations may share one."""

    def __init__(self) -> None:
        self._stripes = [threading.Lock() for _ in range(STRIPES)]

    def of(self, terms: Terms, conversation_id: str) -> Held:
        """The lock of one conversation. Never take a second while holding one: use `all_of`."""
        return Held(self._stripes[_stripe(terms, conversation_id)], terms.deadline)

    @contextmanager
    def all_of(self, terms: Terms, conversation_ids: Iterable[str]) -> Iterator[None]:
        """Hold the locks of several conversations, taken in one order for all. Raises DeadlineExceeded."""
        with ExitStack() as held:
            for stripe in sorted({_stripe(terms, conversation_id) for conversation_id in conversation_ids}):
                held.enter_context(Held(self._stripes[stripe], terms.deadline))
            yield


def _stripe(terms: Terms, conversation_id: str) -> int:
    return hash((terms.tenant_id, conversation_id)) % STRIPES
