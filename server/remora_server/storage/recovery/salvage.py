"""Copies what can be read of a damaged store into a new directory. The old one is only read.

What the database still holds comes first, piece by piece where a table is damaged; then every record of the journal
that can be read. Records behind a gap are applied too: a record holds everything that it needs, and what was written
after the gap is worth as much as what was written before it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
from msgspec import Struct

from remora_server import _native
from remora_server.domain.errors import RemoraError, one_line
from remora_server.storage.commit.batch import Batch, NotApplicable
from remora_server.storage.database.database import FILE_NAME, Database, is_damage
from remora_server.storage.database.directory import (
    FORMAT_VERSION,
    Format,
    FormatDamaged,
    NewDirectory,
    is_unfinished,
    read_format,
    sync_file,
)
from remora_server.storage.database.disk_space import is_lack_of_space
from remora_server.storage.database.lacks import lack_of
from remora_server.storage.database.taking_over import OLD_TABLES, OldTable, copy_piece, end_of
from remora_server.storage.recovery.damaged_database import DamagedDatabase, look
from remora_server.storage.recovery.inspection import inspect_store, locked, require_readable, told
from remora_server.storage.recovery.missing_columns import Fillings
from remora_server.storage.recovery.repair_report import RepairReport
from remora_server.storage.recovery.restoring import begin_journal
from remora_server.storage.recovery.tidying import Tidying
from remora_server.storage.schema.kinds import KINDS, Kinds, all_tables
from remora_server.storage.v1 import record_pb2

DATABASE_BYTES = 512 << 20
BATCH_BYTES = 4 << 20
_END = 1 << 62
"""A rowid behind all others."""
VECTOR_ROWS = 2048
"""DuckDB reads rows in units of this size: a smaller range is not tried."""
CONVERTED_ROWS = 256
"""Rows of older versions that are converted at once."""


class RepairError(Exception):
    """Nothing was saved; the message says why and what to do."""


def repair(source: Path, target: Path, kinds: Kinds = KINDS) -> RepairReport:
    """Save what can be saved of the store in `source` into `target`, which is new or empty. `kinds` are those that are
    known. Raises RepairError.
    """
    if source.resolve() in (target.resolve(), *target.resolve().parents):
        raise RepairError(f"{target} lies in {source}: name a directory outside of it")
    with locked(source) as is_free:
        if not is_free:
            raise RepairError(f"a process serves {source}: stop it first")
        _require_readable(source)
        before = _digest(source)
        try:
            report = _Repair(source, target, kinds).run()
        except (RemoraError, NotApplicable, duckdb.Error, OSError, _native.JournalError) as error:
            raise _not_saved(target, error) from error
        if _digest(source) != before:
            raise RepairError(f"{source} changed meanwhile: make sure that nothing writes there, and repair again")
    for finding in inspect_store(target, kinds).findings:
        report.notes.append(f"the new store is not right: {finding.part}: {finding.what}")
    return report


def _require_readable(source: Path) -> None:
    try:
        require_readable(source)
    except PermissionError as error:
        what = f"{error.filename} cannot be read: {error.strerror}"
        raise RepairError(f"{what}: repair as the user who serves the store") from error


def _digest(directory: Path) -> str:
    """Of all files and their names."""
    digest = hashlib.sha256()
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(directory)).encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


class _Repair:
    """One repair. The steps follow each other in `run`."""

    def __init__(self, source: Path, target: Path, kinds: Kinds) -> None:
        self._source = source
        self._kinds = kinds
        self._target = target
        self._report = RepairReport(source, target)
        self._format = self._read_format()
        self._old = look(source)
        self._journal_notes: list[str] = []
        self._names: dict[int, tuple[str, str]] = {}
        self._sequences: dict[int, int] = {}
        self._is_whole = False

    def run(self) -> RepairReport:
        if is_unfinished(self._source):
            raise RepairError(f"a restore or a repair into {self._source} was interrupted: run that again")
        self._report.notes += self._old.notes
        self._require_known_versions()
        owner = self._owner()
        self._disown(owner)
        found = self._inspect(owner, self._old.applied or 0)
        store_id = self._require_something(found, owner)
        noted = found.noted_applied if found else None
        with NewDirectory(self._target, store_id) as begun:
            revision = self._fill(store_id, noted or 0)
            begin_journal(begun.journal, store_id, revision)
            begun.finish()
        return self._report

    def _fill(self, store_id: bytes, noted: int) -> int:
        """Make the new database; the revision that it has reached. `noted`: what was applied by the journal's note."""
        Database(self._target, DATABASE_BYTES, self._kinds).close()
        self._copy_database()
        database = Database(self._target, DATABASE_BYTES, self._kinds)
        try:
            revision = self._replay(database, store_id, *self._applied(database, noted))
            database.transact(Tidying(self._report, self._kinds, self._names, self._sequences).run)
            self._settle(database, store_id, revision)
        finally:
            database.close()
        sync_file(self._target / FILE_NAME)
        return revision

    def _read_format(self) -> Format | None:
        """What FORMAT says; None if it is missing or damaged."""
        with suppress(OSError, FormatDamaged):
            return read_format(self._source)
        return None

    def _require_known_versions(self) -> None:
        """Raise RepairError if a newer version wrote the store: what this one does not know would be left out."""
        if self._format and self._format.format_version > FORMAT_VERSION:
            raise RepairError(f"{self._source} was written by a newer version of Remora: upgrade Remora")
        newer = self._old.of_newer_version(self._kinds)
        if newer is not None:
            raise RepairError(f"{self._source} {newer}: upgrade Remora")

    def _owner(self) -> bytes | None:
        """The store's id by the directory, else by the journal, else by the database."""
        if self._format:
            return bytes.fromhex(self._format.store_id)
        with suppress(_native.JournalError):
            found = _native.inspect_journal(self._source / "journal", store_id=None, applied_revision=0)
            if found.store_id:
                return found.store_id
        known = self._old.store_id
        return bytes.fromhex(known) if known else None

    def _disown(self, owner: bytes | None) -> None:
        """Use nothing of a database that belongs to another store."""
        known = self._old.store_id
        if owner and known and known != owner.hex():
            self._report.notes.append(f"the database belongs to store {known}, not to {owner.hex()}: it is not used")
            self._old = DamagedDatabase(self._old.readable)

    def _copy_database(self) -> None:
        if not self._old.tables():
            return
        with self._old.readable() as file, _connected(self._target / FILE_NAME) as connection:
            connection.execute(f"ATTACH {_literal(str(file))} AS old (READ_ONLY)")
            fillings = Fillings(connection, self._kinds)
            for table in self._found_tables():
                self._copy_table(connection, table, fillings)
            if self._old.facts is None and "meta" in self._old.tables():
                self._report.lost_rows["meta"] = _FoundTable("meta").count(connection, 0, _END)
        self._is_whole = self._old.applied is not None and not (self._report.lost_rows or self._report.filled)

    def _found_tables(self) -> list[_FoundTable]:
        """What there is to copy: what the new database has, too, and what older versions had in its place."""
        names, facts = self._old.tables(), self._old.facts or {}
        replaced = {old.name if self._old.is_old else old.set_aside: old for old in OLD_TABLES}
        plain = [table.name for table in all_tables(self._kinds) if table.name in names - set(replaced) - {"meta"}]
        taken_over = {old: int(facts.get(old.progress, 0)) for old in replaced.values()}
        return [
            *(_FoundTable(name) for name in plain),
            *(_FoundTable(name, old, taken_over[old]) for name, old in replaced.items() if name in names),
        ]

    def _copy_table(self, connection: duckdb.DuckDBPyConnection, table: _FoundTable, fillings: Fillings) -> None:
        """Copy the rows that can be read, or enough of them, and count the others."""
        try:
            pieces = table.pieces(end_of(connection, f"old.{table.name}"))
        except duckdb.Error as error:
            if not is_damage(error):
                raise _not_copied(table.name, error) from error
            self._report.lost_rows[table.name] = 0
            return
        lost, is_damaged = 0, False
        while pieces:
            begin, end = pieces.pop()
            try:
                table.copy(connection, begin, end)
            except duckdb.Error as error:
                is_damaged = is_damaged or is_damage(error)
                if lack_of(error) is not None or not is_damaged:
                    raise _not_copied(table.name, error) from error
                halves = table.halves(begin, end)
                pieces += halves
                lost += 0 if halves else self._copy_columns(connection, table, fillings, begin, end)
        if lost:
            self._report.lost_rows[table.name] = lost

    def _copy_columns(
        self, connection: duckdb.DuckDBPyConnection, table: _FoundTable, fillings: Fillings, begin: int, end: int
    ) -> int:
        """Copy the columns of a piece that can be read; how many of its rows are lost."""
        try:
            rows = table.count(connection, begin, end)
            kept, columns = (0, []) if table.old else table.copy_columns(connection, fillings, begin, end)
        except duckdb.Error as error:
            raise _not_copied(table.name, error) from error
        for column in columns if kept else ():
            name = f"{table.name}.{column}"
            self._report.filled[name] = self._report.filled.get(name, 0) + kept
        return rows - kept

    def _inspect(self, owner: bytes | None, applied: int) -> _native.JournalInspection | None:
        """What the journal holds, against what is applied; None if it cannot be read."""
        self._journal_notes.clear()
        try:
            found = _native.inspect_journal(self._source / "journal", store_id=owner, applied_revision=applied)
        except _native.JournalError as error:
            self._journal_notes.append(f"the journal cannot be read: {error}")
            return None
        self._journal_notes += [f"journal: {told(finding)}" for finding in found.findings]
        if found.noted_published is None:
            what = "cannot be read" if found.note_unreadable else "is missing"
            self._journal_notes.append(f"journal: the note of how far it came {what}")
        return found

    def _require_something(self, found: _native.JournalInspection | None, owner: bytes | None) -> bytes:
        """The id of the store, of which there is a database or a journal. Raises RepairError if there is neither."""
        records = sum(segment.records for segment in found.segments) if found else 0
        is_journal = found is not None and bool(found.segments) and (records > 0 or not found.refused)
        if not self._old.tables() and (owner is None or not is_journal):
            why = "".join(f"; {note}" for note in (*self._report.notes, *self._journal_notes))
            raise RepairError(f"nothing of the store in {self._source} can be read: restore a backup{why}")
        if owner is None:
            self._report.notes.append("nothing says which store this is: what is saved gets a new store id")
        return owner or uuid.uuid4().bytes

    def _applied(self, database: Database, noted: int) -> tuple[int, int]:
        """The last revision that was applied, and the last that was for certain."""
        known = self._old.applied
        if known is not None:
            return known, known
        tables = [table.name for table in all_tables(self._kinds) if table.revisions]
        greatest = " UNION ALL ".join(f"SELECT max(revision) AS revision FROM {name}" for name in tables)  # noqa: S608
        [(held,)] = database.rows(f"SELECT coalesce(max(revision), 0) FROM ({greatest})")  # noqa: S608 - ours
        applied = max(held, noted)
        what = f"how far it was applied is not known: up to revision {applied} by its rows and the journal's note"
        self._report.notes.append(f"the database: {what}")
        return applied, held

    def _replay(self, database: Database, store_id: bytes, applied: int, certain: int) -> int:
        """Apply what the journal holds; the revision that the store has reached."""
        found = self._inspect(store_id, applied)
        self._report.notes += self._journal_notes
        if found is None:
            self._report.lost_after = applied
            return applied
        after = applied if self._is_whole else self._resume_after(database, found, applied, certain)
        replay = _Replay(database, after, self._names, self._sequences)
        _native.salvage_journal(
            self._source / "journal", replay.take, store_id=found.store_id, applied_revision=applied
        )
        replay.flush()
        known = applied if self._is_whole else min(after, applied)
        self._report.lost_revisions = [(max(first, known + 1), last) for first, last in found.missing if last > known]
        reached = max(applied, replay.revision, found.last_revision, found.noted_published or 0)
        if found.noted_published is None:
            self._report.lost_after = reached
        return reached

    def _resume_after(self, database: Database, found: _native.JournalInspection, applied: int, certain: int) -> int:
        """Where tables are damaged, what was applied is applied again, as far back as the records have no gap."""
        first = max([found.first_revision, *(last + 1 for _, last in found.missing if last <= applied)])
        if first > applied or any(one <= applied <= last for one, last in found.missing):
            return certain

        def forget(cursor: duckdb.DuckDBPyConnection) -> None:
            for table in ("messages", "requests", *(kind.name for kind in self._kinds)):
                cursor.execute(f"DELETE FROM {table} WHERE revision >= ?", [first])  # noqa: S608 - ours

        database.transact(forget)
        if first == 1:
            self._report.lost_rows.clear()
            self._report.filled.clear()
        return first - 1

    def _settle(self, database: Database, store_id: bytes, revision: int) -> None:
        """What is left: the store's facts, and what it holds."""
        facts = (self._old.facts or {}) | {"store_id": store_id.hex(), "applied_revision": str(revision)}
        for key, value in facts.items():
            if key != "schema_version" and key not in {old.progress for old in OLD_TABLES}:
                database.set_meta(key, value)
        database.checkpoint()
        names = [table.name for table in all_tables(self._kinds) if table.name != "meta"]
        self._report.rows = {name: database.rows(f"SELECT count(*) FROM {name}")[0][0] for name in names}  # noqa: S608
        self._report.store_id, self._report.revision = store_id.hex(), revision


