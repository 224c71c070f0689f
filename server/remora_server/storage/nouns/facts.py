"""Facts of the local store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from remora.v1 import fact_pb2 as pb
from remora_server import wire
from remora_server.domain.calls import Access, Outcome, Placed, Read, Write
from remora_server.domain.conversations import AttributeValue
from remora_server.domain.embedded import ItemVector
from remora_server.domain.errors import FactNotFound
from remora_server.domain.facts import (
    Fact,
    FactDraft,
    FactFilter,
    FactQuery,
    FactSource,
    FactTimes,
    Ledger,
    Reading,
    StaticFact,
    normal,
    without_conversation,
)
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator
from remora_server.domain.memory_items import ItemHit, ItemPage, RankedItems
from remora_server.domain.windows import WindowMoved
from remora_server.domain.workflows import PartPosition
from remora_server.storage.commit.changes import Change
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.newest_first import NewestFirst
from remora_server.storage.nouns.receipts import MOST_NAMED, forgotten_facts
from remora_server.storage.nouns.run_parts import answered
from remora_server.storage.nouns.vector_index import VectorIndex
from remora_server.storage.records.reader import Partition, PartitionQuery, Record
from remora_server.storage.records.records import Move, Put, Remove, RemovePartitions
from remora_server.storage.schema.kinds import BY_RECORD_TIME, FACTS, STATIC_FACTS, Value

CURRENT = 0
"""The version of what is recorded now."""
_RECORDED, _CEASED, _FROM, _TO = "recorded", "ceased", "from", "to"
_SUBJECT, _PREDICATE, _MODEL = "subject", "predicate", "model"
"""Keys of what filters see."""
_VERSION_COLUMN = 1
_READ_AT_ONCE = 1_000

OnForgotten: TypeAlias = Callable[[str, str, Collection[str], int], None]
"""Takes the tenant, the user, the ids of facts that are forgotten, and the revision."""
IsOutdated: TypeAlias = Callable[[str, str, Reading], bool]
"""Takes the tenant, the user, and a reading of the user's messages."""


