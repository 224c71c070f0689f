"""Runs of workflows of the local store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from remora.v1 import workflow_pb2
from remora.v1.workflow_pb2 import WorkflowRun
from remora_server import wire
from remora_server.domain import json_paths
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import WorkflowRunNotFound
from remora_server.domain.filters import Filter, passes
from remora_server.domain.replies import fitting
from remora_server.domain.workflows import PartPage, PartPosition, RunDraft, RunQuery, WorkflowStats
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.filtered_messages import MOST_SCANNED, SCANNED_AT_ONCE
from remora_server.storage.nouns.lone_records import LoneRecords
from remora_server.storage.nouns.pruning import PRUNED_AT_ONCE, is_as_found
from remora_server.storage.nouns.run_parts import RUN_KEY, place_of_run, position_of, stored_position
from remora_server.storage.records.queries import CONTAINS, Condition, RecordsQuery
from remora_server.storage.records.reader import Partition, Record
from remora_server.storage.records.records import Move, Remove, RemovePartitions
from remora_server.storage.schema.kinds import (
    BY_CREATE_TIME,
    BY_START_TIME,
    TIMELINE_EVENTS,
    WORKFLOW_RUNS,
    WORKFLOW_STEPS,
)

_WORKFLOW_ID, _CREATE_TIME = map(WORKFLOW_RUNS.column_names.index, ("workflow_id", "create_time"))

_OLDEST = f"""
SELECT partition, create_time FROM {WORKFLOW_RUNS.name} WHERE tenant_id = ? AND workflow_id = ?
ORDER BY create_time DESC, revision DESC, ordinal DESC LIMIT {PRUNED_AT_ONCE} OFFSET ?
"""  # noqa: S608 - a table of ours
_WORKFLOWS = f"""
SELECT DISTINCT workflow_id FROM {WORKFLOW_RUNS.name} WHERE tenant_id = ? AND workflow_id > ?
ORDER BY workflow_id LIMIT ?
"""  # noqa: S608 - a table of ours
_STATS = f"""
SELECT count(*), count(*) FILTER (status = {workflow_pb2.WORKFLOW_STATUS_COMPLETED}),
    count(*) FILTER (status = {workflow_pb2.WORKFLOW_STATUS_ERROR}),
    CAST(round(avg(end_time - start_time)) AS BIGINT), max(start_time)