class _FoundTable(Struct, frozen=True):
    """A table of the damaged database. `old` says how that of an older version is converted; its rows before the rowid
    `begin` were taken over before that.
    """

    name: str
    old: OldTable | None = None
    begin: int = 0

    def pieces(self, end: int) -> list[tuple[int, int]]:
        """What is copied at once, by rowids, the first piece last. What must be converted is in memory meanwhile."""
        if self.old is None:
            return [(0, end)]
        begins = range(self.begin, end, CONVERTED_ROWS)
        return [(begin, min(begin + CONVERTED_ROWS, end)) for begin in reversed(begins)]

    @staticmethod
    def halves(begin: int, end: int) -> list[tuple[int, int]]:
        """What of a piece may be readable by itself, the first half last."""
        middle = (begin + end) // 2 // VECTOR_ROWS * VECTOR_ROWS
        return [(middle, end), (begin, middle)] if begin < middle < end else []

    def copy(self, connection: duckdb.DuckDBPyConnection, begin: int, end: int) -> None:
        """Copy a piece, or raise duckdb.Error with nothing of it copied."""
        if self.old is None:
            columns = _quoted(_shared_columns(connection, self.name))
            connection.execute(f"INSERT INTO {self.name} BY NAME SELECT {columns} FROM {self._place(begin, end)}")  # noqa: S608
        else:
            copy_piece(connection, self.old, f"old.{self.name}", begin, end)

    def copy_columns(
        self, connection: duckdb.DuckDBPyConnection, fillings: Fillings, begin: int, end: int
    ) -> tuple[int, list[str]]:
        """Copy a piece without the columns that cannot be read: how many rows, and the columns that were filled."""
        return fillings.copy(self.name, _shared_columns(connection, self.name), self._place(begin, end))

    def count(self, connection: duckdb.DuckDBPyConnection, begin: int, end: int) -> int:
        """How many rows a piece has."""
        [(count,)] = connection.execute(f"SELECT count(*) FROM {self._place(begin, end)}").fetchall()  # noqa: S608
        return int(count)

    def _place(self, begin: int, end: int) -> str:
        return f"old.{self.name} WHERE rowid >= {begin} AND rowid < {end}"


