"""Locks of conversations: a fixed number of stripes, so that none has to be made or forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

STRIPES = 1024

Key = tuple[str, str]


class ConversationLocks:
    """A lock for each (tenant, conversation); two conversations may share one."""

    def __init__(self) -> None:
        self._stripes = [threading.Lock() for _ in range(STRIPES)]

    def of(self, tenant_id: str, conversation_id: str) -> threading.Lock:
        """The lock of one conversation. Never take a second while holding one: use `all_of`."""
        return self._stripes[hash((tenant_id, conversation_id)) % STRIPES]

    @contextmanager
    def all_of(self, keys: Iterable[Key]) -> Iterator[None]:
        """Hold the locks of several conversations, taken in one order for all."""
        with ExitStack() as held:
            for stripe in sorted({hash(key) % STRIPES for key in keys}):
                held.enter_context(self._stripes[stripe])
            yield
