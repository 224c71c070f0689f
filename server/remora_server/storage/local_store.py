"""The local store: opening it, and its whole interface."""

from __future__ import annotations

import logging
import os
import time
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path

import duckdb
from msgspec import Struct

from remora_server import _native, failpoints
from remora_server._native import Core
from remora_server.domain.errors import MemoryExhausted, RemoraError, StoreFull, one_line
from remora_server.domain.facts import Reading
from remora_server.domain.models import ServedModels
from remora_server.domain.status import EngineStatus, JournalStatus, StoreStatus
from remora_server.domain.store import Store
from remora_server.locking import Level
from remora_server.storage.commit.applier import Applier
from remora_server.storage.commit.batch import NotApplicable
from remora_server.storage.commit.clock import SteadyClock, wall_clock
from remora_server.storage.commit.commands import Commands
from remora_server.storage.commit.commits import Commits
from remora_server.storage.commit.locks import Locks
from remora_server.storage.commit.request_ids import RequestIds
from remora_server.storage.database.database import Database, SchemaTooNew, UnknownKind, is_damage
from remora_server.storage.database.directory import FORMAT_VERSION, DataDirectory, DirectoryError
from remora_server.storage.database.lacks import Lack, lack_of
from remora_server.storage.embedding.queues import EmbeddingQueues, PendingEmbeddings
from remora_server.storage.nouns.channel_values import ChannelValues
from remora_server.storage.nouns.checkpoints import Checkpoints
from remora_server.storage.nouns.context import NobodysParts, StoreContext
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.nouns.entry_steps import EntrySteps
from remora_server.storage.nouns.facts import Facts
from remora_server.storage.nouns.history_entries import HistoryEntries
from remora_server.storage.nouns.item_index import ItemIndex
from remora_server.storage.nouns.items import Items
from remora_server.storage.nouns.loading import Loader
from remora_server.storage.nouns.log_records import LogRecords
from remora_server.storage.nouns.memory_items import MemoryItems
from remora_server.storage.nouns.messages import CountTokens, Messages
from remora_server.storage.nouns.receipts import Receipts
from remora_server.storage.nouns.spans import Spans
from remora_server.storage.nouns.steps import Steps
from remora_server.storage.nouns.threads import Threads
from remora_server.storage.nouns.timeline_events import TimelineEvents
from remora_server.storage.nouns.users import Users
from remora_server.storage.nouns.vector_collections import VectorCollections
from remora_server.storage.nouns.vector_index import VectorIndex
from remora_server.storage.nouns.vectors import Vectors
from remora_server.storage.nouns.windows import WindowEvents, Windows
from remora_server.storage.nouns.workflow_runs import WorkflowRuns
from remora_server.storage.nouns.workflow_steps import WorkflowSteps
from remora_server.storage.nouns.working_memory import WorkingMemories
from remora_server.storage.recall.index import RecallIndex
from remora_server.storage.recall.loading import Bounds
from remora_server.storage.records.expiry import Expiry
from remora_server.storage.records.reader import RecordReader
from remora_server.storage.records.records import Records
from remora_server.storage.recovery.backups import Backups
from remora_server.storage.recovery.mending import advice, mend, rebuild, require_database, require_owner
from remora_server.storage.schema.kinds import FACTS, KINDS, MEMORY_ITEMS, Kind, Kinds
from remora_server.storage.schema.message_reader import StoredMessageReader
from remora_server.storage.transfer.exports import Exports
from remora_server.storage.transfer.imports import Imports

logger = logging.getLogger(__name__)

CONVERSATIONS_AT_ONCE = 10_000
"""Of those that the start tells memory."""
NO_ROOM = "there is no room on the disk"
NO_MEMORY = "the database has too little memory"
_COUNTS = "SELECT count(*), coalesce(sum(message_count), 0) FROM heads"
_TOLD: dict[Lack, str] = {StoreFull: NO_ROOM, MemoryExhausted: f"{NO_MEMORY}: raise database_bytes"}