def _shared_columns(connection: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """The columns of a table that both databases have; an older version may have had others."""
    named = "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name IN ('old', current_database())"
    found = Counter(connection.execute(named).fetchall())
    return [column for (name, column), count in found.items() if name == table and count == 2]


def _quoted(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


class _Replay:
    """Takes records in the order of revisions and applies them in batches."""

    def __init__(
        self, database: Database, after: int, names: dict[int, tuple[str, str]], sequences: dict[int, int]
    ) -> None:
        self._database = database
        self._names, self._sequences = names, sequences
        self._batch, self._bytes = Batch(self._database.kinds), 0
        self.revision = after

    def take(self, revision: int, payload: bytes) -> None:
        """Apply a record, unless it was."""
        record = record_pb2.Record.FromString(payload)
        self._learn_heads(record, revision)
        if revision <= self.revision:
            return
        self._batch.add(revision, payload)
        self.revision = revision
        self._bytes += len(payload)
        if self._bytes > BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what was taken."""
        if self._bytes:
            self._database.transact(self._batch.write)
            self._batch, self._bytes = Batch(self._database.kinds), 0

    def _learn_heads(self, record: record_pb2.Record, revision: int) -> None:
        for change in record.changes:
            if change.HasField("put_head"):
                head = change.put_head
                uid = head.conversation_uid or revision
                self._names[uid] = (record.tenant_id, head.conversation_id)
                self._sequences[uid] = max(head.last_sequence, self._sequences.get(uid, 0))


def _not_saved(target: Path, error: Exception) -> RepairError:
    cause = error.__cause__ if isinstance(error, RemoraError) and error.__cause__ else error
    return RepairError(f"nothing was saved in {target}: {_remedy(cause)}{one_line(cause)}")


def _not_copied(table: str, error: duckdb.Error) -> RepairError:
    return RepairError(f"{table} cannot be copied: {_remedy(error)}{one_line(error)}")


def _remedy(error: BaseException) -> str:
    return "make room, or name a directory on another disk: " if is_lack_of_space(error) else ""


@contextmanager
def _connected(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(str(file), config={"threads": 1, "memory_limit": f"{DATABASE_BYTES}B"})
    try:
        yield connection
    finally:
        connection.close()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
