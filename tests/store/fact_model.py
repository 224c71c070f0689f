"""The model's facts: dicts of what was ever recorded, all of which a search compares, by whole words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tests.store.memory_item_model import Books, word_shares
from tests.store.vector_model import score

from remora.v1 import fact_pb2 as pb
from remora.v1 import transfer_service_pb2
from remora_server import wire
from remora_server.domain.calls import Outcome, Placed, Read, Write
from remora_server.domain.embedded import ItemVector
from remora_server.domain.errors import FactNotFound, RecordConflict
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
    without_conversation,
)
from remora_server.domain.memory_items import ItemHit, ItemPage, RankedItems
from remora_server.domain.transfers import ImportedRecord
from remora_server.domain.windows import WindowMoved
from remora_server.domain.workflows import PartPosition

FACTS, STATIC = 26, 27
"""Their places in an export."""

Key: TypeAlias = tuple[str, str, int]
"""A fact's user and id, and when this version of it ceased to be recorded; 0: it is recorded."""
Row: TypeAlias = tuple[Fact, int, int]
"""With the revision that wrote it, and its place in the write."""


@dataclass
class FactRows:
    """A tenant's facts in all versions, and its static ones."""

    rows: dict[Key, Row] = field(default_factory=dict)
    static: pb.StaticFacts | None = None

    def of(self, user_id: str) -> list[Row]:
        return [row for (owner, *_), row in self.rows.items() if owner == user_id]

    def has_version(self, user_id: str, fact_id: str, recorded: int) -> bool:
        return any(fact.id == fact_id and fact.recorded == recorded for fact, *_ in self.of(user_id))

    def recorded(self, user_id: str) -> dict[str, Fact]:
        return {fact.id: fact for fact, *_ in self.of(user_id) if fact.ceased is None}

    def put(self, user_id: str, fact: Fact, revision: int, ordinal: int) -> None:
        self.rows[user_id, fact.id, fact.ceased or 0] = (fact, revision, ordinal)

    def forget(self, user_id: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key[0] != user_id}

    def exported(self) -> Iterator[tuple[int, bytes, str, bytes]]:
        for (user_id, fact_id, version), (fact, *_) in self.rows.items():
            record = transfer_service_pb2.Record(fact=_message(user_id, fact))
            yield FACTS, f"{user_id}\0{fact_id}\0{version:020}".encode(), user_id, record.SerializeToString()
        if self.static is not None:
            yield STATIC, b"", "", transfer_service_pb2.Record(static_facts=self.static).SerializeToString()

    def take(self, revision: int, records: Sequence[ImportedRecord]) -> int:
        """Import what is not there, and say how much that is. Raises RecordConflict."""
        stored = 0
        for ordinal, record in enumerate(records):
            if record.kind == "static_facts":
                given = pb.StaticFacts.FromString(record.body)
                if self.static is not None and self.static != given:
                    raise RecordConflict(record.field)
                stored += self.static is None
                self.static = given
            if record.kind == "fact":
                message = pb.Fact.FromString(record.body)
                key = (message.user_id, message.id, message.version)
                if key in self.rows and self.rows[key][0] != _fact(message):
                    raise RecordConflict(record.field)
                stored += key not in self.rows
                self.rows.setdefault(key, (_fact(message), revision, ordinal))
        return stored


class TenantWithFacts(Protocol):
    """What of a tenant is needed here."""

    facts: FactRows


