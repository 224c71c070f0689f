"""Facts of a user, in two times: when a fact holds, and when it was recorded."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.embedded import ItemVector
from remora_server.domain.errors import FactNotFound, InvalidField
from remora_server.domain.memory_items import ItemPage, RankedItems
from remora_server.domain.workflows import PartPosition

MOST_SOURCES, MOST_EARLIER = 16, 1_000
"""The greatest number of sources of a fact, and of earlier ones, of which a hash is kept. Those said last are kept."""
MOST_MENTIONS = (1 << 31) - 1
_DIGEST_BYTES, _HASH_BITS = 8, 32


class FactSource(Struct, frozen=True):
    """The message in which a fact was said. `sent_time` is in microseconds, None if it is unknown."""

    conversation_id: str = ""
    message_id: str = ""
    sent_time: int | None = None

    def is_same(self, other: FactSource) -> bool:
        """Whether both are the same message."""
        return bool(self.message_id) and (self.conversation_id, self.message_id) == (
            other.conversation_id,
            other.message_id,
        )

    @property
    def hash(self) -> int:
        """A hash of the conversation in the upper 32 bits, one of the message in the lower."""
        return _hash(self.conversation_id) << _HASH_BITS | _hash(self.message_id)


class FactDraft(Struct, frozen=True):
    """A fact as its caller gives it. Without `valid_from`, it holds since its source was sent, or since now.

    With `ends`, it no longer holds since then: it is not added, and ends what is recorded.
    """

    subject: str
    predicate: str
    object: str
    text: str = ""
    confidence: float = 1.0
    valid_from: int | None = None
    valid_to: int | None = None
    exclusive: bool = False
    extractor: str = ""
    source: FactSource | None = None
    vector: ItemVector | None = None
    ends: bool = False

    @property
    def said(self) -> str:
        """The text that is embedded and shown."""
        return self.text or f"{self.subject} {self.predicate} {self.object}"

    @property
    def prefix(self) -> str:
        """The prefix of the ids of all facts that it may repeat or end."""
        may_meet_others = not self.ends and (self.exclusive or self.valid_to is not None)
        return _slot(self.subject, self.predicate) if may_meet_others else _prefix_of_same(self)


class Fact(Struct, frozen=True):
    """A recorded fact. It holds from `valid_from` until `valid_to`, which is None if it still holds.

    `ceased` is when it was no longer recorded so; None if it still is. `earlier` are the hashes of the sources before
    `sources`.
    """

    id: str
    subject: str
    predicate: str
    object: str
    text: str
    confidence: float
    valid_from: int
    valid_to: int | None
    recorded: int
    ceased: int | None = None
    mentions: int = 1
    exclusive: bool = False
    extractor: str = ""
    corrects: str = ""
    sources: tuple[FactSource, ...] = ()
    earlier: tuple[int, ...] = ()
    vector: ItemVector | None = None

    @property
    def is_past(self) -> bool:
        """Whether it holds at no known time: it had ended when it was said, so that when it began is not known, or it
        ended as soon as it began.
        """
        return self.valid_to == self.valid_from

    def holds_at(self, time: int) -> bool:
        return self.valid_from <= time and (self.valid_to is None or time < self.valid_to)

    def was_said_in(self, source: FactSource) -> bool:
        """Whether a message is one of those in which it was said."""
        return any(map(source.is_same, self.sources)) or (bool(source.message_id) and source.hash in self.earlier)


class FactTimes(Struct, frozen=True):
    """The times of facts to read; None: now. `at_any_time`: also facts that do not hold at `valid_at`."""

    valid_at: int | None = None
    recorded_at: int | None = None
    at_any_time: bool = False


class FactQuery(Struct, frozen=True):
    """What to look for: the `k` facts of a user that answer a text best. `model` and `vector` are as in ItemQuery."""

    text: str
    k: int = 10
    threshold: float | None = None
    times: FactTimes = FactTimes()
    model: str = ""
    vector: bytes | None = None


class FactFilter(Struct, frozen=True):
    """Which facts to list; an empty text: any."""

    subject: str = ""
    predicate: str = ""
    times: FactTimes = FactTimes()


class StaticFact(Struct, frozen=True):
    """A statement that holds for all users of a tenant."""

    id: str
    content: str


class Reading(Struct, frozen=True):
    """A user's messages in which facts were found, as of a revision: of any conversations or, with its uid, of one, up
    to the sequence `through`.
    """

    revision: int
    uid: int = 0
    through: int = 0


class FactStore(Protocol):
    """Keeps facts: see `domain.store`."""

    def add(self, write: Write, user_id: str, drafts: Sequence[FactDraft], reading: Reading | None = None) -> Outcome:
        """Add all or none, or end what drafts say has ended; `messages` has the ids of those that are added, in this
        order, `ended` the ids of those that ended. Raises InvalidField, and WindowMoved where the messages that they
        were found in are erased or others by now.
        """

    def ending(self, read: Read, user_id: str, drafts: Sequence[FactDraft]) -> tuple[Sequence[str], int]:
        """The ids of the recorded facts that drafts would end, as they say, and the revision that this shows. Raises
        InvalidField.
        """

    def correct(self, write: Write, user_id: str, fact_id: str, draft: FactDraft) -> Outcome:
        """Replace a fact; `messages` has the new id. Raises FactNotFound, InvalidField."""

    def retract(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        """Cease to record facts; `deleted_records`."""

    def forget(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        """Delete facts in all their versions; `deleted_records`."""

    def forget_conversation(self, write: Write, user_id: str, conversation_id: str) -> Outcome:
        """Delete the facts that only a conversation supports, and its sources of others; `deleted_records`."""

    def forget_all(self, write: Write, user_id: str) -> Outcome:
        """Delete all facts of a user; `deleted_records`."""

    def get(self, read: Read, user_id: str, fact_id: str) -> tuple[bytes, int]:
        """A fact in wire form, and the revision that this shows. Raises FactNotFound."""

    def list(self, read: Read, user_id: str, passing: FactFilter, after: PartPosition | None, limit: int) -> ItemPage:
        """Facts by when they were recorded, the newest first, behind a position. Raises VectorsTooLarge."""

    def search(self, read: Read, user_id: str, query: FactQuery) -> RankedItems:
        """The best facts. Raises VectorsTooLarge."""

    def set_static(self, write: Write, facts: Sequence[StaticFact]) -> Outcome:
        """Replace the tenant's static facts; `messages` has the ids, in this order."""

    def static(self, read: Read) -> tuple[Sequence[StaticFact], int | None, int]:
        """The tenant's static facts, when they were set (None: never), and the revision that this shows."""


