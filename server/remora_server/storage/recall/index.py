"""Searches the store's messages in the engine: `domain.search.MessageIndex`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from remora_server import _native
from remora_server._native import Core
from remora_server.domain.calls import Read
from remora_server.domain.errors import InvalidField
from remora_server.domain.search import (
    Background,
    Component,
    Hit,
    InConversation,
    IndexState,
    OfTenant,
    OfUser,
    QueryVector,
    Scope,
    SearchQuery,
    SearchResult,
    WordsOnly,
)
from remora_server.domain.status import Done
from remora_server.domain.vectors import FLOAT_BYTES
from remora_server.storage.commit.commits import Commits
from remora_server.storage.commit.deadlines import remaining
from remora_server.storage.database.database import Database
from remora_server.storage.embedding.queues import EmbeddingQueues
from remora_server.storage.embedding.scopes import ResolvedScope
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.recall.loading import Bounds, RecallLoader
from remora_server.storage.schema.expressions import expression
from remora_server.tally import Tally

RELOADS = 2
"""How often a scope is reloaded if its parts are evicted before the search; after that, what is loaded is searched."""
ANSWER_SECONDS = 0.05
"""A wait for vectors ends this long before the deadline."""
PAUSE_SECONDS = 0.001
"""The pause between two checks for messages that are not embedded yet, while the revision keeps moving."""
FUTILE_RATE = 2000
"""More messages than this are not embedded in a second: a wait for more would lose time."""


class RecallIndex:
    """Searches what is published. What is not in memory is loaded first."""

    def __init__(
        self,
        core: Core,
        database: Database,
        commits: Commits,
        conversations: Conversations,
        queues: EmbeddingQueues,
        *,
        bounds: Bounds,
        waiters: int,
    ) -> None:
        """At most `waiters` searches wait for vectors at a time: each holds a thread that others need."""
        self._core = core
        self._commits = commits
        self._conversations = conversations
        self._queues = queues
        self._waiters = threading.Semaphore(waiters)
        self._loader = RecallLoader(core, database, commits, queues.models, bounds)
        self._searches, self._hits = Tally(), Tally()

    def loads(self) -> Done:
        """How often what a search needed was not in memory, and how long bringing it there took."""
        return self._loader.loads.done()

    def searches(self) -> Done:
        """How many scopes were opened, and how long they took to be loaded and searched."""
        return self._searches.done()

    def hits(self) -> int:
        """How many of these were in memory as a whole."""
        return self._hits.done().count

    @contextmanager
    def open(self, read: Read, scope: Scope) -> Iterator[LoadedScope]:
        """See `domain.search.MessageIndex`. Raises RevisionUnknown, DeadlineExceeded, SearchTooLarge, too."""
        self._commits.begin(read)
        resolved = self._resolved(read, scope)
        with self._searches.measured(), self._loader.loading(read, resolved) as load:
            load.load()
            if not load.has_loaded:
                self._hits.add()
            yield LoadedScope(
                self._core, self._queues, self._waiters, scope=resolved, deadline=read.deadline, load=load.load
            )

    def _resolved(self, read: Read, scope: Scope) -> ResolvedScope:
        tenant_id = read.tenant_id
        match scope:
            case InConversation(conversation_id, user_id):
                head = self._conversations.published(read, conversation_id)
                return ResolvedScope(tenant_id, user_id or head.user_id, head.uid, conversation_id)
            case OfUser(user_id):
                return ResolvedScope(tenant_id, user_id)
            case OfTenant():
                return ResolvedScope(tenant_id)


class LoadedScope:
    """A scope in memory: `domain.search.OpenScope`. `load` brings back what has left memory since."""

    def __init__(
        self,
        core: Core,
        queues: EmbeddingQueues,
        waiters: threading.Semaphore,
        *,
        scope: ResolvedScope,
        deadline: float | None,
        load: Callable[[], None],
    ) -> None:
        self._core = core
        self._recall = core.recall
        self._queue = queues.of_tenant(scope.tenant_id)
        self._model = queues.models.of(scope.tenant_id).name
        self._waiters = waiters
        self._scope = scope
        self._deadline = deadline
        self._load = load

    def without_names(self, text: str) -> str:
        """See `domain.search.OpenScope`."""
        speakers = self._recall.speakers(
            self._scope.tenant_id,
            user_id=self._scope.user_id,
            uid=self._scope.uid,
            published=self._core.published(),
        )
        return _native.strip_names([text], speakers)[0]

    def search(self, query: SearchQuery) -> SearchResult:
        """See `domain.search.OpenScope`. Raises DeadlineExceeded; InvalidField for a vector that none of its model's in
        the scope can be compared to.
        """
        self._wait_for_vectors(query)
        revision, found = self._find(query)
        for _ in range(RELOADS):
            if found.complete:
                break
            self._load()
            revision, found = self._find(query)
        if not found.hits:
            self._require_dimension(query.vector, revision)
        return SearchResult(
            hits=tuple(map(_hit, found.hits)),
            index=self._index_state(query, found.pending, revision),
            profile=query.options.profile,
            revision=revision,
            background=Background(*found.background),
            user_id=self._scope.user_id or "",
            uid=self._scope.uid or 0,
        )

    def _wait_for_vectors(self, query: SearchQuery) -> None:
        """Wait until the scope is embedded, at most `index_wait`; not at all where that is futile or too many wait."""
        if query.vector is None or query.vector.model != self._model:
            return
        waiting = self._without(self._core.published())
        if waiting > FUTILE_RATE * query.index_wait:
            self._queue.hint(self._scope)
        elif waiting and self._waiters.acquire(blocking=False):
            until = time.monotonic() + query.index_wait
            try:
                self._wait(until if self._deadline is None else min(until, self._deadline - ANSWER_SECONDS))
            finally:
                self._waiters.release()

    def _wait(self, until: float) -> None:
        """Wait until the scope is embedded or the time is up. Vectors arrive with revisions."""
        with self._queue.wanted(self._scope):
            revision = self._core.published()
            while self._without(revision) and self._goes_on(revision, until):
                time.sleep(PAUSE_SECONDS)
                revision = self._core.published()

    def _without(self, revision: int) -> int:
        """How many messages have no vector."""
        scope = self._scope
        return self._recall.pending(
            scope.tenant_id, user_id=scope.user_id, uid=scope.uid, model=self._model, published=revision
        )

    def _goes_on(self, revision: int, until: float) -> bool:
        """Wait for a later revision; False if the time is up, or none will come."""
        try:
            return self._core.wait(revision + 1, remaining(until))
        except _native.JournalFailed:
            return False

    def _require_dimension(self, vector: QueryVector | None, revision: int) -> None:
        """Raise InvalidField if the scope has vectors of a caller's model, but none of the vector's dimension."""
        if vector is None or vector.model == self._model:
            return
        scope = self._scope
        there = self._recall.dimensions(
            scope.tenant_id, user_id=scope.user_id, uid=scope.uid, model=vector.model, published=revision
        )
        if there and len(vector.values) // FLOAT_BYTES not in there:
            listed = " or ".join(map(str, there))
            raise InvalidField(
                f"{vector.field}.values", f"must have {listed} dimensions, as those of the model have here"
            )

    def _find(self, query: SearchQuery) -> tuple[int, _native.SearchResult]:
        scope, options, revision = self._scope, query.options, self._core.published()
        found = self._recall.search(
            scope.tenant_id,
            user_id=scope.user_id,
            uid=scope.uid,
            text=query.text,
            doubtful=list(query.doubtful),
            source=query.source,
            vector=query.vector.values if query.vector else None,
            pieces=query.vector.pieces if query.vector else b"",
            model=query.vector.model if query.vector else "",
            profile=options.profile.value,
            k=options.k,
            threshold=options.threshold,
            weights=dict(options.weights),
            half_life=options.half_life,
            roles=list(options.filter.roles),
            sent=(options.filter.sent.after, options.filter.sent.before),
            received=(options.filter.received.after, options.filter.received.before),
            expression=None if options.filter.where is None else expression(options.filter.where),
            exclude=list(query.exclude),
            without_roles=list(query.without_roles),
            seen=list(query.seen),
            around=query.around,
            published=revision,
        )
        return revision, found

    def _index_state(self, query: SearchQuery, without: int, revision: int) -> IndexState:
        """Only the tenant's own model has vectors that are still to come; `without` messages have none."""
        if query.words_only is WordsOnly.MODEL_UNREACHABLE:
            return IndexState(self._model, self._without(revision), query.words_only)
        if query.vector is None:
            return IndexState(model="", pending=0, words_only=query.words_only or WordsOnly.PROFILE)
        model = query.vector.model
        pending = without if model == self._model else 0
        return IndexState(model, pending, words_only=None)


def _hit(found: _native.RecallHit) -> Hit:
    return Hit(
        conversation_uid=found.uid,
        conversation_id=found.conversation_id,
        sequence=found.sequence,
        score=found.score,
        components=tuple(Component(*component) for component in found.components),
        encoded=found.encoded,
        before=found.before,
        after=found.after,
    )