class Facts:
    """Adds, finds and deletes facts."""

    def __init__(
        self, context: StoreContext, index: VectorIndex, *, on_forgotten: OnForgotten, is_outdated: IsOutdated
    ) -> None:
        """`on_forgotten` is told, under the lock of a user's facts, which of them are forgotten. `is_outdated` says,
        under the same lock, whether messages are erased, or others, since they were read.
        """
        self._on_forgotten = on_forgotten
        self._is_outdated = is_outdated
        self._core = context.core
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._clock = context.clock
        self._new_id = context.new_id
        self._index = index

    def add(self, write: Write, user_id: str, drafts: Sequence[FactDraft], reading: Reading | None = None) -> Outcome:
        def enter(ledger: Ledger) -> list[tuple[str, bool]]:
            if reading is not None and self._is_outdated(write.tenant_id, user_id, reading):
                raise WindowMoved
            return ledger.say(drafts)

        return self._enter(write, user_id, _touched(drafts), enter)

    def ending(self, read: Read, user_id: str, drafts: Sequence[FactDraft]) -> tuple[Sequence[str], int]:
        revision = self._commits.begin(read)
        ledger = Ledger(map(_fact, self._recorded(read, _place(user_id), _touched(drafts))), self._clock())
        ledger.say(drafts)
        return ledger.ended_before, revision

    def correct(self, write: Write, user_id: str, fact_id: str, draft: FactDraft) -> Outcome:
        def enter(ledger: Ledger) -> list[tuple[str, bool]]:
            return [(ledger.correct(fact_id, draft), False)]

        return self._enter(write, user_id, _together([_prefix(fact_id), draft.prefix]), enter)

    def _enter(
        self,
        write: Write,
        user_id: str,
        touched: Sequence[str],
        enter: Callable[[Ledger], list[tuple[str, bool]]],
    ) -> Outcome:
        """Write the result of an entry on a ledger of the facts with a prefix of ids."""
        place = _place(user_id)

        def plan(_: None, now: int) -> Planned | None:
            ledger = Ledger(map(_fact, self._recorded(write, place, touched)), now)
            placed = tuple(Placed(fact_id, 0, now, known) for fact_id, known in enter(ledger))
            if not placed and not ledger.ended:
                return None
            return self._planned(
                write, user_id, ledger, Outcome(revision=0, messages=placed, ended=tuple(ledger.ended))
            )

        with answered():
            return self._commands.run(write, self._records.held_place(write, place), plan)

    def retract(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        place = _place(user_id)
        touched = _together(map(_prefix, ids))

        def plan(_: None, now: int) -> Planned | None:
            ledger = Ledger(map(_fact, self._recorded(write, place, touched)), now)
            retracted = sum([ledger.retract(fact_id) for fact_id in dict.fromkeys(ids)])
            if not retracted:
                return None
            return self._planned(write, user_id, ledger, Outcome(revision=0, deleted_records=retracted))

        return self._commands.run(write, self._records.held_place(write, place), plan)

    def _planned(self, write: Write, user_id: str, ledger: Ledger, outcome: Outcome) -> Planned:
        place = _place(user_id)
        puts = [Put(FACTS, 0, _stored(user_id, fact)) for fact in (*ledger.ceased, *ledger.written)]
        removes = [Remove(FACTS, 0, place.partition, FACTS.encode_key(gone, CURRENT)) for gone in ledger.removed]
        return Planned(self._records.changes(write, [*puts, *removes]), outcome, user_id)

    def forget(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        gone = set(ids)
        touched = _together(map(_prefix, ids))
        return self._forget(write, user_id, touched, lambda fact: None if fact.id in gone else fact)

    def forget_conversation(self, write: Write, user_id: str, conversation_id: str) -> Outcome:
        return self._forget(write, user_id, None, lambda fact: without_conversation(fact, conversation_id))

    def _forget(
        self,
        write: Write,
        user_id: str,
        touched: Sequence[str] | None,
        left: Callable[[Fact], Fact | None],
    ) -> Outcome:
        """Replace versions by others, or (None) remove them: of the facts with a prefix of ids, or (None) of all."""
        place = _place(user_id)

        def plan(_: None, _now: int) -> Planned | None:
            before = [_fact(record) for record in self._versions(write, place, touched)]
            after = [(fact, left(fact)) for fact in before]
            kept = {fact.id for fact, still in after if still is not None}
            moves: list[Move] = [
                Remove(FACTS, 0, place.partition, FACTS.encode_key(fact.id, fact.ceased or CURRENT))
                for fact, still in after
                if still is None
            ]
            moves += [
                Put(FACTS, 0, _stored(user_id, still)) for fact, still in after if still is not None and still != fact
            ]
            if not moves:
                return None
            gone = sorted({fact.id for fact in before} - kept)
            forgotten = self._records.changes(write, [*moves, *forgotten_facts(user_id, gone)])
            return self._forgetting(write, user_id, forgotten, gone)

        return self._commands.run(write, self._records.held_place(write, place), plan)

    def forget_all(self, write: Write, user_id: str) -> Outcome:
        place = _place(user_id)

        def plan(_: None, _now: int) -> Planned | None:
            forgotten = {_id(record) for record in self._versions(write, place, None)}
            if not forgotten:
                return None
            shown = forgotten_facts(user_id, sorted(forgotten) if len(forgotten) <= MOST_NAMED else None)
            gone = [RemovePartitions(FACTS, 0, place.partition), *shown]
            return self._forgetting(write, user_id, self._records.changes(write, gone), forgotten)

        return self._commands.run(write, self._records.held_place(write, place), plan)

    def _forgetting(self, write: Write, user_id: str, changes: Sequence[Change], forgotten: Collection[str]) -> Planned:
        tell = partial(self._on_forgotten, write.tenant_id, user_id, forgotten)
        return Planned(changes, Outcome(revision=0, deleted_records=len(forgotten)), user_id, tell=tell)

    def _recorded(self, access: Access, place: Partition, touched: Sequence[str]) -> Iterator[Record]:
        """The facts with a prefix of ids as they are recorded now, under the partition's lock."""
        return self._versions(access, place, touched, where=((_VERSION_COLUMN, CURRENT),))

    def _versions(
        self,
        access: Access,
        place: Partition,
        touched: Sequence[str] | None,
        where: tuple[tuple[int, Value], ...] = (),
    ) -> Iterator[Record]:
        # Under their lock no more of the user's facts are accepted, so that the published ones are all.
        self._commits.wait_published(self._core.kind_touched(FACTS.number), access.deadline)
        read = Read(access.tenant_id, deadline=access.deadline)
        queries = [PartitionQuery()] if touched is None else [_beginning(prefix) for prefix in touched]
        for query in queries:
            yield from self._all(read, place, replace(query, where=where, limit=_READ_AT_ONCE))

    def _all(self, read: Read, place: Partition, query: PartitionQuery) -> Iterator[Record]:
        more = True
        while more:
            page = self._records.page(read, place, query)
            yield from page.records
            more = page.more
            query = replace(query, after=page.records[-1].position(FACTS, query.order)) if more else query

    def get(self, read: Read, user_id: str, fact_id: str) -> tuple[bytes, int]:
        found, revision = self._records.get(read, _place(user_id), FACTS.encode_key(fact_id, CURRENT))
        if found is None:
            raise FactNotFound(fact_id)
        return found.body, revision

    def list(self, read: Read, user_id: str, passing: FactFilter, after: PartPosition | None, limit: int) -> ItemPage:
        self._commits.begin(read)
        place = _place(user_id)
        conditions = [*self._as_of(passing.times), *_about(passing)]
        keys = set(self._index.keys(read, place, user_id, AllOf(tuple(conditions))))
        return NewestFirst(self._records, place, BY_RECORD_TIME).page(read, keys, after, limit)

    def search(self, read: Read, user_id: str, query: FactQuery) -> RankedItems:
        self._commits.begin(read)
        comparable = Condition(_MODEL, Operator.EQ, (query.model,))
        passing = AllOf(tuple(self._as_of(query.times)))
        hits, revision = self._index.search_text(
            read,
            _place(user_id),
            user_id,
            query.text,
            query.vector,
            k=query.k,
            threshold=query.threshold,
            passing=passing,
            comparable=comparable,
        )
        pending = 0
        if query.model:
            lacking = AllOf((passing, Negated(comparable)))
            pending = self._index.count(read, _place(user_id), user_id, lacking)[0]
        return RankedItems(tuple(ItemHit(score, body) for score, body in hits), pending, revision)

    def _as_of(self, times: FactTimes) -> Iterator[Filter]:
        if times.recorded_at is None:
            yield Condition(_CEASED, Operator.ABSENT, ())
        else:
            yield from _within(_RECORDED, _CEASED, times.recorded_at)
        if not times.at_any_time:
            yield from _within(_FROM, _TO, self._clock() if times.valid_at is None else times.valid_at)

    def set_static(self, write: Write, facts: Sequence[StaticFact]) -> Outcome:
        place = Partition(STATIC_FACTS, 0, b"")
        ids = [fact.id or self._new_id() for fact in facts]

        def plan(_: None, now: int) -> Planned | None:
            if not facts and not self._records.there(write, place, [b""]):
                return None
            stored = pb.StaticFacts(update_time=wire.timestamp(now))
            stored.facts.extend(
                pb.StaticFact(id=each, content=fact.content) for each, fact in zip(ids, facts, strict=True)
            )
            placed = tuple(Placed(each, 0, now, replaced=False) for each in ids)
            put = self._records.changes(write, [Put(STATIC_FACTS, 0, stored)])
            return Planned(put, Outcome(revision=0, time=now, messages=placed))

        with answered():
            return self._commands.run(write, self._records.held_place(write, place), plan)

    def static(self, read: Read) -> tuple[Sequence[StaticFact], int | None, int]:
        found, revision = self._records.get(read, Partition(STATIC_FACTS, 0, b""), b"")
        if found is None:
            return (), None, revision
        stored = pb.StaticFacts.FromString(found.body)
        facts = tuple(StaticFact(fact.id, fact.content) for fact in stored.facts)
        return facts, wire.micros(stored.update_time), revision


def index_fact(fact: pb.Fact) -> None:
    """Have a fact say what filters see of it: its two times, what it is about, and the model of its vector."""
    fact.ClearField("indexed")
    for key, value in _own_values(fact):
        fact.indexed[key].CopyFrom(wire.scalar(value))


def _own_values(fact: pb.Fact) -> Iterator[tuple[str, AttributeValue]]:
    yield _SUBJECT, normal(fact.subject)
    yield _PREDICATE, normal(fact.predicate)
    yield _FROM, wire.micros(fact.valid_from)
    yield _RECORDED, wire.micros(fact.record_time)
    if fact.HasField("valid_to"):
        yield _TO, wire.micros(fact.valid_to)
    if fact.HasField("cease_time"):
        yield _CEASED, wire.micros(fact.cease_time)
    if fact.model:
        yield _MODEL, fact.model


def _within(begins: str, ends: str, time: int) -> tuple[Filter, Filter]:
    """What holds of two values that a time is not before, and before."""
    still = AnyOf((Condition(ends, Operator.ABSENT, ()), Condition(ends, Operator.GT, (time,))))
    return Condition(begins, Operator.LTE, (time,)), still


def _about(passing: FactFilter) -> Iterator[Filter]:
    given = ((_SUBJECT, passing.subject), (_PREDICATE, passing.predicate))
    return (Condition(key, Operator.EQ, (normal(text),)) for key, text in given if text)


def _place(user_id: str) -> Partition:
    return Partition(FACTS, 0, FACTS.encode_partition(user_id))


def _prefix(fact_id: str) -> str:
    """What the ids of a fact and of others that say the same begin with."""
    return f"{fact_id.rpartition('-')[0]}-"


def _touched(drafts: Sequence[FactDraft]) -> list[str]:
    """The prefixes of the ids of all facts that drafts may repeat or end."""
    return _together(draft.prefix for draft in drafts)


def _together(given: Iterable[str]) -> list[str]:
    """Prefixes without those that another one covers."""
    kept: list[str] = []
    for prefix in sorted(set(given)):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept


def _beginning(prefix: str) -> PartitionQuery:
    """The facts with a prefix of ids, in the order of their keys. A prefix ends with a hyphen."""
    behind = prefix[:-1] + chr(ord("-") + 1)
    return PartitionQuery(after=(FACTS.encode_key(prefix, 0),), before=(FACTS.encode_key(behind, 0),))


def _id(record: Record) -> str:
    return pb.Fact.FromString(record.body).id


def _fact(record: Record) -> Fact:
    return _fact_of(pb.Fact.FromString(record.body))


def _fact_of(stored: pb.Fact) -> Fact:
    return Fact(
        id=stored.id,
        subject=stored.subject,
        predicate=stored.predicate,
        object=stored.object,
        text=stored.text,
        confidence=stored.confidence,
        valid_from=wire.micros(stored.valid_from),
        valid_to=wire.optional_micros(stored, "valid_to"),
        recorded=wire.micros(stored.record_time),
        ceased=wire.optional_micros(stored, "cease_time"),
        mentions=stored.mentions,
        exclusive=stored.exclusive,
        extractor=stored.extractor,
        corrects=stored.corrects,
        sources=tuple(map(_source, stored.sources)),
        earlier=tuple(stored.earlier_sources),
        vector=ItemVector(stored.model, stored.values) if stored.model else None,
    )


def _source(stored: pb.FactSource) -> FactSource:
    return FactSource(stored.conversation_id, stored.message_id, wire.optional_micros(stored, "sent_time"))


def _stored(user_id: str, fact: Fact) -> pb.Fact:
    """A fact as it is stored."""
    stored = pb.Fact(
        id=fact.id,
        user_id=user_id,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        text=fact.text,
        confidence=fact.confidence,
        mentions=fact.mentions,
        valid_from=wire.timestamp(fact.valid_from),
        record_time=wire.timestamp(fact.recorded),
        extractor=fact.extractor,
        exclusive=fact.exclusive,
        corrects=fact.corrects,
        version=fact.ceased or CURRENT,
        valid_to=wire.optional_timestamp(fact.valid_to),
        cease_time=wire.optional_timestamp(fact.ceased),
        earlier_sources=fact.earlier,
    )
    for source in fact.sources:
        stored.sources.add(
            conversation_id=source.conversation_id,
            message_id=source.message_id,
            sent_time=wire.optional_timestamp(source.sent_time),
        )
    if fact.vector is not None:
        stored.model, stored.values = fact.vector.model, fact.vector.values
    index_fact(stored)
    return stored
