"""Recent replacements and removals of messages, by conversation. Kept in memory."""

from __future__ import annotations

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
        self._changes: OrderedDict[int, list[tuple[int, int]]] = OrderedDict()
        """By conversation: revisions and the lowest sequences that they changed, both ascending."""

    def note(self, uid: int, revision: int, sequence: int) -> None:
        """A write of this revision changed messages from this sequence on. Revisions of a conversation only grow."""
        with self._lock:
            changes = self._changes.setdefault(uid, [])
            self._changes.move_to_end(uid)
            while changes and changes[-1][1] >= sequence:
                changes.pop()
            changes.append((revision, sequence))
            if len(changes) > MOST_CHANGES:
                self._forget(changes[: len(changes) // 2])
                del changes[: len(changes) // 2]
            if len(self._changes) > MOST_CONVERSATIONS:
                self._forget(self._changes.popitem(last=False)[1])

    def _forget(self, changes: list[tuple[int, int]]) -> None:
        self._known_since = max(self._known_since, changes[-1][0])

    def since(self, uid: int, revision: int, through: int) -> bool:
        """Whether a message up to the sequence `through` has changed since a revision, or may have."""
        with self._lock:
            if revision < self._known_since:
                return True
            changes = self._changes.get(uid)
            return changes is not None and any(revision < changed and lowest <= through for changed, lowest in changes)
