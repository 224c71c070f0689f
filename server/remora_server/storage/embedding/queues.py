"""Which messages have no vector of their tenant's model yet, and where finished vectors go: a queue for each model.

What is embedded is a message's text without the names of those who speak in its part of the conversation, as far as
they are known by then. Names that come later leave the vector as it is.

Vectors are accepted without `commands`: they are the server's own writes and have no request id, so none is a repeat.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from msgspec import Struct

from remora_server import failpoints
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.messages import Plan
from remora_server.domain.models import EVERYBODY, ServedModel, ServedModels, Tenants
from remora_server.domain.search import Lane, MessageVector, Portion, Unembedded
from remora_server.domain.status import EmbeddingStatus
from remora_server.locking import Level, new_condition, new_lock
from remora_server.storage.commit import changes
from remora_server.storage.commit.clock import Clock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import Database
from remora_server.storage.embedding.left_behind import LeftBehind
from remora_server.storage.embedding.order import EmbeddingOrder, part_of
from remora_server.storage.embedding.scopes import ResolvedScope
from remora_server.storage.embedding.speakers import Speakers
from remora_server.storage.embedding.texts import without_names
from remora_server.storage.embedding.throughput import Throughput
from remora_server.storage.v1 import record_pb2

logger = logging.getLogger(__name__)

QUEUE_BYTES = 16 << 20
HINTS = 16
"""Places that were searched last without waiting for what they miss."""
REPORT_SECONDS = 60.0
"""Between two lines of the log about a backlog."""

Key: TypeAlias = tuple[int, int, int]
"""A conversation's uid, a sequence and the message's revision."""


class Wait(Struct, eq=False):
    """A search that waits for what is pending in its scope."""

    scope: ResolvedScope
    is_empty: bool = False
    """Nothing is left to be taken for it."""
    must_scan: bool = True
    """Whether the database may hold more."""


class PendingEmbeddings:
    """Messages of some tenants that a model is to embed. New ones are kept here, bounded in bytes. What does not fit,
    and what was left by an earlier process, an import or another model, is found by scans of DuckDB; for a late model
    also what has a vector and no word pieces. Safe to share between threads.
    """

    def __init__(
        self, database: Database, commits: Commits, clock: Clock, model: ServedModel, tenants: Tenants = EVERYBODY
    ) -> None:
        self._commits = commits
        self._clock = clock
        self._model = model.name
        self._left_behind = LeftBehind(database, commits, model, tenants)
        self._speakers = Speakers(database, commits)
        self._order = EmbeddingOrder(QUEUE_BYTES)
        self._held: Counter[Key] = Counter()
        """What is in the order, or was taken from it and has no vector yet."""
        self._waits: list[Wait] = []
        self._hints: OrderedDict[ResolvedScope, None] = OrderedDict()
        self._must_scan = bool(model.name)
        self._scanning = new_lock(Level.SCAN)
        self._filled = new_condition(Level.QUEUE)
        self._throughput = Throughput()
        self._last_report = 0.0

    def status(self) -> EmbeddingStatus:
        """How many messages wait for a vector, how many the model refuses, and its recent speed."""
        if not self._model:
            return EmbeddingStatus()
        with self._filled:
            rate = self._throughput.rate()
        return EmbeddingStatus(self._count(), self._left_behind.refused(), rate)

    def dimension(self) -> int:
        """The dimension of the vectors that the model has made so far; 0 if there are none."""
        return self._left_behind.dimension()

    def _count(self) -> int:
        """How many messages have no vector yet."""
        applied = self._commits.applied()
        with self._filled:
            not_applied = sum(revision > applied for _, _, revision in self._held)
        return self._left_behind.count() + not_applied

    def add(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> None:
        """Take in the messages of an accepted plan."""
        fresh = self._follow(tenant_id, conversation_id, plan, revision)
        if fresh:
            with self._filled:
                for message in fresh:
                    self._hold(message, self._order.add)
                self._wake()

    def add_imported(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> None:
        """The same for messages that were sent long ago: they do not go before others."""
        if self._follow(tenant_id, conversation_id, plan, revision):
            with self._filled:
                self._must_scan = True
                self._wake()

    def _follow(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> list[Unembedded]:
        """Those messages of a plan that are to be embedded."""
        if not self._model:
            return []
        uid = plan.head.uid or revision
        self._speakers.follow(tenant_id, uid, plan)
        return [
            Unembedded(tenant_id, uid, conversation_id, put.user_id, put.sequence, revision, put.draft.text)
            for put in plan.puts
            if put.draft.text and put.draft.embedding is None
        ]

    def erased(self, user_id: str) -> None:
        """A user's messages are gone, from some conversations at least."""
        self._speakers.erased(user_id)

    def deleted(self, uid: int) -> None:
        """A conversation is gone."""
        self._speakers.deleted(uid)

    @contextmanager
    def wanted(self, scope: ResolvedScope) -> Iterator[None]:
        """Embed what waits in a scope before everything else, for as long as somebody waits for it."""
        wait = Wait(scope)
        with self._filled:
            self._order.prefer(scope)
            self._waits.append(wait)
            self._filled.notify_all()
        try:
            yield
        finally:
            with self._filled:
                self._waits.remove(wait)

    def hint(self, scope: ResolvedScope) -> None:
        """A scope is searched where much waits, and nobody waits for it: its newest messages are the next."""
        with self._filled:
            self._order.prefer(scope)
            self._remember_hint(scope)

    def _remember_hint(self, scope: ResolvedScope) -> None:
        self._hints[scope] = None
        if len(self._hints) > HINTS:
            self._hints.popitem(last=False)

    def _wake(self) -> None:
        for wait in self._waits:
            wait.is_empty, wait.must_scan = False, True
        self._filled.notify_all()

    def _hold(self, message: Unembedded, put_in: Callable[[Unembedded], bool]) -> bool:
        """Put a message into the order; where there is no room, it is found again."""
        held = put_in(message)
        if held:
            self._held[_key(message)] += 1
        else:
            self._must_scan = True
        return held

    def next_unembedded(self, lane: Lane, portion: Portion, timeout: float) -> list[Unembedded]:
        """See `domain.search.EmbeddingQueue`."""
        if lane is Lane.WANTED:
            return self._prepared(self._take_wanted(portion, timeout))
        return self._prepared(self._take(portion, timeout))

    def _take(self, portion: Portion, timeout: float) -> list[Unembedded]:
        with self._filled:
            self._filled.wait_for(lambda: self._order or self._must_scan, timeout)
            taken = self._order.take(portion)
        if not taken and self._must_scan and self._scan():
            return self._take(portion, 0)
        return taken

    def _take_wanted(self, portion: Portion, timeout: float) -> list[Unembedded]:
        with self._filled:
            if not self._filled.wait_for(self._has_wait, timeout):
                return []
            wait = self._next_wait()
            taken = self._order.take_of(wait.scope, portion)
            must_scan = not taken and wait.must_scan and self._must_scan
            wait.is_empty = not taken and not must_scan
        if must_scan:
            self._scan_scope(wait)
        return taken

    def _has_wait(self) -> bool:
        return any(not wait.is_empty for wait in self._waits)

    def _next_wait(self) -> Wait:
        """The search whose turn it is; the next time it is another's."""
        wait = next(wait for wait in self._waits if not wait.is_empty)
        self._waits.remove(wait)
        self._waits.append(wait)
        return wait

    def _scan(self) -> bool:
        """If nothing else waits, take in some of the messages that were left behind. Returns whether any message waits
        then, or others are still to be looked for: a scope that was hinted at may have none.
        """
        with self._scanning:
            with self._filled:
                if self._order or not self._must_scan:
                    return bool(self._order)
                held = set(self._held)
                scope = self._hints.popitem()[0] if self._hints else None
                self._must_scan = False
            try:
                left, more = self._left_behind.newest_of(scope) if scope else self._left_behind.some()
            except BaseException:
                with self._filled:
                    self._must_scan = True
                    if scope is not None:
                        self._remember_hint(scope)
                raise
            with self._filled:
                self._must_scan |= more or scope is not None
                self._hold_left(left, held, self._order.add_left)
            self._report(more=more)
            return bool(left) or scope is not None

    def _scan_scope(self, wait: Wait) -> None:
        """Take in what was left behind in a scope."""
        with self._filled:
            held = set(self._held)
            wait.must_scan = False
        try:
            left, more = self._left_behind.newest_of(wait.scope)
        except BaseException:
            wait.must_scan = True
            raise
        with self._filled:
            wait.must_scan |= more
            self._hold_left(left, held, self._order.add)

    def _hold_left(self, left: Iterable[Unembedded], held: set[Key], put_in: Callable[[Unembedded], bool]) -> None:
        """Put in what was found, but not what was held here before or after."""
        for message in left:
            key = _key(message)
            if key not in held and key not in self._held:
                self._hold(message, put_in)

    def _report(self, *, more: bool) -> None:
        """Log the progress of a long backlog."""
        now = time.monotonic()
        if more and now - self._last_report > REPORT_SECONDS:
            self._last_report = now
            status = self.status()
            extra = {
                "model": self._model,
                "pending": status.pending,
                "messages_per_second": round(status.per_second, 1),
            }
            logger.info("embedding messages that were left behind", extra=extra)
        elif not more and self._last_report:
            self._last_report = 0.0
            logger.info("the last of the messages that were left behind are being embedded")

    def _prepared(self, taken: list[Unembedded]) -> list[Unembedded]:
        """What was taken, with the texts that are embedded."""
        try:
            names = self._speakers.names(map(part_of, taken)) if taken else {}
        except BaseException:
            self._give_back(taken)
            raise
        return without_names(taken, names)

    def _give_back(self, messages: Sequence[Unembedded]) -> None:
        with self._filled:
            self._order.give_back(messages)

    def put_embeddings(self, vectors: Sequence[MessageVector]) -> None:
        """See `domain.search.EmbeddingQueue`."""
        by_tenant: dict[str, list[changes.Change]] = {}
        for vector in vectors:
            by_tenant.setdefault(vector.message.tenant_id, []).append(_put_embedding(self._model, vector))
        for tenant_id, puts in by_tenant.items():
            write = Write(tenant_id, method="PutEmbeddings")
            accepted = self._commits.accept(write, self._clock(), puts, Outcome(revision=0))
            failpoints.hit("vectors_accepted")
            self._commits.finish(write, accepted)
            failpoints.hit("vectors_published")
        self._let_go([vector.message for vector in vectors])

    def _let_go(self, messages: Sequence[Unembedded]) -> None:
        """Note that these have their vectors."""
        with self._filled:
            self._throughput.add(len(messages))
            for message in messages:
                self._release(_key(message))

    def _release(self, key: Key) -> None:
        self._held[key] -= 1
        if self._held[key] <= 0:
            del self._held[key]


