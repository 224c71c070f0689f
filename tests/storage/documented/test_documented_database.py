"""The database of a store is what `docs/format.md` says, and its rows are what the journal holds."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

import duckdb
import pytest
from google.protobuf.message import Message as AnyMessage
from tests.storage.documented.document import Row, numbers, table
from tests.storage.documented.reader import place
from tests.storage.documented.written import Written
from tests.storage.formats.make import NEVER_WRITTEN

from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message
from remora_server import _native

TYPES = {"bool": "BOOLEAN", "int64": "BIGINT", "double": "DOUBLE", "text": "VARCHAR", "bytes": "BLOB"}


def documented_tables() -> dict[str, list[str]]:
    tables = {row["table"]: row["columns"].split(", ") for row in table("The database", "table")}
    of_kind = tables.pop("of a kind")
    at = of_kind.index("…")
    for kind in table("Kinds"):
        declared = [column.split(" ") for column in kind["columns"].split(", ") if column]
        tables[kind["kind"]] = [*of_kind[:at], *(f"{name} {TYPES[of]}?" for name, of in declared), *of_kind[at + 1 :]]
    return tables


def documented_fields(change: str) -> set[int]:
    """The numbers of the fields that an encoded message in a change may have."""
    return next(numbers(row["fields"]) for row in table("Encoded messages") if row["of"] == change)


def fields_of(messages: Iterable[AnyMessage]) -> set[int]:
    """The numbers of the fields that are set in some of these messages."""
    return {field.number for message in messages for field, _ in message.ListFields()}


def test_the_tables_are_documented(database: duckdb.DuckDBPyConnection) -> None:
    names = [name for (name,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()]

    found = {name: database.execute(f"DESCRIBE {name}").fetchall() for name in names}

    assert documented_tables() == {
        name: [f"{column} {of}{'?' if nullable == 'YES' else ''}" for column, of, nullable, *_ in columns]
        for name, columns in found.items()
    }


def test_the_facts_of_a_store_are_documented(written: Written, database: duckdb.DuckDBPyConnection) -> None:
    patterns = [re.sub(r"<\w+>", ".+", re.escape(row["key"])) for row in table("The database", "key")]

    facts: dict[str, str] = dict(database.execute("SELECT key, value FROM meta").fetchall())

    assert [fact for fact in facts if not any(re.fullmatch(pattern, fact) for pattern in patterns)] == []
    assert facts["store_id"] == written.store_id.hex()
    assert facts["applied_revision"] == str(written.journal.last_revision)
    assert facts["kind:1"] == "steps(operation_id text, step_index int64)"


@pytest.mark.parametrize("row", table("The database", "tenant"), ids=lambda row: str(row["place"]))
def test_an_example_of_a_place_is_hashed_so(row: Row) -> None:
    partition = row["tenant"], int(row["conversation_uid"]), bytes.fromhex(row["partition"])

    assert f"{place(*partition):016x}" == row["place"]
    assert f"{_native.place(*partition):016x}" == row["place"]


def test_the_row_of_a_record_is_the_change_that_it_names(written: Written, database: duckdb.DuckDBPyConnection) -> None:
    changes = {(change.revision, change.ordinal): change for change in written.changes("put_record")}
    for kind in table("Kinds"):
        rows = database.execute(
            "SELECT revision, ordinal, conversation_uid, place, tenant_id, partition, key, user_id, upload_id, body "
            f"FROM {kind['kind']}"
        ).fetchall()
        assert rows or kind["kind"] in NEVER_WRITTEN
        for revision, ordinal, uid, found, tenant_id, *rest in rows:
            change = changes[revision, ordinal]
            put = change.content
            assert rest == [put.partition, put.key, put.user_id, put.upload_id, put.body]
            assert (tenant_id, uid) == (change.record.tenant_id, put.conversation_uid)
            assert found == place(tenant_id, uid, put.partition)


def test_a_conversation_is_known_by_the_revision_that_created_it(
    written: Written, database: duckdb.DuckDBPyConnection
) -> None:
    puts = written.changes("put_conversation")
    created = {change.revision for change in puts if not change.content.conversation_uid}
    deleted = {change.content.conversation_uid for change in written.changes("delete_conversation")}

    rows = database.execute("SELECT uid, body FROM conversations").fetchall()

    assert {uid for uid, _ in rows} == created - deleted
    assert fields_of(Conversation.FromString(body) for _, body in rows) == documented_fields("put_conversation")


def test_the_row_of_a_message_has_its_body_without_the_text(
    written: Written, database: duckdb.DuckDBPyConnection
) -> None:
    puts = {(change.revision, change.content.sequence): change.content for change in written.changes("put_message")}
    rows = database.execute("SELECT revision, sequence, text, body FROM messages").fetchall()

    assert fields_of(Message.FromString(put.body) for put in puts.values()) == documented_fields("put_message")
    for revision, sequence, text, body in rows:
        whole, kept = Message.FromString(puts[revision, sequence].body), Message.FromString(body)
        assert (whole.text, kept.text) == (text, "")
        kept.text = text
        assert kept == whole


def test_the_row_of_a_vector_has_its_values(written: Written, database: duckdb.DuckDBPyConnection) -> None:
    of_callers = [change.content for change in written.changes("put_message") if change.content.embedding_model]
    of_server = [change.content for change in written.changes("put_embedding")]
    rows = database.execute("SELECT by_caller, values, dimension, pieces FROM embeddings").fetchall()

    vectors = {(by_caller, struct.pack(f"<{size}f", *values), pieces) for by_caller, values, size, pieces in rows}

    assert {each for each in vectors if each[0]} == {(True, put.embedding, None) for put in of_callers}
    server_vectors = {(False, put.values, put.pieces) for put in of_server}
    assert {each for each in vectors if not each[0]} <= server_vectors
