"""Brings messages and their vectors from DuckDB into the engine, where searches find them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from remora_server._native import Core, Unapplied
from remora_server.domain.calls import Read
from remora_server.domain.errors import MemoryExhausted, SearchTooLarge, StoreFailed, StoreFull
from remora_server.domain.models import ServedModels
from remora_server.locking import Level, new_lock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.commit.locks import Held, Locks
from remora_server.storage.database.database import Database
from remora_server.storage.embedding.scopes import ResolvedScope
from remora_server.storage.recall.stored import LEAST_MESSAGE_BYTES, Chunk, Documents, StoredMessages, StoredPart
from remora_server.tally import Tally

T = TypeVar("T")


class Bounds(Struct, frozen=True):
    """Memory in bytes: what searches may leave behind for later ones, and the most that one of them may load. At most
    `searches` go on at a time: the share of each is that part of what is left behind.
    """

    recall_bytes: int
    search_bytes: int
    searches: int = 1


class _TooLargeNow(Exception):
    """A load takes more memory than its share, and all of them together take more than is kept."""


class Turn:
    """The turn of one large search, taken by a load that needs it, for as long as `held`."""

    def __init__(self, lock: threading.Lock, deadline: float | None, held: ExitStack) -> None:
        self._lock = lock
        self._deadline = deadline
        self._held = held
        self.is_taken = False

    def take(self) -> None:
        """Wait for it, unless it is taken. Raises DeadlineExceeded."""
        if not self.is_taken:
            self._held.enter_context(Held([self._lock], self._deadline))
            self.is_taken = True


class RecallLoader:
    """Loads parts of conversations (one user's of each), users and tenants that are not in memory.

    A load begins by having changes gather; then it waits until DuckDB holds what was delivered before, and reads it in
    chunks. When its deadline passes, what it has loaded stays, and the next load goes on from there: each load gets
    further by one chunk at least, unless it waits for its turn. What DuckDB has no room for is added from the journal.
    Vectors of models that are neither the tenant's nor a caller's stay on disk, and word pieces unless the tenant's
    model makes some.

    Loads that take more than their share of what is kept go on one at a time while all of them together take more than
    that.
    """

    def __init__(self, core: Core, database: Database, commits: Commits, models: ServedModels, bounds: Bounds) -> None:
        self._core = core
        self._recall = core.recall
        self._stored = StoredMessages(database)
        self._commits = commits
        self._models = models
        self._bounds = bounds
        self.loads = Tally()
        """Of what was not in memory: one load for each user or part, also where another thread's was waited for."""
        self._loads = Locks(Level.LOAD)
        self._large = new_lock(Level.LARGE_SEARCH)
        self._last_unapplied: tuple[tuple[str, int, int], Unapplied] | None = None
        """Of a tenant, after a revision that is applied, as of one that was delivered."""

    @contextmanager
    def loading(self, read: Read, scope: ResolvedScope) -> Iterator[ScopeLoad]:
        """A load of a scope. What it loads stays in memory: users for as long as the context lasts, a part of a
        conversation for a while.
        """
        with ExitStack() as held:
            yield ScopeLoad(self, read, scope, held)

    def turn(self, read: Read, held: ExitStack) -> Turn:
        """The turn of one large search, which is not taken yet."""
        return Turn(self._large, read.deadline, held)

    def load_part(self, read: Read, user_id: str, part: StoredPart, turn: Turn) -> bool:
        """Have one user's part of a conversation in memory. Returns whether it was not. Raises DeadlineExceeded,
        SearchTooLarge.
        """
        tenant_id, uid = read.tenant_id, part.uid

        def load() -> None:
            with self._loads.of(read, (user_id, uid)):
                self._load_part(read, user_id, part, turn)

        absent = not self._recall.has_part(tenant_id, user_id, uid)
        if absent:
            self._load_in_turn(turn, load)
        self._bytes_of_part(tenant_id, user_id, uid)
        return absent

    def _load_part(self, read: Read, user_id: str, part: StoredPart, turn: Turn) -> None:
        tenant_id, uid = read.tenant_id, part.uid
        begun = self._recall.begin_part(tenant_id, user_id, uid)
        if begun is None:
            return
        since, loaded = begun
        with self._unfinished(tenant_id, user_id, [uid]):
            unapplied = self._settle(read, since)
            chunks = self._stored.chunks_of(tenant_id, user_id, replace(part, loaded=loaded))
            taken = partial(self._bytes_of_part, tenant_id, user_id, uid)
            deque(self._filled(read, user_id, chunks, unapplied, partial(self._require_share, turn, taken)), maxlen=0)

    def _load_in_turn(self, turn: Turn, load: Callable[[], None]) -> None:
        """Load, and go on in the turn of one large search where it takes too much beside others."""
        with self.loads.measured():
            try:
                load()
            except _TooLargeNow:
                turn.take()
                load()

    def _require_share(self, turn: Turn, taken: Callable[[], int]) -> None:
        """Raise _TooLargeNow where a load has to wait for its turn before it takes more, SearchTooLarge where it takes
        more than it may have.
        """
        is_small = taken() <= self._bounds.recall_bytes // self._bounds.searches
        if not is_small and not turn.is_taken and self._recall.bytes_in_memory() > self._bounds.recall_bytes:
            raise _TooLargeNow

    def hold_user(self, read: Read, user_id: str) -> bool:
        """Keep all messages of a user in memory until `release_user`; False if they are not there."""
        return self._recall.hold_user(read.tenant_id, user_id)

    def release_user(self, read: Read, user_id: str) -> None:
        """End what a `hold_user` that returned True began."""
        self._recall.release_user(read.tenant_id, user_id)

    def load_user(self, read: Read, user_id: str, taken: int, turn: Turn) -> None:
        """Have all of a user's messages in memory, besides others of the scope that take so many bytes.

        Raises DeadlineExceeded, SearchTooLarge.
        """

        def load() -> None:
            with self._loads.of(read, user_id):
                self._load_user(read, user_id, partial(self._require_share, turn, with_others))

        with_others = partial(self.bytes_with, read, user_id, taken)
        self._load_in_turn(turn, load)

    def _load_user(self, read: Read, user_id: str, require_room: Callable[[], object]) -> None:
        tenant_id = read.tenant_id
        if not self._recall.begin_user(tenant_id, user_id):
            return
        with self._unfinished(tenant_id, user_id, [None]):
            unapplied = self._settle(read, self._recall.revision())
            self._load_parts(read, user_id, unapplied, require_room)
            self._recall.finish_user(tenant_id, user_id)

    def _load_parts(
        self, read: Read, user_id: str, unapplied: Unapplied | None, require_room: Callable[[], object]
    ) -> None:
        tenant_id = read.tenant_id
        changed = unapplied.parts(user_id) if unapplied else []
        stored = {uid: StoredPart(uid, conversation_id) for uid, conversation_id in changed}
        stored |= {part.uid: part for part in self._stored.parts(tenant_id, user_id)}
        absent = dict(self._recall.declare_parts(tenant_id, user_id, list(stored)))
        parts = [replace(stored[uid], loaded=loaded) for uid, loaded in absent.items()]
        with self._unfinished(tenant_id, user_id, absent):
            chunks = self._stored.chunks(tenant_id, user_id, parts)
            for chunk in self._filled(read, user_id, chunks, unapplied, require_room):
                if chunk.through is None:
                    for uid in chunk.conversations:
                        del absent[uid]

    def bytes_with(self, read: Read, user_id: str, taken: int) -> int:
        """The memory that a user's messages take, with others that take so many bytes. Raises SearchTooLarge."""
        needed = taken + self._recall.bytes_of(read.tenant_id, user_id=user_id, uid=None)
        self._require_room(needed)
        return needed

    def users(self, read: Read) -> list[str]:
        """The users of a tenant. Raises SearchTooLarge if it can be told that not all of them have room."""
        tenant_id = read.tenant_id
        unapplied = self._settle(read, self._recall.revision())
        stored = self._stored.users(tenant_id)
        least = LEAST_MESSAGE_BYTES * sum(stored.values())
        self._require_room(least + self._stored.vector_bytes(tenant_id, self._models.of(tenant_id)))
        return sorted(stored.keys() | set(unapplied.users() if unapplied else []))

    def is_large(self, taken: int) -> bool:
        """Whether a scope takes more memory than searches may keep for later ones."""
        return taken > self._bounds.recall_bytes

    def _bytes_of_part(self, tenant_id: str, user_id: str, uid: int) -> int:
        needed = self._recall.bytes_of(tenant_id, user_id=user_id, uid=uid)
        self._require_room(needed)
        return needed

    def _require_room(self, needed: int) -> None:
        if needed > self._bounds.search_bytes:
            raise SearchTooLarge(needed, self._bounds.search_bytes)

    @contextmanager
    def _unfinished(self, tenant_id: str, user_id: str, uids: Iterable[int | None]) -> Iterator[None]:
        """Loads of parts, or (None) of the user: where the context ends early, what is not filled is abandoned."""
        try:
            yield
        except BaseException:
            for uid in uids:
                self._recall.abandon(tenant_id, user_id, uid)
            raise

    def _settle(self, read: Read, revision: int) -> Unapplied | None:
        """Wait until DuckDB holds every change through a revision that was delivered, except those that never become
        durable.

        Returns those that it lacks, where something is lacking to apply them.
        """
        try:
            self._commits.wait_published(revision, read.deadline)
        except StoreFailed:
            revision = min(revision, self._core.published())
        while True:
            try:
                self._commits.wait_applied(revision, read.deadline)
            except (StoreFull, MemoryExhausted):
                unapplied = self._unapplied(read.tenant_id, self._commits.applied(), revision)
                if unapplied is not None:
                    return unapplied
            else:
                self._last_unapplied = None
                return None

    def _unapplied(self, tenant_id: str, applied: int, revision: int) -> Unapplied | None:
        """What DuckDB lacks of a tenant, read once for all users; None if it has some of it by now."""
        key, last = (tenant_id, applied, revision), self._last_unapplied
        if last is None or last[0] != key:
            found = self._core.unapplied(tenant_id, applied)
            last = self._last_unapplied = None if found is None else (key, found)
        return None if last is None else last[1]

    def _filled(
        self,
        read: Read,
        user_id: str,
        chunks: Iterable[Chunk],
        unapplied: Unapplied | None,
        require_room: Callable[[], object],
    ) -> Iterator[Chunk]:
        """Fill the first chunk, and those that can be filled by the deadline while there is room: each in smaller ones
        where it takes more memory than the database has.
        """
        tenant_id, model = read.tenant_id, self._models.of(read.tenant_id)
        for chunk in _in_time(chunks, read.deadline):
            require_room()
            try:
                found = self._stored.read(tenant_id, user_id, chunk, model)
            except MemoryExhausted:
                parts = self._stored.parted(tenant_id, user_id, chunk)
                if parts:
                    yield from self._filled(read, user_id, parts, unapplied, require_room)
                    continue
                found = self._stored.read_alone(tenant_id, user_id, chunk, model)
            self._fill(tenant_id, user_id, chunk, found, unapplied)
            yield chunk

    def _fill(
        self, tenant_id: str, user_id: str, chunk: Chunk, found: dict[int, Documents], unapplied: Unapplied | None
    ) -> None:
        """Fill all parts of a chunk: one that holds nothing is filled with nothing."""
        for uid, conversation_id in chunk.conversations.items():
            messages, vectors = found[uid]
            self._recall.fill_part(
                tenant_id, user_id, uid, conversation_id, messages, vectors, through=chunk.through, unapplied=unapplied
            )


class ScopeLoad:
    """Brings one scope into memory for a search. What `held` is given is kept until it is closed."""

    def __init__(self, loader: RecallLoader, read: Read, scope: ResolvedScope, held: ExitStack) -> None:
        self._loader = loader
        self._read = read
        self._scope = scope
        self._held = held
        self._turn = loader.turn(read, held)
        self.has_loaded = False
        """Whether something was not in memory."""

    def load(self) -> None:
        """Have the scope in memory. Raises DeadlineExceeded, SearchTooLarge."""
        scope = self._scope
        if scope.user_id is None:
            self._load_tenant()
        elif scope.uid is None:
            self._hold(scope.user_id, taken=0)
        else:
            with ExitStack() as loading:  # what is searched is not held: others may load as soon as it is there
                turn = self._loader.turn(self._read, loading)
                part = StoredPart(scope.uid, scope.conversation_id)
                self.has_loaded |= self._loader.load_part(self._read, scope.user_id, part, turn)

    def _load_tenant(self) -> None:
        taken = 0
        for user_id in self._loader.users(self._read):
            taken = self._hold(user_id, taken)
            if self._loader.is_large(taken):
                self._turn.take()

    def _hold(self, user_id: str, taken: int) -> int:
        """Have a user's messages in memory until the load is closed, besides others that take so many bytes. Returns
        what all of them take.
        """
        while not self._loader.hold_user(self._read, user_id):
            if self.has_loaded:
                require_time(self._read.deadline)
            self._loader.load_user(self._read, user_id, taken, self._turn)
            self.has_loaded = True
        self._held.callback(self._loader.release_user, self._read, user_id)
        return self._loader.bytes_with(self._read, user_id, taken)


def _in_time(items: Iterable[T], deadline: float | None) -> Iterator[T]:
    """The first, and those that can be had by a deadline. Raises DeadlineExceeded for the next."""
    for number, item in enumerate(items):
        if number:
            require_time(deadline)
        yield item
