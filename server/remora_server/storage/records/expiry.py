"""The thread that journals refreshed expiries and removes what has expired, and bodies that no record names.

Its writes are accepted without `commands`: they are the server's own and have no request id, so none is a repeat.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from remora_server import failpoints
from remora_server._native import Core
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.errors import RemoraError
from remora_server.storage.commit import changes
from remora_server.storage.commit.clock import Clock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import Database
from remora_server.storage.database.tables import unnamed
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Records, Remove
from remora_server.storage.schema.kinds import BODY_PARTS, CONVERSATION_BODY_PARTS, Kind
from remora_server.supervision import LongLived

TICK_SECONDS = 1.0
JOURNAL_SECONDS = 60
"""How long a refreshed expiry is in memory alone: once in this time at most, a record's is journaled."""
SWEEP_SECONDS = 60.0
SWEPT_AT_ONCE = 256
REFRESHED_AT_ONCE = 4096

logger = logging.getLogger(__name__)


_ORDER = "tenant_id, conversation_uid, partition, key"
_SWEPT = f"""{_ORDER}, revision,
    coalesce((SELECT id FROM conversations WHERE uid = conversation_uid), '')"""  # noqa: S608 - a constant


class Swept(Struct, frozen=True):
    """A record that may be removed, by what the database says. `conversation_id`: empty if it belongs to none."""

    tenant_id: str
    place: Partition
    key: bytes
    revision: int
    conversation_id: str

    @property
    def position(self) -> list[object]:
        """In the order of the sweep."""
        return [self.tenant_id, self.place.uid, self.place.partition, self.key]


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
        """End, and journal what is not, unless the journal does not take it."""
        self._thread.end()
        self._stopping.set()
        self._thread.join()
        if self._core.failure() is not None:
            return
        try:
            self.journal_all()
        except RemoraError as error:
            logger.warning("refreshed records expire at the time from before", extra={"reason": type(error).__name__})

    def failure(self) -> str:
        """Why nothing is swept and journaled now; empty if it is."""
        return self._thread.failure

    def _run(self) -> None:
        while not self._stopping.wait(TICK_SECONDS):
            failpoints.hit("expiry_turn")
            self.journal(older_than=self._clock() - JOURNAL_SECONDS * 1_000_000)
            if time.monotonic() - self._swept >= SWEEP_SECONDS:
                self.sweep()
                self._swept = time.monotonic()

    def journal_all(self, deadline: float | None = None) -> int:
        """Journal all expiries that are in memory alone; the revision at which the journal has them."""
        self.journal(older_than=self._clock(), deadline=deadline)
        return self._core.accepted()

    def journal(self, *, older_than: int, deadline: float | None = None) -> None:
        """Journal the expiries that were set at a time, or before, and are in memory alone."""
        by_tenant: dict[str, list[changes.Change]] = defaultdict(list)
        for kind, tenant_id, uid, partition, key, revision, expire_time in self._core.take_refreshed(
            older_than=older_than, now=self._clock()
        ):
            moved = changes.set_expiry(kind, uid, partition, key, revision, expire_time)
            by_tenant[tenant_id].append(moved)
        for tenant_id, moves in by_tenant.items():
            for first in range(0, len(moves), REFRESHED_AT_ONCE):
                chosen = moves[first : first + REFRESHED_AT_ONCE]
                write = Write(tenant_id, method="RefreshRecords", deadline=deadline)
                self._commits.accept(write, self._clock(), chosen, Outcome(revision=0))

    def sweep(self) -> int:
        """Remove what has expired, and parts of bodies that no record has any more; how many records that were."""
        return sum(self._sweep_kind(kind) for kind in self._records.kinds) + self._sweep_parts()

    def _sweep_kind(self, kind: Kind) -> int:
        """Page by page: what the database calls expired may live by what only memory has, and stays."""
        removed, after = 0, None
        while not self._stopping.is_set():
            page = self._expired(kind, after)
            removed += sum(map(self._remove_expired, page))
            if len(page) < SWEPT_AT_ONCE:
                break
            after = page[-1]
            self._commits.settle()
        return removed

    def _expired(self, kind: Kind, after: Swept | None) -> list[Swept]:
        behind, values = ("", []) if after is None else (f"AND ({_ORDER}) > (?, ?, ?, ?)", after.position)
        return self._found(
            kind,
            f"SELECT {_SWEPT} FROM {kind.name} WHERE expire_time <= ? {behind} ORDER BY {_ORDER} LIMIT {SWEPT_AT_ONCE}",  # noqa: S608 - ours
            [self._clock(), *values],
        )

    def _remove_expired(self, swept: Swept) -> bool:
        """Remove a record, unless it lives by what was accepted since; whether it was removed."""
        write = Write(swept.tenant_id, method="ExpireRecords")
        with self._records.held_place(write, swept.place, swept.conversation_id):
            has_expired = self._records.has_expired(write, swept.place, swept.key)
            if has_expired:
                self._remove(write, swept)
            return has_expired

    def _sweep_parts(self) -> int:
        """Remove the parts of bodies whose records are gone or have another body."""
        found = [part for kind in (BODY_PARTS, CONVERSATION_BODY_PARTS) for part in self._unnamed(kind)]
        return sum(map(self._remove_part, found))

    def _unnamed(self, parts: Kind) -> list[Swept]:
        """Parts that a write has named, but no record does any more. An upload is named once: they stay so."""
        return self._found(
            parts,
            f"""SELECT {_SWEPT} FROM {parts.name} WHERE expire_time IS NULL AND {unnamed(parts, self._records.kinds)}
                LIMIT {SWEPT_AT_ONCE}""",  # noqa: S608 - tables of ours
            [],
        )

    def _remove_part(self, swept: Swept) -> bool:
        """Remove a part, unless another upload of the same name has put one there since."""
        write = Write(swept.tenant_id, method="ExpireRecords")
        with self._records.held_place(write, swept.place, swept.conversation_id):
            found = self._records.stored(write, swept.place, swept.key)
            is_same = found is not None and found.revision == swept.revision
            if is_same:
                self._remove(write, swept)
            return is_same

    def _found(self, kind: Kind, sql: str, values: Sequence[object]) -> list[Swept]:
        rows = self._database.rows(sql, values)
        return [
            Swept(tenant_id, Partition(kind, uid, partition), key, revision, conversation_id)
            for tenant_id, uid, partition, key, revision, conversation_id in rows
        ]

    def _remove(self, write: Write, swept: Swept) -> None:
        move = Remove(swept.place.kind, swept.place.uid, swept.place.partition, swept.key)
        self._commits.accept(write, self._clock(), self._records.changes(write, [move]), Outcome(revision=0))
