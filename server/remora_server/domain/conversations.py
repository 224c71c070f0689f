"""Conversations: their values and who may touch them."""

from __future__ import annotations

from enum import Enum
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.short_term import ShortTermPolicy

AttributeValue: TypeAlias = bool | int | float | str | None


class ConversationDraft(Struct, frozen=True):
    """The fields of a conversation that a caller sets. `metadata` is opaque."""

    id: str
    user_id: str = ""
    resource_id: str = ""
    title: str = ""
    metadata: bytes = b""
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    storage_limit: int | None = None
    short_term: ShortTermPolicy | None = None


class Head(Struct, frozen=True):
    """A conversation's counters, which an append needs.

    `uid` is the revision that created it, 0 while that is unknown. `last_time` and `last_sequence` are the create time
    and the sequence of the newest message ever appended. `has_short_term` says whether its window has a policy.
    """

    uid: int
    user_id: str
    last_sequence: int
    message_count: int
    last_time: int
    update_time: int
    storage_limit: int | None = None
    has_short_term: bool = False


class Conversation(Struct, frozen=True):
    """A conversation as it is read."""

    draft: ConversationDraft
    uid: int
    revision: int
    last_sequence: int
    message_count: int
    create_time: int
    update_time: int


class ConversationUpdate(Struct, frozen=True):
    """The fields to replace: only those that `mask` names."""

    draft: ConversationDraft
    mask: frozenset[str]


class ConversationOrder(Enum):
    """What a list of conversations is ordered by."""

    CREATE_TIME = "create_time"
    UPDATE_TIME = "update_time"
    TITLE = "title"


class ConversationPosition(Struct, frozen=True, array_like=True):
    """A conversation's position in an ordered list: the value of the order (a time, a title), and its uid."""

    value: int | str
    uid: int


class ConversationQuery(Struct, frozen=True):
    """Which conversations to list, and how: those after a position, if one is given, without the first `skip`."""

    user_id: str = ""
    resource_id: str = ""
    order_by: ConversationOrder = ConversationOrder.UPDATE_TIME
    descending: bool = True
    limit: int = 100
    skip: int = 0
    after: ConversationPosition | None = None


def position_of(conversation: Conversation, order: ConversationOrder) -> ConversationPosition:
    """A conversation's position in a list of this order."""
    match order:
        case ConversationOrder.CREATE_TIME:
            return ConversationPosition(conversation.create_time, conversation.uid)
        case ConversationOrder.UPDATE_TIME:
            return ConversationPosition(conversation.update_time, conversation.uid)
        case ConversationOrder.TITLE:
            return ConversationPosition(conversation.draft.title, conversation.uid)


def require_owner(owner: str, user_id: str, conversation_id: str) -> None:
    """Refuse a named user who is not the owner, as if the conversation did not exist."""
    if user_id and user_id != owner:
        raise ConversationNotFound(conversation_id)


class ConversationStore(Protocol):
    """Keeps conversations: see `domain.store`."""

    def create(self, write: Write, draft: ConversationDraft) -> Outcome:
        """Create; `conversation_id`, `time`. Raises ConversationExists."""

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]:
        """The conversation and the revision that it shows. Raises ConversationNotFound."""

    def update(self, write: Write, conversation_id: str, user_id: str, update: ConversationUpdate) -> Outcome:
        """Replace the masked fields; `time`. Raises ConversationNotFound."""

    def delete(self, write: Write, conversation_id: str, user_id: str, *, allow_missing: bool) -> Outcome:
        """Delete with all its records; `deleted`, `deleted_messages`. Raises ConversationNotFound unless allowed."""

    def count(self, read: Read, user_id: str, resource_id: str) -> tuple[int, int]:
        """How many conversations there are, and the revision that this shows."""

    def list(self, read: Read, query: ConversationQuery) -> tuple[list[Conversation], int]:
        """The conversations of one page and the revision that they show."""
