"""Inspects a store without changing it: the directory, every row of the database, every record of the journal."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
from msgspec import Struct, field

from remora_server import _native
from remora_server.domain.errors import one_line
from remora_server.storage.database import taking_over
from remora_server.storage.database.database import DAMAGE_MARK, FILE_NAME, KIND_FACT, SCHEMA_VERSION, table_names
from remora_server.storage.database.directory import (
    FOREIGN,
    FORMAT_VERSION,
    FormatDamaged,
    contents,
    is_foreign,
    is_unfinished,
    read_format,
)
from remora_server.storage.database.tables import incomplete, shape, without_collection, without_parent
from remora_server.storage.recovery.mending import WAL_NAME, holds_all, linked_file, read_only, read_table
from remora_server.storage.schema.kinds import KINDS, VECTOR_COLLECTIONS, VECTORS, Kind, Kinds, Table, all_tables


class Finding(Struct, frozen=True):
    """Something that is wrong, and what to do about it."""

    part: str
    what: str
    remedy: str


class DatabaseReport(Struct, frozen=True):
    """What the database holds. `rows` is by table; None if it could not be opened."""

    schema_version: int = 0
    applied_revision: int = 0
    bytes: int = 0
    wal_bytes: int = 0
    rows: dict[str, int] | None = None


class JournalReport(Struct, frozen=True):
    """What the journal holds."""

    segments: int = 0
    records: int = 0
    bytes: int = 0
    first_revision: int = 0
    last_revision: int = 0


class StoreReport(Struct):
    """A store that was looked over. `served`: a process has it open, so that nothing but its id was looked at.

    `begun`: it was open once, so that its database and its journal were there.
    """

    directory: Path
    kinds: Kinds
    present: bool = False
    served: bool = False
    store_id: str = ""
    format_version: int = 0
    begun: bool = False
    database: DatabaseReport = field(default_factory=DatabaseReport)
    journal: JournalReport = field(default_factory=JournalReport)
    findings: list[Finding] = field(default_factory=list)

    @property
    def repair(self) -> str:
        """The remedy of what no start mends."""
        return (
            "restore a backup (`remora restore`), or save what can be saved: "
            f"`remora repair --data {self.directory} --to NEWDIR`"
        )

    def find(self, part: str, what: str, remedy: str | None = None) -> None:
        """Note a problem; the default remedy is repair."""
        self.findings.append(Finding(part, what, remedy or self.repair))


NEXT_START = "nothing: the next start of `remora serve` makes it good from the journal"


def inspect_store(directory: Path, kinds: Kinds = KINDS) -> StoreReport:
    """Look a store over: reads all of it. The store cannot be opened meanwhile. `kinds` are those that are known."""
    report = StoreReport(directory, kinds)
    try:
        if not _holds_something(directory):
            return report
        if is_foreign(directory):
            report.find("store", f"{directory} {FOREIGN}", "name the data directory (--data)")
            return report
        report.present = True
        _inspect_unless_served(report)
    except OSError as error:
        what = f"{error.filename or directory} cannot be read: {error.strerror}"
        report.find("store", what, "name a directory (--data), and ask as the user who serves it")
    return report


def _holds_something(directory: Path) -> bool:
    try:
        return bool(contents(directory))
    except FileNotFoundError:
        return False


def _inspect_unless_served(report: StoreReport) -> None:
    with locked(report.directory) as is_free:
        if is_free:
            _inspect(report)
        else:
            report.served = True
            _inspect_format(report)


@contextmanager
def locked(directory: Path) -> Iterator[bool]:
    """Keep processes from serving the directory; False if one does. Creates nothing."""
    try:
        lock = os.open(directory / "LOCK", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(lock)


def require_readable(directory: Path) -> None:
    """Raise PermissionError if a part of a store is not this user's to read, which must not be taken for damage."""
    journal = directory / "journal"
    files = [directory / name for name in ("FORMAT", FILE_NAME, WAL_NAME)]
    if journal.is_dir():
        _require_right(journal, os.R_OK | os.X_OK)
        files += journal.iterdir()
    for file in files:
        if file.exists():
            _require_right(file, os.R_OK)


