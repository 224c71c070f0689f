"""What inspection finds in a store, and what repair saves of it, against a copy of everything that was written."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pytest
from tests.storage.opening import READ, TENANT, WRITE, messages, open_store, shown
from tests.storage.recovery.blocks import damage, move, released
from tests.store.asking import NEW, Tenant, draft
from tests.store.test_vectors import near, put, vector

from remora_server import _native
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import DimensionMismatch
from remora_server.domain.messages import MessageQuery
from remora_server.domain.steps import StepDraft, StepQuery
from remora_server.domain.vectors import VectorScope
from remora_server.domain.working_memory import ConversationMemory
from remora_server.storage.commit import applier
from remora_server.storage.database.database import Database
from remora_server.storage.database.directory import DirectoryError
from remora_server.storage.recovery import salvage
from remora_server.storage.recovery.inspection import inspect_store
from remora_server.storage.recovery.mending import read_table
from remora_server.storage.recovery.repair_report import saved_facts
from remora_server.storage.recovery.salvage import VECTOR_ROWS, RepairError, repair
from remora_server.storage.schema.kinds import CONVERSATION_WINDOWS, RECEIPTS
from remora_server.storage.v1 import record_pb2

TEXT_CHARACTERS = 20_000
MESSAGES = 400
SHORT_CHARACTERS, BATCH, GROUPS = 1200, 64, 6

Texts = dict[str, list[str]]


def write(directory: Path) -> Texts:
    """Texts that fill blocks of their own; the journal has let the oldest go."""
    generated, texts = random.Random(7), Texts()
    store = open_store(directory)
    for number in range(MESSAGES):
        name = f"c{number % 4}"
        text = f"{number} {generated.randbytes(TEXT_CHARACTERS // 2).hex()}"
        store.messages.append(WRITE, name, "sarah", [draft(f"m{number}", text)], ConversationDraft(id=""))
        texts.setdefault(name, []).append(text)
    store.close()
    return texts


def flip_middle(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def held(directory: Path) -> Texts:
    store = open_store(directory)
    try:
        return {f"c{number}": [text for _, _, text in shown(store, f"c{number}", "sarah")] for number in range(4)}
    finally:
        store.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.mark.slow
def test_a_sound_store_has_no_findings_and_repair_copies_all_of_it(directory: Path, tmp_path: Path) -> None:
    texts = write(directory)
    assert inspect_store(directory).findings == []

    report = repair(directory, tmp_path / "new")

    assert (report.is_complete, report.notes) == (True, [])
    assert report.rows["messages"] == MESSAGES
    assert held(tmp_path / "new") == texts


def write_groups(directory: Path) -> list[str]:
    """Texts in several groups of rows, a batch of them at each revision; the oldest are in the file alone."""
    generated = random.Random(11)
    texts = [f"{number} {generated.randbytes(SHORT_CHARACTERS // 2).hex()}" for number in range(GROUPS * VECTOR_ROWS)]
    store = open_store(directory)
    for begin in range(0, len(texts), BATCH):
        drafts = [draft(f"m{number}", texts[number]) for number in range(begin, begin + BATCH)]
        store.messages.append(WRITE, f"c{begin // BATCH % 4}", "sarah", drafts, ConversationDraft(id=""))
    store.close()
    return texts


@pytest.mark.slow
def test_a_damaged_block_loses_its_rows_alone_and_exactly_they_are_listed(directory: Path, tmp_path: Path) -> None:
    texts = write_groups(directory)
    in_file_alone = (inspect_store(directory).journal.first_revision - 1) * BATCH
    group = {number: row // VECTOR_ROWS for number, (row, _) in rows_of(directory).items()}
    flip_middle(directory / "remora.duckdb")
    [found] = inspect_store(directory).findings
    assert "the table messages cannot be read through" in found.what

    report = repair(directory, tmp_path / "new")

    saved = {number: text for number, (_, text) in rows_of(tmp_path / "new").items()}
    missing = {number for number in range(len(texts)) if number not in saved}
    damaged = {group[number] for number in missing}
    assert 1 <= len(damaged) <= 2, "one group of rows, or two that share the block"
    assert report.lost_rows == {"messages": len(damaged) * VECTOR_ROWS}
    assert missing == {number for number in range(in_file_alone) if group[number] in damaged}
    assert saved == {number: text for number, text in enumerate(texts) if number not in missing}
    lost = Counter(f"c{number // BATCH % 4}" for number in missing)
    assert {touched.conversation_id: touched.lost_messages for touched in report.conversations} == lost
    assert not report.is_complete
    assert inspect_store(tmp_path / "new").findings == []


def rows_of(directory: Path) -> dict[int, tuple[int, str]]:
    """The place and the text of each message's row by the number in its id."""
    with duckdb.connect(str(directory / "remora.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT id, rowid, text FROM messages").fetchall()
    return {int(message_id[1:]): (row, text) for message_id, row, text in found}


class Short:
    """A connection that finds no memory to copy a piece of a table."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        if statement.startswith("INSERT INTO messages"):
            raise duckdb.OutOfMemoryException("Out of Memory Error: failed to pin block")
        return self._connection.execute(statement)


@pytest.mark.slow
def test_rows_that_find_no_memory_are_not_taken_for_lost(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(directory)
    flip_middle(directory / "remora.duckdb")
    connected = salvage._connected

    @contextmanager
    def short(file: Path) -> Iterator[Short]:
        with connected(file) as connection:
            yield Short(connection)

    monkeypatch.setattr(salvage, "_connected", short)

    with pytest.raises(RepairError, match="messages cannot be copied: Out of Memory"):
        repair(directory, tmp_path / "new")


@pytest.mark.slow
@pytest.mark.parametrize("with_log", [False, True])
def test_a_database_of_another_store_is_not_used_and_what_the_journal_lacks_is_listed(
    directory: Path, tmp_path: Path, *, with_log: bool
) -> None:
    texts = write(directory)
    first = inspect_store(directory).journal.first_revision
    assert first > 1, "the journal holds a part only"
    owner = inspect_store(directory).store_id
    other = killed_store(tmp_path, "theirs")
    for name in ("remora.duckdb", "remora.duckdb.wal")[: 1 + with_log]:
        shutil.copy(other / name, directory / name)

    report = repair(directory, tmp_path / "new")

    assert (
        f"the database belongs to store {inspect_store(other).store_id}, not to {owner}: it is not used" in report.notes
    )
    assert report.lost_revisions == [(1, first - 1)]
    assert not report.is_complete
    assert inspect_store(tmp_path / "new").store_id == owner
    behind = [f"c{number % 4}" for number in range(first - 1, MESSAGES)]
    assert held(tmp_path / "new") == {name: kept[-behind.count(name) :] for name, kept in texts.items()}


def killed_store(folder: Path, text: str) -> Path:
    """A store with one conversation, half of it in the file and half in the write-ahead log, as a kill leaves it."""
    for number in range(2):
        store = open_store(folder / "living")
        store.messages.append(WRITE, "c0", "sarah", [draft(f"m{number}", text)], ConversationDraft(id=""))
        if number == 0:
            store.close()
    store.applier.catch_up()
    shutil.copytree(folder / "living", folder / "killed")
    store.close()
    return folder / "killed"


@pytest.mark.slow
def test_a_store_of_which_only_foreign_files_are_left_is_not_repaired(directory: Path, tmp_path: Path) -> None:
    open_store(directory).close()
    other = killed_store(tmp_path, "theirs")
    shutil.copy(directory / "FORMAT", other / "FORMAT")

    with pytest.raises(RepairError, match=r"nothing of the store .* the database belongs to store"):
        repair(other, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["remora.duckdb", "journal"])
def test_a_store_without_its_format_is_not_served_and_repair_brings_it_back(
    lost: str, directory: Path, tmp_path: Path
) -> None:
    """Nor where the database or the journal is lost besides."""
    store = open_store(directory)
    store.messages.append(WRITE, "c0", "sarah", [draft("a", "kept")], ConversationDraft(id=""))
    store.close()
    owner = inspect_store(directory).store_id
    for name in ("FORMAT", lost):
        (directory / name).rename(tmp_path / name)

    with pytest.raises(DirectoryError, match=f"FORMAT is missing.*`remora repair --data {directory} --to NEWDIR`"):
        open_store(directory)
    repair(directory, tmp_path / "new")

    assert inspect_store(tmp_path / "new").store_id == owner
    again = open_store(tmp_path / "new")
    assert shown(again, "c0", "sarah") == [("a", "user", "kept")]
    again.close()


@pytest.mark.slow
@pytest.mark.parametrize("left", ["nothing", "an empty folder", "the note"])
def test_a_store_without_its_journal_is_neither_begun_anew_nor_healthy(
    left: str, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where nothing of the journal was applied, so that the database lacks nothing that it says it had."""
    monkeypatch.setattr(applier, "BATCH_SECONDS", 3600.0)
    store = open_store(tmp_path / "living")
    store.messages.append(WRITE, "c0", "sarah", [draft("a", "lost")], ConversationDraft(id=""))
    shutil.copytree(tmp_path / "living", directory)
    store.close()
    sound = inspect_store(directory)
    assert (sound.findings, sound.database.applied_revision, sound.journal.records) == ([], 0, 1)
    for file in (directory / "journal").iterdir():
        if left != "the note" or file.name != "reach":
            file.unlink()
    if left == "nothing":
        (directory / "journal").rmdir()

    with pytest.raises(DirectoryError, match=rf"journal is missing.*`remora repair --data {directory} --to NEWDIR`"):
        open_store(directory)

    assert [finding.part for finding in inspect_store(directory).findings] == ["journal"]
    report = repair(directory, tmp_path / "new")
    assert (report.lost_revisions, report.lost_after) == (([(1, 1)], None) if left == "the note" else ([], 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "what"),
    [(Path.unlink, "how far it came is missing"), (flip_middle, "how far it came cannot be read")],
)
def test_a_journal_without_its_note_is_found_and_the_next_start_writes_it(
    directory: Path, damage: Callable[[Path], None], what: str
) -> None:
    open_store(directory).close()
    damage(directory / "journal" / "reach")

    [found] = inspect_store(directory).findings
    open_store(directory).close()

    assert what in found.what
    assert "the next start writes it" in found.remedy
    assert inspect_store(directory).findings == []


@pytest.mark.slow
@pytest.mark.parametrize("has_note", [True, False])
def test_a_torn_end_is_called_unacknowledged_only_where_the_note_says_so(directory: Path, *, has_note: bool) -> None:
    open_store(directory).close()
    [segment] = (directory / "journal").glob("*.journal")
    with segment.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"torn")
    if not has_note:
        (directory / "journal" / "reach").unlink()

    found = inspect_store(directory).findings[0]

    assert "a torn end of" in found.what
    assert ("it was never acknowledged" in found.remedy) == has_note
    assert ("whether it was acknowledged is not known" in found.remedy) != has_note