class Facts:
    def __init__(self, books: Books) -> None:
        self._books = books

    def add(self, write: Write, user_id: str, drafts: Sequence[FactDraft], reading: Reading | None = None) -> Outcome:
        return self._enter(write, user_id, lambda ledger: ledger.say(drafts), reading)

    def ending(self, read: Read, user_id: str, drafts: Sequence[FactDraft]) -> tuple[Sequence[str], int]:
        tenant, revision = self._books.read(read)
        ledger = Ledger(tenant.facts.recorded(user_id).values(), self._books.now())
        ledger.say(drafts)
        return ledger.ended_before, revision

    def correct(self, write: Write, user_id: str, fact_id: str, draft: FactDraft) -> Outcome:
        return self._enter(write, user_id, lambda ledger: [(ledger.correct(fact_id, draft), False)])

    def _enter(
        self,
        write: Write,
        user_id: str,
        enter: Callable[[Ledger], list[tuple[str, bool]]],
        reading: Reading | None = None,
    ) -> Outcome:
        def change(tenant: TenantWithFacts, revision: int, now: int) -> Outcome | None:
            if reading is not None and _is_outdated(tenant, user_id, reading):
                raise WindowMoved
            ledger = Ledger(tenant.facts.recorded(user_id).values(), now)
            placed = tuple(Placed(fact_id, 0, now, known) for fact_id, known in enter(ledger))
            _keep(tenant.facts, user_id, ledger, revision)
            return Outcome(0, messages=placed, ended=tuple(ledger.ended)) if placed or ledger.ended else None

        return self._books.write(write, change)

    def retract(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        def change(tenant: TenantWithFacts, revision: int, now: int) -> Outcome | None:
            ledger = Ledger(tenant.facts.recorded(user_id).values(), now)
            gone = sum([ledger.retract(fact_id) for fact_id in dict.fromkeys(ids)])
            _keep(tenant.facts, user_id, ledger, revision)
            return Outcome(0, deleted_records=gone) if gone else None

        return self._books.write(write, change)

    def forget(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        return self._leave(write, user_id, lambda fact: None if fact.id in ids else fact)

    def forget_conversation(self, write: Write, user_id: str, conversation_id: str) -> Outcome:
        return self._leave(write, user_id, lambda fact: without_conversation(fact, conversation_id))

    def forget_all(self, write: Write, user_id: str) -> Outcome:
        return self._leave(write, user_id, lambda _: None)

    def _leave(self, write: Write, user_id: str, left: Callable[[Fact], Fact | None]) -> Outcome:
        def change(tenant: TenantWithFacts, revision: int, _now: int) -> Outcome | None:
            before = [fact for fact, *_ in tenant.facts.of(user_id)]
            changed = [(fact, left(fact)) for fact in before if left(fact) != fact]
            for ordinal, (fact, still) in enumerate(changed):
                if still is None:
                    del tenant.facts.rows[user_id, fact.id, fact.ceased or 0]
                else:
                    tenant.facts.put(user_id, still, revision, ordinal)
            kept = {fact.id for fact, *_ in tenant.facts.of(user_id)}
            return Outcome(0, deleted_records=len({fact.id for fact in before} - kept)) if changed else None

        return self._books.write(write, change)

    def get(self, read: Read, user_id: str, fact_id: str) -> tuple[bytes, int]:
        tenant, revision = self._books.read(read)
        found = tenant.facts.recorded(user_id).get(fact_id)
        if found is None:
            raise FactNotFound(fact_id)
        return _stored(user_id, found), revision

    def list(self, read: Read, user_id: str, passing: FactFilter, after: PartPosition | None, limit: int) -> ItemPage:
        tenant, revision = self._books.read(read)
        rows = [
            (fact.recorded, written, ordinal, fact)
            for fact, written, ordinal in tenant.facts.of(user_id)
            if self._is_meant(passing.times, fact) and _is_about(passing, fact)
        ]
        rows.sort(key=lambda row: row[:3], reverse=True)
        if after is not None:
            rows = [row for row in rows if row[:3] < (*after.order, after.revision, after.ordinal)]
        page = rows[:limit]
        following = PartPosition((page[-1][0],), page[-1][1], page[-1][2]) if len(rows) > limit else None
        return ItemPage(tuple(_stored(user_id, row[3]) for row in page), following, revision)

    def search(self, read: Read, user_id: str, query: FactQuery) -> RankedItems:
        tenant, revision = self._books.read(read)
        everything = {(fact.id, fact.ceased or 0): fact for fact, *_ in tenant.facts.of(user_id)}
        shares = word_shares(query.text, {name: fact.text for name, fact in everything.items()})  # type: ignore[misc]
        meant = {name: fact for name, fact in everything.items() if self._is_meant(query.times, fact)}
        scored = []
        for name, fact in meant.items():
            words = shares[name]  # type: ignore[index]
            value = words if query.vector is None else (_cosine(query, fact) + 0.5 * words) / 1.5
            if query.vector is not None or value > 0:
                scored.append((-value, name, fact))
        least = -math.inf if query.threshold is None else query.threshold
        best = [ItemHit(-value, _stored(user_id, fact)) for value, _, fact in sorted(scored, key=lambda one: one[:2])]
        lacking = [fact for fact in meant.values() if fact.vector is None or fact.vector.model != query.model]
        hits = tuple([hit for hit in best if hit.score >= least][: query.k])
        return RankedItems(hits, len(lacking) if query.model else 0, revision)

    def _is_meant(self, times: FactTimes, fact: Fact) -> bool:
        if times.recorded_at is None and fact.ceased is not None:
            return False
        if times.recorded_at is not None and not _is_within(fact.recorded, fact.ceased, times.recorded_at):
            return False
        valid_at = self._books.now() if times.valid_at is None else times.valid_at
        return times.at_any_time or _is_within(fact.valid_from, fact.valid_to, valid_at)

    def set_static(self, write: Write, facts: Sequence[StaticFact]) -> Outcome:
        def change(tenant: TenantWithFacts, _revision: int, now: int) -> Outcome | None:
            if not facts and tenant.facts.static is None:
                return None
            kept = [pb.StaticFact(id=fact.id or self._books.new_id(), content=fact.content) for fact in facts]
            tenant.facts.static = pb.StaticFacts(facts=kept, update_time=wire.timestamp(now))
            return Outcome(0, time=now, messages=tuple(Placed(fact.id, 0, now, replaced=False) for fact in kept))

        return self._books.write(write, change)

    def static(self, read: Read) -> tuple[Sequence[StaticFact], int | None, int]:
        tenant, revision = self._books.read(read)
        kept = tenant.facts.static
        if kept is None:
            return (), None, revision
        facts = tuple(StaticFact(fact.id, fact.content) for fact in kept.facts)
        return facts, wire.micros(kept.update_time), revision


def _is_outdated(tenant: Any, user_id: str, reading: Reading) -> bool:  # noqa: ANN401 - `tests.store.model.Tenant`
    revision = reading.revision
    if tenant.receipts.erased.get(user_id, 0) > revision:
        return True
    if not reading.uid:
        return False
    kept = next((each for each in tenant.conversations.values() if each.uid == reading.uid), None)
    if kept is None:
        return True
    changes = (*kept.changes, *kept.changes_of_others)
    return any(since > revision and lowest <= reading.through for since, lowest in changes)


def _keep(rows: FactRows, user_id: str, ledger: Ledger, revision: int) -> None:
    for fact_id in ledger.removed:
        del rows.rows[user_id, fact_id, 0]
    for ordinal, fact in enumerate((*ledger.ceased, *ledger.written)):
        rows.put(user_id, fact, revision, ordinal)


def _is_within(begins: int, ends: int | None, time: int) -> bool:
    return begins <= time and (ends is None or time < ends)


def _is_about(passing: FactFilter, fact: Fact) -> bool:
    asked = ((passing.subject, fact.subject), (passing.predicate, fact.predicate))
    return all(not wanted or wanted.lower().split() == found.lower().split() for wanted, found in asked)


def _cosine(query: FactQuery, fact: Fact) -> float:
    if query.vector is None or fact.vector is None or fact.vector.model != query.model:
        return 0.0
    return max(0.0, 2 * score(query.vector, fact.vector.values) - 1)


def _stored(user_id: str, fact: Fact) -> bytes:
    return _message(user_id, fact).SerializeToString()


def _message(user_id: str, fact: Fact) -> pb.Fact:
    message = pb.Fact(user_id=user_id, version=fact.ceased or 0, earlier_sources=fact.earlier)
    for name in (
        "id", "subject", "predicate", "object", "text", "confidence", "mentions", "extractor", "exclusive", "corrects",
    ):  # fmt: skip
        setattr(message, name, getattr(fact, name))
    times = {"valid_from": fact.valid_from, "valid_to": fact.valid_to, "record_time": fact.recorded}
    for name, time in {**times, "cease_time": fact.ceased}.items():
        if time is not None:
            getattr(message, name).FromMicroseconds(time)
    for source in fact.sources:
        added: Any = message.sources.add(conversation_id=source.conversation_id, message_id=source.message_id)
        if source.sent_time is not None:
            added.sent_time.FromMicroseconds(source.sent_time)
    if fact.vector is not None:
        message.model, message.values = fact.vector.model, fact.vector.values
    return message


def _fact(message: pb.Fact) -> Fact:
    def at(holder: Any, name: str) -> int | None:  # noqa: ANN401
        return wire.micros(getattr(holder, name)) if holder.HasField(name) else None

    sources = [FactSource(each.conversation_id, each.message_id, at(each, "sent_time")) for each in message.sources]
    return Fact(
        id=message.id, subject=message.subject, predicate=message.predicate, object=message.object, text=message.text,
        confidence=message.confidence, valid_from=wire.micros(message.valid_from), valid_to=at(message, "valid_to"),
        recorded=wire.micros(message.record_time), ceased=at(message, "cease_time"), mentions=message.mentions,
        exclusive=message.exclusive, extractor=message.extractor, corrects=message.corrects, sources=tuple(sources),
        earlier=tuple(message.earlier_sources),
        vector=ItemVector(message.model, message.values) if message.model else None,
    )  # fmt: skip
