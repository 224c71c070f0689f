"""What agents were asked and did: entries of their history, and the steps of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.workflows import PartDraft, PartName, PartPage, PartPosition, PartQuery


class EntryDraft(Struct, frozen=True):
    """An entry as its caller gives it. `body` is the whole entry in wire form, opaque to the domain."""

    id: str
    body: bytes


class EntryQuery(Struct, frozen=True):
    """Which entries to list, the newest first."""

    agent_id: str = ""
    user_id: str = ""
    limit: int = 100
    skip: int = 0
    after: PartPosition | None = None


class EntryPage(Struct, frozen=True):
    """A page, and the number of entries on all pages."""

    page: PartPage
    total: int


class HistoryEntryStore(Protocol):
    """Keeps entries: see `domain.store`."""

    def save(self, write: Write, draft: EntryDraft) -> Outcome:
        """Add or replace; `time` is its update time. Raises HistoryEntryExists if it belongs to another user."""

    def update(self, write: Write, draft: EntryDraft, mask: frozenset[str]) -> Outcome:
        """Replace the masked fields; `time` is its update time. Raises HistoryEntryNotFound."""

    def get(self, read: Read, entry_id: str) -> tuple[bytes, int]:
        """An entry in wire form, and the revision that this shows. Raises HistoryEntryNotFound."""

    def list(self, read: Read, query: EntryQuery) -> EntryPage:
        """A page of entries."""

    def delete(self, write: Write, entry_id: str) -> Outcome:
        """Delete, with its steps and its timeline events; `deleted`."""


class EntryStepStore(Protocol):
    """Keeps steps of entries, which are their runs: see `domain.store`."""

    def save(self, write: Write, drafts: Sequence[PartDraft]) -> Outcome:
        """Add or replace; of two steps with one id in one entry, the last wins. Raises HistoryEntryNotFound."""

    def update(self, write: Write, draft: PartDraft, mask: frozenset[str]) -> Outcome:
        """Replace the masked fields. Raises EntryStepNotFound."""

    def get(self, read: Read, name: PartName) -> tuple[bytes, int]:
        """A step in wire form, and the revision that this shows. Raises EntryStepNotFound."""

    def list(self, read: Read, query: PartQuery) -> PartPage:
        """A page of an entry's steps, by step_index, then by create_time."""

    def delete(self, write: Write, name: PartName) -> Outcome:
        """Delete; `deleted`."""