def test_a_format_of_a_newer_version_is_neither_repaired_nor_looked_into(directory: Path, tmp_path: Path) -> None:
    open_store(directory).close()
    file = directory / "FORMAT"
    file.write_text(file.read_text().replace('"format_version": 1', '"format_version": 2'))

    found = [(finding.part, finding.remedy) for finding in inspect_store(directory).findings]

    assert found == [("format", "upgrade Remora")]
    with pytest.raises(RepairError, match="newer version of Remora: upgrade"):
        repair(directory, tmp_path / "new")
    with pytest.raises(DirectoryError, match="upgrade Remora"):
        open_store(directory)


def change(directory: Path, *statements: str) -> None:
    """Change the database of a store that is closed."""
    with duckdb.connect(str(directory / "remora.duckdb")) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.slow
def test_a_schema_of_a_newer_version_is_not_repaired(directory: Path, tmp_path: Path) -> None:
    open_store(directory).close()
    change(directory, "UPDATE meta SET value = '99' WHERE key = 'schema_version'")

    assert "upgrade Remora" in [finding.remedy for finding in inspect_store(directory).findings]
    with pytest.raises(RepairError, match="newer version of Remora: upgrade"):
        repair(directory, tmp_path / "new")


@pytest.mark.slow
def test_a_store_of_an_older_schema_is_repaired(directory: Path, tmp_path: Path) -> None:
    store = open_store(directory)
    store.messages.append(WRITE, "c0", "sarah", [draft("a", "kept")], ConversationDraft(id=""))
    store.close()
    change(
        directory,
        "ALTER TABLE embeddings DROP COLUMN pieces",
        "ALTER TABLE embeddings ADD COLUMN text_digest UBIGINT",
        "UPDATE meta SET value = '1' WHERE key = 'schema_version'",
    )

    assert repair(directory, tmp_path / "new").is_complete

    assert inspect_store(tmp_path / "new").findings == []
    again = open_store(tmp_path / "new")
    assert shown(again, "c0", "sarah") == [("a", "user", "kept")]
    again.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    ["[]", "{}", '{"format_version": 1, "store_id": "00"}', '{"format_version": Infinity, "store_id": 7}', "\0"],
)
def test_a_format_that_says_nothing_is_damaged(content: str, directory: Path, tmp_path: Path) -> None:
    open_store(directory).close()
    owner = inspect_store(directory).store_id
    (directory / "FORMAT").write_text(content)

    assert [finding.what for finding in inspect_store(directory).findings] == ["the file FORMAT is damaged"]
    with pytest.raises(DirectoryError, match="FORMAT is damaged"):
        open_store(directory)
    report = repair(directory, tmp_path / "new")

    assert (report.store_id, report.is_complete) == (owner, True)