class NotApplied(Exception):
    """The store was closed before the database had everything that the journal has."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(
            f"not all of the journal was applied to the database; the next start does it: {one_line(cause)}"
        )


class StoreOptions(Struct, frozen=True):
    """Where the store lives (None: in memory only) and how much memory it may take, in bytes.

    `operator_token` is written into the directory, for the operator's commands. At most `searches` searches go on at a
    time, and at most `waiting_searches` wait for vectors: each holds a thread that others need.
    """

    directory: Path | None
    window_bytes: int = 48 << 20
    recall_bytes: int = 128 << 20
    search_bytes: int = 512 << 20
    segment_bytes: int = 64 << 20
    queue_bytes: int = 16 << 20
    database_bytes: int = 64 << 20
    record_bytes: int = 32 << 20
    vector_bytes: int = 1 << 30
    kernels: str | None = None
    operator_token: str = ""
    searches: int = 16
    waiting_searches: int = 4


class LocalStore:
    """A store over a journal, windows in memory and DuckDB. What is served of it is a bundle: see `open_store`."""

    def __init__(
        self,
        options: StoreOptions,
        *,
        count_tokens: CountTokens,
        models: ServedModels | None = None,
        kinds: Kinds = KINDS,
    ) -> None:
        """Open, recover and begin to apply. `models` are those whose vectors the server makes; None where none. `kinds`
        are those of the records that it keeps.

        Raises DirectoryError where the directory cannot be used.
        """
        self.models = models or ServedModels()
        self._kinds = kinds
        self._directory = None
        try:
            self._directory = None if options.directory is None else DataDirectory(options.directory)
            self._open(options, count_tokens)
        except BaseException as error:
            if self._directory is not None:
                self._directory.close()
            failure = _failure_behind(error)
            if isinstance(failure, NotApplicable):
                raise DirectoryError(f"{failure}: upgrade Remora") from error
            if isinstance(failure, duckdb.Error | OSError | _native.JournalError):
                raise DirectoryError(_why_it_cannot_be_used(options.directory, failure)) from error
            raise

    def _open(self, options: StoreOptions, count_tokens: CountTokens) -> None:
        self.store_id = uuid.uuid4().bytes if self._directory is None else self._directory.store_id
        if self._directory is None:
            self._join(options, count_tokens)
        else:
            require_database(self._directory)
            self._join_mending(options, count_tokens, self._directory)
            try:
                self._directory.mark_begun()
                _leave_operator_token(self._directory, options.operator_token)
            except BaseException:
                self.core.close()
                self.database.close()
                raise
        self.applier.start()
        self.expiry.start()
        self.requests.start()

    def _join_mending(self, options: StoreOptions, count_tokens: CountTokens, directory: DataDirectory) -> None:
        """Each repair lets the next attempt get further: first without the damaged files, then without any."""
        for make_good in (mend, rebuild):
            try:
                return self._join(options, count_tokens)
            except (duckdb.Error, RemoraError) as error:
                failure = _failure_behind(error)
                if lack_of(failure):
                    raise
                make_good(directory, failure)
        return self._join(options, count_tokens)

    def _join(self, options: StoreOptions, count_tokens: CountTokens) -> None:
        """Open the database and the journal, bring them together, and build on them what answers requests.

        Raises duckdb.Error or RemoraError with nothing left open.
        """
        with ExitStack() as abandoning:
            self.database = _open_database(options, self.store_id, self._kinds)
            abandoning.callback(self.database.close)
            failpoints.hit("database_opened")
            applied = int(self.database.meta("applied_revision") or 0)
            self._secret = _secret(self.database)
            self.core = _open_core(options, self._directory, self.store_id, applied, self._kinds)
            abandoning.callback(self.core.close)
            self.applier = Applier(self.core, self.database, applied)
            self._recover(applied)
            self._build(options, count_tokens)
            abandoning.pop_all()

    def _build(self, options: StoreOptions, count_tokens: CountTokens) -> None:
        self._counted = (0, 0)
        context = self._build_writing()
        self._build_conversations(context, count_tokens)
        self._build_records(context, options)
        self._build_search(options)
        self._build_transfers(context, count_tokens)

    def _build_writing(self) -> StoreContext:
        """What all nouns write and read by."""
        locks, clock = Locks(Level.CONVERSATIONS), SteadyClock()
        self.commits = Commits(self.core, self.database, self.applier, self.requests)
        self.loader = Loader(self.core, self.database, self.applier, locks)
        self.queues = EmbeddingQueues(self.database, self.commits, clock, self.models)
        commands = Commands(self.commits, clock)
        reader = RecordReader(self.core, self.database, self.applier, clock)
        self.clock = clock
        self.records = Records(
            self.core,
            self.database,
            self.commits,
            commands=commands,
            reader=reader,
            clock=clock,
            conversation_locks=locks,
        )
        self.expiry = Expiry(self.core, self.database, self.commits, self.records, clock)
        return StoreContext(
            core=self.core,
            database=self.database,
            commits=self.commits,
            commands=commands,
            loader=self.loader,
            locks=locks,
            records=self.records,
            clock=clock,
            new_id=_native.new_id,
            nobodys_parts=NobodysParts(),
        )

    def _build_conversations(self, context: StoreContext, count_tokens: CountTokens) -> None:
        """Conversations, and what is read of them."""
        events = WindowEvents(self.core.accepted())

        def on_deleted(uid: int, revision: int) -> None:
            self.queues.deleted(uid)
            events.removals.note(uid, revision, 0)

        self.conversations = Conversations(context, on_deleted=on_deleted, on_policy=events.changed)
        self.windows = Windows(context, self.conversations, events)
        self.receipts = Receipts(context, self.conversations, self.windows)
        self.messages = Messages(
            context,
            self.conversations,
            self.windows,
            count_tokens=count_tokens,
            on_puts=self.queues.add,
            on_cleared=self.receipts.cleared,
        )
        self.steps = Steps(context, self.conversations)
        self.working_memories = WorkingMemories(context, self.conversations, self.receipts)

    def _build_records(self, context: StoreContext, options: StoreOptions) -> None:
        """Records by key that belong to no conversation."""
        self.workflow_runs = WorkflowRuns(context)
        self.workflow_steps = WorkflowSteps(context)
        self.timeline_events = TimelineEvents(context)
        self.history_entries = HistoryEntries(context)
        self.entry_steps = EntrySteps(context)
        self.collections = VectorCollections(context)
        vector_index = VectorIndex(self.core, self.database, self.commits, options.vector_bytes)
        self.vectors = Vectors(context, self.collections, vector_index)
        self.items = Items(context, ItemIndex(self.core, self.database, self.commits, options.vector_bytes))
        self.memory_items = MemoryItems(context, self._text_index(MEMORY_ITEMS, options))
        self.facts = Facts(
            context,
            self._text_index(FACTS, options),
            on_forgotten=self.receipts.forgotten,
            is_outdated=self._is_outdated,
        )
        self.spans = Spans(context)
        self.log_records = LogRecords(context)
        values = ChannelValues(context)
        self.checkpoints = Checkpoints(context, values)
        self.threads = Threads(context, values, is_deleted=self.receipts.is_deleted)

    def _build_search(self, options: StoreOptions) -> None:
        """The search of messages."""
        self.index = RecallIndex(
            self.core,
            self.database,
            self.commits,
            self.conversations,
            self.queues,
            bounds=Bounds(options.recall_bytes, options.search_bytes, options.searches),
            waiters=options.waiting_searches,
        )

    def _build_transfers(self, context: StoreContext, count_tokens: CountTokens) -> None:
        """What goes across all nouns."""
        self.exports = Exports(context, self.conversations)
        self.imports = Imports(
            context, self.collections, self.windows, count_tokens=count_tokens, on_puts=self.queues.add_imported
        )
        self.users = Users(context, self.windows, on_erased=self._on_erased)
        folder = None if self._directory is None else self._directory.backups
        self.backups = Backups(self.database, self.commits, self.expiry, folder, self.store_id.hex())

    def _text_index(self, kind: Kind, options: StoreOptions) -> VectorIndex:
        """The search among the texts of a kind's records, by words and by vectors."""
        return VectorIndex(self.core, self.database, self.commits, options.vector_bytes, kind=kind, by_words=True)

    def _on_erased(self, tenant_id: str, user_id: str, revision: int, is_deleted: bool) -> None:
        self.queues.erased(user_id)
        self.receipts.erased(tenant_id, user_id, revision, is_deleted=is_deleted)

    def _is_outdated(self, tenant_id: str, user_id: str, reading: Reading) -> bool:
        """Whether a user's messages are erased, or others, since they were read."""
        revision, uid = reading.revision, reading.uid
        if self.receipts.is_erased(tenant_id, user_id, revision):
            return True
        return bool(uid) and self.windows.has_changed_of_anybody(uid, revision, reading.through)

    def _recover(self, applied: int) -> None:
        """Apply what the journal holds beyond the database, and tell memory what is stored."""
        began, recovery = time.monotonic(), self.core.recovery
        if recovery.cut is not None:
            segment, offset, size, kept_in = recovery.cut
            logger.warning(
                "the end of the journal was torn and is cut off: it was never acknowledged",
                extra={"segment": segment, "offset": offset, "bytes": size, "kept_in": kept_in or "nothing: no room"},
            )
        if recovery.noted_applied > applied:
            logger.warning(
                "the database has lost what it had; the journal makes it good",
                extra={"database_revision": applied, "had_revision": recovery.noted_applied},
            )
        records = self.applier.catch_up()
        self.core.mark_applied(self.applier.applied, durable=self.database.logs)
        self.database.snapshot(self._know_conversations)
        self.requests = RequestIds(self.core, self.database, self.applier.applied)
        if self.applier.stuck:
            self._follow_unapplied(self.applier.stuck)
        failpoints.hit("store_recovered")
        logger.info(
            "store opened",
            extra={
                "revision": self.core.published(),
                "database_revision": applied,
                "records_applied": records,
                "seconds": round(time.monotonic() - began, 3),
            },
        )

    def _know_conversations(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Tell memory which conversations there are, some at a time: there may be millions."""
        found = cursor.execute("SELECT tenant_id, id FROM conversations")
        while keys := found.fetchmany(CONVERSATIONS_AT_ONCE):
            self.core.know_conversations(keys)

    def _follow_unapplied(self, lack: Lack) -> None:
        """Have memory follow the records that the database cannot take now."""
        followed = self.core.follow_unapplied(self.applier.applied, now=wall_clock())
        logger.warning(
            "what the database lacks is served from the journal", extra={"reason": _TOLD[lack], "records": followed}
        )

    @property
    def pending(self) -> PendingEmbeddings:
        """The queue of the default model."""
        return self.queues.of(self.models.default)

    def close(self) -> None:
        """Apply everything, checkpoint, and let the directory go. Raises NotApplied where the disk does not let it."""
        try:
            try:
                self.requests.close()
                self.expiry.close()
                self.applier.close()
            finally:
                self.core.close()
        except (_native.JournalError, duckdb.Error, OSError) as error:
            raise NotApplied(error) from error
        finally:
            self.database.close()
            if self._directory is not None:
                self._directory.close()

    def bundle(self) -> Store:
        """The bundle of this store that is served."""
        return Store(
            id=self.store_id.hex(),
            secret=self._secret,
            conversations=self.conversations,
            messages=self.messages,
            message_reader=StoredMessageReader(),
            steps=self.steps,
            working_memories=self.working_memories,
            windows=self.windows,
            workflow_runs=self.workflow_runs,
            workflow_steps=self.workflow_steps,
            timeline_events=self.timeline_events,
            history_entries=self.history_entries,
            entry_steps=self.entry_steps,
            vectors=self.vectors,
            collections=self.collections,
            items=self.items,
            memory_items=self.memory_items,
            facts=self.facts,
            spans=self.spans,
            log_records=self.log_records,
            checkpoints=self.checkpoints,
            threads=self.threads,
            users=self.users,
            receipts=self.receipts,
            index=self.index,
            embeddings=self.queues,
            exports=self.exports,
            imports=self.imports,
            backups=self.backups,
            health=self,
            publication=self.core,
            close=self.close,
        )

    def failure(self) -> str:
        """Why the store does not work as it should; empty where it does, or only room on the disk is missing."""
        return self.core.failure() or self.applier.failure or self.applier.thread_failure()

    def write_failure(self) -> str:
        """Why writes are refused; empty where they are taken."""
        return self._why_it_takes_no_writes(self.core.journal_statistics().refusing)

    def background_failure(self) -> str:
        """Why what is done behind the requests is not done now; empty where it is. They are answered all the same."""
        return self.expiry.failure() or self.requests.failure()

    def _why_it_takes_no_writes(self, refusing: str | None) -> str:
        """`refusing`: why the journal refuses records that it may take later."""
        lacking = _TOLD[self.applier.lacking] if self.applier.lacking else ""
        unprepared = f"no segment of the journal can be prepared: {refusing}" if refusing else ""
        return self.failure() or lacking or unprepared

    def _count(self) -> tuple[int, int]:
        """How many conversations and messages there are, as they were last counted where the database cannot be asked:
        what does not work is to be known then.
        """
        with suppress(RemoraError, duckdb.Error):
            [(conversations, messages)] = self.database.rows(_COUNTS)
            self._counted = conversations, int(messages)
        return self._counted

    def status(self) -> StoreStatus:
        journal, engine = self.core.journal_statistics(), self.core.statistics()
        conversations, messages = self._count()
        return StoreStatus(
            store_id=self.store_id.hex(),
            format_version=FORMAT_VERSION,
            in_memory=self._directory is None,
            failure=self._why_it_takes_no_writes(journal.refusing),
            revision=self.core.published(),
            applied_revision=self.applier.applied,
            database_bytes=self.database.bytes(),
            conversations=conversations,
            messages=messages,
            embeddings=self.queues.status(),
            journal=JournalStatus(
                bytes=journal.bytes,
                segments=journal.segments,
                records=journal.records,
                batches=journal.batches,
                sync_micros=journal.sync_micros,
                waiting=max(0, self.core.accepted() - self.core.published()),
            ),
            engine=EngineStatus(
                kernels=engine.kernels,
                conversations=engine.conversations,
                window_bytes=engine.window_bytes,
                parts=engine.parts,
                index_bytes=engine.recall_bytes,
                record_partitions=engine.partitions,
                record_bytes=engine.record_bytes,
                vector_partitions=engine.vector_parts,
                vector_bytes=engine.vector_bytes,
            ),
            checkpoints=self.database.checkpoints.done(),
            searches=self.index.searches(),
            recall_hits=self.index.hits(),
            recall_loads=self.index.loads(),
        )


def open_store(options: StoreOptions, *, count_tokens: CountTokens, models: ServedModels) -> Store:
    """Open the local store. Raises what `LocalStore` does; closing raises NotApplied."""
    return LocalStore(options, count_tokens=count_tokens, models=models).bundle()


def _leave_operator_token(directory: DataDirectory, token: str) -> None:
    """Without it the operator's commands do not work; a disk without room is no reason not to serve."""
    if not token:
        return
    try:
        directory.write_operator_token(token)
    except OSError as error:
        logger.warning("the operator's token cannot be written: commands that need it fail", exc_info=error)


def _failure_behind(error: BaseException) -> BaseException:
    """DuckDB's error, if an error of the domain was raised from it."""
    cause = error.__cause__
    return cause if isinstance(error, RemoraError) and isinstance(cause, duckdb.Error) else error


def _open_database(options: StoreOptions, store_id: bytes, kinds: Kinds) -> Database:
    try:
        database = Database(options.directory, options.database_bytes, kinds)
    except (SchemaTooNew, UnknownKind) as error:
        raise DirectoryError(f"{error}: upgrade Remora") from error
    try:
        _require_store(database, store_id, options.directory)
    except BaseException:
        database.close()
        raise
    return database


def _require_store(database: Database, store_id: bytes, directory: Path | None) -> None:
    found = database.meta("store_id")
    if found is None:
        database.set_meta("store_id", store_id.hex())
    elif directory is not None:
        require_owner(directory, found, store_id)


def _secret(database: Database) -> bytes:
    found = database.meta("secret")
    if found is None:
        found = os.urandom(32).hex()
        database.set_meta("secret", found)
    return bytes.fromhex(found)


def _open_core(
    options: StoreOptions, directory: DataDirectory | None, store_id: bytes, applied: int, kinds: Kinds
) -> Core:
    return Core(
        None if directory is None else str(directory.journal),
        store_id=store_id,
        applied_revision=applied,
        segment_bytes=options.segment_bytes,
        queue_bytes=options.queue_bytes,
        window_bytes=options.window_bytes,
        recall_bytes=options.recall_bytes,
        record_bytes=options.record_bytes,
        vector_bytes=options.vector_bytes,
        kernels=options.kernels,
        kinds=kinds.native(),
    )


def _why_it_cannot_be_used(directory: Path | None, error: duckdb.Error | OSError | _native.JournalError) -> str:
    lack = lack_of(error)
    if lack is StoreFull:
        return f"{NO_ROOM} of {directory}: make some and start again; nothing that was acknowledged is lost"
    if lack is MemoryExhausted:
        return f"{NO_MEMORY}: start again with a larger database_bytes; nothing that was acknowledged is lost"
    remedy = "" if directory is None else f": {advice(directory)}"
    if isinstance(error, _native.JournalError):
        return f"the journal cannot be used: {error}{remedy}"
    return f"the data in {directory} cannot be opened: {one_line(error)}{remedy if is_damage(error) else ''}"