class Ledger:
    """The effect of a write on `recorded` facts, which include all that it may repeat, end or remove."""

    def __init__(self, recorded: Iterable[Fact], now: int) -> None:
        self._before = {fact.id: fact for fact in recorded}
        self._current = dict(self._before)
        self._slots: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
        """The ids of facts by subject and predicate, then by object, as the parts of an id say them."""
        self._prefixes: dict[tuple[str, str, str], str] = {}
        for fact_id in self._current:
            self._index(fact_id)
        self._now = now
        self._ceased: dict[str, Fact] = {}
        self._ended: dict[str, None] = {}

    @property
    def written(self) -> list[Fact]:
        """New and changed facts."""
        return [fact for fact in self._current.values() if self._is_changed(fact)]

    @property
    def removed(self) -> list[str]:
        """Ids that are no longer recorded."""
        return [fact_id for fact_id in self._before if fact_id not in self._current]

    @property
    def ceased(self) -> list[Fact]:
        """Versions that were recorded until now."""
        return [fact for fact in self._ceased.values() if self._is_changed(self._current.get(fact.id))]

    @property
    def ended(self) -> list[str]:
        """Ids of facts that end in this write, as a draft says."""
        return [fact_id for fact_id in self._ended if self._is_changed(self._current[fact_id])]

    @property
    def ended_before(self) -> list[str]:
        """Those of them that were recorded before."""
        return [fact_id for fact_id in self.ended if fact_id in self._before]

    def _is_changed(self, fact: Fact | None) -> bool:
        """Whether a fact is recorded otherwise than before this write. What ended and goes on at once is the same."""
        before = None if fact is None else self._before.get(fact.id)
        return fact is None or before is None or replace(fact, recorded=before.recorded) != before

    def say(self, drafts: Sequence[FactDraft]) -> list[tuple[str, bool]]:
        """Record facts and end others, in this order. Returns what `add` does, of those that do not end one. Raises
        InvalidField for `facts[number]`.
        """
        added: list[tuple[str, bool]] = []
        for number, draft in enumerate(drafts):
            if draft.ends:
                self.end(draft)
            else:
                added.append(self.add(draft, f"facts[{number}]"))
        return added

    def end(self, draft: FactDraft) -> None:
        """End the fact that a draft says has ended, if it holds when that is said and was not said again later."""
        time = self._start(draft)
        for fact in self._same(draft):
            if fact.holds_at(time) and not _is_said_after(fact, time):
                self._end(fact, time)
            if self._current[fact.id].valid_to == time:  # or what another one ended, which was said before
                self._ended[fact.id] = None

    def _end(self, fact: Fact, time: int) -> None:
        self._cease(fact.id)
        self._current[fact.id] = replace(fact, valid_to=time, recorded=self._now)

    def add(self, draft: FactDraft, field: str) -> tuple[str, bool]:
        """Record a fact. Returns its id, and whether it was there. Raises InvalidField for `field`, the draft's."""
        _require_order(draft, field)
        return self._enter(draft)

    def _enter(self, draft: FactDraft, corrects: str = "") -> tuple[str, bool]:
        start = self._start(draft)
        self._go_on(draft, start)
        same = self._same(draft)
        touched = sorted(
            (fact for fact in same if _touches(fact, start, draft.valid_to)), key=lambda fact: fact.valid_from
        )
        if touched:
            # What began first already held, or holds longer than was known. An end is that of what began last.
            known = touched[0 if draft.valid_to is None else -1]
            self._say_again(known, draft, corrects)
            return known.id, True
        taken = [_number(fact.id) for fact in same]
        made = self._made(draft, start, 1 + max(taken, default=0), corrects)
        self._current[made.id] = made
        self._index(made.id)
        return made.id, False

    def _index(self, fact_id: str) -> None:
        slot, said, _ = fact_id.split("-", 2)
        self._slots[slot][said][fact_id] = None

    def _prefix(self, draft: FactDraft) -> str:
        """The prefix of the ids of the facts that say the same, of which hashes are made once."""
        key = draft.subject, draft.predicate, draft.object
        prefix = self._prefixes.get(key)
        if prefix is None:
            prefix = self._prefixes[key] = _prefix_of_same(draft)
        return prefix

    def _same(self, draft: FactDraft) -> list[Fact]:
        """The recorded facts that say the same, which hold one after another."""
        slot, said, _ = self._prefix(draft).split("-")
        return [self._current[fact_id] for fact_id in self._slots[slot][said]]

    def _go_on(self, draft: FactDraft, start: int) -> None:
        """Let a fact go on that ended just when it is said, if it began then, too, or if the same message said it
        before, which is read again.
        """
        same = self._same(draft)
        if draft.valid_to is not None or any(fact.holds_at(start) for fact in same):
            return
        over = [fact for fact in same if fact.valid_to == start]
        known = max(over, key=lambda fact: self._was_said(fact, draft), default=None)
        if known is not None and (known.is_past or self._was_said(known, draft)):
            self._cease(known.id)
            before = self._before.get(known.id, known).valid_to
            ends = [fact.valid_from for fact in same if fact.valid_from > start]
            ends += [] if before in (None, start) else [before]
            self._current[known.id] = replace(known, valid_to=min(ends, default=None), recorded=self._now)
            self._ended.pop(known.id, None)

    def _was_said(self, fact: Fact, draft: FactDraft) -> bool:
        """Whether a fact was recorded before this write with the message in which a draft is said."""
        before, source = self._before.get(fact.id), draft.source
        return before is not None and source is not None and before.was_said_in(source)

    def retract(self, fact_id: str) -> bool:
        """Cease to record a fact, if it is recorded."""
        fact = self._current.pop(fact_id, None)
        if fact is not None:
            slot, said, _ = fact_id.split("-", 2)
            del self._slots[slot][said][fact_id]
            self._cease(fact_id)
        return fact is not None

    def correct(self, fact_id: str, draft: FactDraft) -> str:
        """Replace a fact. Returns the id of the new one. Raises FactNotFound, InvalidField."""
        wrong = self._current.get(fact_id)
        if wrong is None:
            raise FactNotFound(fact_id)
        _require_order(draft, "fact")
        self.retract(fact_id)
        if draft.valid_from is None and draft.source is None:
            end = wrong.valid_to if draft.valid_to is None else draft.valid_to
            start = wrong.valid_from if end is None else min(wrong.valid_from, end)
            draft = replace(draft, valid_from=start, valid_to=end)
        return self._enter(draft, corrects=fact_id)[0]

    def _start(self, draft: FactDraft) -> int:
        """When it begins to hold or, if it had ended before it was said, when it ended."""
        if draft.valid_from is not None:
            return draft.valid_from
        sent = None if draft.source is None else draft.source.sent_time
        start = self._now if sent is None else sent
        return start if draft.valid_to is None else min(start, draft.valid_to)

    def _say_again(self, known: Fact, draft: FactDraft, corrects: str) -> None:
        """A recorded fact that is said once more."""
        source, sources, earlier = draft.source, known.sources, known.earlier
        mentions, confidence = known.mentions, known.confidence
        if source is None or not any(fact.was_said_in(source) for fact in self._same(draft)):
            mentions = min(mentions + 1, MOST_MENTIONS)
            confidence += draft.confidence * (1 - confidence)  # not 0, however unsure it is both times
            sources = sources if source is None else (*sources, source)
            earlier = (*earlier, *(each.hash for each in sources[:-MOST_SOURCES]))[-MOST_EARLIER:]
            sources = sources[-MOST_SOURCES:]
        exclusive = known.exclusive or draft.exclusive
        # An exclusive fact does not begin earlier than it was known, because another one may have held then.
        start = known.valid_from if exclusive else self._earlier_start(known, draft)
        end = known.valid_to if draft.valid_to is None else draft.valid_to
        if exclusive:
            end = self._alone(known, draft, end)
        again = replace(
            known,
            sources=sources,
            earlier=earlier,
            mentions=mentions,
            confidence=confidence,
            valid_from=start,
            valid_to=end,
            exclusive=exclusive,
            corrects=corrects or known.corrects,
        )
        if (start, end) != (known.valid_from, known.valid_to):
            self._cease(known.id)
            again = replace(again, recorded=self._now)
        self._current[known.id] = again

    def _alone(self, known: Fact, draft: FactDraft, end: int | None) -> int | None:
        """When a fact ends that holds alone from when it is said again, or begins: what holds beside it then ends."""
        start = max(self._start(draft), known.valid_from)
        holds = any(fact.holds_at(start) for fact in self._same(draft))
        if holds and draft.exclusive and draft.valid_to != start:
            self._make_room(draft, start)
        return self._until_next(draft, start, end)

    def _earlier_start(self, known: Fact, draft: FactDraft) -> int:
        """When a fact begins that is said again, but not earlier than another one of the same ends."""
        start = min(known.valid_from, self._start(draft))
        others = [fact for fact in self._same(draft) if fact.valid_from < known.valid_from]
        ends = [fact.valid_to for fact in others if fact.valid_to is not None]
        return min(known.valid_from, max([start, *ends]))

    def _made(self, draft: FactDraft, start: int, number: int, corrects: str) -> Fact:
        end = draft.valid_to
        if draft.exclusive and end != start:  # what is past ends nothing
            self._make_room(draft, start)
            end = self._until_next(draft, start, end)
        return Fact(
            id=f"{self._prefix(draft)}{number}",
            subject=draft.subject,
            predicate=draft.predicate,
            object=draft.object,
            text=draft.said,
            confidence=draft.confidence,
            valid_from=start,
            valid_to=end,
            recorded=self._now,
            exclusive=draft.exclusive,
            extractor=draft.extractor,
            corrects=corrects,
            sources=() if draft.source is None else (draft.source,),
            vector=draft.vector,
        )

    def _make_room(self, draft: FactDraft, start: int) -> None:
        """End the facts of the slot that say otherwise and hold at a time."""
        same = self._prefix(draft)
        for other in self._slot_of(draft):
            if not other.id.startswith(same) and other.holds_at(start):
                self._end(other, start)

    def _until_next(self, draft: FactDraft, start: int, end: int | None) -> int | None:
        """An end, but not later than another fact of the slot begins."""
        later = [fact.valid_from for fact in self._slot_of(draft) if fact.valid_from > start]
        return min([*later, *([] if end is None else [end])], default=None)

    def _slot_of(self, draft: FactDraft) -> list[Fact]:
        """The recorded facts of a subject and a predicate, but for what is past."""
        slot, _, _ = self._prefix(draft).split("-")
        found = [self._current[fact_id] for said in self._slots[slot].values() for fact_id in said]
        return [fact for fact in found if not fact.is_past]

    def _cease(self, fact_id: str) -> None:
        """Keep what was recorded of a fact before this write."""
        before = self._before.get(fact_id)
        if before is not None:
            self._ceased[fact_id] = replace(before, ceased=self._now)


