"""Commits writes: a record goes into the journal, and its outcome is returned once it is durable."""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from remora_server import _native
from remora_server._native import Core
from remora_server.domain.calls import Outcome, Placed, Read, Write
from remora_server.domain.errors import (
    DeadlineExceeded,
    Overloaded,
    RequestIdReused,
    RequestTooLarge,
    RevisionUnknown,
    StoreFailed,
    StoreFull,
)
from remora_server.storage.commit.applier import Applier
from remora_server.storage.commit.changes import Change
from remora_server.storage.commit.deadlines import remaining, require_time
from remora_server.storage.commit.request_ids import FoundRequest, RequestIds
from remora_server.storage.database.database import Database
from remora_server.storage.v1 import record_pb2

MAX_RECORD_BYTES = 40 << 20
SETTLE_SECONDS = 30.0
"""How long background work waits for the database before it fails and is tried again."""


class Accepted(Struct, frozen=True):
    """A write that has its place in the journal; `repeated` where an earlier request wrote it."""

    revision: int
    outcome: Outcome
    repeated: bool = False


class Commits:
    """Accepts records and waits for them. Accept under the lock of the records that change; wait outside of it."""

    def __init__(self, core: Core, database: Database, applier: Applier, requests: RequestIds) -> None:
        self._core = core
        self._database = database
        self._applier = applier
        self._requests = requests

    def repeated(self, write: Write) -> Outcome | None:
        """The outcome of the same request where it came before. The beginning of every write. Raises RequestIdReused,
        StoreFailed, DeadlineExceeded.
        """
        self._require_whole()
        accepted = _accepted(write, self._requests.find(write)) if write.request_id else None
        return None if accepted is None else self.finish(write, accepted)

    def accepted_meanwhile(self, write: Write) -> Accepted | None:
        """The same request where it was accepted since it was looked for. Raises RequestIdReused."""
        return _accepted(write, self._requests.find_in_memory(write)) if write.request_id else None

    def accept(
        self, write: Write, now: int, changes: Iterable[Change], outcome: Outcome, user_id: str = ""
    ) -> Accepted:
        """Give the changes their revision."""
        self._require_reach()
        payload = _record(write, now, changes, outcome, user_id).SerializeToString()
        try:
            revision, status = self._core.commit(payload, remaining(write.deadline))
        except _native.JournalFull as error:
            raise StoreFull from error
        except _native.JournalFailed as error:
            raise StoreFailed from error
        except _native.JournalTimeout as error:
            raise DeadlineExceeded from error
        except _native.JournalBehind as error:
            raise Overloaded from error
        except _native.RecordTooLarge as error:
            raise RequestTooLarge(MAX_RECORD_BYTES) from error
        if status == "reused":
            raise RequestIdReused(write.request_id)
        return Accepted(revision, outcome, repeated=status == "repeated")

    def _require_whole(self) -> None:
        """Raise StoreFailed if a panic may have left half of a change in memory: nothing of it is shown."""
        if not self._core.is_whole():
            raise StoreFailed

    def _require_reach(self) -> None:
        """Refuse at once a write that would wait for a database that cannot be written. Raises StoreFull,
        MemoryExhausted, StoreFailed.
        """
        if (self._applier.stuck or self._applier.failure) and self._core.is_behind():
            raise self._applier.stuck or StoreFailed

    def finish(self, write: Write, accepted: Accepted) -> Outcome:
        """Wait until the write is durable and visible, unless its caller does."""
        if accepted.repeated:
            return self._first_outcome(write, accepted.revision)
        if write.waits_for_disk:
            self.wait_published(accepted.revision, write.deadline)
        return replace(accepted.outcome, revision=accepted.revision)

    def nothing(self, write: Write, now: int) -> Accepted:
        """A write that found nothing to change in what was accepted, which may not be durable yet.

        A write with a request id is remembered, so that a repeat does not change what was written in between.
        """
        if write.request_id:
            return self.accept(write, now, [], Outcome(revision=0))
        return Accepted(self._core.accepted(), Outcome(revision=0))

    def wait_published(self, revision: int, deadline: float | None) -> None:
        """Wait until readers see the revision. Raises DeadlineExceeded, StoreFailed."""
        try:
            if not self._core.wait(revision, remaining(deadline)):
                raise DeadlineExceeded
        except _native.JournalFailed as error:
            raise StoreFailed from error

    def wait_accepted(self, deadline: float | None) -> None:
        """Wait until readers see all that has been accepted. Raises DeadlineExceeded, StoreFailed."""
        self.wait_published(self._core.accepted(), deadline)

    def begin(self, read: Read) -> int:
        """Wait for the revision that a read asks for, and return the one that it sees at least.

        Raises RevisionUnknown, DeadlineExceeded, StoreFailed.
        """
        self._require_whole()
        if read.min_revision > self._core.published():
            if read.min_revision > self._core.accepted():
                raise RevisionUnknown(read.min_revision, self._core.accepted())
            self.wait_published(read.min_revision, read.deadline)
        return self._core.published()

    def begin_query(self, read: Read) -> int:
        """The same for a read that asks DuckDB: everything that it should see has been applied."""
        require_time(read.deadline)
        revision = self.begin(read)
        self.wait_applied(revision, read.deadline)
        return revision

    def begin_query_of(self, read: Read, kind: int) -> int:
        """The same for a read that asks DuckDB for records of one kind: only what touches these has been applied."""
        require_time(read.deadline)
        revision = self.begin(read)
        self.wait_applied(min(revision, self._core.kind_touched(kind)), read.deadline)
        return revision

    def settle(self, deadline: float | None = None) -> int:
        """Wait until DuckDB holds everything that has been accepted, and return up to which revision that is.

        Waits SETTLE_SECONDS where there is no deadline. Raises DeadlineExceeded, StoreFailed.
        """
        revision = self._core.accepted()
        deadline = time.monotonic() + SETTLE_SECONDS if deadline is None else deadline
        self.wait_published(revision, deadline)
        self.wait_applied(revision, deadline)
        return revision

    def applied(self) -> int:
        """The revision that DuckDB holds at least."""
        return self._applier.applied

    def wait_applied(self, revision: int, deadline: float | None) -> None:
        """Wait until DuckDB holds the revision. Raises DeadlineExceeded, StoreFull, MemoryExhausted."""
        if not self._applier.wait(revision, remaining(deadline)):
            raise self._applier.stuck or DeadlineExceeded

    def _first_outcome(self, write: Write, revision: int) -> Outcome:
        self.wait_published(revision, write.deadline)
        self.wait_applied(revision, write.deadline)
        rows = self._database.rows(
            "SELECT outcome FROM requests WHERE tenant_id = ? AND request_id = ? AND revision = ?",
            [write.tenant_id, write.request_id, revision],
        )
        return replace(decode_outcome(rows[0][0]), revision=revision)


