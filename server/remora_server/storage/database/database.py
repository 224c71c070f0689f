"""The DuckDB file: how it is opened, its migrations, its cursors and its checkpoints."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from remora_server import failpoints
from remora_server.domain.errors import MemoryExhausted, StoreDamaged, StoreFailed, one_line
from remora_server.locking import Level, Turns, new_condition, new_lock
from remora_server.storage.database.disk_space import require_room
from remora_server.storage.database.lacks import is_lack_of_memory
from remora_server.storage.database.parsed import execute
from remora_server.storage.database.tables import creation, shape
from remora_server.storage.database.taking_over import OLD_TABLES, OldTable, copy_piece, end_of, next_end
from remora_server.storage.schema.kinds import KINDS, Kind, Kinds
from remora_server.tally import Tally

T = TypeVar("T")

logger = logging.getLogger(__name__)

FILE_NAME = "remora.duckdb"
DAMAGE_MARK = "DAMAGE"
"""An empty file beside the database: damage was found, and the next start checks all blocks."""
MEMORY = ":memory:"
NAME = "remora"
"""The name of the database when it is attached."""
SCHEMA_VERSION = 4
CHECKPOINT_ROOM = 4 << 20
"""What a checkpoint writes in addition to the contents of the write-ahead log, in bytes."""
MOST_CHECKPOINT_FACTOR = 64
"""How many times the memory that is otherwise allowed a checkpoint may take at most. DuckDB holds all long values of
2,048 rows while it writes one of them, and a database in memory writes itself anew beside what it was.
"""

KIND_FACT = "kind:"
"""The prefix of the facts that declare the kinds of the store, by their numbers."""
TAKEN_OVER_WAL_BYTES = 32 << 20
"""The size of the log at which the migration of old tables checkpoints."""

READ_BYTES, DIMENSION_BYTES = 16 << 20, 32 << 10
"""The memory that a read may need, in bytes: of vectors that lie far apart, so much for each of their dimensions where
that is more. DuckDB decodes 2,048 lists to read one of them.
"""

FEWER = 4
"""By how much fewer rows are read at a time if there is no memory for so many."""
ROWS_ALONE = 16
"""A read of at most this many rows is not made smaller. It runs alone, with more memory."""
ALONE_BYTES = 64 << 20
"""What they take at most: so many of the longest requests, or two columns of which DuckDB decodes 2,048 values to read
one. It compresses no values above 16 KiB.
"""

REOPEN_SECONDS = 5.0
"""How long a query waits until a failed database is opened again."""
_DAMAGE = re.compile(
    r"corrupt|checksum|not read enough bytes|replaying WAL|This WAL was|WAL does not match"
    r"|not a valid DuckDB|deseriali",
    re.IGNORECASE,
)
_INVALIDATED = "has been invalidated"
_NO_DAMAGE = re.compile(r"No space left|Out of Memory|Could not write|Permission denied|set lock", re.IGNORECASE)


def is_damage(error: BaseException) -> bool:
    """Whether an error of DuckDB reports damaged files, and not a lack of something."""
    text = str(error)
    return isinstance(error, duckdb.Error) and bool(_DAMAGE.search(text)) and not _NO_DAMAGE.search(text)


def has_failed(error: BaseException) -> bool:
    """Whether an error of DuckDB says that the database has failed: until it is opened again, every statement does.

    The first such error is a FatalException; later ones of a database that is attached may be IOExceptions (2.0.0).
    """
    return isinstance(error, duckdb.FatalException) or (isinstance(error, duckdb.Error) and _INVALIDATED in str(error))


class SchemaTooNew(Exception):
    """The database was written by a newer version of Remora."""

    def __init__(self, found: int) -> None:
        super().__init__(
            f"the database has schema version {found}; this version of Remora reads up to {SCHEMA_VERSION}"
        )


class UnknownKind(Exception):
    """The database has records of a kind that this version of Remora does not know so."""

    def __init__(self, shape: str) -> None:
        super().__init__(f"the database has records of the kind {shape}, which this version of Remora does not know")


class Database:
    """One DuckDB database, in a directory or (None) in memory, with a cursor for each thread.

    Commits go to its write-ahead log, unless it was opened again without: then they are lost where it is closed before
    a checkpoint, and need no room on the disk.

    `memory_bytes` bounds what DuckDB keeps in memory; half of it is for reads, of which so many run at a time as find
    room there. Long vectors add to it what their reads take (`make_room_for`). A database in memory keeps nothing on
    disk, not even for a while. DuckDB's own checkpoints are off, because they would run inside a commit: the applier
    calls `checkpoint`.
    """

    def __init__(self, directory: Path | None, memory_bytes: int, kinds: Kinds = KINDS) -> None:
        """Open, or make, the database of a store with some kinds. Raises SchemaTooNew, UnknownKind, duckdb.Error."""
        self.kinds = kinds
        self._memory_bytes = memory_bytes
        self._path = None if directory is None else directory / FILE_NAME
        self._own = threading.local()
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self._reopened = new_condition(Level.REOPENED)
        self.checkpoints = Tally()
        self._reads = max(1, memory_bytes // 2 // READ_BYTES)
        self._readers = Turns(Level.READ, self._reads)
        self.copying = new_lock(Level.COPY)
        """Held while the database is copied. It is not reopened meanwhile, unless it has failed."""
        self._dimension = 0
        self.logs = True
        """Whether commits are written to the write-ahead log."""
        self._unlogged_bytes = 0
        # A checkpoint that lacks memory ends a database in memory with all that it holds.
        self._checkpoint_factor = MOST_CHECKPOINT_FACTOR if self.in_memory else 1
        self._connection = self._connect()
        try:
            self._migrate()
            self._declare_kinds()
            self._take_over()
            self.make_room_for(self.rows("SELECT coalesce(max(dimension), 0) FROM embeddings")[0][0])
        except BaseException:
            self.close()
            raise

    def _connect(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(
            str(self._path) if self._path is not None and self.logs else MEMORY,
            config={
                "threads": 1,
                "memory_limit": f"{self._limit()}B",
                "checkpoint_threshold": "1TB",
                "autoload_known_extensions": False,
                "autoinstall_known_extensions": False,
                "preserve_insertion_order": False,
                "temp_directory": "" if self._path is None else f"{self._path}.tmp",
            },
        )
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        # A long text that is compressed with it cannot be read without 2,048 others.
        connection.execute("SET disabled_compression_methods = 'zstd'")
        # It reads the rows of a LIMIT a second time, by their ids. It misses some after a checkpoint that removed
        # others (2.0.0), in memory and in a file.
        connection.execute("SET GLOBAL disabled_optimizers = 'late_materialization'")
        if self._path is not None:
            connection.execute("SET allowed_directories = [" + literal(str(self._path.parent)) + "]")
            if not self.logs:
                connection.execute(f"ATTACH {literal(str(self._path))} AS {NAME} (RECOVERY_MODE 'no_wal_writes')")
        connection.execute("SET enable_external_access = false")
        return connection

    def _limit(self) -> int:
        """What DuckDB may keep in memory, in bytes."""
        return self._memory_bytes + self._reads * max(0, self._dimension * DIMENSION_BYTES - READ_BYTES)

    def make_room_for(self, dimension: int) -> None:
        """Raise the memory limit for reads of vectors of so many dimensions."""
        if dimension > self._dimension:
            self._dimension = dimension
            self._set_limit(self._limit())

    def _set_limit(self, limit: int) -> None:
        self.cursor().execute(f"SET memory_limit = '{limit}B'")

    @property
    def in_memory(self) -> bool:
        """Whether nothing of it is on disk."""
        return self._path is None

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """The calling thread's cursor. Always fetch all of a result: an open one counts as a reader."""
        connection, cursor = getattr(self._own, "cursor", (None, None))
        current = getattr(self._own, "opening", self._connection)
        if cursor is None or connection is not current:
            connection, cursor = current, current.cursor()
            if not self.logs:
                cursor.execute(f"USE {NAME}")
            self._own.cursor = (connection, cursor)
            self._cursors.append(cursor)
        return cursor

    def reopen(self, restore: Callable[[], object], *, logs: bool, has_failed: bool) -> None:
        """Open the database again: after a FatalException every statement fails until then; one that has not failed is
        closed when nobody reads it. Others see it when `restore` has brought back, in this thread, what was not logged.

        Where it cannot be opened, it stays closed until the next try. One in memory would be empty: do not.
        """
        with ExitStack() as waiting:
            if not has_failed:
                waiting.enter_context(self.copying)
                waiting.enter_context(self._readers.all())
            self.close()
            self.logs, self._unlogged_bytes = logs, 0
            connection = self._own.opening = self._connect()
            try:
                restore()
            except BaseException:
                connection.close()
                raise
            finally:
                del self._own.opening
            with self._reopened:
                self._connection = connection
                self._reopened.notify_all()

    def note_unlogged(self, size: int) -> None:
        """Have the next checkpoint require so many bytes more of disk space."""
        self._unlogged_bytes += size

    def rows(self, sql: str, parameters: object = None) -> list[tuple[Any, ...]]:
        """All rows of a query. Raises the errors of `snapshot`. Do not call it inside a snapshot."""
        return self._answer(lambda cursor: execute(cursor, sql, parameters).fetchall())

    def snapshot(self, ask: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """The results of several queries on one state of the database, on the calling thread's cursor.

        They are asked again, once, where they meet a database that has failed and is opened again. Raises StoreDamaged
        where rows are not what was written, MemoryExhausted where they take more than there is, StoreFailed where the
        database is not opened again.
        """

        return self._answer(lambda cursor: self._at_once(cursor, ask))

    def in_pages(self, rows: int, ask: Callable[[duckdb.DuckDBPyConnection, int], T]) -> T:
        """The results of queries on one state of the database that read long values, at most of so many rows at a time.

        They are asked again with fewer rows where these take more memory than there is, and `alone` where few rows do.
        Raises the errors of `snapshot`.
        """
        try:
            return self.snapshot(lambda cursor: ask(cursor, rows))
        except MemoryExhausted:
            if rows > ROWS_ALONE:
                return self.in_pages(rows // FEWER, ask)
        return self.alone(lambda cursor: ask(cursor, rows))

    def alone(self, ask: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """The results of queries on one state of the database while nobody else reads it: they may take ALONE_BYTES
        more than there is. Raises StoreDamaged, MemoryExhausted, StoreFailed.
        """
        with answering(self.note_damage), self._readers.all():
            self._set_limit(self._limit() + ALONE_BYTES)
            try:
                return self._at_once(self.cursor(), ask)
            finally:
                with suppress(duckdb.Error):
                    self._set_limit(self._limit())

    def _at_once(self, cursor: duckdb.DuckDBPyConnection, ask: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        try:
            cursor.begin()
            return ask(cursor)
        finally:
            self._end_transaction(cursor)

    def _end_transaction(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Undo what the calling thread's cursor has begun. One that lacks memory even for that is replaced: every query
        on it would fail.
        """
        try:
            cursor.rollback()
        except duckdb.TransactionException:
            pass  # the failure has ended it already
        except duckdb.Error as error:
            if not is_lack_of_memory(error):
                raise
            self._own.cursor = (None, None)
            cursor.close()

    def _answer(self, ask: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        with answering(self.note_damage):
            asked = self._connection
            try:
                return self._ask(ask)
            except duckdb.Error as error:
                is_closed = isinstance(error, duckdb.ConnectionException)
                if not (is_closed or has_failed(error)) or not self._wait_reopened(asked):
                    raise
            return self._ask(ask)

    def _ask(self, ask: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        with self._readers.one():
            return ask(self.cursor())

    def note_damage(self, error: BaseException) -> None:
        """If an error reports damage, mark the database, so that the next start checks and rebuilds it."""
        if self._path is None or not is_damage(error):
            return
        try:
            self._path.with_name(DAMAGE_MARK).touch()
        except OSError as refused:
            logger.warning("the next start cannot be told of the damage", exc_info=refused)

    def _wait_reopened(self, failed: duckdb.DuckDBPyConnection) -> bool:
        if self.in_memory:
            return False
        with self._reopened:
            return self._reopened.wait_for(lambda: self._connection is not failed, REOPEN_SECONDS)

    def require_memory(self, size: int) -> None:
        """Raise duckdb.OutOfMemoryException where a database in memory is to hold so many bytes more and may not: it
        leaves room for a read.
        """
        if not self.in_memory:
            return
        used = self.cursor().execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()[0][0]
        room = max(self._limit() // 2, self._limit() - READ_BYTES)
        if used + size > room:
            raise duckdb.OutOfMemoryException(f"the database takes {used} bytes of {room}: {size} more find no room")

    def transact(self, write: Callable[[duckdb.DuckDBPyConnection], object]) -> None:
        """Write in one transaction: all of it or nothing. What it makes of a database in memory was allowed before, by
        `require_memory`: one that lacks memory while it commits ends it with all that it holds.
        """
        if not self.in_memory:
            return self._transact(write)
        self._set_limit(MOST_CHECKPOINT_FACTOR * self._limit())
        try:
            self._transact(write)
        finally:
            with suppress(duckdb.Error):
                self._set_limit(self._limit())

    def _transact(self, write: Callable[[duckdb.DuckDBPyConnection], object]) -> None:
        cursor = self.cursor()
        try:
            cursor.begin()
            write(cursor)
            failpoints.hit("transaction_written")
            cursor.commit()
        except BaseException:
            self._end_transaction(cursor)
            raise
        failpoints.hit("transaction_committed")

    def meta(self, key: str) -> str | None:
        """A value of the store's own table of facts."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", [key])
        return found[0][0] if found else None

    def applied_revision(self) -> int:
        """The last applied revision, also while only this thread sees the reopened database."""
        found = self.cursor().execute("SELECT value FROM meta WHERE key = 'applied_revision'").fetchall()
        return int(found[0][0]) if found else 0

    def set_meta(self, key: str, value: str) -> None:
        """Set a fact."""
        self.cursor().execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])

    def _migrate(self) -> None:
        present = self.rows("SELECT 1 FROM information_schema.tables WHERE table_name = 'meta'")
        version = int(self.meta("schema_version") or 0) if present else 0
        if version > SCHEMA_VERSION:
            raise SchemaTooNew(version)
        for number, script in _migrations():
            if number > version:
                self._apply(number, script)

    def _apply(self, number: int, script: str) -> None:
        def migrate(cursor: duckdb.DuckDBPyConnection) -> None:
            for statement in duckdb.extract_statements(script):
                cursor.execute(statement)
            self.set_meta("schema_version", str(number))

        self.transact(migrate)
        logger.info("database migrated", extra={"schema_version": number})

    def _declare_kinds(self) -> None:
        """Create the tables of new kinds. Raises UnknownKind for kinds that this version does not know."""
        found = dict(self.rows(f"SELECT key, value FROM meta WHERE starts_with(key, '{KIND_FACT}')"))  # noqa: S608
        known = {f"{KIND_FACT}{kind.number}": kind for kind in self.kinds}
        for fact, kept in found.items():
            if fact not in known or shape(known[fact]) != kept:
                raise UnknownKind(kept)
        if new := {fact: kind for fact, kind in known.items() if fact not in found}:
            self._declare(new)

    def _declare(self, new: dict[str, Kind]) -> None:
        """All of them in one transaction: the first start would spend half its time on one for each."""
        facts = [text for fact, kind in new.items() for text in (fact, shape(kind))]

        def declare(cursor: duckdb.DuckDBPyConnection) -> None:
            for kind in new.values():
                cursor.execute(creation(kind))
            cursor.execute(f"INSERT INTO meta VALUES {', '.join(['(?, ?)'] * len(new))}", facts)  # noqa: S608 - of our own

        self.transact(declare)

    def _take_over(self) -> None:
        """Migrate the remaining tables of older versions."""
        present = {name for (name,) in self.rows("SELECT table_name FROM information_schema.tables")}
        for old in OLD_TABLES:
            if old.set_aside in present:
                self._take_over_table(old)

    def _take_over_table(self, old: OldTable) -> None:
        """Migrate chunk by chunk, each in one transaction with its progress; then drop the old table."""
        fact, source = old.progress, old.set_aside
        begin, rows = int(self.meta(fact) or 0), end_of(self.cursor(), source)
        while begin < rows:
            end = next_end(self.cursor(), old, source, begin)
            self._take_over_piece(old, begin, end, fact)
            begin = end
            if self.wal_bytes() > TAKEN_OVER_WAL_BYTES:
                self._checkpoint_with_more_memory()
        self.transact(lambda cursor: cursor.execute(f"DROP TABLE {source}; DELETE FROM meta WHERE key = '{fact}'"))  # noqa: S608
        if rows:
            logger.info("records taken over", extra={"table": old.name, "rows": rows})

    def _take_over_piece(self, old: OldTable, begin: int, end: int, fact: str) -> None:
        def take(cursor: duckdb.DuckDBPyConnection) -> None:
            copy_piece(cursor, old, old.set_aside, begin, end)
            self.set_meta(fact, str(end))

        self.transact(take)

    def _checkpoint_with_more_memory(self) -> None:
        """Checkpoint, while nobody else uses the database: where that fails for lack of memory, again with more."""
        while True:
            try:
                return self.checkpoint()
            except duckdb.Error as error:
                can_have_more = is_lack_of_memory(error) and self._checkpoint_factor < MOST_CHECKPOINT_FACTOR
                if not has_failed(error) or not can_have_more:
                    raise
                self.reopen(lambda: None, logs=True, has_failed=True)

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file or, for a database in memory, free the memory of deleted rows.

        Raises duckdb.TransactionException where a transaction is in the way, OSError where there is no room: not even
        tried, because one that fails for it ends all queries. Where it fails for lack of memory, the next one may take
        twice as much. Nobody reads meanwhile: a query beside it may miss rows (2.0.0).
        """
        if self._path is not None:
            require_room(self._path.parent, self.wal_bytes() + self._unlogged_bytes + CHECKPOINT_ROOM)
        failpoints.hit("checkpoint_begun")
        with self._readers.all(), self.checkpoints.measured():
            self._checkpoint()
        failpoints.hit("checkpoint_done")

    def _checkpoint(self) -> None:
        self._set_limit(self._checkpoint_factor * self._limit())
        try:
            self.cursor().execute("CHECKPOINT")
        except duckdb.Error as error:
            if has_failed(error) and is_lack_of_memory(error):
                self._checkpoint_factor = min(2 * self._checkpoint_factor, MOST_CHECKPOINT_FACTOR)
            raise
        finally:
            # One that has failed has no limit any more; one in memory may be beyond it for a while.
            with suppress(duckdb.Error):
                self._set_limit(self._limit())

    def wal_bytes(self) -> int:
        """The size of the write-ahead log."""
        return 0 if self._path is None else _size(self._path.with_name(FILE_NAME + ".wal"))

    def bytes(self) -> int:
        """The size on disk."""
        return 0 if self._path is None else _size(self._path) + self.wal_bytes()

    def close(self) -> None:
        """Close all cursors."""
        for cursor in self._cursors:
            cursor.close()
        self._cursors.clear()
        self._connection.close()


@contextmanager
def answering(on_damage: Callable[[duckdb.Error], object]) -> Iterator[None]:
    """Raise what a caller can be told where DuckDB fails: MemoryExhausted, StoreFailed where nothing works any more,
    StoreDamaged, after `on_damage` and with a line in the log that says where the damage is.
    """
    try:
        yield
    except duckdb.Error as error:
        if has_failed(error) and not is_damage(error):
            raise StoreFailed from error
        if is_lack_of_memory(error):
            raise MemoryExhausted from error
        if not is_damage(error):
            raise
        reason = one_line(error)
        logger.error(  # noqa: TRY400
            "the database is damaged: the next start makes it good where the journal holds all; run `remora doctor`",
            extra={"reason": reason},
        )
        on_damage(error)
        raise StoreDamaged from error


def _migrations() -> list[tuple[int, str]]:
    folder = resources.files("remora_server.storage.database") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [(int(file.name.split("_")[0]), file.read_text("utf-8")) for file in files]


def table_names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The tables of a database, in order."""
    found = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT temporary ORDER BY 1"
    ).fetchall()
    return [name for (name,) in found]


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
