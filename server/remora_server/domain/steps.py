"""Steps of an agent's operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write


class StepDraft(Struct, frozen=True):
    """One step. `body` is the caller's whole step in wire form, opaque to the domain."""

    id: str
    conversation_id: str
    user_id: str
    operation_id: str
    step_index: int
    create_time: int | None
    body: bytes


class StepPosition(Struct, frozen=True, order=True, array_like=True):
    """A step's place in a list: `ordinal` is its place among the steps of its revision."""

    step_index: int
    revision: int
    ordinal: int


class StepCursor(Struct, frozen=True, array_like=True):
    """Where the next page begins: after a step. `left`: how many more steps the list may have; None: all."""

    behind: StepPosition
    left: int | None = None


class StepQuery(Struct, frozen=True):
    """Which steps to list, by step_index, then by the order of saving. `last` keeps only that many of the last steps.

    `skip` and `last` are for the first page. The next pages begin `after` a cursor, which knows how many are left.
    """

    conversation_id: str
    user_id: str = ""
    operation_id: str = ""
    last: int | None = None
    limit: int = 100
    skip: int = 0
    after: StepCursor | None = None


class StepPage(Struct, frozen=True):
    """A page of steps, complete with conversation, user and time, as a list in wire form: entries of field 1.

    `following`: where the next page begins; None at the end.
    """

    encoded: bytes
    following: StepCursor | None
    revision: int


class StepStore(Protocol):
    """Keeps the steps of conversations: see `domain.store`."""

    def save(self, write: Write, steps: Sequence[StepDraft]) -> Outcome:
        """Save or replace; of two steps with one id the last wins. Raises ConversationNotFound."""

    def list(self, read: Read, query: StepQuery) -> StepPage:
        """A page of steps. Raises ConversationNotFound."""
