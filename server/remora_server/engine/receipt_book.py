"""The thread that writes the receipts of replies, after the replies are sent."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from itertools import islice

from remora_server import _native, failpoints
from remora_server.domain.calls import Write
from remora_server.domain.errors import DeadlineExceeded, RemoraError, RequestTooLarge, StoreFailed
from remora_server.domain.receipts import ReceiptDraft, ReceiptStore
from remora_server.locking import Level, new_condition
from remora_server.supervision import LongLived

MOST_WAITING, MOST_WAITING_BYTES = 1_024, 32 << 20
BATCH, BATCH_BYTES = 64, 1 << 20
LINGER_SECONDS = 0.1
"""How long a receipt waits for others, to be written with them. A write of one costs as much as one of several."""
RETRY_SECONDS = 1.0
DAY = 86_400_000_000

logger = logging.getLogger(__name__)


class ReceiptBook:
    """Takes receipts and writes them in the background, from `start` to `close`.

    The queue is bounded, and lost if the process is killed. While writes are refused, no receipts are taken. A server
    without CPU to spare may stop with a full queue, whose conversations are all to be read again: `close` writes what
    it can in the time it has.
    """

    def __init__(self, store: ReceiptStore, days: int) -> None:
        """Receipts last `days` days. If that is 0, none are taken."""
        self._store = store
        self._lifetime = days * DAY
        self._waiting: deque[tuple[ReceiptDraft, int]] = deque()
        """With their sizes."""
        self._bytes = 0
        self._done = self._settling = 0
        self._refused = self._stopping = False
        self._has_failed = False
        """Whether the last batch failed in an unknown way. Those behind it wait for one repeat, and no longer."""
        self._until = math.inf
        """When `close` has no more time."""
        self._changed = new_condition(Level.LEAF)
        self._thread = LongLived("receipts", self._run)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self, patience: float = math.inf) -> None:
        """Write what waits, and end. No write begins after so many seconds: what is left then is lost, and logged."""
        self._thread.end()
        with self._changed:
            self._until = time.monotonic() + patience
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()
        if self._waiting:
            logger.warning("receipts are lost: the time to stop is over", extra={"receipts": len(self._waiting)})

    @property
    def failure(self) -> str:
        """Why its thread is not running; empty if it is."""
        return self._thread.failure

    def new_id(self) -> str:
        """The id for a receipt; empty if none can be taken now."""
        is_full = len(self._waiting) >= MOST_WAITING or self._bytes >= MOST_WAITING_BYTES
        if is_full or not self._lifetime or self._refused or self._stopping:
            return ""
        return _native.new_id()

    def leave(self, draft: ReceiptDraft) -> None:
        """Have a receipt written. This is brief."""
        size = draft.size
        with self._changed:
            self._waiting.append((draft, size))
            self._bytes += size
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def settle(self, deadline: float | None, *receipt_ids: str) -> None:
        """Wait until these receipts and those before them are written, or all where none is named, unless writes are
        refused now. Raises DeadlineExceeded.
        """
        with self._changed:
            target = self._done + self._wanted(receipt_ids)
            self._settling += 1
            self._changed.notify_all()
            try:
                while self._done < target and not self._refused:
                    patience = None if deadline is None else deadline - time.monotonic()
                    if patience is not None and patience <= 0:
                        raise DeadlineExceeded
                    self._changed.wait(patience)
            finally:
                self._settling -= 1

    def _wanted(self, receipt_ids: Sequence[str]) -> int:
        """How many of those that wait are written when these are; all where none is named."""
        if not receipt_ids:
            return len(self._waiting)
        places = (number for number, (draft, _) in enumerate(self._waiting, 1) if draft.id in receipt_ids)
        return max(places, default=0)

    def _run(self) -> None:
        while batch := self._next():
            failpoints.hit("receipts_turn")
            self._try(batch)

    def _next(self) -> list[ReceiptDraft]:
        """The receipts to write next; none at the end. They stay in the queue until they are written."""
        with self._changed:
            while not self._waiting and not self._stopping:
                self._changed.wait()
            if not self._stopping and not self._settling and len(self._waiting) < BATCH:
                self._changed.wait(LINGER_SECONDS)
            return [] if time.monotonic() >= self._until else self._batch()

    def _batch(self) -> list[ReceiptDraft]:
        """Those of the first one's tenant, up to the first of another."""
        batch: list[ReceiptDraft] = []
        total = 0
        for draft, size in islice(self._waiting, BATCH):
            total += size
            if batch and (draft.tenant_id != batch[0].tenant_id or total > BATCH_BYTES):
                break
            batch.append(draft)
        return batch

    def _try(self, batch: list[ReceiptDraft]) -> None:
        try:
            self._store.write(Write(batch[0].tenant_id, method="WriteReceipts"), batch, self._lifetime)
        except (RequestTooLarge, StoreFailed) as error:
            self._refuse(error, is_final=isinstance(error, StoreFailed))
            self._drop(len(batch))
        except RemoraError as error:
            self._refuse(error, is_final=False)
            self._pause(len(batch))
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                raise  # the thread is restarted
            logger.exception("receipts are lost: to write them fails", extra={"receipts": len(batch)})
            self._drop(len(batch))
        else:
            self._refused = self._has_failed = False
            self._drop(len(batch))

    def _refuse(self, error: RemoraError, *, is_final: bool) -> None:
        if not self._refused:
            logger.warning("receipts cannot be written", extra={"reason": type(error).__name__})
        self._refused = is_final or not isinstance(error, RequestTooLarge)

    def _pause(self, count: int) -> None:
        """Wait before the next attempt; at the end there is none."""
        with self._changed:
            self._changed.notify_all()
            if not self._stopping:
                self._changed.wait(RETRY_SECONDS)
        if self._stopping:
            self._drop(count)

    def _drop(self, count: int) -> None:
        """Take the first ones out of the queue."""
        with self._changed:
            for _ in range(count):
                self._bytes -= self._waiting.popleft()[1]
            self._done += count
            self._changed.notify_all()
