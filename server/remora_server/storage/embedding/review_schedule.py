"""Which parts of conversations are to be reviewed, and when. Knows nothing of what a review does."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from remora_server.locking import Level, new_lock
from remora_server.storage.embedding.scopes import Part, ResolvedScope

GONE_SECONDS = 1.0
"""Names go with every message that a storage limit prunes: how long to gather such changes before a review."""


class ReviewSchedule:
    """Parts that are due, or will be in a while, or are under review. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = new_lock(Level.SCHEDULE)
        self._due: dict[Part, float] = {}
        """Since when they are due, the next one first."""
        self._gathering: dict[Part, float] = {}
        """When they will be, the next one first."""
        self._under_review: set[Part] = set()
        self._unfinished: Counter[tuple[str, str | None]] = Counter()
        """How many parts of any of these a tenant has, by user and (None) together."""

    def past(self, parts: Iterable[Part]) -> None:
        """These have been due since before the start."""
        with self._lock:
            self._set_due({part: 0.0 for part in parts if part not in self._due})

    def now(self, part: Part) -> None:
        """A part is due."""
        with self._lock:
            if part not in self._due:
                self._set_due({part: time.monotonic()})

    def soon(self, parts: Iterable[Part]) -> None:
        """Parts will be due in a while."""
        with self._lock:
            self._gather(parts)

    def _set_due(self, since: dict[Part, float]) -> None:
        for part in since:
            self._begin(part)
            self._gathering.pop(part, None)
        self._due |= since

    def _gather(self, parts: Iterable[Part]) -> None:
        at = time.monotonic() + GONE_SECONDS
        for part in parts:
            if part not in self._due:
                self._begin(part)
                self._gathering.setdefault(part, at)

    def take(self, limit: int, overdue: float) -> list[Part]:
        """Take at most so many parts that have been due for so many seconds: they are under review."""
        latest = time.monotonic() - overdue
        with self._lock:
            self._promote()
            taken: list[Part] = []
            for part, since in self._due.items():
                if since > latest or len(taken) == limit:
                    break
                taken.append(part)
            for part in taken:
                del self._due[part]
            self._under_review.update(taken)
        return taken

    def _promote(self) -> None:
        now = time.monotonic()
        while self._gathering and (first := next(iter(self._gathering.items())))[1] <= now:
            del self._gathering[first[0]]
            self._due[first[0]] = first[1]

    def end(self, parts: Iterable[Part], *, again: Iterable[Part] = ()) -> None:
        """The reviews of some parts have ended; those of others are to be made again in a while."""
        with self._lock:
            self._gather(again)
            for part in parts:
                self._under_review.discard(part)
                self._end(part)

    def hurry(self, scope: ResolvedScope) -> None:
        """Have what is or will be due in a scope reviewed before all others."""
        with self._lock:
            if self._count(scope):
                self._set_due({part: 0.0 for part in self._gathering if scope.holds(part)})
                first = {part: 0.0 for part in self._due if scope.holds(part)}
                self._due = first | {part: since for part, since in self._due.items() if part not in first}

    def has_due(self) -> bool:
        """Whether there is a part to take."""
        with self._lock:
            self._promote()
            return bool(self._due)

    def count(self, scope: ResolvedScope) -> int:
        """How many parts of a scope are due, will be, or are under review."""
        with self._lock:
            return self._count(scope)

    def total(self) -> int:
        """The same everywhere."""
        with self._lock:
            return sum(count for (_, user_id), count in self._unfinished.items() if user_id is None)

    def _count(self, scope: ResolvedScope) -> int:
        if scope.uid is None or scope.user_id is None:
            return self._unfinished[scope.tenant_id, scope.user_id]
        return int(self._has((scope.tenant_id, scope.user_id, scope.uid)))

    def _has(self, part: Part) -> bool:
        return part in self._due or part in self._gathering or part in self._under_review

    def _begin(self, part: Part) -> None:
        """A part comes in, if it is not there already."""
        if not self._has(part):
            self._unfinished[part[0], None] += 1
            self._unfinished[part[0], part[1]] += 1

    def _end(self, part: Part) -> None:
        """A part has gone, unless it is there again."""
        if not self._has(part):
            for key in ((part[0], None), (part[0], part[1])):
                self._unfinished[key] -= 1
                if not self._unfinished[key]:
                    del self._unfinished[key]
