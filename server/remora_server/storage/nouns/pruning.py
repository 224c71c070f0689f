"""Deletes the oldest records of a kind, a bounded number at a time.

The database finds them. What is given another time before they are locked stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Records, Remove
from remora_server.storage.schema.kinds import Kind

PRUNED_AT_ONCE = 1_000


def is_as_found(records: Records, write: Write, place: Partition, key: bytes, columns: Mapping[int, object]) -> bool:
    """Whether a record is still there as the database found it, by some of its columns, under its lock. Memory has what
    was written since.
    """
    if records.is_there(write, place, key) is None:
        return True
    found = records.stored(write, place, key)
    return found is not None and all(found.columns[column] == value for column, value in columns.items())


class Pruning:
    """Deletes records of a kind without children, by a column that is their time in nanoseconds."""

    def __init__(self, context: StoreContext, kind: Kind, column: str) -> None:
        self._commits = context.commits
        self._commands = context.commands
        self._database = context.database
        self._records = context.records
        self._kind = kind
        self._column = kind.column_names.index(column)
        self._oldest = f"""
            SELECT partition, key, {column} FROM {kind.name} WHERE tenant_id = ? AND {column} < ?
            ORDER BY {column}, revision, ordinal LIMIT {PRUNED_AT_ONCE}"""  # noqa: S608 - a table of ours

    def before(self, write: Write, nanos: int) -> Outcome:
        """Delete the oldest of those from before a time; `deleted_records`."""
        self._commits.begin_query_of(Read(write.tenant_id, deadline=write.deadline), self._kind.number)
        rows = self._database.rows(self._oldest, [write.tenant_id, nanos])
        found = [(Remove(self._kind, 0, partition, key), time) for partition, key, time in rows]

        def plan(_: None, _now: int) -> Planned | None:
            there = [move for move, time in found if self._is_still_old(write, move, time)]
            outcome = Outcome(revision=0, deleted_records=len(there))
            return Planned(self._records.changes(write, there), outcome) if there else None

        return self._commands.run(write, self._records.held(write, [move for move, _ in found]), plan)

    def _is_still_old(self, write: Write, move: Remove, time: int) -> bool:
        return is_as_found(
            self._records, write, Partition(self._kind, 0, move.partition), move.key, {self._column: time}
        )
