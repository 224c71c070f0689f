"""Users: operations on all data of a user."""

from __future__ import annotations

from typing import Protocol

from remora_server.domain.calls import Outcome, Write


class UserStore(Protocol):
    """Clears and forgets users: see `domain.store`."""

    def clear(self, write: Write, user_id: str) -> Outcome:
        """Delete a user's messages and steps in all conversations; `deleted_messages`."""

    def delete(self, write: Write, user_id: str) -> Outcome:
        """Delete everything of a user; `deleted_conversations`, `deleted_messages`."""