def _require_right(path: Path, right: int) -> None:
    if not os.access(path, right):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _inspect(report: StoreReport) -> None:
    require_readable(report.directory)
    if is_unfinished(report.directory):
        report.find("store", "a restore or a repair into it was interrupted", "run it again: it clears what is there")
        return
    _inspect_format(report)
    if report.format_version > FORMAT_VERSION:
        return
    store_id = bytes.fromhex(report.store_id) if report.store_id else None
    unusable = _inspect_database(report)
    _inspect_journal(report, store_id, unusable)


def _inspect_format(report: StoreReport) -> None:
    try:
        found = read_format(report.directory)
    except FileNotFoundError:
        report.find("format", "the file FORMAT is missing")
        return
    except (OSError, FormatDamaged):
        report.find("format", "the file FORMAT is damaged")
        return
    report.format_version, report.store_id, report.begun = found.format_version, found.store_id, found.begun
    if report.format_version > FORMAT_VERSION:
        what = f"the directory has format {report.format_version}; this version reads up to {FORMAT_VERSION}"
        report.find("format", what, "upgrade Remora")


def _inspect_database(report: StoreReport) -> str:
    """Why nothing of the database can be used; empty if it is known at least what was applied to it."""
    file, wal = report.directory / FILE_NAME, report.directory / WAL_NAME
    if not file.exists():
        return "it is missing"
    sizes = (file.stat().st_size, wal.stat().st_size if wal.exists() else 0)
    try:
        with read_only(file) as connection:
            _read_database(report, connection, sizes)
            return ""
    except duckdb.Error as error:
        what = f"it cannot be opened: {one_line(error)}"
    if wal.exists() and _inspect_without_log(report, what, sizes):
        return ""
    return what


def _inspect_without_log(report: StoreReport, what: str, sizes: tuple[int, int]) -> bool:
    """Look how far the database is by its file alone; False if that cannot be opened either."""
    try:
        with linked_file(report.directory) as link, read_only(link) as connection:
            report.database = DatabaseReport(0, int(_fact(connection, "applied_revision") or 0), *sizes)
            is_ours = _check_owner(report, connection)
    except (duckdb.Error, OSError):
        return False
    if is_ours:
        report.find("database", f"the write-ahead log is damaged: {what}", NEXT_START)
    return True


def _read_database(report: StoreReport, connection: duckdb.DuckDBPyConnection, sizes: tuple[int, int]) -> None:
    version, applied = int(_fact(connection, "schema_version") or 0), int(_fact(connection, "applied_revision") or 0)
    names = table_names(connection)
    rows = _read_tables(report, connection, names)
    report.database = DatabaseReport(version, applied, *sizes, rows)
    if version > SCHEMA_VERSION:
        report.find(
            "database", f"the schema has version {version}; this version reads up to {SCHEMA_VERSION}", "upgrade Remora"
        )
    _check_kinds(report, connection)
    _check_owner(report, connection)
    if len(rows) == len(names):
        _cross_check(report, connection, applied)


def _check_kinds(report: StoreReport, connection: duckdb.DuckDBPyConnection) -> None:
    """Find kinds of records that this version does not know."""
    known = {f"{KIND_FACT}{kind.number}": shape(kind) for kind in report.kinds}
    for key, kept in connection.execute("SELECT key, value FROM meta ORDER BY key").fetchall():
        if key.startswith(KIND_FACT) and known.get(key) != kept:
            report.find("database", f"it has records of the kind {kept}, which is not known", "upgrade Remora")


