"""`remora import --from langgraph-store`: what is copied of a file, what is refused, and what differs afterwards.

The files have the schema of langgraph-checkpoint-sqlite 3; tests/suites/langgraph copies files of its own classes.
"""

from __future__ import annotations

import json
import math
import sqlite3
import struct
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.commands.moving import Moving

from remora.testing import remora_server, remora_tenant  # noqa: F401 - fixtures
from remora.v1.store_item_pb2 import ItemKey, StoreItem
from remora.v1.store_service_pb2 import DeleteItemsRequest, PutItemsRequest

SCHEMA = """
CREATE TABLE store (
    prefix text NOT NULL, key text NOT NULL, value text NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (prefix, key)
);
ALTER TABLE store ADD COLUMN expires_at TIMESTAMP;
ALTER TABLE store ADD COLUMN ttl_minutes REAL;
CREATE TABLE store_vectors (
    prefix text NOT NULL, key text NOT NULL, field_name text NOT NULL, embedding BLOB,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (prefix, key, field_name)
);
"""
NOW = datetime.now(UTC)


class Store(Moving):
    """A file of items."""

    source = "langgraph-store"
    schema = SCHEMA

    def put(self, prefix: str, key: str, value: object, **columns: object) -> None:
        dated = {"created_at": "2026-03-01 10:00:00", "updated_at": "2026-03-02 11:30:00"}
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.insert("store", prefix=prefix, key=key, value=body, **{**dated, **columns})

    def put_vector(self, prefix: str, key: str, field: str, *values: float) -> None:
        self.insert(
            "store_vectors",
            prefix=prefix,
            key=key,
            field_name=field,
            embedding=struct.pack(f"<{len(values)}f", *values),
        )

    def write(self, method: str, request: Any) -> None:  # noqa: ANN401 - any request of the service
        """Change what Remora has."""
        calls = self.memory._calls
        calls.write(getattr(calls.stubs.store, method), request)

    def items(self) -> dict[tuple[str, ...], StoreItem]:
        """All items of the tenant, by namespace and key, with their vectors."""
        records = self.memory.export_records().records
        return {(*record.store_item.namespace, record.store_item.key): record.store_item for record in records}


@pytest.fixture
def store(
    remora_server: str,  # noqa: F811
    remora_tenant: str,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Store:
    return Store(remora_server, remora_tenant, tmp_path / "store.sqlite", capsys)


def test_items_come_with_their_times_and_vectors(store: Store) -> None:
    store.put("users.ana", "tea", {"text": "Green tea, søt"})
    store.put("users.ana", "plain", b'{ "spaced":1 }')
    store.put_vector("users.ana", "tea", "text", 0.5, 0.25)
    store.put_vector("users.ana", "tea", "$.1", 1.0, 0.0)

    assert store.run() == (0, ["2 items copied; all are as in the file"])

    found = store.items()
    tea = found["users", "ana", "tea"]
    assert json.loads(tea.value) == {"text": "Green tea, søt"}
    assert found["users", "ana", "plain"].value == b'{ "spaced":1 }'
    assert tea.create_time.ToDatetime(UTC) == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert tea.update_time.ToDatetime(UTC) == datetime(2026, 3, 2, 11, 30, tzinfo=UTC)
    assert [(each.path, struct.unpack("<2f", each.values)) for each in tea.vectors] == [
        ("text", (0.5, 0.25)),
        ("$.1", (1.0, 0.0)),
    ]
    assert tea.user_id == ""


def test_a_second_import_copies_nothing(store: Store) -> None:
    store.put("a", "1", {})
    store.put("a", "2", {}, expires_at=str(NOW + timedelta(days=1)), ttl_minutes=1440.0)
    store.run()
    store.put("a", "3", {})

    assert store.run() == (0, ["1 item copied, 2 were there already; all are as in the file"])
    assert len(store.items()) == 3


def test_items_are_the_users_whom_a_label_names(store: Store) -> None:
    store.put("users.ana", "k", {})
    store.put("all", "k", {})

    code, _ = store.run("--user-label", "1")

    assert code == 0
    assert {place: item.user_id for place, item in store.items().items()} == {
        ("users", "ana", "k"): "ana",
        ("all", "k"): "",
    }


def test_items_live_as_long_as_they_did(store: Store) -> None:
    expires = NOW.replace(microsecond=0) + timedelta(hours=2)
    store.put("a", "live", {}, expires_at=str(expires), ttl_minutes=120.5)
    store.put("a", "refreshed", {}, expires_at=expires.strftime("%Y-%m-%d %H:%M:%S"), ttl_minutes=120.5)
    store.put("a", "gone", {}, expires_at=str(NOW - timedelta(seconds=1)), ttl_minutes=1.0)

    code, said = store.run()

    assert (code, said) == (0, ["1 item had expired and is left out", "2 items copied; all are as in the file"])
    found = store.items()
    assert {key for _, key in found} == {"live", "refreshed"}
    for item in found.values():
        assert item.expire_time.ToDatetime(UTC) == expires
        assert item.ttl.ToSeconds() == 7230


def test_vectors_of_deleted_items_are_left_out(store: Store) -> None:
    store.put("a", "k", {})
    store.put_vector("a", "deleted", "$", 1.0)

    assert store.run() == (
        0,
        ["1 vector of a deleted item is left out", "1 item copied; all are as in the file"],
    )


def test_what_differs_is_named_and_left_as_it_is(store: Store) -> None:
    for key in ("changed", "deleted", "same"):
        store.put("users.ana", key, {"n": 1})
    store.run()
    changed = StoreItem(namespace=["users", "ana"], key="changed", value=b'{"n":2}')
    store.write("PutItems", PutItemsRequest(items=[changed]))
    store.put("users.ana", "new", {})

    code, said = store.run()

    assert code == 1
    assert said == [
        "table store, row 1 (key 'changed' in 'users.ana'): Remora has another update_time, value",
        "remora: 1 of 4 items is not in Remora as in the file",
    ]
    assert store.items()["users", "ana", "changed"].value == b'{"n":2}'
    assert ("users", "ana", "new") in store.items()


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"value": b"{"}, "table store, row 2: value is not JSON: Input data was truncated"),
        ({"value": b"[1]"}, "table store, row 2: value is not a JSON object"),
        ({"value": b"[" * 100_000}, "table store, row 2: value is nested too deeply"),
        ({"value": b'{"a":"\xff"}'}, "table store, row 2: value is not UTF-8"),
        ({"prefix": b"\xff"}, "table store, row 2: prefix is not a text"),
        ({"created_at": "yesterday"}, "table store, row 2: created_at is not a time: 'yesterday'"),
        (
            {"created_at": "0001-01-01T00:00:00+14:00"},
            "table store, row 2: created_at is not a time: '0001-01-01T00:00:00+14:00'",
        ),
        ({"ttl_minutes": "soon"}, "table store, row 2: ttl_minutes is not a number"),
        ({"ttl_minutes": math.inf}, "table store, row 2: ttl_minutes is inf, and too long"),
        ({"ttl_minutes": 1e300}, "table store, row 2: ttl_minutes is 1e+300, and too long"),
    ],
)
def test_a_file_with_a_wrong_row_is_not_copied(store: Store, columns: dict[str, object], why: str) -> None:
    store.put("a", "right", {})
    store.insert("store", **{"prefix": "a", "key": "wrong", "value": b"{}", **columns})

    code, said = store.run()

    assert (code, said) == (1, [f"remora: {why}; nothing was copied"])
    assert store.items() == {}