def without_conversation(fact: Fact, conversation_id: str) -> Fact | None:
    """A fact without its sources in a conversation; None if it was said nowhere else, as far as that is known."""
    kept = tuple([source for source in fact.sources if source.conversation_id != conversation_id])
    gone = _hash(conversation_id)
    earlier = tuple([each for each in fact.earlier if each >> _HASH_BITS != gone])
    lost = len(fact.sources) + len(fact.earlier) - len(kept) - len(earlier)
    if not lost:
        return fact
    left = fact.mentions - lost if len(fact.earlier) < MOST_EARLIER else 0
    mentions = max(left, len(kept) + len(earlier))
    return replace(fact, sources=kept, earlier=earlier, mentions=mentions) if mentions > 0 else None


def are_of(ids: Sequence[str], drafts: Sequence[FactDraft]) -> bool:
    """Whether these are the ids of facts that say the same as the drafts."""
    return len(ids) == len(drafts) and all(map(str.startswith, ids, map(_prefix_of_same, drafts)))


def is_id_of(fact_id: str, draft: FactDraft) -> bool:
    """Whether a fact that says what a draft says may have this id."""
    prefix = _prefix_of_same(draft)
    return fact_id.startswith(prefix) and re.fullmatch(r"[1-9][0-9]{0,9}", fact_id[len(prefix) :]) is not None


