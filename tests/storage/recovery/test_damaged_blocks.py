"""A byte that is flipped within the database's file, block by block: made good from the journal, or said."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.storage.opening import READ, TENANT, WRITE, open_store, shown
from tests.storage.recovery.blocks import BLOCK, FILE, HEADERS, flip_block
from tests.store.asking import draft

from remora_server.domain.calls import Write
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import StoreDamaged
from remora_server.domain.messages import MessageEmbedding
from remora_server.domain.steps import StepDraft, StepQuery
from remora_server.domain.working_memory import ConversationMemory
from remora_server.storage.database.directory import DirectoryError
from remora_server.storage.local_store import LocalStore
from remora_server.storage.recovery.inspection import NEXT_START, inspect_store
from remora_server.storage.recovery.salvage import repair
from remora_server.storage.schema.kinds import CONVERSATION_MEMORIES, STEPS
from remora_server.storage.schema.kinds import TABLES as TABLES_OF_NO_KIND

LOG = FILE + ".wal"
CONVERSATIONS = ("c0", "c1", "c2")
"""The last writes are to the second and the third."""

Rows = dict[str, list[tuple[Any, ...]]]
Shown = dict[tuple[str, str], object]

TABLES = [*(table.name for table in TABLES_OF_NO_KIND), STEPS.name, CONVERSATION_MEMORIES.name]
"""Those that have rows here."""


def append(store: LocalStore, number: int, text: str) -> None:
    write = Write(TENANT, method="Test", request_id=f"r{number}", fingerprint=bytes(16))
    vector = MessageEmbedding("caller's", struct.pack("<2f", 1.0, number))
    name = CONVERSATIONS[number % len(CONVERSATIONS)]
    message = draft(f"m{number}", f"{number} {text}", embedding=vector)
    store.messages.append(write, name, "sarah", [message], ConversationDraft(id=""))


def write_store(folder: Path, *, let_go: bool) -> Path:
    """A store as a kill leaves it, a part in the file and a part in the log; with `let_go` the journal begins late."""
    store = open_store(folder / "living")
    for number in range(20):
        append(store, number, "word " * 600)
    store.steps.save(WRITE, [StepDraft(f"s{n}", "c0", "sarah", "o", n, 1, b"") for n in range(20)])
    for name in CONVERSATIONS:
        store.working_memories.set(WRITE, ConversationMemory(name, ""), name.encode() * 99)
    for number in range(20, 100 if let_go else 20):
        append(store, number, "long " * 20_000)
    store.close()
    store = open_store(folder / "living")
    append(store, 100, "late")
    append(store, 101, "late")
    store.applier.catch_up()
    shutil.copytree(folder / "living", folder / "killed")
    store.close()
    return folder / "killed"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = write_store(tmp_path_factory.mktemp("whole"), let_go=False)
    assert inspect_store(store).journal.first_revision == 1
    return store


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = write_store(tmp_path_factory.mktemp("released"), let_go=True)
    assert inspect_store(store).journal.first_revision > 1
    return store


def blocks(store: Path) -> range:
    return range(((store / FILE).stat().st_size - HEADERS) // BLOCK)


def tables_hit(store: Path) -> set[str]:
    """The tables that cannot be read through."""
    found = [finding.what for finding in inspect_store(store).findings]
    return {table for table in TABLES if any(f"the table {table} cannot be read" in what for what in found)}


def rows(store: Path) -> Rows:
    """All that a store holds, read from a copy of its files."""
    with duckdb.connect(str(store / FILE), read_only=True) as connection:
        return {
            table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=str)
            for table in TABLES
            if table != "meta"
        }


def read(store: LocalStore) -> Shown:
    """What can be read, by what it is and its conversation; what meets damage is left out."""
    found = Shown()
    for name in CONVERSATIONS:
        reads: dict[str, Callable[[str], object]] = {
            "conversation": lambda name: store.conversations.get(READ, name, "sarah"),
            "messages": lambda name: shown(store, name, "sarah"),
            "steps": lambda name: store.steps.list(READ, StepQuery(name)),
            "memory": lambda name: store.working_memories.get(READ, ConversationMemory(name)),
        }
        for what, ask in reads.items():
            with suppress(StoreDamaged):
                found[what, name] = ask(name)
    return found


def opened_twice(store: Path) -> Shown:
    """What is shown after two starts; each shows the truth or nothing."""
    first = open_store(store)
    before = read(first)
    first.close()
    second = open_store(store)
    after = read(second)
    second.close()
    assert before.items() <= after.items()
    return after


def refusal(store: Path) -> str:
    """Why a store is not opened; empty where it is."""
    try:
        open_store(store).close()
    except DirectoryError as error:
        return str(error)
    return ""


@pytest.mark.faults
def test_a_flipped_byte_in_any_block_is_made_good_where_the_journal_holds_everything(
    whole: Path, tmp_path: Path
) -> None:
    expected, hit = rows(whole), set[str]()
    assert all(expected.values()), "each table has rows"

    for number in blocks(whole):
        damaged = tmp_path / str(number)
        shutil.copytree(whole, damaged)
        flip_block(damaged, number)
        hit |= tables_hit(damaged)

        opened_twice(damaged)

        assert rows(damaged) == expected, number
        assert inspect_store(damaged).findings == []
        set_aside = {path.name for path in (damaged / "damaged").iterdir()}
        assert f"{FILE}.0" in set_aside, "not the log alone, which is sound"
        assert set_aside <= {f"{FILE}.0", f"{LOG}.0"}
    assert hit >= set(TABLES) - {"meta"}


@pytest.mark.faults
def test_a_flipped_byte_in_any_block_is_said_where_the_journal_begins_late(released: Path, tmp_path: Path) -> None:
    files = {path.relative_to(released) for path in released.rglob("*.duckdb*")}
    sound = open_store(shutil.copytree(released, tmp_path / "sound"))
    expected, outcomes = read(sound), set[str]()
    sound.close()

    for number in blocks(released):
        damaged = tmp_path / str(number)
        shutil.copytree(released, damaged)
        flip_block(damaged, number)

        said = refusal(damaged)
        if said:
            assert f"`remora repair --data {damaged} --to NEWDIR`" in said
            assert {path.relative_to(damaged) for path in damaged.rglob("*.duckdb*")} == files, "nothing is moved"
        else:
            assert opened_twice(damaged).items() <= expected.items(), "what is shown is shown whole"
        outcomes.add("refused" if said else "served")
        assert not (damaged / "damaged").exists()

        report = repair(damaged, tmp_path / f"new{number}")
        saved = open_store(tmp_path / f"new{number}")
        assert read(saved) == expected or not report.is_complete, number
        saved.close()
    assert outcomes == {"refused", "served"}


@pytest.mark.slow
def test_a_read_that_meets_damage_has_the_next_start_make_it_good(whole: Path, tmp_path: Path) -> None:
    store = shutil.copytree(whole, tmp_path / "damaged")
    [block] = [number for number in blocks(whole) if "heads" in hit_by(whole, number, tmp_path)]
    flip_block(store, block)
    assert "repair" in inspect_store(store).findings[0].remedy

    served = open_store(store)
    with pytest.raises(StoreDamaged, match="a restart of the server makes it good"):
        served.conversations.get(READ, "c0", "sarah")
    served.close()

    assert {finding.remedy for finding in inspect_store(store).findings} == {NEXT_START}
    again = open_store(store)
    assert again.conversations.get(READ, "c0", "sarah")[0].message_count == 7
    again.close()


def hit_by(whole: Path, number: int, folder: Path) -> set[str]:
    """The tables that a flipped byte of a block makes unreadable."""
    copy = shutil.copytree(whole, folder / f"hit{number}")
    flip_block(copy, number)
    return tables_hit(copy)
