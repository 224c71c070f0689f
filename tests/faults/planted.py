"""Faults that the check of kills must find: each breaks one promise of the server that runs it."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import duckdb
from msgspec.structs import replace
from tests.storage.written import OF_CALLERS

from remora_server.domain.calls import Outcome, Write
from remora_server.failpoints import JOURNAL_VARIABLE
from remora_server.storage.commit import commits
from remora_server.storage.commit.batch import Batch
from remora_server.storage.commit.changes import Change
from remora_server.storage.commit.commits import Accepted, Commits
from remora_server.storage.commit.request_ids import RequestIds
from remora_server.storage.schema.kinds import CHECKPOINT_PARTS, STATIC_FACTS, USER_MEMORIES, Kind
from remora_server.storage.v1 import record_pb2

EVERY = 10
"""Records that are spoiled: one of so many."""
SELDOM = (CHECKPOINT_PARTS, USER_MEMORIES)
"""Kinds that are seldom written and read, or have one record for each user: its next version hides that it was lost."""


def acknowledge_before_it_is_written() -> None:
    """Replies do not wait for the journal, whose writes take their time."""
    os.environ[JOURNAL_VARIABLE] = "before_write=delay:40"

    def finish(self: Commits, write: Write, accepted: Accepted) -> Outcome:
        return replace(accepted.outcome, revision=accepted.revision)

    Commits.finish = finish  # type: ignore[method-assign]


def write_in_halves() -> None:
    """A record lacks a message, and the process dies when it is written, before the rest is."""
    whole, finish, appends = commits._record, Commits.finish, itertools.count()
    halves: list[record_pb2.Record] = []

    def half(write: Write, now: int, changes: Iterable[Change], outcome: Outcome, user_id: str) -> record_pb2.Record:
        record = whole(write, now, changes, outcome, user_id)
        puts = [change for change in record.changes if change.HasField("put_message")]
        if len(puts) > 1 and next(appends) >= EVERY:
            record.changes.remove(puts[-1])
            halves.append(record)
        return record

    def die(self: Commits, write: Write, accepted: Accepted) -> Outcome:
        outcome = finish(self, write, accepted)
        if halves:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

    commits._record = half
    Commits.finish = die  # type: ignore[method-assign]


def _spoil_records(spoil: Callable[[record_pb2.Record], None], every: int = EVERY) -> None:
    """What is applied of some records is not what the journal has."""
    add = Batch.add

    def spoiled(self: Batch, revision: int, payload: bytes) -> None:
        record = record_pb2.Record.FromString(payload)
        if revision % every == 0:
            spoil(record)
        add(self, revision, record.SerializeToString())

    Batch.add = spoiled  # type: ignore[method-assign]


def lose_records() -> None:
    """The database does not get some records."""
    _spoil_records(lambda record: record.ClearField("changes"))


def reorder_messages() -> None:
    """The database has messages of one append in another order."""

    def swap(record: record_pb2.Record) -> None:
        puts = [change.put_message for change in record.changes if change.HasField("put_message")]
        if puts:
            puts[0].body, puts[-1].body = puts[-1].body, puts[0].body
            puts[0].id, puts[-1].id = puts[-1].id, puts[0].id

    _spoil_records(swap)


def miscount_messages() -> None:
    """The database has heads that count a message too many."""

    def miscount(record: record_pb2.Record) -> None:
        for change in record.changes:
            if change.HasField("put_head"):
                change.put_head.message_count += 1

    _spoil_records(miscount)


def lose_vectors() -> None:
    """The database does not get the vectors of some messages."""

    def lose(record: record_pb2.Record) -> None:
        for change in record.changes:
            if change.HasField("put_message"):
                change.put_message.ClearField("embedding_model")

    _spoil_records(lose)


def lose_records_of(kind: Kind) -> None:
    """The database does not get the records of a kind: some of them, or all of a SELDOM one."""

    def lose(record: record_pb2.Record) -> None:
        kept = [change for change in record.changes if change.put_record.kind != kind.number]
        record.ClearField("changes")
        record.changes.extend(kept)

    _spoil_records(lose, every=1 if kind in SELDOM else EVERY)


def apply_twice() -> None:
    """Some messages are in the database twice."""
    write = Batch.write

    def twice(self: Batch, cursor: duckdb.DuckDBPyConnection) -> None:
        [(before,)] = cursor.execute("SELECT coalesce(max(revision), 0) FROM messages").fetchall()
        write(self, cursor)
        cursor.execute("INSERT INTO messages SELECT * FROM messages WHERE revision > ?", [before])

    Batch.write = twice  # type: ignore[method-assign]


def forget_applied_revision() -> None:
    """What was applied is applied again after a kill, because the database does not know how far it is."""
    write = Batch.write

    def forgetful(self: Batch, cursor: duckdb.DuckDBPyConnection) -> None:
        write(self, cursor)
        cursor.execute("UPDATE meta SET value = '0' WHERE key = 'applied_revision'")

    Batch.write = forgetful  # type: ignore[method-assign]


def forget_requests() -> None:
    """A restarted server does not know what it was asked before."""

    def no_pages(self: RequestIds) -> Iterator[list[tuple[str, str, bytes, int, int]]]:
        return iter(())

    def not_stored(self: RequestIds, write: Write) -> None:
        return None

    RequestIds._pages = no_pages  # type: ignore[method-assign]
    RequestIds._find_stored = not_stored  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        acknowledge_before_it_is_written,
        write_in_halves,
        lose_records,
        reorder_messages,
        miscount_messages,
        lose_vectors,
        apply_twice,
        forget_applied_revision,
        forget_requests,
    )
} | {f"lose_{kind.name}": partial(lose_records_of, kind) for kind in OF_CALLERS if kind is not STATIC_FACTS}
"""Static facts are one record, which all writers set alike: the journal's end still has it when a check looks."""
