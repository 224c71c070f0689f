"""A kind needs nothing but its declaration to be exported, imported, backed up, looked over, repaired, and refused by a
version that does not know it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import PATIENCE
from tests.storage.declared import FAMILY, ITEMS, LINES, NOTES, PROFILES, WITH_ITEMS, Item
from tests.storage.opening import READ, WRITE, open_store

from remora.v1 import step_pb2, transfer_service_pb2, working_memory_pb2
from remora_server.domain.errors import InvalidField, RecordConflict
from remora_server.domain.transfers import ExportQuery, Import, ImportedRecord
from remora_server.storage.commit import changes
from remora_server.storage.database.database import FILE_NAME, Database
from remora_server.storage.database.directory import DirectoryError
from remora_server.storage.local_store import LocalStore
from remora_server.storage.records.records import Put
from remora_server.storage.recovery.backups import contents_of
from remora_server.storage.recovery.inspection import inspect_store
from remora_server.storage.recovery.salvage import RepairError, repair

USERS = ("sarah", "tom")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(data: Path) -> Iterator[LocalStore]:
    opened = open_store(data, kinds=FAMILY)
    fill(opened)
    yield opened
    opened.close()


def fill(store: LocalStore) -> None:
    """A profile of each user, with three notes and a line, and an item."""
    for user in USERS:
        scope = working_memory_pb2.WorkingMemoryScope(user_id=user)
        profile = working_memory_pb2.WorkingMemoryRecord(scope=scope, content=user.encode())
        notes = [step_pb2.Step(user_id=user, id=f"n{number}", content=f"note {number}") for number in range(3)]
        line = step_pb2.Step(user_id=user, id="n1", step_index=4)
        store.records.write(
            WRITE, [Put(PROFILES, 0, profile), *(Put(NOTES, 0, note) for note in notes), Put(LINES, 0, line)]
        )
    store.records.write(WRITE, [Put(ITEMS, 0, Item(namespace=["a"], id="i"))])


def exported(store: LocalStore, user_id: str = "") -> list[transfer_service_pb2.Record]:
    """All that is exported, in pages of two."""
    found: list[transfer_service_pb2.Record] = []
    position = None
    while True:
        page = store.exports.page(READ, ExportQuery(user_id=user_id, limit=2, position=position))
        found += map(transfer_service_pb2.Record.FromString, page.records)
        if page.following is None:
            return found
        position = page.following


def given(records: list[transfer_service_pb2.Record]) -> Import:
    """The import of records that belong to no conversation."""
    imported = []
    for number, record in enumerate(records):
        kind = str(record.WhichOneof("kind"))
        imported.append(ImportedRecord(f"records[{number}]", kind, getattr(record, kind).SerializeToString()))
    return Import("", records=tuple(imported))


def test_records_are_exported_and_imported(store: LocalStore, tmp_path: Path) -> None:
    records = exported(store)
    assert [record.WhichOneof("kind") for record in records] == ["working_memory"] * 2 + ["step"] * 6
    assert [record.step.user_id for record in exported(store, "tom")[1:]] == ["tom"] * 3
    other = open_store(tmp_path / "other", kinds=FAMILY)

    assert other.imports.store(WRITE, given(records)).imported_records == 8
    assert other.imports.store(WRITE, given(records)).imported_records == 0

    assert exported(other) == records
    records[-1].step.content = "another"
    with pytest.raises(RecordConflict, match="stands in its place"):
        other.imports.store(WRITE, given(records))
    other.users.delete(WRITE, "tom")
    assert exported(other) == exported(store, "sarah")
    other.close()


@pytest.mark.slow
def test_records_of_a_parent_that_is_not_there_are_not_imported(store: LocalStore, tmp_path: Path) -> None:
    other = open_store(tmp_path / "other", kinds=FAMILY)

    with pytest.raises(InvalidField, match="profiles"):
        other.imports.store(WRITE, given(exported(store)[2:]))

    other.close()


def test_records_are_in_a_backup_and_counted(store: LocalStore, data: Path) -> None:
    made = store.backups.create(time.monotonic() + PATIENCE)

    counts = {PROFILES.name: 2, NOTES.name: 6, LINES.name: 2, ITEMS.name: 1}
    assert {name: made.rows[name] for name in counts} == counts
    assert contents_of(data / "backups" / f"{made.id}.duckdb").rows == made.rows


def broken(store: LocalStore) -> list[str]:
    """What a store is found to be after rows are put where none should be."""
    database = store.database
    store.commits.settle()
    database.transact(lambda cursor: cursor.execute(f"INSERT INTO {ITEMS.name} SELECT * FROM {ITEMS.name}"))
    database.transact(lambda cursor: cursor.execute(f"DELETE FROM {PROFILES.name} WHERE user_id = 'tom'"))
    database.transact(lambda cursor: cursor.execute(f"UPDATE {LINES.name} SET upload_id = 'gone/2'"))
    database.transact(lambda cursor: cursor.execute(f"UPDATE {NOTES.name} SET revision = 99 WHERE user_id = 'sarah'"))
    store.close()
    return [finding.what for finding in inspect_store(store._directory.path, FAMILY).findings]  # type: ignore[union-attr]


@pytest.mark.slow
def test_rows_that_do_not_agree_are_found_and_tidied(data: Path, tmp_path: Path) -> None:
    store = open_store(data, kinds=FAMILY)
    fill(store)

    assert broken(store) == [
        "3 rows of notes of revisions that were not applied",
        "1 keys that two records of items have",
        "3 records of notes without their record of profiles",
        "2 records of lines without parts of their bodies",
    ]

    report = repair(data, tmp_path / "saved", FAMILY)
    assert (report.rows[NOTES.name], report.rows[LINES.name], report.rows[ITEMS.name]) == (3, 0, 1)
    assert report.lost_rows == {LINES.name: 1}


@pytest.mark.slow
def test_a_sound_store_of_declared_kinds_has_no_findings_and_is_repaired_whole(
    store: LocalStore, data: Path, tmp_path: Path
) -> None:
    before = exported(store)
    store.commits.settle()
    store.database.checkpoint()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("FORMAT", FILE_NAME):
        (copy / name).write_bytes((data / name).read_bytes())
    (copy / "journal").mkdir()
    for file in (data / "journal").iterdir():
        (copy / "journal" / file.name).write_bytes(file.read_bytes())

    assert inspect_store(copy, FAMILY).findings == []
    assert repair(copy, tmp_path / "saved", FAMILY).is_complete

    saved = open_store(tmp_path / "saved", kinds=FAMILY)
    assert exported(saved) == before
    saved.close()


def test_a_version_that_does_not_know_a_kind_refuses_the_store_by_its_name(data: Path, tmp_path: Path) -> None:
    open_store(data, kinds=WITH_ITEMS).close()

    with pytest.raises(DirectoryError, match=r"kind items\(.*: upgrade Remora"):
        open_store(data)
    with pytest.raises(RepairError, match=r"kind items\(.*: upgrade Remora"):
        repair(data, tmp_path / "saved")
    assert [finding.remedy for finding in inspect_store(data).findings] == ["upgrade Remora"]


@pytest.mark.slow
def test_a_journal_with_records_of_an_unknown_kind_is_refused(data: Path, tmp_path: Path) -> None:
    store = open_store(data, kinds=WITH_ITEMS)
    store.records.write(WRITE, [Put(ITEMS, 0, Item(namespace=["a"], id="i"))])
    store.close()
    for file in data.glob(f"{FILE_NAME}*"):
        file.unlink()

    with pytest.raises(DirectoryError, match=r"kind 100 .*: upgrade Remora"):
        open_store(data)
    with pytest.raises(RepairError, match="kind 100"):
        repair(data, tmp_path / "saved")


@pytest.mark.slow
def test_a_version_that_knows_more_kinds_opens_the_store(data: Path) -> None:
    open_store(data).close()

    store = open_store(data, kinds=WITH_ITEMS)

    assert store.records.write(WRITE, [Put(ITEMS, 0, Item(namespace=["a"], id="i"))]).revision > 0
    store.close()


def test_the_database_has_a_column_for_every_type(data: Path) -> None:
    store = open_store(data, kinds=WITH_ITEMS)
    item = Item(namespace=["a"], id="i", number=-(2**63), score=-0.5, done=True, status="é\0", digest=b"\0\xff")
    store.records.write(WRITE, [Put(ITEMS, 0, item)])
    store.commits.settle()

    columns = store.database.rows(f"SELECT number, score, done, status, digest FROM {ITEMS.name}")

    assert columns == [(-(2**63), -0.5, True, "é\0", b"\0\xff")]
    store.close()
    database = Database(data, 64 << 20, WITH_ITEMS)
    assert database.rows(f"SELECT count(*) FROM {ITEMS.name}") == [(1,)]
    database.close()


def test_a_removed_prefix_is_removed_from_the_database_alone_where_it_begins_so(data: Path) -> None:
    store = open_store(data, kinds=WITH_ITEMS)
    namespaces: tuple[list[str], ...] = (["a"], ["a", "b"], ["ab"], ["a\0"], [])
    store.records.write(WRITE, [Put(ITEMS, 0, Item(namespace=each, id="i")) for each in namespaces])
    store.commits.settle()
    gone = changes.remove_prefix(ITEMS, 0, ITEMS.encode_leading("a"))
    store.commits.accept(WRITE, store.clock(), [gone], store.records.write(WRITE, []))

    store.commits.settle()

    kept = store.database.rows(f"SELECT body FROM {ITEMS.name}")
    assert sorted(list(Item.FromString(body).namespace) for (body,) in kept) == [[], ["a\0"], ["ab"]]
    store.close()