def test_what_an_interrupted_restore_left_is_neither_served_nor_repaired_nor_healthy(
    directory: Path, tmp_path: Path
) -> None:
    open_store(directory).close()
    (directory / "FORMAT").rename(directory / "FORMAT.unfinished")

    with pytest.raises(DirectoryError, match="is not a data directory"):
        open_store(directory)
    assert ["interrupted" in finding.what for finding in inspect_store(directory).findings] == [True]
    with pytest.raises(RepairError, match="was interrupted: run that again"):
        repair(directory, tmp_path / "new")


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [lambda file: file.write_bytes(b""), lambda file: file.unlink()])
def test_a_database_of_no_bytes_is_made_good_from_the_journal(
    spoil: Callable[[Path], object], directory: Path, tmp_path: Path
) -> None:
    store = open_store(directory)
    store.messages.append(WRITE, "c0", "sarah", [draft("a", "kept")], ConversationDraft(id=""))
    store.close()
    spoil(directory / "remora.duckdb")

    assert ["the next start" in finding.remedy for finding in inspect_store(directory).findings] == [True]
    assert repair(directory, tmp_path / "new").is_complete
    for place in (directory, tmp_path / "new"):
        again = open_store(place)
        assert shown(again, "c0", "sarah") == [("a", "user", "kept")]
        again.close()


