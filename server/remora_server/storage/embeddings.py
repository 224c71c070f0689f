"""Which messages have no vector of their tenant's model yet, and where finished vectors go: a queue for each model.

What is embedded is a message's text without the names of those who speak in its thread. A vector does not depend on
when it was made: where these names change, the texts that this changes are embedded again. A digest of the text stands
with the vector, so that a vector of another text is found after a restart, too.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from remora_server import _native, failpoints
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.messages import Plan
from remora_server.domain.models import EVERYBODY, ServedModel, ServedModels, Tenants
from remora_server.domain.search import MessageVector, Unembedded
from remora_server.domain.status import EmbeddingStatus
from remora_server.storage import changes
from remora_server.storage.clock import Clock
from remora_server.storage.commits import Commits
from remora_server.storage.database import Database
from remora_server.storage.speakers import Speakers, Thread
from remora_server.storage.v1 import record_pb2

QUEUE_BYTES = 16 << 20
SCAN_ROWS = 2048
REVIEWED_AT_ONCE = 16
"""Conversations whose vectors are compared with their texts at once."""
REVIEW_PATIENCE = 1.0
"""How many seconds a review waits for messages that have no vector at all."""

_SERVED = "(m.tenant_id IN (SELECT unnest($tenants::TEXT[]))) <> $others"
_MISSING = f"""
FROM messages m JOIN conversations c ON c.uid = m.conversation_uid
WHERE m.text <> '' AND {_SERVED} AND NOT EXISTS (
    SELECT 1 FROM embeddings e
    WHERE e.conversation_uid = m.conversation_uid AND e.sequence = m.sequence
    AND (e.by_caller OR e.model = $model AND (e.pieces IS NOT NULL OR NOT $late)))
"""  # noqa: S608 - constants
_NEXT = f"""
SELECT m.tenant_id, m.conversation_uid, c.id, m.user_id, m.sequence, m.revision, m.text {_MISSING} LIMIT $rows
"""
_COUNT = f"SELECT count(*) {_MISSING}"
_REFUSED = f"""
SELECT count(*) FROM embeddings m WHERE {_SERVED} AND m.model = $model AND m.dimension = 0
"""  # noqa: S608 - constants

_DIMENSION = "SELECT dimension FROM embeddings WHERE model = $model AND NOT by_caller AND dimension > 0 LIMIT 1"

_EMBEDDED = f"""
SELECT m.tenant_id, m.conversation_uid, c.id, m.user_id, m.sequence, m.revision, m.text, m.name, e.text_digest
FROM messages m JOIN conversations c ON c.uid = m.conversation_uid
LEFT JOIN embeddings e ON e.conversation_uid = m.conversation_uid AND e.sequence = m.sequence
    AND e.message_revision = m.revision AND e.model = $model AND NOT e.by_caller