def test_a_vector_that_is_cut_is_named(store: Store) -> None:
    store.put("a", "k", {})
    store.insert("store_vectors", prefix="a", key="k", field_name="$", embedding=b"12345")

    code, said = store.run()

    why = "embedding has 5 bytes, and is not a vector of 32-bit floats"
    assert (code, said) == (1, [f"remora: table store_vectors, row 1: {why}; nothing was copied"])


def test_a_row_that_remora_does_not_take_is_named(store: Store) -> None:
    store.put("a", "right", {})
    store.put("a..b", "wrong", {})

    code, [said] = store.run()

    assert code == 1
    assert said.startswith("remora: table store, row 2 (key 'wrong' in 'a..b'): ")
    assert "namespace" in said
    assert said.endswith("; 0 records were copied before")


def test_an_older_file_without_times_to_live_is_copied(store: Store) -> None:
    store.execute("DROP TABLE store_vectors")
    store.execute("ALTER TABLE store DROP COLUMN expires_at")
    store.execute("ALTER TABLE store DROP COLUMN ttl_minutes")
    store.put("a", "k", {})

    assert store.run() == (0, ["1 item copied; all are as in the file"])


def test_another_file_is_refused(store: Store) -> None:
    store.execute("DROP TABLE store")
    assert store.run() == (1, ["remora: {file} has no table store: it is not a file of LangGraph's SqliteStore"])

    whole = store.file.read_bytes()
    for content in (b'{"role": "user"}\n', b"", whole[:16], whole[:99]):
        store.file.write_bytes(content)
        assert store.run() == (1, ["remora: {file} is not an SQLite file"])

    store.file.unlink()
    assert store.run() == (1, ["remora: {file} cannot be read: No such file or directory"])


@pytest.mark.slow
def test_a_damaged_file_is_refused(store: Store) -> None:
    for number in range(200):
        store.put("a", str(number), {"text": "x" * 100})
    content = bytearray(store.file.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    store.file.write_bytes(content)

    code, [said] = store.run()

    assert code == 1
    assert "cannot be read: database disk image is malformed" in said
    assert store.items() == {}


def test_the_file_is_left_as_it_is(store: Store) -> None:
    store.execute("PRAGMA journal_mode=WAL")
    store.put("a", "k", {})
    before = store.file.read_bytes()

    code, _ = store.run()

    assert code == 0
    assert store.file.read_bytes() == before
    assert [each.name for each in store.file.parent.iterdir()] == [store.file.name]


def test_a_file_that_is_still_open_is_copied_with_its_log(store: Store) -> None:
    store.execute("PRAGMA journal_mode=WAL")
    with closing(sqlite3.connect(store.file)) as writer:
        writer.execute("INSERT INTO store (prefix, key, value) VALUES ('a', 'k', '{}')")
        writer.commit()

        assert store.run() == (0, ["1 item copied; all are as in the file"])


def test_flags_of_other_imports_are_refused(store: Store) -> None:
    assert store.run("--user", "ana") == (
        2,
        ["remora: --user is for OpenAI chat JSONL: a file of langgraph-store has its own"],
    )
    assert store.run_with(["import", "-", "--from", "langgraph-store"])[0] == 2
    assert store.run_with(["import", str(store.file), "--user-label", "0"]) == (
        2,
        ["remora: --user-label is for --from langgraph-store"],
    )


def test_a_file_of_sqlite_needs_to_be_said_whose_it_is(store: Store) -> None:
    sources = "langgraph-checkpoints or langgraph-store or voltagent"

    assert store.run_with(["import", str(store.file)]) == (
        2,
        [f"remora: {{file}} is a SQLite file: say with --from whose it is, {sources}"],
    )


def test_deleted_items_come_again(store: Store) -> None:
    store.put("a", "k", {})
    store.run()
    key = ItemKey(namespace=["a"], key="k")
    store.write("DeleteItems", DeleteItemsRequest(keys=[key]))

    assert store.run() == (0, ["1 item copied; all are as in the file"])
