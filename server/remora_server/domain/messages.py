"""Messages: their values, and the plans of the writes that change them.

A plan is made from what has been accepted, under the conversation's lock, and holds every decision (ids, sequences,
times, what goes), so that applying it needs none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.calls import Outcome, Placed, Read, Write
from remora_server.domain.conversations import ConversationDraft, Head
from remora_server.domain.errors import MessageNotFound
from remora_server.domain.filters import Filter
from remora_server.domain.times import ANY_TIME, Between


class MessageEmbedding(Struct, frozen=True):
    """A vector of the caller: the model's name and little-endian f32 values."""

    model: str
    values: bytes


class MessageDraft(Struct, frozen=True):
    """One message as the caller gives it. An empty id asks for a new one.

    `body` is the caller's whole message in wire form, opaque to the domain; `text` is what is counted and indexed,
    `name` who speaks.
    """

    id: str
    role: str
    text: str
    body: bytes
    embedding: MessageEmbedding | None = None
    name: str = ""


class Put(Struct, frozen=True):
    """A message and its place. `create_time` is kept where it replaces one."""

    draft: MessageDraft
    id: str
    user_id: str
    sequence: int
    create_time: int
    update_time: int
    replaces: bool

    @property
    def placed(self) -> Placed:
        return Placed(self.id, self.sequence, self.create_time, self.replaces)


class Removal(Struct, frozen=True):
    """Messages of one user that go: these sequences, or all where `sequences` is None."""

    user_id: str
    sequences: tuple[int, ...] | None


class Plan(Struct, frozen=True):
    """A write to the messages of one conversation: removals first, then puts, then the head as it is afterwards.

    `overwritten` are the sequences of messages that are replaced, and pruned at once; they are those of `writer`.
    """

    removals: tuple[Removal, ...]
    puts: tuple[Put, ...]
    head: Head
    placed: tuple[Placed, ...] = ()
    pruned: int = 0
    removed: int = 0
    overwritten: tuple[int, ...] = ()
    writer: str = ""

    @property
    def changes_messages(self) -> bool:
        return bool(self.removals or self.puts)

    @property
    def only_adds(self) -> bool:
        """Whether what was stored stays as it is."""
        return not (self.removals or self.overwritten or [put for put in self.puts if put.replaces])

    @property
    def lowest_changed(self) -> int | None:
        """The lowest sequence of a message of the conversation's own user that is replaced or removed; 0 if all are
        removed, None where none is. What the storage limit prunes was not to be removed by anybody.
        """
        return min(self._changed(of_owner=True), default=None)

    @property
    def lowest_changed_of_others(self) -> int | None:
        """The same of messages of other users."""
        return min(self._changed(of_owner=False), default=None)

    def _changed(self, *, of_owner: bool) -> Iterator[int]:
        own = self.head.user_id
        if (self.writer == own) is of_owner:
            yield from self.overwritten
        yield from (put.sequence for put in self.puts if put.replaces and (put.user_id == own) is of_owner)
        for each in self.removals if self.removed else ():
            if (each.user_id == own) is of_owner:
                yield from (0,) if each.sequences is None else each.sequences

    @property
    def removed_between(self) -> tuple[int, float] | None:
        """The lowest and the highest sequence of messages that go, whoever's they are; from 0 to infinity if all of a
        user's go, None if none goes.
        """
        if not self.removals:
            return None
        removed = [(0, math.inf) if each.sequences is None else each.sequences for each in self.removals]
        gone = sorted(chain.from_iterable(removed))
        return (int(gone[0]), gone[-1]) if gone else None


class ConversationView(Protocol):
    """What has been accepted of one conversation."""

    @property
    def head(self) -> Head: ...

    def find(self, user_id: str, ids: Sequence[str]) -> list[tuple[int, int] | None]:
        """The (sequence, create_time) of each of a user's messages, None if there is none."""

    def live(self, user_id: str | None) -> list[int]:
        """The sequences of a user's messages (None: of all users), ascending."""

    def oldest(self, count: int) -> list[tuple[int, str]]:
        """The (sequence, user) of the oldest messages."""


class Append(Struct, frozen=True):
    """An edit that appends, or replaces where the id is known."""

    message: MessageDraft


class Replace(Struct, frozen=True):
    """An edit that replaces in place."""

    message: MessageDraft


class Remove(Struct, frozen=True):
    """An edit that removes by id."""

    id: str


class Keep(Struct, frozen=True):
    """An edit that keeps positions start (inclusive) to stop (exclusive), as JavaScript's slice does.

    Both None keeps all; (0, 0) removes all.
    """

    start: int | None
    stop: int | None


Edit: TypeAlias = Append | Replace | Remove | Keep
NewId: TypeAlias = Callable[[], str]