WHERE m.conversation_uid IN (SELECT unnest($uids)) AND {_SERVED}
ORDER BY m.conversation_uid, m.sequence
"""  # noqa: S608 - constants


class PendingEmbeddings:
    """A queue of messages of some tenants that a model is to embed, bounded in bytes. What does not fit, and what was
    left by an earlier process or embedded by another model, is found by a scan of DuckDB when the queue is empty; for a
    late model also what has a vector and no word pieces.
    """

    def __init__(
        self, database: Database, commits: Commits, clock: Clock, model: ServedModel, tenants: Tenants = EVERYBODY
    ) -> None:
        self._database = database
        self._commits = commits
        self._clock = clock
        self._model = model.name
        self._tenants = {"tenants": sorted(tenants.names), "others": tenants.others}
        self._wanted = {"model": model.name, "late": model.late, **self._tenants}
        self._queue: deque[Unembedded] = deque()
        self._bytes = 0
        self._must_scan = bool(model.name)
        self._filled = threading.Condition()
        self._speakers = Speakers(database, commits)

    def status(self) -> EmbeddingStatus:
        """How many of the applied messages have no vector yet, and how many the model makes none of."""
        if not self._model:
            return EmbeddingStatus()
        pending = self._database.rows(_COUNT, self._wanted)[0][0]
        refused = self._database.rows(_REFUSED, {"model": self._model, **self._tenants})[0][0]
        return EmbeddingStatus(pending, refused)

    def dimension(self) -> int:
        """The dimension of the vectors that the model has made so far; 0 where there are none."""
        rows = self._database.rows(_DIMENSION, {"model": self._model})
        return int(rows[0][0]) if rows else 0

    def add(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> None:
        """Take in the messages of an accepted plan."""
        if not self._model:
            return
        uid = plan.head.uid or revision
        self._speakers.follow(uid, plan, revision)
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

    def erased(self, user_id: str) -> None:
        """A user's messages are gone, from some conversations at least."""
        self._speakers.erased(user_id)

    def _push(self, message: Unembedded) -> None:
        if not self._hold(message):
            self._must_scan = True

    def _hold(self, message: Unembedded) -> bool:
        """Put a message into the queue, if there is room."""
        if self._bytes + len(message.text) > QUEUE_BYTES:
            return False
        self._bytes += len(message.text)
        self._queue.append(message)
        return True

    def next_unembedded(self, limit: int, timeout: float) -> list[Unembedded]:
        """The next messages to embed, oldest first; waits for the first up to `timeout` seconds.

        Everything that was taken before has its vector by now, or is taken in by a later scan.
        """
        taken = self._take(limit, timeout)
        try:
            if self._model and self._review(REVIEW_PATIENCE if taken else 0.0) and not taken:
                taken = self._take(limit, 0)
            return self._without_names(taken)
        except BaseException:
            self._give_back(taken)
            raise

    def _take(self, limit: int, timeout: float) -> list[Unembedded]:
        with self._filled:
            self._filled.wait_for(lambda: self._queue or self._must_scan, timeout)
            taken = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
            self._bytes -= sum(len(message.text) for message in taken)
            scan = not taken and self._must_scan
        if scan:
            self._scan()
            return self._take(limit, 0) if self._queue else []
        return taken

    def _scan(self) -> None:
        self._commits.begin_query(Read(tenant_id=""))
        rows = self._database.rows(_NEXT, {**self._wanted, "rows": SCAN_ROWS})
        with self._filled:
            self._must_scan = len(rows) == SCAN_ROWS
            for row in rows:
                self._push(Unembedded(*row))

    def _give_back(self, messages: Sequence[Unembedded]) -> None:
        with self._filled:
            self._queue.extendleft(reversed(messages))
            self._bytes += sum(len(message.text) for message in messages)

    def _without_names(self, messages: Sequence[Unembedded]) -> list[Unembedded]:
        """The messages with the texts that are embedded."""
        names = self._speakers.names(map(_thread, messages))
        return [_stripped(message, names[_thread(message)]) for message in messages]

    def _review(self, overdue: float) -> bool:
        """Queue messages again whose vectors are of other texts than they have without names; False if none is due."""
        uids = self._speakers.take_reviews(REVIEWED_AT_ONCE, overdue)
        if uids:
            try:
                self._requeue(uids)
            except BaseException:
                self._speakers.put_off(uids)
                raise
        return bool(uids)

    def _requeue(self, uids: list[int]) -> None:
        revision = self._commits.settle()
        rows = self._database.rows(_EMBEDDED, {"model": self._model, "uids": uids, **self._tenants})
        present: dict[Thread, set[str]] = defaultdict(set)
        for row in rows:
            present[row[1], row[3]].update({row[7]} - {""})
        self._speakers.reviewed(uids, present, revision)
        embedded = [Unembedded(*row[:7]) for row in rows if row[8] is not None]
        digests = [row[8] for row in rows if row[8] is not None]
        wanted = self._without_names(embedded)
        with self._filled:
            for message, now, digest in zip(embedded, wanted, digests, strict=True):
                if now.text_digest != digest and not self._hold(message):
                    self._speakers.put_off([message.conversation_uid])

    def put_embeddings(self, vectors: Sequence[MessageVector]) -> None:
        """Record finished vectors of the model; those whose message has moved on are ignored later."""
        by_tenant: dict[str, list[changes.Change]] = {}
        for vector in vectors:
            by_tenant.setdefault(vector.message.tenant_id, []).append(_put_embedding(self._model, vector))
        for tenant_id, puts in by_tenant.items():
            write = Write(tenant_id, method="PutEmbeddings")
            accepted = self._commits.accept(write, self._clock(), puts, Outcome(revision=0))
            failpoints.hit("vectors_accepted")
            self._commits.finish(write, accepted)
            failpoints.hit("vectors_published")


class EmbeddingQueues:
    """A queue for each model that embeds messages, and the model of each tenant."""

    def __init__(self, database: Database, commits: Commits, clock: Clock, models: ServedModels) -> None:
        self._models = models
        self._queues = {
            model: PendingEmbeddings(database, commits, clock, model, tenants)
            for model, tenants in models.groups().items()
        }

    def of(self, model: ServedModel) -> PendingEmbeddings:
        """The queue of a model. KeyError where it embeds no tenant's messages."""
        return self._queues[model]

    def add(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> None:
        """Take in the messages of an accepted plan."""
        self._queues[self._models.of(tenant_id)].add(tenant_id, conversation_id, plan, revision)

    def erased(self, user_id: str) -> None:
        """A user's messages are gone, from some conversations at least."""
        for queue in self._queues.values():
            queue.erased(user_id)

    def status(self) -> Mapping[str, EmbeddingStatus]:
        """What each model has still to do, by the name of its vectors."""
        return {model.name: queue.status() for model, queue in self._queues.items() if model.name}


def _put_embedding(model: str, vector: MessageVector) -> changes.Change:
    message = vector.message
    return changes.put_embedding(
        record_pb2.PutEmbedding(
            conversation_uid=message.conversation_uid,
            conversation_id=message.conversation_id,
            sequence=message.sequence,
            message_revision=message.revision,
            model=model,
            values=vector.values,
            user_id=message.user_id,
            text_digest=message.text_digest,
            pieces=vector.pieces,
        )
    )


def _thread(message: Unembedded) -> Thread:
    return message.conversation_uid, message.user_id


def _stripped(message: Unembedded, names: Sequence[str]) -> Unembedded:
    """The message with the text that is embedded."""
    if not names:
        return message
    [text] = _native.strip_names([message.text], names)
    return message if text == message.text else replace(message, text=text, text_digest=_digest(text))


def _digest(text: str) -> int:
    """64 bits of the text, never 0."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1