def test_a_store_is_never_repaired_into_itself(directory: Path) -> None:
    open_store(directory).close()

    with pytest.raises(RepairError, match="outside"):
        repair(directory, directory / "new")


def test_a_store_in_use_is_not_repaired(directory: Path, tmp_path: Path) -> None:
    store = open_store(directory)

    with pytest.raises(RepairError, match="stop it first"):
        repair(directory, tmp_path / "new")
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        ("UPDATE heads SET message_count = message_count + 1", "another number of messages"),
        ("UPDATE heads SET last_sequence = 1", "beyond the newest sequence"),
        ("DELETE FROM heads", "conversations without a head"),
        ("DELETE FROM conversations", "heads without a conversation"),
        ("INSERT INTO messages SELECT * FROM messages WHERE sequence = 2", "sequences of a conversation that two"),
        ("INSERT INTO conversations SELECT * FROM conversations", "ids that two conversations"),
        ("UPDATE messages SET revision = 99 WHERE sequence = 2", "revisions that were not applied"),
        (
            """INSERT INTO embeddings SELECT tenant_id, conversation_uid, sequence, 77, 'm', false, 2, [1, 0], NULL
               FROM messages""",
            "vectors of no message",
        ),
    ],
)
def test_rows_that_do_not_agree_are_found(directory: Path, spoil: str, what: str) -> None:
    store = open_store(directory)
    store.messages.append(WRITE, "c", "sarah", [draft("a", "one"), draft("b", "two")], ConversationDraft(id=""))
    store.close()
    database = Database(directory, 64 << 20)
    database.cursor().execute(spoil)
    database.checkpoint()
    database.close()

    report = inspect_store(directory)

    assert any(what in finding.what for finding in report.findings)
    assert all("repair" in finding.remedy for finding in report.findings)