class _Draft:
    """The messages of one user while a plan is made: the order of sequences, and what is new at which."""

    def __init__(self, view: ConversationView, user_id: str, ids: Iterable[str], now: int, new_id: NewId) -> None:
        self.head = view.head
        self.now = max(now, view.head.update_time)
        self.user_id = user_id
        self.new_id = new_id
        self.last_sequence = view.head.last_sequence
        self.puts: dict[int, Put] = {}
        self.overwritten: tuple[int, ...] = ()
        wanted = [i for i in dict.fromkeys(ids) if i]
        found = view.find(user_id, wanted) if wanted else []
        self.known = {i: place for i, place in zip(wanted, found, strict=True) if place is not None}

    def append(self, draft: MessageDraft) -> Put:
        place = self.known.get(draft.id) if draft.id else None
        return self._add(draft) if place is None else self._put(draft, draft.id, *place, replaces=True)

    def replace(self, draft: MessageDraft) -> Put | None:
        place = self.known.get(draft.id)
        return None if place is None else self._put(draft, draft.id, *place, replaces=True)

    def forget(self, sequences: set[int]) -> None:
        self.known = {i: place for i, place in self.known.items() if place[0] not in sequences}
        for sequence in sequences:
            self.puts.pop(sequence, None)

    def prune(self, sequences: set[int]) -> None:
        """Forget stored messages, and remember which of them were to be replaced."""
        self.overwritten = tuple(sorted(sequences.intersection(self.puts)))
        self.forget(sequences)

    def _add(self, draft: MessageDraft) -> Put:
        self.last_sequence += 1
        message_id = draft.id or self.new_id()
        self.known[message_id] = (self.last_sequence, self.now)
        return self._put(draft, message_id, self.last_sequence, self.now, replaces=False)

    def _put(self, draft: MessageDraft, message_id: str, sequence: int, create_time: int, *, replaces: bool) -> Put:
        put = Put(draft, message_id, self.user_id, sequence, create_time, self.now, replaces)
        before = self.puts.get(sequence)
        new = before is not None and not before.replaces
        self.puts[sequence] = replace(put, replaces=False) if new else put
        return put

    def moved_head(self, message_count: int) -> Head:
        appended = self.last_sequence > self.head.last_sequence
        return Head(
            uid=self.head.uid,
            user_id=self.head.user_id,
            last_sequence=self.last_sequence,
            message_count=message_count,
            last_time=self.now if appended else self.head.last_time,
            update_time=max(self.now, self.head.update_time),
            storage_limit=self.head.storage_limit,
            has_short_term=self.head.has_short_term,
        )

    def ordered_puts(self) -> tuple[Put, ...]:
        return tuple(self.puts[sequence] for sequence in sorted(self.puts))


def plan_append(view: ConversationView, user_id: str, drafts: Sequence[MessageDraft], now: int, new_id: NewId) -> Plan:
    """Append in order; an id that the user has already, here or earlier in the list, is replaced in its place."""
    working = _Draft(view, user_id, (draft.id for draft in drafts), now, new_id)
    placed = tuple([working.append(draft).placed for draft in drafts])
    count = view.head.message_count + working.last_sequence - view.head.last_sequence
    over = _over(view.head, count)
    removals = _removals(_prune(view, working, set(), over)) if over else ()
    head = working.moved_head(count - over)
    puts, overwritten = working.ordered_puts(), working.overwritten
    return Plan(removals, puts, head, placed, pruned=over, overwritten=overwritten, writer=user_id)


def _over(head: Head, count: int) -> int:
    """By how many messages a count exceeds the storage limit."""
    return 0 if head.storage_limit is None else max(0, count - head.storage_limit)


def _prune(view: ConversationView, working: _Draft, gone: set[int], count: int) -> list[tuple[int, str]]:
    """Remove the oldest messages that are not `gone`: first stored ones, which are returned, then new ones."""
    if not count:
        return []
    stored = [(sequence, user) for sequence, user in view.oldest(count + len(gone)) if sequence not in gone][:count]
    working.prune({sequence for sequence, _ in stored})
    fresh = sorted(sequence for sequence, put in working.puts.items() if not put.replaces)
    working.forget(set(fresh[: count - len(stored)]))
    return stored


def _removals(gone: Sequence[tuple[int, str]]) -> tuple[Removal, ...]:
    users = dict.fromkeys(user for _, user in gone)
    return tuple(Removal(user, tuple(sequence for sequence, owner in gone if owner == user)) for user in users)


def plan_delete(view: ConversationView, user_id: str, ids: Sequence[str], now: int) -> Plan:
    """Remove a user's messages by id; unknown ids are ignored."""
    found = view.find(user_id, list(dict.fromkeys(ids)))
    return _plan_removal(view, user_id, tuple(sorted(place[0] for place in found if place is not None)), now)


def plan_clear(view: ConversationView, user_id: str, now: int) -> Plan:
    """Remove all of a user's messages."""
    return _plan_removal(view, user_id, None, now)