class EmbeddingQueues:
    """A queue for each model that embeds messages, and the model of each tenant."""

    def __init__(self, database: Database, commits: Commits, clock: Clock, models: ServedModels) -> None:
        self.models = models
        self._queues = {
            model: PendingEmbeddings(database, commits, clock, model, tenants)
            for model, tenants in models.groups().items()
        }

    def of(self, model: ServedModel) -> PendingEmbeddings:
        """The queue of a model. KeyError where it embeds no tenant's messages."""
        return self._queues[model]

    def dimension(self, model: ServedModel) -> int:
        """The dimension of the vectors that a model has made so far; 0 if there are none."""
        return self.of(model).dimension()

    def of_tenant(self, tenant_id: str) -> PendingEmbeddings:
        """The queue of a tenant's model."""
        return self._queues[self.models.of(tenant_id)]

    def add(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> None:
        """Take in the messages of an accepted plan."""
        self.of_tenant(tenant_id).add(tenant_id, conversation_id, plan, revision)

    def add_imported(self, tenant_id: str, conversation_id: str, plan: Plan, revision: int) -> None:
        """The same for messages that were sent long ago: they do not go before others."""
        self.of_tenant(tenant_id).add_imported(tenant_id, conversation_id, plan, revision)

    def erased(self, user_id: str) -> None:
        """A user's messages are gone, from some conversations at least."""
        for queue in self._queues.values():
            queue.erased(user_id)

    def deleted(self, uid: int) -> None:
        """A conversation is gone."""
        for queue in self._queues.values():
            queue.deleted(uid)

    def status(self) -> Mapping[str, EmbeddingStatus]:
        """The remaining work of each model, by the name of its vectors."""
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
            pieces=vector.pieces,
        )
    )


def _key(message: Unembedded) -> Key:
    return message.conversation_uid, message.sequence, message.revision
