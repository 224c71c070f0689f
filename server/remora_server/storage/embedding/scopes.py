"""Which messages a search looks at, and how many of something are among them."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from msgspec import Struct

Part: TypeAlias = tuple[str, str, int]
"""One user's part of one conversation: tenant, user and the conversation's uid."""


class ResolvedScope(Struct, frozen=True):
    """One user's part of a conversation (user and uid), a user, or (neither) the tenant."""

    tenant_id: str
    user_id: str | None = None
    uid: int | None = None
    conversation_id: str = ""

    def holds(self, part: Part) -> bool:
        """Whether the messages of a part are searched here."""
        tenant_id, user_id, uid = part
        return tenant_id == self.tenant_id and self.user_id in (None, user_id) and self.uid in (None, uid)


class Tally:
    """How many of something are in each scope, counted as they come and go. Not safe to share between threads."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str | None, int | None]] = Counter()

    def add(self, part: Part, count: int = 1) -> None:
        """So many more are in a part: less, if it is negative."""
        tenant_id, user_id, _ = part
        for key in ((tenant_id, None, None), (tenant_id, user_id, None), part):
            self._counts[key] += count
            if not self._counts[key]:
                del self._counts[key]

    def count(self, scope: ResolvedScope) -> int:
        """How many there are in a scope."""
        return self._counts[scope.tenant_id, scope.user_id, scope.uid]
