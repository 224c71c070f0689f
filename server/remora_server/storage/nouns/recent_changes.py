"""Recent replacements and removals of messages, by conversation. Kept in memory."""

from __future__ import annotations

import math
from collections import OrderedDict

from remora_server.locking import Level, new_lock

MOST_CONVERSATIONS, MOST_CHANGES = 4_096, 256


class RecentChanges:
    """Says whether messages have changed since a revision. Safe to share between threads.

    Conversations that it has forgotten count as changed, and so does everything before `began`.
    """

    def __init__(self, began: int) -> None:
        self._lock = new_lock(Level.LEAF)
        self._known_since = began
        self._changes: OrderedDict[int, list[tuple[int, int, float]]] = OrderedDict()
        """By conversation: revisions, ascending, and the lowest and the highest sequences that they changed."""

    def note(self, uid: int, revision: int, lowest: int, highest: float = math.inf) -> None:
        """A write of this revision changed messages between two sequences. Revisions of a conversation only grow."""
        with self._lock:
            changes = self._changes.setdefault(uid, [])
            self._changes.move_to_end(uid)
            while changes and lowest <= changes[-1][1] and changes[-1][2] <= highest:
                changes.pop()
            changes.append((revision, lowest, highest))
            if len(changes) > MOST_CHANGES:
                self._forget(changes[: len(changes) // 2])
                del changes[: len(changes) // 2]
            if len(self._changes) > MOST_CONVERSATIONS:
                self._forget(self._changes.popitem(last=False)[1])

    def _forget(self, changes: list[tuple[int, int, float]]) -> None:
        self._known_since = max(self._known_since, changes[-1][0])

    def since(self, uid: int, revision: int, through: int, *, first: int = 0) -> bool:
        """Whether a message from `first` up to the sequence `through` has changed since a revision, or may have."""
        with self._lock:
            if revision < self._known_since:
                return True
            changes = self._changes.get(uid)
            return changes is not None and any(
                revision < changed and lowest <= through and first <= highest for changed, lowest, highest in changes
            )

    def latest(self, uid: int) -> int:
        """A revision since which nothing of a conversation has changed: that of its last change, or of the last one
        that is forgotten.
        """
        with self._lock:
            changes = self._changes.get(uid)
            return max(self._known_since, changes[-1][0]) if changes else self._known_since
