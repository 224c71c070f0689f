"""Spans of traces, and log records, as OpenTelemetry has them. Times are in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.workflows import PartDraft, PartName, PartPage, PartPosition, PartQuery


class TracePosition(Struct, frozen=True, array_like=True):
    """A trace's position in a list: when it began, and its id."""

    start_time: int
    trace_id: str


class TraceQuery(Struct, frozen=True):
    """Which traces to list, the newest first: those with a span of a user that has these members in its attributes.

    `members`: digests by `domain.json_members`.
    """

    members: tuple[str, ...] = ()
    user_id: str = ""
    limit: int = 100
    skip: int = 0
    after: TracePosition | None = None


class Trace(Struct, frozen=True):
    """A trace in a list."""

    trace_id: str
    start_time: int
    spans: int


class TracePage(Struct, frozen=True):
    """A page of traces, and whether there are more."""

    traces: tuple[Trace, ...]
    more: bool
    revision: int


class LogRecordDraft(Struct, frozen=True):
    """A log record as its caller gives it. `body` is the whole of it in wire form; its id may be empty."""

    id: str
    trace_id: str
    body: bytes


class LogQuery(Struct, frozen=True):
    """Which log records to list. Severities and times are inclusive; those that are 0 or None do not count.

    `members` are as in TraceQuery.
    """

    trace_id: str = ""
    span_id: str = ""
    user_id: str = ""
    min_severity: int = 0
    max_severity: int = 0
    severity_text: str = ""
    scope_name: str = ""
    from_time: int | None = None
    to_time: int | None = None
    members: tuple[str, ...] = ()
    body_contains: str = ""
    newest_first: bool = False
    limit: int = 100
    skip: int = 0
    after: PartPosition | None = None


class SpanStore(Protocol):
    """Keeps spans, whose runs are their traces: see `domain.store`."""

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        """Add or replace; of two spans with one id in one trace, the last wins."""

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        """Replace the masked fields. Raises SpanNotFound."""

    def get(self, read: Read, name: PartName) -> tuple[bytes, int]:
        """A span in wire form, and the revision that this shows. Raises SpanNotFound."""

    def list(self, read: Read, query: PartQuery) -> PartPage:
        """A page of a trace's spans, by start time, then in the order of saving."""

    def traces(self, read: Read, query: TraceQuery) -> TracePage:
        """A page of traces."""

    def prune(self, write: Write, before: int) -> Outcome:
        """Delete the oldest of those that began before a time; `deleted_records`."""


class LogRecordStore(Protocol):
    """Keeps log records: see `domain.store`."""

    def save(self, write: Write, drafts: Sequence[LogRecordDraft]) -> Outcome:
        """Add or replace; of two records with one id in one trace, the last wins."""

    def list(self, read: Read, query: LogQuery) -> PartPage:
        """A page of records, by time, then in the order of saving."""

    def prune(self, write: Write, before: int) -> Outcome:
        """Delete the oldest of those from before a time; `deleted_records`."""
