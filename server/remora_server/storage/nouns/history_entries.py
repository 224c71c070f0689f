"""Entries of agents' history of the local store."""

from __future__ import annotations

from collections.abc import Iterator

from remora.v1.history_entry_pb2 import HistoryEntry
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import HistoryEntryExists, HistoryEntryNotFound
from remora_server.domain.history import EntryDraft, EntryPage, EntryQuery
from remora_server.domain.workflows import PartPage
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.lone_records import LoneRecords
from remora_server.storage.nouns.run_parts import RUN_KEY, place_of_entry, position_of, stored_position
from remora_server.storage.records.queries import Condition, RecordsQuery
from remora_server.storage.records.records import Move, Remove, RemovePartitions
from remora_server.storage.schema.kinds import HISTORY_ENTRIES, IN_ORDER, TIMELINE_EVENTS


class HistoryEntries:
    """Saves, changes, reads and deletes entries."""

    def __init__(self, context: StoreContext) -> None:
        self._entries = LoneRecords(context, HISTORY_ENTRIES, HistoryEntry)
        self._commands = context.commands
        self._records = context.records

    def save(self, write: Write, draft: EntryDraft) -> Outcome:
        return self._entries.save(write, place_of_entry(draft.id), draft.body, allow=_require_owner)

    def update(self, write: Write, draft: EntryDraft, mask: frozenset[str]) -> Outcome:
        missing = HistoryEntryNotFound(draft.id)
        return self._entries.update(write, place_of_entry(draft.id), draft.body, mask, missing=missing)

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


def _require_owner(entry: HistoryEntry, before: HistoryEntry | None) -> None:
    """Raise HistoryEntryExists where the entry is another user's."""
    if before is not None and before.user_id != entry.user_id:
        raise HistoryEntryExists(entry.id)


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
