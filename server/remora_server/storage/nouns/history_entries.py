"""Entries of agents' history of the local store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from remora.v1.history_entry_pb2 import HistoryEntry
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import HistoryEntryExists, HistoryEntryNotFound
from remora_server.domain.history import EntryDraft, EntryPage, EntryQuery
from remora_server.domain.workflows import PartPage
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.run_parts import RUN_KEY, answered, place_of_entry, position_of, stored_position
from remora_server.storage.records.queries import Condition, RecordsQuery
from remora_server.storage.records.reader import Partition, Record
from remora_server.storage.records.records import Move, Put, Remove, RemovePartitions
from remora_server.storage.schema.kinds import HISTORY_ENTRIES, IN_ORDER, TIMELINE_EVENTS


class HistoryEntries:
    """Saves, changes, reads and deletes entries."""

    def __init__(self, context: StoreContext) -> None:
        self._commands = context.commands
        self._records = context.records

    def save(self, write: Write, draft: EntryDraft) -> Outcome:
        place = place_of_entry(draft.id)

        def plan(_: None, now: int) -> Planned:
            entry, before = HistoryEntry.FromString(draft.body), self._accepted(write, place)
            if before is not None and before.user_id != entry.user_id:
                raise HistoryEntryExists(draft.id)
            return self._planned(write, _dated(entry, before, now))

        return self._run(write, place, plan)

    def update(self, write: Write, draft: EntryDraft, mask: frozenset[str]) -> Outcome:
        place = place_of_entry(draft.id)

        def plan(_: None, now: int) -> Planned:
            before = self._accepted(write, place)
            if before is None:
                raise HistoryEntryNotFound(draft.id)
            entry = HistoryEntry.FromString(before.body)
            wire.merge(HistoryEntry.FromString(draft.body), entry, mask)
            if "update_time" not in mask:
                entry.ClearField("update_time")
            return self._planned(write, _dated(entry, before, now))

        return self._run(write, place, plan)

    def get(self, read: Read, entry_id: str) -> tuple[bytes, int]:
        found, revision = self._records.get(read, place_of_entry(entry_id), RUN_KEY)
        if found is None:
            raise HistoryEntryNotFound(entry_id)
        return found.body, revision

    def list(self, read: Read, query: EntryQuery) -> EntryPage:
        wanted = _records_query(query)
        found = self._records.query(read, wanted)
        total = len(found.records)
        if found.more or query.skip or query.after is not None:
            total = self._records.count_all(read, wanted)
        encoded = wire.elements(wire.LIST_FIELD, (each.record.body for each in found.records))
        following = position_of(found.records[-1].position) if found.more and found.records else None
        return EntryPage(PartPage(encoded, following, found.revision), total)

    def delete(self, write: Write, entry_id: str) -> Outcome:
        place = place_of_entry(entry_id)
        moves: list[Move] = [
            Remove(HISTORY_ENTRIES, 0, place.partition, RUN_KEY),
            RemovePartitions(TIMELINE_EVENTS, 0, place.partition),
        ]

        def plan(_: None, _now: int) -> Planned | None:
            found = self._records.stored(write, place, RUN_KEY)
            if found is None:
                return None
            return Planned(self._records.changes(write, moves), Outcome(revision=0, deleted=True), found.user_id)

        return self._commands.run(write, self._records.held(write, moves), plan)

    def _accepted(self, write: Write, place: Partition) -> Record | None:
        """An entry as writers build on it, under its lock."""
        found = self._records.accepted(write, place, [RUN_KEY])
        return found[0] if found else None

    def _planned(self, write: Write, entry: HistoryEntry) -> Planned:
        outcome = Outcome(revision=0, time=wire.micros(entry.update_time))
        return Planned(self._records.changes(write, [Put(HISTORY_ENTRIES, 0, entry)]), outcome, entry.user_id)

    def _run(self, write: Write, place: Partition, plan: Callable[[None, int], Planned]) -> Outcome:
        with answered():
            return self._commands.run(write, self._records.held_place(write, place), plan)


def _dated(entry: HistoryEntry, before: Record | None, now: int) -> HistoryEntry:
    """The entry with the times that it has in any case."""
    if not entry.HasField("update_time"):
        entry.update_time.CopyFrom(wire.timestamp(now))
    if not entry.HasField("create_time"):
        known = None if before is None else HistoryEntry.FromString(before.body).create_time
        entry.create_time.CopyFrom(known or wire.timestamp(now))
    if not entry.HasField("start_time"):
        entry.start_time.CopyFrom(entry.create_time)
    return entry


def _records_query(query: EntryQuery) -> RecordsQuery:
    return RecordsQuery(
        HISTORY_ENTRIES,
        user_id=query.user_id or None,
        where=tuple(_conditions(query)),
        order=IN_ORDER,
        descending=True,
        after=stored_position(query.after),
        skip=query.skip,
        limit=query.limit,
    )


def _conditions(query: EntryQuery) -> Iterator[Condition]:
    if query.agent_id:
        yield Condition("agent_id", "=", query.agent_id)