def normal(text: str) -> str:
    """A text in lower case with single spaces, as facts are compared."""
    return " ".join(text.casefold().split())


def _require_order(draft: FactDraft, field: str) -> None:
    """Require that a fact does not end before it begins. Raises InvalidField for `field`, the draft's."""
    if draft.valid_from is not None and draft.valid_to is not None and draft.valid_to <= draft.valid_from:
        raise InvalidField(f"{field}.valid_to", "must be later than valid_from")


def _touches(fact: Fact, start: int, end: int | None) -> bool:
    """Whether a fact holds at any time between a start and an end, or begins then. What is past is the same again only
    if it ended at the same time.
    """
    if fact.is_past:
        return start == end == fact.valid_from
    if start == fact.valid_from:
        return True
    return start < (math.inf if fact.valid_to is None else fact.valid_to) and fact.valid_from < (
        math.inf if end is None else end
    )


def _is_said_after(fact: Fact, time: int) -> bool:
    return any(source.sent_time is not None and source.sent_time > time for source in fact.sources)


def _prefix_of_same(draft: FactDraft) -> str:
    return f"{_slot(draft.subject, draft.predicate)}{_digest(draft.object)}-"


def _number(fact_id: str) -> int:
    return int(fact_id.rpartition("-")[2])


def _slot(subject: str, predicate: str) -> str:
    return f"{_digest(subject, predicate)}-"


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_HASH_BITS // 8).digest())


def _digest(*texts: str) -> str:
    said = "\0".join([normal(text).replace("\0", "\0\1") for text in texts])
    return hashlib.blake2b(said.encode(), digest_size=_DIGEST_BYTES).hexdigest()