def _accepted(write: Write, found: FoundRequest | None) -> Accepted | None:
    if found is None:
        return None
    revision, same = found
    if not same:
        raise RequestIdReused(write.request_id)
    return Accepted(revision, Outcome(revision=revision), repeated=True)


def _record(write: Write, now: int, changes: Iterable[Change], outcome: Outcome, user_id: str) -> record_pb2.Record:
    record = record_pb2.Record(
        tenant_id=write.tenant_id,
        time=now,
        user_id=user_id,
        agent_id=write.agent_id,
        run_id=write.run_id,
        traceparent=write.traceparent,
        method=write.method,
    )
    for fill in changes:
        fill(record.changes.add())
    if write.request_id:
        record.request_id = write.request_id
        record.fingerprint = write.fingerprint
        _keep(outcome, record.outcome)
    return record


def _keep(outcome: Outcome, kept: record_pb2.Outcome) -> None:
    """Put an outcome into a record, without its revision. It is done in place, because a separate message would be
    copied.
    """
    kept.conversation_id = outcome.conversation_id
    kept.time = outcome.time
    for placed in outcome.messages:
        message = kept.messages.add()
        message.id = placed.id
        message.sequence = placed.sequence
        message.create_time = placed.create_time
        message.replaced = placed.replaced
    kept.created = outcome.created
    kept.deleted = outcome.deleted
    kept.pruned_messages = outcome.pruned_messages
    kept.deleted_messages = outcome.deleted_messages
    kept.deleted_conversations = outcome.deleted_conversations
    kept.imported_records = outcome.imported_records
    kept.deleted_records = outcome.deleted_records
    kept.ended.extend(outcome.ended)


def decode_outcome(encoded: bytes) -> Outcome:
    """The outcome that the journal kept; its revision is to be set."""
    kept = record_pb2.Outcome.FromString(encoded)
    return Outcome(
        revision=0,
        conversation_id=kept.conversation_id,
        time=kept.time,
        messages=tuple(Placed(m.id, m.sequence, m.create_time, m.replaced) for m in kept.messages),
        created=kept.created,
        deleted=kept.deleted,
        pruned_messages=kept.pruned_messages,
        deleted_messages=kept.deleted_messages,
        deleted_conversations=kept.deleted_conversations,
        imported_records=kept.imported_records,
        deleted_records=kept.deleted_records,
        ended=tuple(kept.ended),
    )
