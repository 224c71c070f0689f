"""Records of declared kinds in a store: what is read of the database for them, and what a declaration alone brings."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pytest
from msgspec.structs import replace
from tests.patience import PATIENCE, eventually
from tests.storage.declared import DRAFTS, FAMILY, ITEMS, LEASES, LINES, NOTES, PROFILES, WITH_ITEMS, Item
from tests.storage.opening import READ, WRITE, open_store

from remora.v1 import step_pb2, transfer_service_pb2, working_memory_pb2
from remora_server.domain.calls import Outcome, Read
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import DeadlineExceeded, Overloaded, RemoraError, StoreDamaged, StoreFailed, StoreFull
from remora_server.domain.steps import StepDraft, StepQuery
from remora_server.domain.transfers import ExportQuery
from remora_server.domain.uploads import PART_BYTES, UNNAMED_SECONDS
from remora_server.domain.working_memory import MarkdownEdit, Mode, UserMemory
from remora_server.storage.commit.applier import Applier
from remora_server.storage.database.database import Database
from remora_server.storage.database.tables import incomplete
from remora_server.storage.local_store import LocalStore
from remora_server.storage.records.expiry import JOURNAL_SECONDS, SWEPT_AT_ONCE
from remora_server.storage.records.queries import Condition, RecordsQuery
from remora_server.storage.records.reader import Partition, PartitionQuery
from remora_server.storage.records.records import ABSENT, Move, Put, Remove, RemovePartitions
from remora_server.storage.records.refusals import BodyTooLong, RecordNotFound, RevisionMismatch, UploadNamed
from remora_server.storage.records.uploads import Upload, Uploaded
from remora_server.storage.schema.kinds import (
    BODY_PARTS,
    CONVERSATION_BODY_PARTS,
    EXPORTED_BODY_BYTES,
    KINDS,
    Kinds,
)
from remora_server.storage.v1 import record_pb2

NAMESPACE = ("agents", "facts")
SECOND = 1_000_000
PLACE = Partition(ITEMS, 0, ITEMS.encode_partition(NAMESPACE))
IN_THE_PAST = 1.0
"""A deadline that is over: what would wait, or ask the database, is refused."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    yield opened
    opened.close()


def item(item_id: str, number: int = 0, content: bytes = b"", **fields: Any) -> Any:  # noqa: ANN401 - an Item
    return Item(**{"namespace": NAMESPACE, "id": item_id, "number": number, "content": content, **fields})


def put(store: LocalStore, *items: Any, expected: int | None = None) -> int:  # noqa: ANN401 - Items
    return store.records.write(WRITE, [Put(ITEMS, 0, each, expected=expected) for each in items]).revision


def read(store: LocalStore, item_id: str) -> Any:  # noqa: ANN401 - an Item or None
    found, _ = store.records.get(READ, PLACE, ITEMS.encode_key(item_id))
    return None if found is None else Item.FromString(found.body)


def ids(records: Any) -> list[str]:  # noqa: ANN401 - a page of records
    return [Item.FromString(record.body).id for record in records]


@contextmanager
def counted() -> Iterator[list[str]]:
    """The queries that the database is asked meanwhile."""
    asked: list[str] = []
    rows = Database.rows

    def counting(self: Database, sql: str, parameters: object = None) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return rows(self, sql, parameters)

    with patch.object(Database, "rows", counting):
        yield asked


@contextmanager
def nothing_applied() -> Iterator[None]:
    """The applier stands still: who waits for it waits without end."""
    with patch.object(Applier, "_work", lambda self, *, at_once: None):
        yield


def reopened(store: LocalStore, directory: Path, **options: Any) -> LocalStore:  # noqa: ANN401 - of open_store
    store.close()
    return open_store(directory, **{"kinds": WITH_ITEMS, **options})