def write_few(directory: Path, count: int = 12) -> None:
    store = open_store(directory)
    for number in range(count):
        store.messages.append(WRITE, f"c{number % 4}", "sarah", [draft(f"m{number}", f"{number}")], NEW)
    store.close()


def tables_read(directory: Path) -> set[str]:
    """The tables that can be read through."""
    found = set()
    with duckdb.connect(str(directory / "remora.duckdb"), read_only=True) as connection:
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            with suppress(duckdb.Error):
                read_table(connection, table)
                found.add(table)
    return found


@pytest.mark.parametrize("format_too", [False, True])
def test_rows_are_saved_where_the_database_no_longer_says_whose_it_is(
    directory: Path, tmp_path: Path, *, format_too: bool
) -> None:
    write_few(tmp_path / "sound")
    released(tmp_path / "sound", directory)
    owner, revision = inspect_store(directory).store_id, inspect_store(directory).database.applied_revision
    whole = tables_read(directory)
    move(directory, "meta")
    damage(directory, "meta", "value")
    assert whole - tables_read(directory) == {"meta"}
    if format_too:
        (directory / "FORMAT").unlink()

    report = repair(directory, tmp_path / "new")

    assert (report.store_id, report.revision, report.lost_revisions) == (owner, revision, [])
    assert set(report.lost_rows) == {"meta"}
    assert not report.is_complete
    assert not any("cannot be opened" in note for note in report.notes)
    assert any("what the database says of itself cannot be read" in note for note in report.notes)
    assert inspect_store(tmp_path / "new").findings == []
    assert held(tmp_path / "new") == {f"c{n}": [str(n), str(n + 4), str(n + 8)] for n in range(4)}


def test_what_was_written_since_is_applied_where_it_is_not_known_what_was(directory: Path, tmp_path: Path) -> None:
    """Also without the journal's note: the rows say how far the database came at least."""
    write_few(tmp_path / "sound")
    released(tmp_path / "sound", directory)
    store = open_store(directory)
    store.messages.append(WRITE, "c0", "sarah", [draft("late", "late")], NEW)
    store.messages.delete(WRITE, "c0", "sarah", ["m0"])
    store.close()
    move(directory, "meta")
    damage(directory, "meta", "value")
    (directory / "journal" / "reach").unlink()

    report = repair(directory, tmp_path / "new")

    assert report.lost_revisions == []
    assert held(tmp_path / "new")["c0"] == ["4", "8", "late"]


def test_a_table_of_a_newer_version_is_known_by_its_name_alone(directory: Path, tmp_path: Path) -> None:
    write_few(directory)
    change(directory, "CREATE TABLE of_tomorrow AS SELECT 1 AS one")
    move(directory, "meta")
    damage(directory, "meta", "value")

    with pytest.raises(RepairError, match="the table of_tomorrow, which is not known: upgrade Remora"):
        repair(directory, tmp_path / "new")


def write_owned(directory: Path) -> None:
    """Four conversations with messages, steps, a working memory; the last one belongs to two users."""
    store = open_store(directory)
    for number in range(8):
        user = "peter" if number == 7 else "sarah"
        store.messages.append(WRITE, f"c{number % 4}", user, [draft(f"m{number}", f"{number}")], NEW)
    store.steps.save(WRITE, [StepDraft("s", "c0", "sarah", "o", 0, 1, b"")])
    store.working_memories.set(WRITE, ConversationMemory("c1", ""), b"remembered")
    store.close()


