"""The thread that journals refreshed expiries and removes what has expired, and bodies that no record names."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from remora_server._native import Core
from remora_server.domain.calls import Outcome, Write
from remora_server.storage.commit import changes
from remora_server.storage.commit.clock import Clock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import Database
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Records, Remove, RemovePartitions
from remora_server.storage.schema.kinds import BODY_PARTS, CONVERSATION_BODY_PARTS, Kind, parts_of
from remora_server.supervision import LongLived

TICK_SECONDS = 1.0
JOURNAL_SECONDS = 60
"""How long a refreshed expiry is in memory alone: once in this time at most, a record's is journaled."""
SWEEP_SECONDS = 60.0
SWEPT_AT_ONCE = 256
REFRESHED_AT_ONCE = 4096


class Expired(Struct, frozen=True):
    """A record of which the database says that it has expired."""

    tenant_id: str
    place: Partition
    key: bytes


class Expiry:
    """Sweeps and journals in the background, from `start` to `close`."""

    def __init__(self, core: Core, database: Database, commits: Commits, records: Records, clock: Clock) -> None:
        self._core = core
        self._database = database
        self._commits = commits
        self._records = records
        self._clock = clock
        self._stopping = threading.Event()
        self._swept = time.monotonic()
        self._thread = LongLived("expiry", self._run)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, and journal what is not."""
        self._thread.end()
        self._stopping.set()
        self._thread.join()
        if self._core.failure() is None:
            self.journal(older_than=self._clock())

    def _run(self) -> None:
        while not self._stopping.wait(TICK_SECONDS):
            self.journal(older_than=self._clock() - JOURNAL_SECONDS * 1_000_000)
            if time.monotonic() - self._swept >= SWEEP_SECONDS:
                self.sweep()
                self._swept = time.monotonic()

    def journal(self, *, older_than: int) -> None:
        """Journal the expiries that were set at a time, or before, and are in memory alone."""
        by_tenant: dict[str, list[changes.Change]] = defaultdict(list)
        for kind, tenant_id, uid, partition, key, revision, expire_time in self._core.take_refreshed(
            older_than=older_than
        ):
            moved = changes.set_expiry(kind, uid, partition, key, revision, expire_time)
            by_tenant[tenant_id].append(moved)
        for tenant_id, moves in by_tenant.items():
            for first in range(0, len(moves), REFRESHED_AT_ONCE):
                chosen = moves[first : first + REFRESHED_AT_ONCE]
                write = Write(tenant_id, method="RefreshRecords")
                self._commits.accept(write, self._clock(), chosen, Outcome(revision=0))

    def sweep(self) -> int:
        """Remove what has expired; how many records that were."""
        return sum(self._sweep_kind(kind) for kind in self._records.kinds) + self._sweep_parts()

    def _sweep_kind(self, kind: Kind) -> int:
        removed = 0
        while not self._stopping.is_set():
            found = self._expired(kind)
            removed += sum(map(self._remove, found))
            if len(found) < SWEPT_AT_ONCE:
                return removed
            self._commits.settle()
        return removed

    def _expired(self, kind: Kind) -> list[Expired]:
        rows = self._database.rows(
            f"""SELECT tenant_id, conversation_uid, partition, key FROM {kind.name}
                WHERE expire_time <= ? LIMIT {SWEPT_AT_ONCE}""",  # noqa: S608 - a table of ours
            [self._clock()],
        )
        return [Expired(tenant_id, Partition(kind, uid, partition), key) for tenant_id, uid, partition, key in rows]

    def _remove(self, expired: Expired) -> bool:
        """Remove a record, unless it lives by what was accepted since; whether it was removed."""
        place = expired.place
        write = Write(expired.tenant_id, method="ExpireRecords")
        move = Remove(place.kind, place.uid, place.partition, expired.key)
        with self._records.held(write, [move]):
            if not self._records.has_expired(write, place, expired.key):
                return False
            moves = self._records.changes(write, [move])
            self._commits.accept(write, self._clock(), moves, Outcome(revision=0))
        return True

    def _sweep_parts(self) -> int:
        """Remove the parts of bodies whose records are gone or have another body."""
        found = [gone for kind in (BODY_PARTS, CONVERSATION_BODY_PARTS) for gone in self._unnamed(kind)]
        for tenant_id, place in found:
            write = Write(tenant_id, method="ExpireRecords")
            move = RemovePartitions(place.kind, place.uid, place.partition)
            with self._records.held(write, [move]):
                self._commits.accept(write, self._clock(), self._records.changes(write, [move]), Outcome(revision=0))
        return len(found)

    def _unnamed(self, parts: Kind) -> Iterator[tuple[str, Partition]]:
        """Uploads that a write has named, but no record does any more. An upload is named once: they stay so."""
        naming = [kind.name for kind in self._records.kinds if parts_of(kind) is parts]
        named = " UNION ALL ".join(
            f"SELECT tenant_id, conversation_uid, upload_id FROM {name} WHERE upload_id <> ''"  # noqa: S608 - ours
            for name in naming
        )
        rows = self._database.rows(
            f"""SELECT DISTINCT tenant_id, conversation_uid, partition FROM {parts.name} AS parts
                WHERE expire_time IS NULL AND NOT EXISTS (SELECT 1 FROM ({named}) AS named
                    WHERE named.tenant_id = parts.tenant_id AND named.conversation_uid = parts.conversation_uid
                    AND encode(split_part(named.upload_id, '/', 1)) || '\\x00\\x01'::BLOB = parts.partition)
                LIMIT {SWEPT_AT_ONCE}"""  # noqa: S608 - tables of ours
        )
        for tenant_id, uid, partition in rows:
            yield tenant_id, Partition(parts, uid, partition)
