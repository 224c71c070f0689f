"""Deletes the oldest records of a kind, a bounded number at a time."""

from __future__ import annotations

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Remove
from remora_server.storage.schema.kinds import Kind

PRUNED_AT_ONCE = 1_000


class Pruning:
    """Deletes records of a kind without children, by a column that is their time in nanoseconds."""

    def __init__(self, context: StoreContext, kind: Kind, column: str) -> None:
        self._commits = context.commits
        self._commands = context.commands
        self._database = context.database
        self._records = context.records
        self._kind = kind
        self._oldest = f"""
            SELECT partition, key FROM {kind.name} WHERE tenant_id = ? AND {column} < ?
            ORDER BY {column}, revision, ordinal LIMIT {PRUNED_AT_ONCE}"""  # noqa: S608 - a table of ours

    def before(self, write: Write, nanos: int) -> Outcome:
        """Delete the oldest of those from before a time; `deleted_records`."""
        self._commits.begin_query_of(Read(write.tenant_id, deadline=write.deadline), self._kind.number)
        rows = self._database.rows(self._oldest, [write.tenant_id, nanos])
        moves = [Remove(self._kind, 0, partition, key) for partition, key in rows]

        def plan(_: None, _now: int) -> Planned | None:
            there = [move for move in moves if self._is_there(write, move)]
            outcome = Outcome(revision=0, deleted_records=len(there))
            return Planned(self._records.changes(write, there), outcome) if there else None

        return self._commands.run(write, self._records.held(write, moves), plan)

    def _is_there(self, write: Write, move: Remove) -> bool:
        """Whether it still exists after the query of the database."""
        return self._records.may_be_there(write, Partition(self._kind, 0, move.partition), move.key)
