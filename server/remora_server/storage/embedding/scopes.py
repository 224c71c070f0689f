"""Which messages a search looks at, and how many of something are among them."""

from __future__ import annotations

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