def _check_owner(report: StoreReport, connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database belongs to the store."""
    found = _fact(connection, "store_id")
    is_ours = not report.store_id or found in (None, report.store_id)
    if not is_ours:
        report.find("database", f"it belongs to store {found}, the directory to {report.store_id}")
    return is_ours


def _fact(connection: duckdb.DuckDBPyConnection, key: str) -> str | None:
    rows = connection.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchall()
    return rows[0][0] if rows else None


def _read_tables(report: StoreReport, connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> dict[str, int]:
    """The number of rows of each table that is readable in full."""
    rows = {}
    for table in names:
        try:
            rows[table] = read_table(connection, table)
        except duckdb.Error as error:
            remedy = NEXT_START if _is_mended_at_start(report) else None
            report.find("database", f"the table {table} cannot be read through: {one_line(error)}", remedy)
    return rows


def _is_mended_at_start(report: StoreReport) -> bool:
    """Whether the next start looks for damaged blocks, and the journal makes them good."""
    if not (report.directory / DAMAGE_MARK).exists():
        return False
    store_id = bytes.fromhex(report.store_id) if report.store_id else None
    try:
        return holds_all(_native.inspect_journal(report.directory / "journal", store_id=store_id, applied_revision=0))
    except _native.JournalError:
        return False


_CHECKS: Sequence[tuple[str, str]] = (
    (
        "conversations with another number of messages than their head says",
        """SELECT count(*) FROM heads LEFT JOIN
           (SELECT conversation_uid, count(*) AS messages FROM messages GROUP BY ALL) AS held
           ON held.conversation_uid = uid WHERE message_count <> coalesce(messages, 0)""",
    ),
    (
        "messages beyond the newest sequence of their conversation",
        "SELECT count(*) FROM messages JOIN heads ON uid = conversation_uid WHERE sequence > last_sequence",
    ),
    ("conversations without a head", "SELECT count(*) FROM conversations ANTI JOIN heads USING (uid)"),
    ("heads without a conversation", "SELECT count(*) FROM heads ANTI JOIN conversations USING (uid)"),
    (
        "messages without a conversation",
        "SELECT count(*) FROM messages ANTI JOIN conversations ON conversation_uid = uid",
    ),
    (
        "sequences of a conversation that two messages have",
        "SELECT count(*) FROM (SELECT 1 FROM messages GROUP BY conversation_uid, sequence HAVING count(*) > 1)",
    ),
    (
        "ids that two messages of a user have in one conversation",
        "SELECT count(*) FROM (SELECT 1 FROM messages GROUP BY conversation_uid, user_id, id HAVING count(*) > 1)",
    ),
    (
        "ids that two conversations of a tenant have",
        "SELECT count(*) FROM (SELECT 1 FROM conversations GROUP BY tenant_id, id HAVING count(*) > 1)",
    ),
    (
        "uids that two conversations have",
        "SELECT count(*) FROM (SELECT 1 FROM conversations GROUP BY uid HAVING count(*) > 1)",
    ),
    (
        "vectors of no message, or of another text of it",
        """SELECT count(*) FROM embeddings AS e ANTI JOIN messages AS m ON m.conversation_uid = e.conversation_uid
           AND m.sequence = e.sequence AND m.revision = e.message_revision""",
    ),
    ("vectors of another length than they say", 'SELECT count(*) FROM embeddings WHERE len("values") <> dimension'),
)
"""What must not be found in a database whose every block is whole: joins that have no rows, counts that differ."""


def _checks_of_revisions(tables: Iterable[Table]) -> Iterator[tuple[str, str]]:
    for table in tables:
        if table.revisions:
            query = f"SELECT count(*) FROM {table.name} WHERE revision > $applied"  # noqa: S608 - a table of ours
            yield f"rows of {table.name} of revisions that were not applied", query


def _checks_of_kind(kind: Kind, kinds: Sequence[Kind]) -> Iterator[tuple[str, str]]:
    name = kind.name
    yield (
        f"keys that two records of {name} have",
        f"""SELECT count(*) FROM (SELECT 1 FROM {name}
            GROUP BY tenant_id, conversation_uid, partition, key HAVING count(*) > 1)""",  # noqa: S608 - ours
    )
    if kind.of_conversation:
        yield (
            f"records of {name} without their conversation",
            f"SELECT count(*) FROM {name} ANTI JOIN conversations ON conversation_uid = uid",  # noqa: S608 - ours
        )
    if kind.parent:
        yield (
            f"records of {name} without their record of {kind.parent.name}",
            f"SELECT count(*) FROM {name} WHERE {without_parent(kind, kind.parent)}",  # noqa: S608 - ours
        )
    if kind is VECTORS and VECTOR_COLLECTIONS in kinds:
        yield (
            "vectors without their collection",
            f"SELECT count(*) FROM {name} WHERE {without_collection()}",  # noqa: S608 - ours
        )
    yield (
        f"records of {name} without parts of their bodies",
        f"SELECT count(*) FROM {name} WHERE {incomplete(kind)}",  # noqa: S608 - ours
    )


def _cross_check(report: StoreReport, connection: duckdb.DuckDBPyConnection, applied: int) -> None:
    present = set(report.database.rows or ())
    kinds = [kind for kind in report.kinds if kind.name in present]
    checks = [*_CHECKS, *_checks_of_revisions(table for table in all_tables(report.kinds) if table.name in present)]
    if report.database.schema_version >= taking_over.SCHEMA_VERSION:
        checks += [check for kind in kinds for check in _checks_of_kind(kind, kinds)]
    for what, query in checks:
        values = {"applied": applied} if "$applied" in query else None
        [(count,)] = connection.execute(query, values).fetchall()
        if count:
            report.find("database", f"{count} {what}")


def _inspect_journal(report: StoreReport, store_id: bytes | None, unusable: str) -> None:
    """Inspect the journal, and compare it with the database; `unusable` says why that cannot be read."""
    applied = 0 if unusable else report.database.applied_revision
    try:
        found = _native.inspect_journal(report.directory / "journal", store_id=store_id, applied_revision=applied)
    except _native.JournalError as error:
        report.find("journal", f"it cannot be read: {error}")
        if unusable:
            report.find("database", unusable)
        return
    report.journal = JournalReport(
        segments=len(found.segments),
        records=sum(segment.records for segment in found.segments),
        bytes=sum(segment.bytes for segment in found.segments),
        first_revision=found.first_revision,
        last_revision=found.last_revision,
    )
    for finding in found.findings:
        _find_in_journal(report, finding, is_reach_known=found.noted_published is not None)
    if report.begun and not (found.segments or found.findings):
        report.find("journal", "its segments are missing")
    if found.segments and found.noted_published is None:
        what = "cannot be read" if found.note_unreadable else "is missing"
        report.find("journal", f"the note of how far it came {what}", "nothing: the next start writes it anew")
    _compare(report, found, unusable)


def _find_in_journal(report: StoreReport, finding: _native.JournalFinding, *, is_reach_known: bool) -> None:
    acknowledged = "it was never acknowledged" if is_reach_known else "whether it was acknowledged is not known"
    remedy = f"nothing: the next start cuts it off and keeps it aside; {acknowledged}"
    report.find("journal", told(finding), remedy if finding.torn_end else None)


def told(finding: _native.JournalFinding) -> str:
    """What is wrong with a journal, led by the segment and offset where it is in one."""
    where = f"{finding.segment} at byte {finding.offset}: " if finding.segment else ""
    what = f"a torn end of {finding.bytes} bytes ({finding.reason})" if finding.torn_end else finding.reason
    return where + what


def _compare(report: StoreReport, found: _native.JournalInspection, unusable: str) -> None:
    """What the database lacks: a journal that begins at the first revision can rebuild all of it."""
    applied, noted = report.database.applied_revision, found.noted_applied or 0
    if unusable:
        report.find("database", unusable, NEXT_START if holds_all(found) else None)
    elif noted > applied and not found.refused:
        lost = f"revisions {applied + 1} to {noted} were applied and are lost from it"
        report.find("database", f"{lost}: it is an older copy, or its write-ahead log is gone or damaged", NEXT_START)
