"""Exports and imports: moving records from one store into another, as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.conversations import ConversationDraft, Head
from remora_server.domain.errors import InvalidField, RecordConflict
from remora_server.domain.messages import ConversationView, MessageDraft, Plan, Put


class ExportPlace(Struct, frozen=True, order=True, array_like=True):
    """A record's place in an export: by the conversation's uid, then by the part of it. Records of no conversation are
    last.
    """

    uid: int = 0
    part: int = 0
    first: int = 0
    second: int = 0
    key: bytes = b""


class ExportPosition(Struct, frozen=True, array_like=True):
    """Where an export continues: after a place.

    Conversations created after the revision `through` are left out, and of the place's conversation the messages after
    the sequence `newest`.
    """

    after: ExportPlace
    through: int
    newest: int


class ExportQuery(Struct, frozen=True):
    """What to export: all of a tenant, of a user or of a conversation. `position` is None at the start."""

    user_id: str = ""
    conversation_id: str = ""
    limit: int = 100
    position: ExportPosition | None = None


class ExportPage(Struct, frozen=True):
    """Records in wire form, and where the next page begins; None at the end."""

    records: tuple[bytes, ...]
    following: ExportPosition | None
    revision: int


class ImportedConversation(Struct, frozen=True):
    """A conversation's own record. `field` is where the request has it; times in microseconds."""

    field: str
    draft: ConversationDraft
    last_sequence: int
    last_time: int
    create_time: int
    update_time: int


class ImportedMessage(Struct, frozen=True):
    """A message with its place and times."""

    field: str
    draft: MessageDraft
    user_id: str
    sequence: int
    create_time: int
    update_time: int


class ImportedRecord(Struct, frozen=True):
    """A record of another kind: `kind` is what an export calls it. `body` is the record in wire form."""

    field: str
    kind: str
    body: bytes


class Import(Struct, frozen=True):
    """The records of one request: of one conversation or (its id empty) of none."""

    conversation_id: str
    conversation: ImportedConversation | None = None
    messages: tuple[ImportedMessage, ...] = ()
    records: tuple[ImportedRecord, ...] = ()


class ImportPlan(Struct, frozen=True):
    """What an import does to a conversation's messages, and those of its messages whose place is taken: they must be
    the same as what stands there.
    """

    plan: Plan
    taken: tuple[ImportedMessage, ...]


def plan_import(
    view: ConversationView, conversation: ImportedConversation | None, messages: Sequence[ImportedMessage]
) -> ImportPlan:
    """Put messages in their places. Nothing is pruned.

    Raises InvalidField if they are not in order, RecordConflict where a message's id stands in another place.
    """
    _require_order(messages)
    live = set(view.live(None)) if messages else set()
    taken = tuple(message for message in messages if message.sequence in live)
    fresh = [message for message in messages if message.sequence not in live]
    _require_new_ids(view, fresh)
    return ImportPlan(Plan((), tuple(map(_put, fresh)), _moved_head(view.head, conversation, fresh)), taken)


def _require_order(messages: Sequence[ImportedMessage]) -> None:
    for before, after in pairwise(messages):
        if after.sequence <= before.sequence:
            raise InvalidField(f"{after.field}.message.sequence", "must be greater than that of the message before")
        if after.create_time < before.create_time:
            raise InvalidField(f"{after.field}.message.create_time", "must not be before that of the message before")
    require_distinct((message.field, (message.user_id, message.draft.id)) for message in messages)


def require_distinct(keyed: Iterable[tuple[str, object]]) -> None:
    """Raise InvalidField if two records of a request, given as (field, key), have one key."""
    seen: set[object] = set()
    for field, key in keyed:
        if key in seen:
            raise InvalidField(field, "is a second record of the same thing")
        seen.add(key)


def _require_new_ids(view: ConversationView, messages: Sequence[ImportedMessage]) -> None:
    by_user: dict[str, list[ImportedMessage]] = {}
    for message in messages:
        by_user.setdefault(message.user_id, []).append(message)
    for user_id, own in by_user.items():
        places = view.find(user_id, [message.draft.id for message in own])
        for message, place in zip(own, places, strict=True):
            if place is not None:
                raise RecordConflict(message.field)


def _put(message: ImportedMessage) -> Put:
    return Put(
        draft=message.draft,
        id=message.draft.id,
        user_id=message.user_id,
        sequence=message.sequence,
        create_time=message.create_time,
        update_time=message.update_time,
        replaces=False,
    )


def _moved_head(head: Head, conversation: ImportedConversation | None, fresh: Sequence[ImportedMessage]) -> Head:
    sequences, times, changed = [head.last_sequence], [head.last_time], [head.update_time]
    if conversation is not None:
        sequences.append(conversation.last_sequence)
        times.append(conversation.last_time)
        changed.append(conversation.update_time)
    return replace(
        head,
        last_sequence=max(*sequences, *(message.sequence for message in fresh), 0),
        message_count=head.message_count + len(fresh),
        last_time=max(*times, *(message.create_time for message in fresh), 0),
        update_time=max(changed),
    )


class ExportStore(Protocol):
    """Gives records as they are stored: see `domain.store`."""

    def page(self, read: Read, query: ExportQuery) -> ExportPage:
        """A page of records. Raises ConversationNotFound."""


class ImportStore(Protocol):
    """Takes records as they were stored elsewhere: see `domain.store`."""

    def store(self, write: Write, given: Import) -> Outcome:
        """Store what is not there yet; `imported_records`.

        Raises ConversationNotFound, RecordConflict, InvalidField.
        """
