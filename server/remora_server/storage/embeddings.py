"""Which messages have no vector of the server's model yet, and where finished vectors go."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.messages import Plan
from remora_server.domain.search import MessageVector, Unembedded
from remora_server.storage.commits import Clock, Commits
from remora_server.storage.database import Database
from remora_server.storage.v1 import record_pb2

QUEUE_BYTES = 16 << 20
SCAN_ROWS = 2048

_MISSING = """
FROM messages m JOIN conversations c ON c.uid = m.conversation_uid
WHERE m.text <> '' AND NOT EXISTS (
    SELECT 1 FROM embeddings e
    WHERE e.conversation_uid = m.conversation_uid AND e.sequence = m.sequence AND (e.model = ? OR e.by_caller))
"""
_NEXT = f"""
SELECT m.tenant_id, m.conversation_uid, c.id, m.user_id, m.sequence, m.revision, m.text {_MISSING} LIMIT ?
"""
_COUNT = f"SELECT count(*) {_MISSING}"


class PendingEmbeddings:
    """A queue of messages to embed, bounded in bytes. What does not fit, and what was left by an earlier process or
    embedded by another model, is found by a scan of DuckDB when the queue is empty.
    """

    def __init__(self, database: Database, commits: Commits, clock: Clock, model: str) -> None:
        self._database = database
        self._commits = commits
        self._clock = clock
        self._model = model
        self._queue: deque[Unembedded] = deque()
        self._bytes = 0
        self._must_scan = bool(model)
        self._filled = threading.Condition()

    def count(self) -> int:
        """How many of the applied messages have no vector yet."""
        if not self._model:
            return 0
        count: int = self._database.rows(_COUNT, [self._model])[0][0]
        return count

    def add(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> None:
        """Take in the messages of an accepted plan."""
        if not self._model:
            return
        uid = plan.head.uid or revision
        fresh = [
            Unembedded(tenant_id, uid, conversation_id, put.user_id, put.sequence, revision, put.draft.text)
            for put in plan.puts
            if put.draft.text and put.draft.embedding is None
        ]
        if fresh:
            with self._filled:
                for message in fresh:
                    self._push(message)
                self._filled.notify()

    def _push(self, message: Unembedded) -> None:
        if self._bytes + len(message.text) > QUEUE_BYTES:
            self._must_scan = True
            return
        self._bytes += len(message.text)
        self._queue.append(message)

    def next_unembedded(self, limit: int, timeout: float) -> list[Unembedded]:
        """The next messages to embed, oldest first; waits for the first up to `timeout` seconds."""
        with self._filled:
            self._filled.wait_for(lambda: self._queue or self._must_scan, timeout)
            taken = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
            self._bytes -= sum(len(message.text) for message in taken)
            scan = not taken and self._must_scan
        if scan:
            self._scan()
            return self.next_unembedded(limit, 0) if self._queue else []
        return taken

    def _scan(self) -> None:
        self._commits.begin_query(Read(tenant_id=""))
        rows = self._database.rows(_NEXT, [self._model, SCAN_ROWS])
        with self._filled:
            self._must_scan = len(rows) == SCAN_ROWS
            for row in rows:
                self._push(Unembedded(*row))

    def put_embeddings(self, vectors: Sequence[MessageVector]) -> None:
        """Record finished vectors of the server's model; those whose message has moved on are ignored later."""
        by_tenant: dict[str, list[record_pb2.Change]] = {}
        for vector in vectors:
            by_tenant.setdefault(vector.message.tenant_id, []).append(_put_embedding(self._model, vector))
        for tenant_id, puts in by_tenant.items():
            write = Write(tenant_id, method="PutEmbeddings")
            self._commits.finish(write, self._commits.accept(write, self._clock(), puts, Outcome(revision=0)))


def _put_embedding(model: str, vector: MessageVector) -> record_pb2.Change:
    message = vector.message
    return record_pb2.Change(
        put_embedding=record_pb2.PutEmbedding(
            conversation_uid=message.conversation_uid,
            conversation_id=message.conversation_id,
            sequence=message.sequence,
            message_revision=message.revision,
            model=model,
            values=vector.values,
            user_id=message.user_id,
        )
    )