def test_what_belongs_to_a_conversation_whose_row_is_lost_is_kept_under_an_id_that_is_made(
    directory: Path, tmp_path: Path
) -> None:
    write_owned(tmp_path / "sound")
    released(tmp_path / "sound", directory)
    uids = uids_of(directory)
    move(directory, "conversations")
    damage(directory, "conversations", "id")

    report = repair(directory, tmp_path / "new")

    ids = {name: f"recovered-{uid}" for name, uid in uids.items()}
    assert (report.rows["messages"], report.rows["steps"], report.rows["conversation_memories"]) == (8, 1, 1)
    assert (report.lost_rows, report.removed) == ({"conversations": 4}, {})
    assert {touched.conversation_id for touched in report.conversations} == set(ids.values())
    assert inspect_store(tmp_path / "new").findings == []
    store = open_store(tmp_path / "new")
    assert [text for _, _, text in shown(store, ids["c0"], "sarah")] == ["0", "4"]
    assert store.steps.list(READ, StepQuery(ids["c0"])).encoded
    found, _ = store.conversations.get(READ, ids["c2"], "")
    assert (found.draft.id, found.draft.user_id, found.message_count) == (ids["c2"], "sarah", 2)
    assert store.conversations.get(READ, ids["c3"], "")[0].draft.user_id == "", "two users have messages there"
    store.close()


def uids_of(directory: Path) -> dict[str, int]:
    with duckdb.connect(str(directory / "remora.duckdb"), read_only=True) as connection:
        return dict(connection.execute("SELECT id, uid FROM conversations").fetchall())


def test_a_conversation_gets_its_own_id_back_where_the_journal_names_it(directory: Path, tmp_path: Path) -> None:
    write_owned(tmp_path / "sound")
    released(tmp_path / "sound", directory)
    store = open_store(directory)
    store.messages.append(WRITE, "c0", "sarah", [draft("late", "late")], NEW)
    store.messages.append(WRITE, "recovered-2", "sarah", [draft("taken", "taken")], NEW)
    store.close()
    assert uids_of(directory)["c1"] == 2
    change(directory, "DELETE FROM conversations WHERE id LIKE 'c%'")

    report = repair(directory, tmp_path / "new")

    assert {touched.conversation_id for touched in report.conversations} == {
        "c0",
        "recovered-2-2",
        "recovered-3",
        "recovered-4",
    }
    saved = open_store(tmp_path / "new")
    assert [text for _, _, text in shown(saved, "c0", "sarah")] == ["0", "4", "late"]
    assert [text for _, _, text in shown(saved, "recovered-2", "sarah")] == ["taken"]
    assert [text for _, _, text in shown(saved, "recovered-2-2", "sarah")] == ["1", "5"]
    saved.close()


def test_what_a_lost_record_deleted_goes_and_is_counted(directory: Path, tmp_path: Path) -> None:
    """An id belongs to one conversation: the older of two was deleted."""
    write_owned(tmp_path / "sound")
    released(tmp_path / "sound", directory)
    change(
        directory,
        "UPDATE conversations SET id = 'c1' WHERE id = 'c0'",
        "UPDATE messages SET id = 'm7', user_id = 'sarah' WHERE id = 'm3'",
        "UPDATE messages SET user_id = 'sarah' WHERE id = 'm7'",
    )

    report = repair(directory, tmp_path / "new")

    assert report.removed == {
        "conversations of a conversation whose id a newer one has": 1,
        "heads of a conversation whose id a newer one has": 1,
        "messages of a conversation whose id a newer one has": 2,
        "steps of a conversation whose id a newer one has": 1,
        "messages whose id a newer message has": 1,
    }
    assert not report.is_complete
    assert saved_facts(report)["removed"] == report.removed
    assert inspect_store(tmp_path / "new").findings == []


def test_a_collection_whose_row_is_lost_is_made_anew_from_its_vectors(directory: Path, tmp_path: Path) -> None:
    """Without it, a vector of another dimension would be taken."""
    scope = VectorScope("books")
    store = open_store(tmp_path / "sound")
    put(Tenant(store.bundle(), TENANT), *(vector(f"{n}", [1.0, n, 0.5], scope) for n in range(3)), scope=scope)
    store.close()
    released(tmp_path / "sound", directory)
    move(directory, "vector_collections")
    damage(directory, "vector_collections", "body")
    assert any("the table vector_collections cannot be read" in one.what for one in inspect_store(directory).findings)

    report = repair(directory, tmp_path / "new")

    [made] = report.rebuilt
    assert "the collection books of tenant acme: its dimension, 3, is taken from its vectors" in made
    assert saved_facts(report)["rebuilt"] == [made]
    assert not report.is_complete
    assert inspect_store(tmp_path / "new").findings == []
    saved = open_store(tmp_path / "new")
    tenant = Tenant(saved.bundle(), TENANT)
    assert len(near(tenant, [1.0, 0.0, 0.5], k=9, scope=scope)) == 3
    with pytest.raises(DimensionMismatch):
        put(tenant, vector("other", [1.0] * 8, scope), scope=scope)
    saved.close()


