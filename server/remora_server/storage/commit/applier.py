"""The thread that moves published records from the journal into DuckDB, and checkpoints it."""

from __future__ import annotations

import logging
import threading
import time

import duckdb

from remora_server import failpoints
from remora_server._native import Core
from remora_server.domain.errors import MemoryExhausted, StoreFull
from remora_server.locking import Level, new_condition
from remora_server.storage.commit.batch import Batch
from remora_server.storage.database.database import Database, has_failed
from remora_server.storage.database.lacks import Lack, cause_of, lack_of
from remora_server.supervision import LongLived

logger = logging.getLogger(__name__)

BATCH_BYTES = 4 << 20
"""The size of a batch. So many bytes are applied without waiting for more."""
BATCH_SECONDS = 2.0
"""How long records wait for others: a batch costs 10 ms and 10 us a record."""
LEAST_BATCH_BYTES = 64 << 10
"""The size of the smallest batch, for a database with too little memory."""
TICK_SECONDS = 0.25
CHECKPOINT_WAL_BYTES = 64 << 20
CHECKPOINT_IDLE_SECONDS = 5.0
RETRY_SECONDS = 0.5
PURGE_SECONDS = 300


class Applier:
    """Applies records in batches: after a short delay, or at once when somebody waits.

    A failure of the database is logged and tried again. Nothing is lost, because the journal keeps unapplied records.
    A lack of disk space or memory is a temporary failure: applied records can be read meanwhile. If the database's log
    finds no room, records are applied without it until a checkpoint finds some. With too little memory for a batch,
    smaller ones are tried.
    """

    def __init__(self, core: Core, database: Database, applied: int) -> None:
        self._core = core
        self._database = database
        self._applied = applied
        self._checkpointed = applied
        self._changed = new_condition(Level.LEAF)
        self._kick = threading.Event()
        self._stopping = False
        self._last_batch = self._last_idle = time.monotonic()
        self._next_checkpoint = 0.0
        """When the next one may be tried, after one that invalidated the database."""
        self._last_purge = 0.0
        self._must_reopen = False
        self._log_is_full = False
        """Whether records are to be applied without the database's log."""
        self._forgotten_requests = 0
        self.failure = ""
        """Why nothing can be applied now; empty if it can, or if only disk space or memory is lacking."""
        self.lacking: Lack | None = None
        """What applying or a checkpoint lacks: disk space, memory or (None) nothing."""
        self.stuck: Lack | None = None
        """What is lacking to apply."""
        self._applying = False
        self._batch_bytes = BATCH_BYTES
        self._thread = LongLived("applier", self._run)

    @property
    def applied(self) -> int:
        """The newest revision that DuckDB holds."""
        return self._applied

    def catch_up(self) -> int:
        """Apply what is published, in the calling thread, before `start`: all of it, unless something is lacking.

        Returns how many records that was.
        """
        before = self._applied
        if not self._try_to_apply_all():
            self._reopen_if_failed()
            self._try_to_apply_all()
        return self._applied - before

    def _try_to_apply_all(self) -> bool:
        """Apply what is published; False if something is lacking for it."""
        try:
            self._apply_all()
        except (duckdb.Error, OSError) as error:
            if lack_of(error) is None:
                raise
            self._failed(error)
            return False
        self.stuck = None
        return True

    def thread_failure(self) -> str:
        """Why the thread does not run; empty if it does."""
        return self._thread.failure

    def start(self) -> None:
        """Apply in the background from now on."""
        self._thread.start()

    def wait(self, revision: int, timeout: float | None) -> bool:
        """Wait until DuckDB holds `revision`; False on a timeout, or if disk space or memory is lacking."""
        if self._applied >= revision:
            return True
        self._kick.set()
        with self._changed:
            self._changed.wait_for(lambda: self._applied >= revision or self.stuck is not None, timeout)
        return self._applied >= revision

    def close(self) -> None:
        """Apply what is published, checkpoint and stop. The log keeps what a failed checkpoint leaves."""
        self._thread.end()
        self._stopping = True
        self._kick.set()
        self._thread.join()
        self._apply_all()
        try:
            self._checkpoint()
        except (duckdb.Error, OSError) as error:
            self._database.note_damage(error)
            logger.warning("the last checkpoint failed; the next start does it", exc_info=error)

    def _run(self) -> None:
        while not self._stopping:
            failpoints.hit("applier_turn")
            kicked = self._kick.wait(TICK_SECONDS)
            self._kick.clear()
            try:
                self._reopen_if_failed()
                self._work(at_once=kicked or self.lacking is not None or bool(self.failure))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the journal keeps what is not applied
                self._failed(error)
                self._pause()
            else:
                self._succeeded()

    def _failed(self, error: BaseException) -> None:
        """Log the first of consecutive failures, and wake up all waiters."""
        if not (self.failure or self.lacking):
            logger.error("the database failed; it is tried again", exc_info=error, extra={"applied": self._applied})
        if has_failed(error):
            self._must_reopen = True
            self._kick.set()
        self._database.note_damage(error)
        lack = None if self._is_lost() else self._lack_of(error)
        is_stuck = self._applying and not self._may_do_without_log(lack)
        with self._changed:
            self.lacking, self.stuck = lack, lack if is_stuck else None
            self.failure = "" if lack else f"the database cannot be written: {cause_of(error)}"
            self._changed.notify_all()

    def _may_do_without_log(self, lack: Lack | None) -> bool:
        """Whether a batch that finds no disk space can be applied once the database is opened without its log."""
        may = lack is StoreFull and self._applying and self._database.logs and not self._database.in_memory
        if may:
            logger.warning("the database's log finds no room: records are applied without it until there is some")
            self._log_is_full = True
            self._kick.set()
        return may

    def _pause(self) -> None:
        """Wait before the next attempt; if records can be applied, only until somebody waits for them."""
        if self.stuck or self.failure:
            time.sleep(RETRY_SECONDS)
        else:
            self._kick.wait(RETRY_SECONDS)

    def _lack_of(self, error: BaseException) -> Lack | None:
        """What is lacking. Without a log, it is disk space: what no checkpoint could write fills the memory."""
        lack = lack_of(error)
        return lack and (lack if self._database.logs else StoreFull)

    def _is_lost(self) -> bool:
        """Whether a database in memory was invalidated: it cannot be opened again."""
        return self._must_reopen and self._database.in_memory

    def _succeeded(self) -> None:
        lacking = StoreFull if self._log_is_full else None
        if self.failure or self.lacking is not lacking:
            logger.info("the database can be written again", extra={"applied": self._applied})
        self.lacking, self.stuck, self.failure = lacking, None, ""

    def _reopen_if_failed(self) -> None:
        """A database that failed for good answers nothing until it is opened again, which may fail, too. One whose log
        finds no room is opened again to do without: the journal holds what it would lose.
        """
        has_failed = self._must_reopen
        self._must_reopen |= self._log_is_full == self._database.logs
        if self._must_reopen and not self._database.in_memory:
            self._database.reopen(self._restore, logs=not self._log_is_full, has_failed=has_failed)
            self._must_reopen = False

    def _restore(self) -> None:
        """Apply again what an unlogged database lost since its last checkpoint."""
        before, self._applied = self._applied, self._database.applied_revision()
        try:
            while self._applied < before and self._apply_next(may_checkpoint=False):
                pass
        except duckdb.OutOfMemoryException as error:
            self._failed(error)

    def _work(self, *, at_once: bool) -> None:
        """Apply what is published so far. Long runs are checkpointed in between: a start reads the log again."""
        reach = self._core.published()
        if at_once or self._is_due(reach):
            while self._applied < reach and self._apply_next():
                self._last_batch = time.monotonic()
                if self._database.wal_bytes() > CHECKPOINT_WAL_BYTES:
                    self._checkpoint()
        self._purge_requests()
        if self._checkpoint_is_due():
            self._checkpoint()

    def _is_due(self, reach: int) -> bool:
        """Whether the records up to a revision fill a batch or have waited long enough."""
        now = time.monotonic()
        if self._applied == reach:
            self._last_idle = now
            return False
        waited = now - max(self._last_idle, self._last_batch)
        return waited >= BATCH_SECONDS or self._core.unapplied_bytes() >= BATCH_BYTES

    def _apply_all(self) -> None:
        while self._apply_next():
            pass

    def _apply_next(self, *, may_checkpoint: bool = True) -> bool:
        """Apply a batch; False if nothing is left."""
        while records := self._core.records_after(self._reached(), self._batch_bytes):
            try:
                self._apply(records)
            except duckdb.Error as error:
                has_freed = may_checkpoint and self._may_free(lack_of(error))
                if not has_freed and not (lack_of(error) is MemoryExhausted and self._may_split()):
                    raise
            else:
                self._batch_bytes = min(2 * self._batch_bytes, BATCH_BYTES)
                return True
        return False

    def _reached(self) -> int:
        """Up to which revision records are applied. A batch that has failed may have been committed before that: it is
        not applied twice.
        """
        if self._applying:
            committed = self._database.applied_revision()
            if committed > self._applied:
                self._advance(committed)
            self._applying = False
        return self._applied

    def _may_free(self, lack: Lack | None) -> bool:
        """Whether a checkpoint has freed what a batch lacks: memory, or temporary files of a database without its log.
        These stay bounded by the disk space that was free when the database was opened.
        """
        if lack is MemoryExhausted:
            frees = self._applied != self._checkpointed and not self._database.in_memory
        else:
            frees = lack is StoreFull and not self._database.logs
        return frees and self._checkpoint()

    def _may_split(self) -> bool:
        """Whether a batch that lacks memory may be tried with a smaller size."""
        is_large = self._batch_bytes > LEAST_BATCH_BYTES
        if is_large:
            self._batch_bytes //= 4
        return is_large

    def _apply(self, records: list[tuple[int, bytes]]) -> None:
        batch = Batch(self._database.kinds)
        for revision, payload in records:
            batch.add(revision, payload)
        size = sum(len(payload) for _, payload in records)
        self._applying = True
        self._database.require_memory(size)
        self._database.transact(batch.write)
        if not self._database.logs:
            self._database.note_unlogged(size)
        self._database.make_room_for(batch.dimension)
        self._advance(batch.revision)
        self._applying = False

    def _advance(self, revision: int) -> None:
        self._core.mark_applied(revision, durable=self._database.logs)
        with self._changed:
            self._applied = revision
            self._changed.notify_all()

    def _checkpoint_is_due(self) -> bool:
        if time.monotonic() < self._next_checkpoint:
            return False
        if not self._database.logs:
            return True
        if self._applied == self._checkpointed:
            return False
        idle = time.monotonic() - self._last_batch > CHECKPOINT_IDLE_SECONDS
        return idle or self._database.in_memory or self._database.wal_bytes() > CHECKPOINT_WAL_BYTES

    def _checkpoint(self) -> bool:
        """Checkpoint; False if a transaction is open elsewhere, so that the next turn tries again."""
        reached = self._applied
        try:
            self._database.checkpoint()
        except duckdb.TransactionException:
            return False
        except duckdb.Error as error:
            if has_failed(error):
                self._next_checkpoint = time.monotonic() + CHECKPOINT_IDLE_SECONDS
            raise
        self._checkpointed = reached
        self._core.release(reached)
        if self._log_is_full:
            self._core.mark_applied(reached, durable=True)
            self._log_is_full = False
            self._reopen_if_failed()
        return True

    def _purge_requests(self) -> None:
        """Delete the outcomes of requests that memory had already forgotten at the last call. A caller that was told
        that its request is known has read the outcome since.
        """
        if time.monotonic() - self._last_purge < PURGE_SECONDS:
            return
        self._last_purge = time.monotonic()
        forgotten, self._forgotten_requests = self._forgotten_requests, self._core.oldest_request() or 0
        self._database.transact(lambda cursor: cursor.execute("DELETE FROM requests WHERE revision < ?", [forgotten]))