def test_what_was_written_is_read_while_nothing_is_applied(tmp_path: Path) -> None:
    with nothing_applied():
        store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
        hurried = Read(READ.tenant_id, deadline=IN_THE_PAST)
        store.conversations.create(WRITE, ConversationDraft(id="c", user_id="sarah"))
        body = step_pb2.Step(id="s", step_index=3).SerializeToString()
        store.steps.save(WRITE, [StepDraft("s", "c", "sarah", "o", 3, 1, body)])
        store.working_memories.set(WRITE, UserMemory("sarah"), b"remembered")
        put(store, item("i", 7))

        assert b"s" in store.steps.list(hurried, StepQuery("c")).encoded
        assert store.working_memories.get(hurried, UserMemory("sarah")).content == b"remembered"
        assert store.records.get(hurried, PLACE, ITEMS.encode_key("i"))[0] is not None
        assert store.working_memories.delete(WRITE, UserMemory("sarah")).deleted
        assert store.working_memories.get(hurried, UserMemory("sarah")).content is None
        assert store.applier.applied == 0
    store.close()


def test_the_steps_of_a_new_conversation_need_nothing_of_the_database(store: LocalStore) -> None:
    with counted() as asked:
        store.conversations.create(WRITE, ConversationDraft(id="c", user_id="sarah"))
        asked.clear()
        page = store.steps.list(READ, StepQuery("c"))

    assert (page.encoded, asked) == (b"", [])


@pytest.mark.slow
def test_a_query_waits_for_its_kind_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    put(store, item("i", 7))
    store.commits.settle()
    store.close()
    with nothing_applied():
        store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
        store.working_memories.set(WRITE, UserMemory("sarah"), b"another kind")

        found = store.records.query(READ, RecordsQuery(ITEMS))
        assert [each.record.revision for each in found.records] == [1]
        put(store, item("i", 8))
        with pytest.raises(DeadlineExceeded):
            store.records.query(Read(READ.tenant_id, deadline=IN_THE_PAST + 0), RecordsQuery(ITEMS))
    store.close()


def test_one_of_many_threads_wins_each_round_of_compare_and_swap(store: LocalStore) -> None:
    rounds, threads = 20, 16
    revision = put(store, item("i"), expected=ABSENT)
    wins: list[int] = []

    def swap(expected: int, number: int, start: threading.Barrier) -> None:
        start.wait()
        try:
            wins.append(put(store, item("i", number), expected=expected))
        except RevisionMismatch as refused:
            assert refused.expected == expected  # noqa: PT017 - one of many outcomes

    for _ in range(rounds):
        start = threading.Barrier(threads)
        racing = [threading.Thread(target=swap, args=(revision, number, start)) for number in range(threads)]
        for thread in racing:
            thread.start()
        for thread in racing:
            thread.join()
        [revision] = wins
        wins.clear()
    found, _ = store.records.get(READ, PLACE, ITEMS.encode_key("i"))
    assert found is not None
    assert found.revision == revision


def test_a_write_of_several_partitions_is_one_record_of_the_journal(store: LocalStore) -> None:
    before = store.core.journal_statistics().records
    revision = put(store, *(item("i", namespace=["n", str(number)]) for number in range(10)))

    assert store.core.journal_statistics().records == before + 1
    found = store.records.query(READ, RecordsQuery(ITEMS, prefix=ITEMS.encode_leading("n")))
    assert [each.record.revision for each in found.records] == [revision] * 10


def test_nothing_of_a_write_is_stored_whose_expectation_fails(store: LocalStore) -> None:
    put(store, item("old"))

    with pytest.raises(RevisionMismatch):
        store.records.write(WRITE, [Put(ITEMS, 0, item("new")), Put(ITEMS, 0, item("old"), expected=ABSENT)])

    assert read(store, "new") is None


def fill(store: LocalStore, count: int, **fields: Any) -> None:  # noqa: ANN401 - of Items
    for first in range(0, count, 2_000):
        put(store, *(item(f"i{number:06}", number, b"x" * 100, **fields) for number in range(first, first + 2_000)))