FROM {WORKFLOW_RUNS.name} WHERE tenant_id = ? AND workflow_id = ?
"""  # noqa: S608 - a table of ours


class WorkflowRuns:
    """Saves, changes, reads and deletes runs."""

    def __init__(self, context: StoreContext) -> None:
        self._runs = LoneRecords(context, WORKFLOW_RUNS, WorkflowRun)
        self._commits = context.commits
        self._commands = context.commands
        self._database = context.database
        self._records = context.records

    def save(self, write: Write, draft: RunDraft) -> Outcome:
        return self._runs.save(write, place_of_run(draft.id), draft.body, expected=draft.expected)

    def update(self, write: Write, draft: RunDraft, mask: frozenset[str]) -> Outcome:
        missing = WorkflowRunNotFound(draft.id)
        place = place_of_run(draft.id)
        return self._runs.update(write, place, draft.body, mask, missing=missing, expected=draft.expected)

    def get(self, read: Read, run_id: str) -> tuple[bytes, int]:
        found, revision = self._records.get(read, place_of_run(run_id), RUN_KEY)
        if found is None:
            raise WorkflowRunNotFound(run_id)
        return _served(found), revision

    def list(self, read: Read, query: RunQuery) -> PartPage:
        if query.filter is not None:
            return self._passing(read, query, query.filter)
        found = self._records.query(read, _records_query(query))
        encoded = wire.elements(wire.LIST_FIELD, (_served(each.record) for each in found.records))
        following = position_of(found.records[-1].position) if found.more and found.records else None
        return PartPage(encoded, following, found.revision)

    def _passing(self, read: Read, query: RunQuery, where: Filter) -> PartPage:
        """A page of the runs whose metadata passes; after MOST_SCANNED runs it ends."""
        rest = replace(query, limit=SCANNED_AT_ONCE)
        passing: list[tuple[PartPosition | None, bytes]] = []
        revisions: list[int] = []
        scanned, more = 0, True
        while more and scanned < MOST_SCANNED and len(passing) < query.limit:
            found = self._records.query(read, _records_query(rest))
            revisions.append(found.revision)
            scanned += len(found.records)
            passing += [
                (position_of(each.position), _served(each.record))
                for each in found.records
                if _passes(each.record, where)
            ]
            more = found.more and bool(found.records)
            rest = replace(rest, after=position_of(found.records[-1].position)) if found.records else rest
        kept = fitting(passing[: query.limit], lambda entry: len(entry[1]))
        following = rest.after if more else None
        if len(kept) < len(passing):
            following = kept[-1][0]
        encoded = wire.elements(wire.LIST_FIELD, (served for _, served in kept))
        return PartPage(encoded, following, revisions[0])

    def delete(self, write: Write, run_id: str, *, keep_related: bool, allow_missing: bool) -> Outcome:
        place = place_of_run(run_id)
        moves = [_removal(place), *([] if keep_related else _related(place))]

        def plan(_: None, _now: int) -> Planned | None:
            found = self._records.stored(write, place, RUN_KEY)
            if found is None and not allow_missing:
                raise WorkflowRunNotFound(run_id)
            if found is None:
                return None
            return Planned(self._records.changes(write, moves), Outcome(revision=0, deleted=True), found.user_id)

        return self._commands.run(write, self._records.held(write, moves), plan)

    def prune(self, write: Write, workflow_id: str, keep_newest: int) -> Outcome:
        self._commits.begin_query_of(Read(write.tenant_id, deadline=write.deadline), WORKFLOW_RUNS.number)
        rows = self._database.rows(_OLDEST, [write.tenant_id, workflow_id, keep_newest])
        found = [(Partition(WORKFLOW_RUNS, 0, partition), create_time) for partition, create_time in rows]
        everything = [move for place, _ in found for move in (_removal(place), *_related(place))]

        def is_still_old(place: Partition, create_time: int) -> bool:
            as_found = {_WORKFLOW_ID: workflow_id, _CREATE_TIME: create_time}
            return is_as_found(self._records, write, place, RUN_KEY, as_found)

        def plan(_: None, _now: int) -> Planned | None:
            there = [place for place, create_time in found if is_still_old(place, create_time)]
            gone = [move for place in there for move in (_removal(place), *_related(place))]
            outcome = Outcome(revision=0, deleted_records=len(there))
            return Planned(self._records.changes(write, gone), outcome) if gone else None

        return self._commands.run(write, self._records.held(write, everything), plan)

    def workflows(self, read: Read, after: str, limit: int) -> tuple[Sequence[str], int]:
        revision = self._commits.begin_query_of(read, WORKFLOW_RUNS.number)
        rows = self._database.rows(_WORKFLOWS, [read.tenant_id, after, limit])
        return [workflow_id for (workflow_id,) in rows], revision

    def stats(self, read: Read, workflow_id: str) -> WorkflowStats:
        revision = self._commits.begin_query_of(read, WORKFLOW_RUNS.number)
        [found] = self._database.rows(_STATS, [read.tenant_id, workflow_id])
        runs, completed, failed, mean_duration, last_start_time = found
        return WorkflowStats(runs, completed, failed, mean_duration, last_start_time, revision)


def _served(record: Record) -> bytes:
    """A run in wire form, with its revision."""
    return record.body + WorkflowRun(revision=record.revision).SerializeToString()


def _passes(record: Record, where: Filter) -> bool:
    metadata = WorkflowRun.FromString(record.body).metadata
    return passes(where, dict(json_paths.values_of(metadata)))


def _removal(place: Partition) -> Move:
    return Remove(WORKFLOW_RUNS, 0, place.partition, RUN_KEY)


def _related(place: Partition) -> list[Move]:
    """What goes with a run: its parts stand under the same id."""
    return [RemovePartitions(kind, 0, place.partition) for kind in (WORKFLOW_STEPS, TIMELINE_EVENTS)]


def _records_query(query: RunQuery) -> RecordsQuery:
    return RecordsQuery(
        WORKFLOW_RUNS,
        user_id=query.user_id or None,
        where=tuple(_conditions(query)),
        order=BY_START_TIME if query.by_start else BY_CREATE_TIME,
        descending=True,
        after=stored_position(query.after),
        skip=query.skip,
        limit=query.limit,
    )


def _conditions(query: RunQuery) -> Iterator[Condition]:
    if query.workflow_id:
        yield Condition("workflow_id", "=", query.workflow_id)
    if query.status:
        yield Condition("status", "=", query.status)
    if query.created_from is not None:
        yield Condition("create_time", ">=", query.created_from)
    if query.created_to is not None:
        yield Condition("create_time", "<=", query.created_to)
    for digest in query.members:
        yield Condition("metadata_members", CONTAINS, digest)
