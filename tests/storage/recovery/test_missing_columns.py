"""Rows with a column that cannot be read: what of them is kept, and what stands in its place."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.storage.opening import TENANT, WRITE, open_store, shown
from tests.storage.recovery.blocks import FILE, blocks_of, flip_block, released
from tests.store.asking import NEW, Tenant, draft, step_draft
from tests.store.test_vectors import put, vector

from remora.v1 import message_pb2
from remora_server.domain.messages import MessageDraft
from remora_server.domain.vectors import VectorScope
from remora_server.storage.database.database import Database
from remora_server.storage.recovery.inspection import inspect_store
from remora_server.storage.recovery.missing_columns import Fillings
from remora_server.storage.recovery.repair_report import saved_facts
from remora_server.storage.recovery.salvage import repair
from remora_server.storage.schema.kinds import KINDS

Row = dict[str, Any]

MESSAGES, METADATA_BYTES = 300, 2048


def long_message(number: int, metadata: bytes) -> MessageDraft:
    text = f"text {number}"
    body = message_pb2.Message(role="user", text=text, metadata=metadata).SerializeToString()
    return MessageDraft(id=f"m{number}", role="user", text=text, body=body)


def test_messages_are_kept_where_another_column_than_their_texts_is_damaged(tmp_path: Path) -> None:
    """The bodies fill blocks of their own."""
    generated, directory = random.Random(5), tmp_path / "data"
    store = open_store(tmp_path / "sound")
    for begin in range(0, MESSAGES, 50):
        numbers = range(begin, begin + 50)
        drafts = [long_message(number, generated.randbytes(METADATA_BYTES)) for number in numbers]
        store.messages.append(WRITE, "c", "sarah", drafts, NEW)
    store.close()
    released(tmp_path / "sound", directory)
    shared = [blocks_of(directory, "messages", column) for column in ("id", "text", "create_time", "role")]
    own = [block for block in blocks_of(directory, "messages", "body") if not any(block in each for each in shared)]
    assert own, "blocks that hold nothing but bodies"
    flip_block(directory, own[0])

    report = repair(directory, tmp_path / "new")

    assert (report.lost_rows, report.filled) == ({}, {"messages.body": MESSAGES})
    assert saved_facts(report)["filled"] == report.filled
    assert not report.is_complete
    assert inspect_store(tmp_path / "new").findings == []
    saved = open_store(tmp_path / "new")
    expected = [(f"m{number}", "user", f"text {number}") for number in range(MESSAGES)]
    assert shown(saved, "c", "sarah") == expected
    saved.close()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sound") / "data"
    store = open_store(directory)
    for number, (role, name) in enumerate([("user", "Sarah"), ("assistant", "")]):
        message = draft(f"m{number}", f"text {number}", role=role, name=name, sent=10 + number)
        store.messages.append(WRITE, "c", "sarah", [message], NEW)
    store.steps.save(WRITE, [step_draft("s", "c", "sarah", operation="operation", index=4)])
    scope = VectorScope("books", "sarah")
    put(Tenant(store.bundle(), TENANT), vector("v", [1.0, 2.0], scope), scope=scope)
    store.close()
    return directory


@pytest.fixture
def connection(sound: Path, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A new database, with the sound one as `old`."""
    Database(tmp_path, 64 << 20).close()
    with duckdb.connect(str(tmp_path / FILE)) as opened:
        opened.execute(f"ATTACH '{sound / FILE}' AS old (READ_ONLY)")
        opened.execute("INSERT INTO conversations FROM old.conversations")
        yield opened


def copied(
    connection: duckdb.DuckDBPyConnection, table: str, *unreadable: str
) -> tuple[list[Row], list[Row], list[str]]:
    """The rows of a table as they were and as they are copied without some columns, and which were filled."""
    was = rows_of(connection, f"old.{table}")
    failing = ", ".join(f"error('Corrupt') AS \"{column}\"" for column in unreadable)
    connection.execute("ATTACH ':memory:' AS damaged")
    connection.execute(f"CREATE VIEW damaged.rows AS SELECT * REPLACE ({failing}) FROM old.{table}")
    connection.execute(f"DELETE FROM {table}")
    kept, filled = Fillings(connection, KINDS).copy(table, list(was[0]), "damaged.rows WHERE true")
    found = rows_of(connection, table)
    assert kept == len(found)
    return was, found, filled


def rows_of(connection: duckdb.DuckDBPyConnection, table: str) -> list[Row]:
    found = connection.execute(f"SELECT * FROM {table} ORDER BY ALL")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("conversations", "id"),
        ("conversations", "user_id"),
        ("conversations", "title"),
        ("conversations", "storage_limit"),
        ("conversations", "body"),
        ("messages", "tenant_id"),
        ("messages", "role"),
        ("messages", "name"),
        ("messages", "sent_time"),
        ("messages", "session_id"),
        ("messages", "update_time"),
        ("messages", "create_time"),
        ("messages", "body"),
        ("steps", "tenant_id"),
        ("steps", "place"),
        ("steps", "user_id"),
        ("steps", "operation_id"),
        ("steps", "step_index"),
        ("vectors", "place"),
        ("vectors", "user_id"),
        ("vectors", "collection_id"),
        ("vectors", "body_bytes"),
        ("vector_collections", "id"),
    ],
)
def test_a_column_that_others_tell_is_as_it_was(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> None:
    if table == "conversations":
        connection.execute("DELETE FROM conversations")

    was, found, filled = copied(connection, table, column)

    assert filled == [column]
    assert found == was


def test_what_no_other_column_tells_has_a_value_that_stands_for_it(connection: duckdb.DuckDBPyConnection) -> None:
    lost = ("revision", "id", "role", "create_time", "update_time", "token_count", "body")

    was, found, filled = copied(connection, "messages", *lost)

    assert filled == list(lost)
    assert [message_pb2.Message.FromString(row["body"]).role for row in found] == ["unknown", "unknown"]
    assert [row["role"] for row in found] == ["unknown", "unknown"]
    assert [row["id"] for row in found] == ["recovered-1", "recovered-2"]
    assert [row["revision"] for row in found] == [1, 1], "that of the conversation, which is older"
    assert [(row["create_time"], row["update_time"]) for row in found] == [(row["sent_time"],) * 2 for row in was]
    assert [row["token_count"] for row in found] == [3, 3]
    assert [row["text"] for row in found] == [row["text"] for row in was]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("messages", "text"),
        ("messages", "user_id"),
        ("messages", "sequence"),
        ("steps", "body"),
        ("vectors", "partition"),
        ("requests", "time"),
    ],
)
def test_a_row_is_lost_with_a_column_that_it_is_worth_nothing_without_or_that_says_whose_it_is(
    connection: duckdb.DuckDBPyConnection, table: str, column: str
) -> None:
    if table == "requests":
        connection.execute("DETACH old")
        connection.execute("ATTACH ':memory:' AS old")
        connection.execute("CREATE TABLE old.requests AS SELECT 'a' AS tenant_id, 'r' AS request_id, 1 AS time")

    _, found, _ = copied(connection, table, column)

    assert found == []