@pytest.mark.slow
def test_the_newest_of_a_long_thread_is_read_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    fill(store, 10_000)
    store = reopened(store, tmp_path / "data")
    query = PartitionQuery(order=1, newest=True, limit=10)

    with counted() as asked:
        first = store.records.page(READ, PLACE, query)
        cold = len(asked)
        again = store.records.page(READ, PLACE, query)

    assert ids(first.records) == ids(again.records) == [f"i{number:06}" for number in range(9_990, 10_000)]
    assert first.more
    assert (cold, len(asked)) == (1, 1), "one read of the database, of what was asked for; then none"
    assert "LIMIT 11" in asked[0]
    store.close()


@pytest.mark.slow
def test_one_of_many_facts_is_read_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    fill(store, 20_000)
    store = reopened(store, tmp_path / "data")

    with counted() as asked:
        assert read(store, "i012345").number == 12_345
        assert read(store, "none") is None
        cold = len(asked)
        assert read(store, "i012345").number == 12_345
        assert read(store, "none") is None

    assert (cold, len(asked)) == (2, 2), "what is there and what is not are both remembered"
    assert all("partition, key) =" in sql for sql in asked)
    store.close()


@pytest.mark.slow
def test_an_edit_builds_on_what_a_start_left_on_disk(tmp_path: Path) -> None:
    owner, write = UserMemory("sarah"), replace(WRITE, method="EditWorkingMemory")
    store = open_store(tmp_path / "data")
    store.working_memories.set(write, owner, b"one")
    store = reopened(store, tmp_path / "data", record_bytes=1)

    store.working_memories.edit(write, owner, MarkdownEdit("two", Mode.APPEND))

    assert store.working_memories.get(READ, owner).content == b"one\n\ntwo"
    store.close()


