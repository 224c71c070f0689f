"""Runs of workflows, with their steps and what happened in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.filters import Filter


class RunDraft(Struct, frozen=True):
    """A run as its caller gives it. `body` is the whole run in wire form, opaque to the domain.

    `expected`: the revision that the run must have, 0 where none may be there; None: any.
    """

    id: str
    body: bytes
    expected: int | None = None


class RunQuery(Struct, frozen=True):
    """Which runs to list, the newest first. `status` is the contract's number of it; 0: any. Times are inclusive.

    `members`: digests of what the metadata must have, by `domain.json_members`. `filter`: what it must pass, by paths;
    a page may then be short, or empty, though others follow. `by_start`: by start_time.
    """

    workflow_id: str = ""
    status: int = 0
    user_id: str = ""
    created_from: int | None = None
    created_to: int | None = None
    members: tuple[str, ...] = ()
    filter: Filter | None = None
    by_start: bool = False
    limit: int = 100
    skip: int = 0
    after: PartPosition | None = None


class PartPosition(Struct, frozen=True, array_like=True):
    """A position in a list: the value of the order, the revision, and the index within that revision."""

    order: tuple[int, ...]
    revision: int
    ordinal: int


class PartPage(Struct, frozen=True):
    """A page as a list in wire form: entries of field 1. `following`: where the next begins; None at the end."""

    encoded: bytes
    following: PartPosition | None
    revision: int


class WorkflowStats(Struct, frozen=True):
    """How many runs of a workflow there are, and how they ended. `mean_duration` is of those that have ended."""

    runs: int
    completed: int
    failed: int
    mean_duration: int | None
    last_start_time: int | None
    revision: int


class PartName(Struct, frozen=True):
    """A part of a run: a step or an event. Without a run, it names the newest such part of all runs."""

    id: str
    run_id: str = ""


class PartDraft(Struct, frozen=True):
    """A part as its caller gives it. `body` is the whole of it in wire form."""

    name: PartName
    body: bytes


class PartQuery(Struct, frozen=True):
    """Which parts of a run to list, in their order."""

    run_id: str
    limit: int = 100
    after: PartPosition | None = None


class WorkflowRunStore(Protocol):
    """Keeps runs: see `domain.store`."""

    def save(self, write: Write, draft: RunDraft) -> Outcome:
        """Add or replace; `time` is its update time. Raises RevisionConflict."""

    def update(self, write: Write, draft: RunDraft, mask: frozenset[str]) -> Outcome:
        """Replace the masked fields; `time` is its update time. Raises WorkflowRunNotFound, RevisionConflict."""

    def get(self, read: Read, run_id: str) -> tuple[bytes, int]:
        """A run in wire form, and the revision that this shows. Raises WorkflowRunNotFound."""

    def list(self, read: Read, query: RunQuery) -> PartPage:
        """A page of runs."""

    def delete(self, write: Write, run_id: str, *, keep_related: bool, allow_missing: bool) -> Outcome:
        """Delete, with all that belongs to it unless that is kept; `deleted`. Raises WorkflowRunNotFound."""

    def prune(self, write: Write, workflow_id: str, keep_newest: int) -> Outcome:
        """Delete the oldest runs of a workflow with all that belongs to them; `deleted_records` are runs."""

    def workflows(self, read: Read, after: str, limit: int) -> tuple[Sequence[str], int]:
        """The ids of the workflows that have runs, behind one, and the revision that they show."""

    def stats(self, read: Read, workflow_id: str) -> WorkflowStats:
        """The statistics of a workflow's runs."""


class WorkflowStepStore(Protocol):
    """Keeps steps of runs: see `domain.store`."""

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        """Add or replace; of two steps with one id in one run, the last wins."""

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        """Replace the masked fields. Raises WorkflowStepNotFound."""

    def get(self, read: Read, name: PartName) -> tuple[bytes, int]:
        """A step in wire form, and the revision that this shows. Raises WorkflowStepNotFound."""

    def list(self, read: Read, query: PartQuery) -> PartPage:
        """A page of a run's steps, by step_index, then in the order of saving."""

    def delete(self, write: Write, name: PartName) -> Outcome:
        """Delete; `deleted`."""


class TimelineEventStore(Protocol):
    """Keeps what happened in runs: see `domain.store`."""

    def add(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        """Add what is not there. Raises TimelineEventExists if another event has the id."""

    def get(self, read: Read, name: PartName) -> tuple[bytes, int]:
        """An event in wire form, and the revision that this shows. Raises TimelineEventNotFound."""

    def list(self, read: Read, query: PartQuery) -> PartPage:
        """A page of a run's events, by sequence, then by start time, then in the order of adding."""

    def delete(self, write: Write, name: PartName) -> Outcome:
        """Delete; `deleted`."""