def _plan_removal(view: ConversationView, user_id: str, sequences: tuple[int, ...] | None, now: int) -> Plan:
    working = _Draft(view, user_id, (), now, str)
    removed = len(view.live(user_id) if sequences is None else sequences)
    removals = (Removal(user_id, sequences),) if removed else ()
    return Plan(removals, (), working.moved_head(view.head.message_count - removed), removed=removed)


def plan_edit(
    view: ConversationView, user_id: str, edits: Sequence[Edit], now: int, new_id: NewId, *, allow_missing: bool
) -> Plan:
    """Apply edits in order, each on the result of the ones before it.

    Raises MessageNotFound if an edit replaces or removes an unknown id and `allow_missing` is not set.
    """
    working = _Draft(view, user_id, _ids(edits), now, new_id)
    stored = view.live(user_id)
    order, placed = list(stored), []
    for number, edit in enumerate(edits):
        before = working.last_sequence
        order, put = _apply(working, order, edit, f"edits[{number}]", allow_missing=allow_missing)
        if working.last_sequence > before:
            order.append(working.last_sequence)
        if put is not None:
            placed.append(put.placed)
    gone = set(stored).difference(order)
    count = view.head.message_count - len(stored) + len(order)
    over = _over(view.head, count)
    pruned = _prune(view, working, gone, over)
    removals = _removals([(sequence, user_id) for sequence in sorted(gone)] + pruned)
    head = working.moved_head(count - over)
    return Plan(
        removals,
        working.ordered_puts(),
        head,
        tuple(placed),
        pruned=over,
        removed=len(gone),
        overwritten=working.overwritten,
        writer=user_id,
    )


def _ids(edits: Sequence[Edit]) -> list[str]:
    return [edit.id if isinstance(edit, Remove) else edit.message.id for edit in edits if not isinstance(edit, Keep)]


def _apply(
    working: _Draft, order: list[int], edit: Edit, field: str, *, allow_missing: bool
) -> tuple[list[int], Put | None]:
    match edit:
        case Append(message):
            return order, working.append(message)
        case Replace(message):
            put = working.replace(message)
            if put is None and not allow_missing:
                raise MessageNotFound(f"{field}.replace.id", message.id)
            return order, put
        case Remove(message_id):
            place = working.known.get(message_id)
            if place is None and not allow_missing:
                raise MessageNotFound(f"{field}.remove", message_id)
            return _without(working, order, {place[0]} if place else set()), None
        case Keep(start, stop):
            return _without(working, order, set(order).difference(order[start:stop])), None


def _without(working: _Draft, order: list[int], sequences: set[int]) -> list[int]:
    working.forget(sequences)
    return [sequence for sequence in order if sequence not in sequences]


class View(Enum):
    """Which messages of a conversation are listed: those in its window, or all."""

    WINDOW = "window"
    ALL = "all"


class MessageQuery(Struct, frozen=True):
    """Which messages of a conversation to list. Bounds are exclusive; `user_id` empty: the conversation's own user."""

    conversation_id: str
    user_id: str = ""
    roles: tuple[str, ...] = ()
    sent: Between = ANY_TIME
    received: Between = ANY_TIME
    after_sequence: int | None = None
    before_sequence: int | None = None
    newest: bool = True
    limit: int = 100
    filter: Filter | None = None
    """What holds of their attributes."""
    view: View = View.ALL


class MessagePage(Struct, frozen=True):
    """A page of messages, oldest first.

    `encoded` is the page in wire form: each message as a field 1 with its length, ready for a reply.
    `more` says whether others remain beyond the page. If a query has a filter, more may remain beyond the last message
    that was looked at, which itself need not pass. `uid` is the conversation's.
    """

    encoded: bytes
    count: int
    first_sequence: int
    last_sequence: int
    more: bool
    revision: int
    uid: int


class MessageStore(Protocol):
    """Keeps the messages of conversations: see `domain.store`."""

    def append(
        self,
        write: Write,
        conversation_id: str,
        user_id: str,
        messages: Sequence[MessageDraft],
        create_if_missing: ConversationDraft | None,
    ) -> Outcome:
        """Append or upsert; `messages`, `created`, `pruned_messages`. Raises ConversationNotFound."""

    def edit(
        self, write: Write, conversation_id: str, user_id: str, edits: Sequence[Edit], *, allow_missing: bool
    ) -> Outcome:
        """Edit in order; `messages`, `deleted_messages`. Raises ConversationNotFound, MessageNotFound."""

    def delete(self, write: Write, conversation_id: str, user_id: str, ids: Sequence[str]) -> Outcome:
        """Delete by id; `deleted_messages`. Raises ConversationNotFound."""

    def clear(self, write: Write, conversation_id: str, user_id: str) -> Outcome:
        """Delete a user's messages and steps of one conversation; `deleted_messages`. Raises ConversationNotFound."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage:
        """A page of messages. Raises ConversationNotFound."""