@pytest.mark.slow
def test_a_long_thread_is_paged_and_counted(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    fill(store, 10_000)
    store = reopened(store, tmp_path / "data", record_bytes=1 << 20)
    found: list[str] = []
    after = None

    while True:
        page = store.records.page(READ, PLACE, PartitionQuery(order=1, after=after, limit=1_000))
        found += ids(page.records)
        if not page.more:
            break
        after = page.records[-1].position(ITEMS, 1)

    assert found == [f"i{number:06}" for number in range(10_000)]
    assert store.records.count(READ, PLACE)[0] == 10_000
    store.close()


@pytest.mark.slow
def test_many_records_are_asked_by_a_column(store: LocalStore) -> None:
    fill(store, 100_000, status="running")
    put(store, *(item(f"i{number:06}", number, status="failed") for number in (5, 50_000, 99_999)))
    query = RecordsQuery(ITEMS, where=(Condition("status", "=", "failed"),), order=1, descending=True, limit=2)

    first = store.records.query(READ, query)
    second = store.records.query(
        READ,
        RecordsQuery(
            ITEMS,
            where=query.where,
            order=1,
            descending=True,
            limit=2,
            after=first.records[-1].position,
        ),
    )

    assert ids([each.record for each in first.records]) == ["i099999", "i050000"]
    assert ids([each.record for each in second.records]) == ["i000005"]
    assert (first.more, second.more) == (True, False)


def test_a_record_that_expires_is_neither_read_nor_found_and_is_swept(store: LocalStore) -> None:
    now = store.clock()
    for item_id, seconds in (("gone", -1), ("here", 1_000), ("ever", None)):
        each = item(item_id)
        if seconds is not None:
            each.expire_time.FromMicroseconds(now + seconds * 1_000_000)
        put(store, each)

    assert [read(store, each) is not None for each in ("gone", "here", "ever")] == [False, True, True]
    assert store.records.count(READ, PLACE)[0] == 2
    assert len(store.records.query(READ, RecordsQuery(ITEMS)).records) == 2
    assert put(store, item("gone", 1), expected=ABSENT), "what has expired is not in the way"
    expired = item("gone", 2)
    expired.expire_time.FromMicroseconds(now - 1)
    put(store, expired)
    store.commits.settle()
    assert store.expiry.sweep() == 1
    store.commits.settle()
    assert store.database.rows("SELECT count(*) FROM items") == [(2,)]


@pytest.mark.slow
def test_a_refreshed_expiry_is_seen_at_once_and_journaled_later(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    near, far = store.clock() + 500_000_000, store.clock() + 1_000_000_000
    each = item("i")
    each.expire_time.FromMicroseconds(near)
    put(store, each)
    before = store.core.journal_statistics().records

    for later in range(100):
        assert store.records.refresh(READ, PLACE, ITEMS.encode_key("i"), far + later)
    found, _ = store.records.get(READ, PLACE, ITEMS.encode_key("i"))
    assert found is not None
    assert found.expire_time == far + 99
    assert [each.record.expire_time for each in store.records.query(READ, RecordsQuery(ITEMS)).records] == [far + 99]
    store.expiry.journal(older_than=store.clock() - 60_000_000)
    assert store.core.journal_statistics().records == before, "not within a minute"

    store = reopened(store, tmp_path / "data")
    again, _ = store.records.get(READ, PLACE, ITEMS.encode_key("i"))
    assert again is not None
    assert (again.expire_time, again.revision) == (far + 99, found.revision)
    assert not store.records.refresh(READ, PLACE, ITEMS.encode_key("none"), far)
    store.close()


def upload(store: LocalStore, upload_id: str, body: bytes) -> Uploaded:
    given = Upload(upload_id, ITEMS)
    parts = [body[first : first + PART_BYTES] for first in range(0, len(body), PART_BYTES)]
    for index, part in enumerate(parts):
        store.records.upload_part(WRITE, given, index, part)
    return Uploaded(upload_id, len(parts))


def test_a_long_body_is_uploaded_in_parts_and_read_as_one(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    content = bytes(range(256)) * (3 * PART_BYTES // 256) + b"end"
    whole = item("long", content=content)
    uploaded = upload(store, "u1", whole.SerializeToString())

    store.records.write(WRITE, [Put(ITEMS, 0, item("long", 5), uploaded=uploaded)])

    assert read(store, "long") == whole
    store = reopened(store, tmp_path / "data")
    assert read(store, "long") == whole
    [found] = store.records.query(READ, RecordsQuery(ITEMS)).records
    assert Item.FromString(found.record.body) == whole
    with pytest.raises(RecordNotFound):
        store.records.write(WRITE, [Put(ITEMS, 0, item("other"), uploaded=uploaded)])
    put(store, item("long", 6))
    store.commits.settle()
    assert store.expiry.sweep() == uploaded.parts
    store.commits.settle()
    assert store.database.rows(f"SELECT count(*) FROM {BODY_PARTS.name}") == [(0,)]
    store.close()


def test_parts_that_no_write_names_expire(store: LocalStore) -> None:
    uploaded = upload(store, "u1", b"x" * (PART_BYTES + 1))
    now = store.clock()

    with patch.object(store.clock, "_wall", lambda: now + (UNNAMED_SECONDS + 1) * 1_000_000):
        with pytest.raises(RecordNotFound):
            store.records.write(WRITE, [Put(ITEMS, 0, item("late"), uploaded=uploaded)])
        store.commits.settle()
        assert store.expiry.sweep() == 2


def test_a_part_that_a_record_has_named_does_not_change_any_more(store: LocalStore) -> None:
    whole = item("long", content=b"x" * (PART_BYTES + 5))
    body = whole.SerializeToString()
    uploaded = upload(store, "u1", body)
    store.records.write(WRITE, [Put(ITEMS, 0, item("long"), uploaded=uploaded)])
    now = store.clock()

    with pytest.raises(UploadNamed):
        store.records.upload_part(WRITE, Upload("u1", ITEMS), 0, body[:PART_BYTES])

    with patch.object(store.clock, "_wall", lambda: now + (UNNAMED_SECONDS + 1) * 1_000_000):
        store.commits.settle()
        store.expiry.sweep()
        assert read(store, "long") == whole


def test_a_part_that_comes_while_a_record_names_it_is_before_or_behind(store: LocalStore) -> None:
    """Whoever comes second waits for the upload's lock."""
    uploaded = upload(store, "u1", b"x" * PART_BYTES)
    outcomes: list[str] = []

    def again() -> None:
        try:
            store.records.upload_part(WRITE, Upload("u1", ITEMS), 0, b"other")
        except UploadNamed:
            outcomes.append("named")

    late = threading.Thread(target=again)
    accept = store.commits.accept

    def slowly(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as `accept`
        late.start()
        late.join(0.2)
        outcomes.append("accepted")
        return accept(*given, **named)

    with patch.object(store.commits, "accept", slowly):
        store.records.write(WRITE, [Put(ITEMS, 0, item("long"), uploaded=uploaded)])
    late.join()

    assert outcomes == ["accepted", "named"]


def test_an_upload_is_named_by_records_of_its_user_alone(store: LocalStore) -> None:
    """It would go with another, and the record would be left without its body."""
    store.records.upload_part(WRITE, Upload("u1", ITEMS, user_id="sarah"), 0, item("i").SerializeToString())

    with pytest.raises(RecordNotFound):
        store.records.write(WRITE, [Put(ITEMS, 0, item("i"), uploaded=Uploaded("u1", 1))])


@pytest.mark.parametrize("deadline", [None, IN_THE_PAST], ids=["patient", "hurried"])
def test_a_body_of_which_a_part_is_lost_is_told_and_not_waited_for(store: LocalStore, deadline: float | None) -> None:
    uploaded = upload(store, "u1", item("long", content=b"x" * (PART_BYTES + 5)).SerializeToString())
    revision = store.records.write(WRITE, [Put(ITEMS, 0, item("long"), uploaded=uploaded)]).revision
    parts = uploaded.place(ITEMS, 0)
    store.records.write(WRITE, [Remove(parts.kind, 0, parts.partition, parts.kind.encode_key(0), expected=None)])
    access = Read(READ.tenant_id, deadline=deadline)
    reads: list[Callable[[], object]] = [
        lambda: store.records.get(access, PLACE, ITEMS.encode_key("long")),
        lambda: store.records.page(access, PLACE, PartitionQuery()),
        lambda: store.records.accepted(access, PLACE, [ITEMS.encode_key("long")]),
    ]

    for ask in reads:
        with pytest.raises(StoreDamaged if deadline is None else DeadlineExceeded):
            ask()

    assert store.records.stored(READ, PLACE, ITEMS.encode_key("long")).revision == revision  # type: ignore[union-attr]


def expiring(item_id: str, expire_time: int) -> Any:  # noqa: ANN401 - an Item
    each = item(item_id)
    each.expire_time.FromMicroseconds(expire_time)
    return each


@contextmanager
def stopped_clock(store: LocalStore) -> Iterator[int]:
    """The time, at which the store's clock stays however long it takes to write."""
    now, ticks = store.clock(), store.clock._last_ticks
    with patch.object(store.clock, "_wall", lambda: now), patch.object(store.clock, "_ticks", lambda: ticks):
        yield now


def test_a_sweep_ends_where_more_than_a_page_lives_by_what_only_memory_has(store: LocalStore) -> None:
    names = [f"i{number:03}" for number in range(2 * SWEPT_AT_ONCE)]
    with stopped_clock(store) as now:
        put(store, *(expiring(name, now + SECOND) for name in names))
        for name in names:
            assert store.records.refresh(READ, PLACE, ITEMS.encode_key(name), now + 1_000 * SECOND)
        put(store, expiring("j", now + SECOND))
        store.commits.settle()

    with patch.object(store.clock, "_wall", lambda: now + 2 * SECOND):
        assert store.expiry.sweep() == 1
        assert [name for name in [*names, "j"] if read(store, name) is None] == ["j"]


def test_a_sweep_does_not_remove_what_a_writer_of_the_conversation_puts_meanwhile() -> None:
    store = open_store(None, kinds=Kinds(*KINDS, DRAFTS))
    uid = store.conversations.create(WRITE, ConversationDraft(id="c", user_id="sarah")).revision
    place = Partition(DRAFTS, uid, DRAFTS.encode_partition("sarah"))
    key = DRAFTS.encode_key("d")

    def write(text: str, expire_time: int) -> None:
        draft = step_pb2.Step(user_id="sarah", id="d", conversation_id="c", content=text)
        draft.create_time.FromMicroseconds(expire_time)
        with store.conversations.locked(WRITE, "c"):
            moves = store.records.changes(WRITE, [Put(DRAFTS, uid, draft)])
            store.commits.accept(WRITE, store.clock(), moves, Outcome(revision=0))

    write("old", store.clock() - 1)
    store.commits.settle()
    writer = threading.Thread(target=write, args=("new", store.clock() + 1_000 * SECOND))
    has_expired = store.records.has_expired

    def looked(*given: Any) -> bool:  # noqa: ANN401 - as `has_expired`
        found = has_expired(*given)
        writer.start()
        writer.join(0.2)
        return found

    with patch.object(store.records, "has_expired", looked):
        store.expiry.sweep()
    writer.join()

    found = store.records.stored(READ, place, key)
    assert found is not None
    assert step_pb2.Step.FromString(found.body or b"").content == "new"
    store.close()


def test_a_sweep_leaves_the_parts_of_a_new_upload_of_the_same_name(store: LocalStore) -> None:
    body = item("i").SerializeToString()
    store.records.write(WRITE, [Put(ITEMS, 0, item("i"), uploaded=upload(store, "u1", body))])
    put(store, item("i", 1))
    store.commits.settle()
    parts = Uploaded("u1", 1).place(ITEMS, 0)
    found = store.expiry._found

    def then_again(*given: Any) -> Any:  # noqa: ANN401 - as `_found`
        swept = found(*given)
        if swept:
            store.records.write(WRITE, [RemovePartitions(parts.kind, 0, parts.partition)])
            upload(store, "u1", body)
        return swept

    with patch.object(store.expiry, "_found", then_again):
        assert store.expiry.sweep() == 0

    store.records.write(WRITE, [Put(ITEMS, 0, item("i"), uploaded=Uploaded("u1", 1))])
    assert read(store, "i") == item("i")


class SetClock:
    """A clock that only the test moves."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_a_record_that_is_refreshed_all_the_time_is_journaled_once_a_minute(store: LocalStore) -> None:
    put(store, item("i"))
    beginning, journaled = store.clock(), []
    clock = SetClock(beginning)
    with patch.object(store.records, "_clock", clock), patch.object(store.expiry, "_clock", clock):
        for second in range(5 * JOURNAL_SECONDS):
            clock.now = beginning + second * SECOND
            store.records.refresh(READ, PLACE, ITEMS.encode_key("i"), clock.now + 1_000 * SECOND)
            accepted = store.core.accepted()
            store.expiry.journal(older_than=clock.now - JOURNAL_SECONDS * SECOND)
            if store.core.accepted() > accepted:
                journaled.append(second)

    assert len(journaled) == 4, journaled
    assert all(later - sooner >= JOURNAL_SECONDS for sooner, later in itertools.pairwise(journaled))


def test_a_refreshed_record_is_found_while_its_expiry_is_journaled(store: LocalStore) -> None:
    with stopped_clock(store) as now:
        put(store, expiring("i", now + SECOND))
        store.commits.settle()
        assert store.records.refresh(READ, PLACE, ITEMS.encode_key("i"), now + 1_000 * SECOND)
    wait = store.commits.begin_query_of

    def then_journal(read: Read, kind: int) -> int:
        revision = wait(read, kind)
        store.expiry.journal(older_than=now + SECOND)
        return revision

    with (
        patch.object(store.clock, "_wall", lambda: now + 2 * SECOND),
        patch.object(store.commits, "begin_query_of", then_journal),
    ):
        found = store.records.query(READ, RecordsQuery(ITEMS)).records
        assert [each.record.expire_time for each in found] == [now + 1_000 * SECOND]


def test_a_record_that_was_refreshed_to_expire_is_not_found(store: LocalStore) -> None:
    now = store.clock()
    put(store, expiring("i", now + 1_000 * SECOND), item("j"))
    assert store.records.refresh(READ, PLACE, ITEMS.encode_key("i"), now - 1)
    assert store.records.refresh(READ, PLACE, ITEMS.encode_key("j"), now - 1)

    assert store.records.query(READ, RecordsQuery(ITEMS)).records == ()


def family(store: LocalStore, user: str) -> None:
    """A profile with two notes, the first of which has lines."""
    scope = working_memory_pb2.WorkingMemoryScope(user_id=user)
    profile = working_memory_pb2.WorkingMemoryRecord(scope=scope, content=b"profile")
    moves: list[Move] = [Put(PROFILES, 0, profile)]
    moves += [Put(NOTES, 0, step_pb2.Step(user_id=user, id=each)) for each in ("n1", "n2")]
    moves += [Put(LINES, 0, step_pb2.Step(user_id=user, id="n1", step_index=index)) for index in range(3)]
    store.records.write(WRITE, moves)


def counts(store: LocalStore, user: str) -> tuple[int, ...]:
    """How many profiles, notes and lines a user has, by the database."""
    store.commits.settle()
    kinds = (PROFILES, NOTES, LINES)
    return tuple(
        store.database.rows(f"SELECT count(*) FROM {kind.name} WHERE user_id = ?", [user])[0][0] for kind in kinds
    )


@pytest.fixture
def families(tmp_path: Path) -> Iterator[LocalStore]:
    opened = open_store(tmp_path / "data", kinds=FAMILY)
    for user in ("sarah", "tom"):
        family(opened, user)
    yield opened
    opened.close()


def test_a_record_takes_along_what_belongs_to_it(families: LocalStore) -> None:
    families.records.write(WRITE, [Remove(NOTES, 0, NOTES.encode_partition("sarah"), NOTES.encode_key("n1"))])
    assert counts(families, "sarah") == (1, 1, 0)

    families.records.write(WRITE, [RemovePartitions(PROFILES, 0, PROFILES.encode_partition("sarah"))])

    assert (counts(families, "sarah"), counts(families, "tom")) == ((0, 0, 0), (1, 2, 3))
    notes = Partition(NOTES, 0, NOTES.encode_partition("sarah"))
    assert families.records.page(READ, notes, PartitionQuery()).records == ()


def test_a_deleted_user_takes_along_what_belongs_to_it(families: LocalStore) -> None:
    families.users.delete(WRITE, "sarah")

    assert (counts(families, "sarah"), counts(families, "tom")) == ((0, 0, 0), (1, 2, 3))
    with pytest.raises(RecordNotFound):
        families.records.write(WRITE, [Put(NOTES, 0, step_pb2.Step(user_id="sarah", id="n"))])


def test_what_a_write_removed_before_is_no_parent(families: LocalStore) -> None:
    profile = Remove(PROFILES, 0, PROFILES.encode_partition("sarah"), b"")
    note = Put(NOTES, 0, step_pb2.Step(user_id="sarah", id="n1"))
    line = Put(LINES, 0, step_pb2.Step(user_id="sarah", id="n1", step_index=9))
    scope = working_memory_pb2.WorkingMemoryScope(user_id="sarah")
    again = Put(PROFILES, 0, working_memory_pb2.WorkingMemoryRecord(scope=scope))
    refused: list[list[Move]] = [[profile, note], [profile, line], [note, profile, line], [profile, again, line]]

    for moves in refused:
        with pytest.raises(RecordNotFound):
            families.records.write(WRITE, moves)
    assert counts(families, "sarah") == (1, 2, 3)

    families.records.write(WRITE, [profile, again, note, line])
    assert counts(families, "sarah") == (1, 1, 1)


def test_a_record_whose_upload_had_more_parts_than_it_names_is_whole(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    upload(store, "u1", item("i").SerializeToString())
    store.records.upload_part(WRITE, Upload("u1", ITEMS), 1, b"left behind")
    store.records.write(WRITE, [Put(ITEMS, 0, item("i"), uploaded=Uploaded("u1", 1))])
    store.commits.settle()

    assert store.database.rows(f"SELECT count(*) FROM items WHERE {incomplete(ITEMS)}") == [(0,)]
    store.records.write(WRITE, [Remove(BODY_PARTS, 0, *BODY_PARTS.place(record_pb2.BodyPart(upload_id="u1")))])
    store.commits.settle()
    assert store.database.rows(f"SELECT count(*) FROM items WHERE {incomplete(ITEMS)}") == [(1,)]
    store.close()


def test_refreshed_records_are_exported_as_they_live(tmp_path: Path) -> None:
    stored = Kinds(LEASES, BODY_PARTS, CONVERSATION_BODY_PARTS)
    store = open_store(tmp_path / "data", kinds=stored)
    place = Partition(LEASES, 0, LEASES.encode_partition("sarah"))
    with stopped_clock(store) as now:
        for each, seconds in (("lives", 1), ("expires", 1), ("shortened", 1_000)):
            lease = step_pb2.Step(user_id="sarah", id=each)
            lease.create_time.FromMicroseconds(now + seconds * SECOND)
            store.records.write(WRITE, [Put(LEASES, 0, lease)])
        assert store.records.refresh(READ, place, LEASES.encode_key("lives"), now + 1_000 * SECOND)
        assert store.records.refresh(READ, place, LEASES.encode_key("shortened"), now + SECOND)

    with patch.object(store.clock, "_wall", lambda: now + 2 * SECOND):
        [exported] = store.exports.page(READ, ExportQuery()).records
        record = transfer_service_pb2.Record.FromString(exported)
    assert (record.step.id, record.step.create_time.ToMicroseconds()) == ("lives", now + 1_000 * SECOND)
    store.close()


def test_a_backup_has_the_refreshed_expiries(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    put(store, item("i"))
    far = store.clock() + 1_000 * SECOND
    assert store.records.refresh(READ, PLACE, ITEMS.encode_key("i"), far)

    made = store.backups.create(time.monotonic() + PATIENCE)

    file = tmp_path / "data" / "backups" / f"{made.id}.duckdb"
    with duckdb.connect(str(file), read_only=True) as snapshot:
        assert snapshot.execute("SELECT expire_time FROM items").fetchall() == [(far,)]
    store.close()


@pytest.mark.parametrize("refused", [StoreFull, Overloaded, StoreFailed])
def test_a_store_is_closed_whose_journal_takes_no_refreshes_any_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, refused: type[RemoraError]
) -> None:
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    put(store, item("i"))
    store.records.refresh(READ, PLACE, ITEMS.encode_key("i"), store.clock() + 1_000 * SECOND)

    with patch.object(store.commits, "accept", side_effect=refused):
        store.close()

    assert "refreshed records expire at the time from before" in caplog.text
    store = open_store(tmp_path / "data", kinds=WITH_ITEMS)
    assert read(store, "i") is not None
    store.close()


@pytest.mark.slow
def test_it_is_told_while_nothing_is_swept(store: LocalStore) -> None:
    with patch.object(store.expiry, "journal", side_effect=ValueError):
        failure = eventually(store.background_failure)
    assert "expiry" in failure
    assert eventually(lambda: not store.background_failure())


def test_a_body_that_no_export_could_carry_is_refused(families: LocalStore) -> None:
    scope = working_memory_pb2.WorkingMemoryScope(user_id="sarah")

    def profile(size: int) -> Put:
        return Put(PROFILES, 0, working_memory_pb2.WorkingMemoryRecord(scope=scope, content=b"x" * size))

    for refused in (profile(EXPORTED_BODY_BYTES), replace(profile(1), uploaded=Uploaded("u1", 4))):
        with pytest.raises(BodyTooLong):
            families.records.write(WRITE, [refused])

    families.records.write(WRITE, [profile(EXPORTED_BODY_BYTES - 100)])
    pages: list[bytes] = []
    position = None
    while True:
        page = families.exports.page(READ, ExportQuery(position=position))
        assert sum(map(len, page.records)) <= EXPORTED_BODY_BYTES + 100
        pages += page.records
        if page.following is None:
            break
        position = page.following
    assert len(pages) == 2 + 4, "profiles and notes"