def test_vectors_without_their_collection_are_found(directory: Path) -> None:
    scope = VectorScope("books")
    store = open_store(directory)
    put(Tenant(store.bundle(), TENANT), vector("a", [1.0, 2.0], scope), scope=scope)
    store.close()
    change(directory, "DELETE FROM vector_collections")

    [found] = inspect_store(directory).findings

    assert found.what == "1 vectors without their collection"
    assert "repair" in found.remedy


@pytest.mark.parametrize("naming", ["embeddings", "receipts", "windows"])
def test_a_sequence_is_not_given_twice_where_the_head_is_lost(naming: str, directory: Path, tmp_path: Path) -> None:
    """That of a message that is deleted may still be named by something else."""
    store = open_store(tmp_path / "sound")
    store.messages.append(WRITE, "c", "sarah", [draft(f"m{n}", f"{n}") for n in range(1, 6)], NEW)
    store.messages.append(WRITE, "d", "sarah", [draft("other", "other")], NEW)
    store.close()
    released(tmp_path / "sound", directory)
    change(directory, "DELETE FROM messages WHERE sequence > 2", *naming_of(naming, 4))
    move(directory, "heads")
    damage(directory, "heads", "last_sequence")

    repair(directory, tmp_path / "new")

    saved = open_store(tmp_path / "new")
    saved.messages.append(WRITE, "c", "sarah", [draft("next", "next")], NEW)
    found = messages(saved, MessageQuery("c", "sarah", limit=9))
    assert [message.sequence for message in found] == [1, 2, 5]
    saved.close()


def naming_of(table: str, sequence: int) -> list[str]:
    """Statements that name a message of the first conversation in a table."""
    if table == "embeddings":
        return [f"INSERT INTO embeddings VALUES ('acme', 1, {sequence}, 1, 'm', false, 2, [1, 0], NULL)"]
    if table == "windows":
        kind = CONVERSATION_WINDOWS
        made = kind.draft(record_pb2.ConversationWindow(first_sequence=sequence))
    else:
        kind, scope = RECEIPTS, record_pb2.ReceiptScope(conversation_id="c", conversation_uid=1, user_id="sarah")
        receipt = record_pb2.StoredReceipt(id="r", scopes=[scope], item_scopes=[0], item_sequences=[sequence])
        made = kind.draft(receipt)
    uid = 1 if kind.of_conversation else 0
    literals = {
        "tenant_id": f"'{TENANT}'",
        "conversation_uid": str(uid),
        "place": str(_native.place(TENANT, uid, made.partition)),
        "partition": f"unhex('{made.partition.hex()}')",
        "key": f"unhex('{made.key.hex()}')",
        "user_id": "''",
        "revision": "1",
        "ordinal": "0",
        "upload_id": "''",
        "body": f"unhex('{made.body.hex()}')",
    }
    return [f"INSERT INTO {kind.name} ({', '.join(literals)}) VALUES ({', '.join(literals.values())})"]


def test_of_two_messages_of_one_sequence_the_newer_one_stays(directory: Path, tmp_path: Path) -> None:
    """As where a revision was lost, so that the journal gave back a message beside what was left of it."""
    write_few(tmp_path / "sound")
    released(tmp_path / "sound", directory)
    older = "SELECT * REPLACE ('recovered-1' AS id, 'older' AS text, 1 AS revision) FROM messages WHERE id = 'm4'"
    change(directory, f"INSERT INTO messages {older}")

    report = repair(directory, tmp_path / "new")

    assert report.removed == {"messages whose sequence a newer message has": 1}
    assert held(tmp_path / "new")["c0"] == ["0", "4", "8"]
    assert inspect_store(tmp_path / "new").findings == []
