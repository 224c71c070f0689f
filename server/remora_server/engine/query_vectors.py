"""A cache of the vectors of recent queries, by text."""

from __future__ import annotations

from collections import OrderedDict

from remora_server.domain.search import TextVector
from remora_server.locking import Level, new_lock

KEPT = 1024
LONGEST = 1024
"""Characters of the longest text whose vector is kept."""


class QueryVectors:
    """Vectors of one model, at most KEPT; the least recently used are evicted first. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = new_lock(Level.LEAF)
        self._kept: OrderedDict[str, TextVector] = OrderedDict()

    def get(self, text: str) -> TextVector | None:
        """The vector of a text, if it is cached."""
        with self._lock:
            found = self._kept.get(text)
            if found is not None:
                self._kept.move_to_end(text)
            return found

    def keep(self, text: str, vector: TextVector) -> None:
        """Cache the vector of a text, unless the text is long."""
        if len(text) > LONGEST:
            return
        with self._lock:
            self._kept[text] = vector
            self._kept.move_to_end(text)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
