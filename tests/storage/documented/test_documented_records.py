"""Records, keys and kinds are what `docs/format.md` says."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import symbol_database
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.faults.sidecar import ROOT
from tests.storage.declared import ITEMS, WITH_ITEMS, Item
from tests.storage.documented.document import Row, numbers, table
from tests.storage.documented.reader import key
from tests.storage.documented.written import MEMORY, REQUEST_ID, Written, changes, read
from tests.storage.opening import READ, WRITE, open_store
from tests.storage.test_formats import FORMATS, unpacked

from remora.v1.conversation_pb2 import Conversation
from remora.v1.fact_pb2 import Fact
from remora.v1.memory_service_pb2 import SetWorkingMemoryRequest
from remora.v1.message_pb2 import Message as WireMessage
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.receipts import ReceiptDraft, ReplyItem
from remora_server.domain.windows import WHOLE, Cover, Summary, Window
from remora_server.rpc.handlers import decode
from remora_server.storage.records.records import Put
from remora_server.storage.records.uploads import Upload, Uploaded
from remora_server.storage.schema import keys
from remora_server.storage.schema.keys import KeyType
from remora_server.storage.schema.kinds import KINDS, STEPS
from remora_server.storage.v1 import record_pb2

VOCABULARY = 30_522
"""The word pieces that the built-in model knows."""


def test_the_fields_of_records_are_documented() -> None:
    record: Descriptor = record_pb2.Record.DESCRIPTOR
    change: Descriptor = record_pb2.Change.DESCRIPTOR
    of_records = {(row["number"], row["field of Record"]) for row in table("The payload of a record")}
    of_changes = {(row["number"], row["change"]) for row in table("Changes")}

    assert of_records == {(str(field.number), field.name) for field in record.fields}
    assert of_changes == {(str(field.number), field.name) for field in change.fields}
    for row in table("Changes"):
        content: Any = change.fields_by_name[row["change"]].message_type
        assert row["fields by number"].split(", ") == [f"{field.number} {field.name}" for field in content.fields]


def test_every_documented_change_is_read_from_a_journal(written: Written, uploaded: Written, tmp_path: Path) -> None:
    old = next(folder for folder in FORMATS if folder.name == "schema_2")
    stores = [written, uploaded, read(unpacked(old, "killed", tmp_path / "old"))]

    found = {change.name for store in stores for change in changes(store.journal.records)}

    assert found == {row["change"] for row in table("Changes")}


def test_the_fields_of_encoded_messages_are_documented() -> None:
    rows = {row["of"]: row for row in table("Encoded messages")}
    conversation: Descriptor = Conversation.DESCRIPTOR
    message: Descriptor = WireMessage.DESCRIPTOR

    of_conversation = {conversation.fields_by_name[name].number for name in ConversationDraft.__struct_fields__}
    of_message = {field.number for field in message.fields if field.name not in decode.NOT_IN_BODY}

    assert numbers(rows["put_conversation"]["fields"]) == of_conversation
    assert numbers(rows["put_message"]["fields"]) == of_message


def test_the_fields_that_the_engine_reads_are_documented() -> None:
    searched = ", ".join(str(kind.number) for kind in KINDS if kind.is_searched)
    [items] = (kind.number for kind in KINDS if kind.holds_items)
    of_windows = read_by_engine("message.rs", "Message", "CallerMessage", "FilteredMessage")
    of_chats = set(map(int, re.findall(r"pub\(super\) const \w+: u32 = (\d+);", source("chats/src/message.rs"))))

    rows = {row["of"]: row for row in table("Encoded messages")}
    reads = {of: numbers(row["that the engine reads"]) for of, row in rows.items() if "other" not in of}

    assert reads == {
        "put_conversation": read_by_engine("message.rs", "Conversation"),
        "put_message": (of_windows | of_chats) & numbers(rows["put_message"]["fields"]),
        f"put_record of kind {searched}": read_by_engine("message.rs", "Vector", "VectorText"),
        f"put_record of kind {items}": read_by_engine("store_item.rs", "StoreItem", "StoreItemIndex"),
    }


def source(path: str) -> str:
    """A file of the engine."""
    return (ROOT / "rust" / path).read_text("utf-8")


def read_by_engine(file: str, *structs: str) -> set[int]:
    """The numbers of the fields that structs of the engine have."""
    found: set[int] = set()
    for struct_name in structs:
        [body] = re.findall(
            rf"^pub struct {struct_name} {{\n(.*?)^}}", source(f"wire/src/{file}"), re.MULTILINE | re.DOTALL
        )
        found |= set(map(int, re.findall(r'tag = "(\d+)"', body)))
    return found


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A store with bodies that were uploaded in parts, of a conversation's record and of another."""
    data = tmp_path_factory.mktemp("uploaded") / "data"
    store = open_store(data, kinds=WITH_ITEMS)
    store.records.upload_part(WRITE, Upload("u", ITEMS), 0, b"long")
    store.records.write(WRITE, [Put(ITEMS, 0, Item(namespace=["a", "b"], id="i"), uploaded=Uploaded("u", 1))])
    store.records.upload_part(WRITE, Upload("v", STEPS, 7, "trip", "ann"), 3, b"long")
    store.close()
    return read(data)


@pytest.fixture(scope="module")
def of_server(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A store with what the server writes by itself: a window that moved, and a receipt of a message and a fact."""
    data = tmp_path_factory.mktemp("of_server") / "data"
    store = open_store(data)
    uid = store.conversations.create(WRITE, ConversationDraft("trip")).revision
    store.windows.move(WRITE, "trip", uid, WHOLE, Window(7, 3))
    moved = store.windows.get(READ, "trip", "")[0]
    summary = Summary("It is about trains.", 9, "extractive", 5)
    store.windows.summarize(WRITE, "trip", uid, Cover(moved.revision, 9, moved.revision), summary)
    system = ReplyItem("", 0, WireMessage(role="system", text="Be brief.").SerializeToString(), b"")
    said = WireMessage(id="f", user_id="ann", role="user", text="Ann likes trains.")
    known = Fact(id="f", subject="user", predicate="likes", object="trains", text=said.text)
    fact = ReplyItem("", 0, said.SerializeToString(), b"", fact_id="f", fact=known.SerializeToString())
    draft = ReceiptDraft(
        id="r",
        tenant_id=WRITE.tenant_id,
        user_id="ann",
        conversation_id="trip",
        uid=uid,
        create_time=time.time_ns() // 1_000,
        revision=uid,
        is_context=True,
        request=b"",
        reply=b"",
        items=(system, fact),
    )
    store.receipts.write(WRITE, [draft], lifetime=1_000_000_000)
    store.close()
    return read(data)


def test_the_parts_of_a_long_body_are_records_that_its_own_names(uploaded: Written) -> None:
    first, long, second = (change.content for change in uploaded.changes("put_record"))
    [confirmed] = (change.content for change in uploaded.changes("set_expiry"))

    assert (first.kind, first.partition, first.key) == (4, key(["text"], ["u"]), key(["unsigned"], [0]))
    assert (long.partition, long.key) == (key(["texts"], [["a", "b"]]), key(["text"], ["i"]))
    assert (long.upload_id, long.body) == ("u/1", b"")
    assert (confirmed.partition, confirmed.key) == (first.partition, first.key)
    assert not confirmed.HasField("expire_time")
    assert (second.kind, second.conversation_uid) == (5, 7)
    assert (second.partition, second.key) == (key(["text"], ["v"]), key(["unsigned"], [3]))
    assert (first.expire_time - uploaded.changes("put_record")[0].record.time) // 1_000_000 == 3600


def test_a_head_stands_behind_the_changes_of_messages_and_steps(written: Written) -> None:
    waiting: set[tuple[int, int]] = set()
    for change in changes(written.journal.records):
        is_step = change.name in {"put_record", "remove_records"} and change.content.kind == STEPS.number
        if is_step or change.name in {"put_message", "remove_messages"}:
            waiting.add((change.revision, change.content.conversation_uid))
        elif change.name == "put_head":
            waiting.discard((change.revision, change.content.conversation_uid))

    assert waiting == set()


def test_a_fingerprint_is_of_the_method_and_the_request(written: Written) -> None:
    record = record_pb2.Record.FromString(written.journal.records[-1].payload)
    request = ParseDict(MEMORY, SetWorkingMemoryRequest()).SerializeToString(deterministic=True)

    assert (record.request_id, record.method) == (REQUEST_ID, "SetWorkingMemory")
    assert record.fingerprint == hashlib.blake2b(b"SetWorkingMemory\0" + request, digest_size=16).digest()
    assert record.outcome.time == record.time


def test_vectors_and_word_pieces_are_as_documented(written: Written) -> None:
    for embedding in (change.content for change in written.changes("put_embedding")):
        assert math.hypot(*struct.unpack("<384f", embedding.values)) == pytest.approx(1)
        count, rest = divmod(len(embedding.pieces), 2 + 128)
        assert (count > 0, rest) == (True, 0)
        *ids, codes = struct.unpack(f"<{count}H{count * 128}s", embedding.pieces)
        assert max(ids) < VOCABULARY
        for code in struct.iter_unpack("128b", codes):
            assert math.hypot(*code) == pytest.approx(127, abs=6)


@pytest.mark.parametrize("row", table("Keys", "types"), ids=lambda row: str(row["parts, as JSON"]))
def test_an_example_of_a_key_is_encoded_so(row: Row) -> None:
    types, parts, encoded = row["types"].split(", "), json.loads(row["parts, as JSON"]), bytes.fromhex(row["bytes"])

    assert key(types, parts) == encoded
    assert keys.encode(map(KeyType, types), parts) == encoded


TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\x00\x01\xff"), max_size=5)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "texts": st.lists(TEXTS, max_size=4),
    "unsigned": st.integers(0, 2**64 - 1),
    "signed": st.integers(-(2**63), 2**63 - 1),
}


@st.composite
def typed_parts(draw: st.DrawFn) -> tuple[list[str], list[Any]]:
    types = draw(st.lists(st.sampled_from(sorted(PARTS)), max_size=4))
    return types, [draw(PARTS[kind]) for kind in types]


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(typed_parts())
def test_keys_are_encoded_as_documented(drawn: tuple[list[str], list[Any]]) -> None:
    types, parts = drawn

    assert keys.encode(map(KeyType, types), parts) == key(types, parts)


def test_the_kinds_are_documented() -> None:
    assert table("Kinds") == [
        {
            "number": str(kind.number),
            "kind": kind.name,
            "body": kind.message.DESCRIPTOR.full_name,
            "partition": ", ".join(part.path for part in kind.partition),
            "key": ", ".join(part.path for part in kind.key),
            "columns": ", ".join(f"{column.name} {column.column_type}" for column in kind.columns),
            "belongs to": ", ".join(["conversation"] * kind.of_conversation + ["user"] * kind.of_user),
            "exported as": kind.transfer,
        }
        for kind in KINDS
    ]


def test_partition_and_key_follow_from_the_body(written: Written, uploaded: Written, of_server: Written) -> None:
    documented = {row["number"]: row for row in table("Kinds")}
    puts = [change.content for store in (written, uploaded, of_server) for change in store.changes("put_record")]
    with_bodies = [put for put in puts if not put.upload_id]

    assert {str(put.kind) for put in with_bodies} == documented.keys()
    for put in with_bodies:
        kind = documented[str(put.kind)]
        body = symbol_database.Default().GetSymbol(kind["body"]).FromString(put.body)
        assert (put.partition, put.key) == (encoded(kind["partition"], body), encoded(kind["key"], body))


def encoded(paths: str, body: Message) -> bytes:
    """The parts of a key by their paths in a body, which are texts, lists of texts or numbers."""
    named = [path for path in paths.split(", ") if path]
    return key([type_of(body, path) for path in named], [part_of(body, path) for path in named])


TYPES = {str: "text", list: "texts", int: "unsigned"}


def type_of(body: Message, path: str) -> str:
    """What a part is: numbers of 32 bits have a sign."""
    field = body.DESCRIPTOR.fields_by_name.get(path)
    if field is not None and field.type == FieldDescriptor.TYPE_INT32:
        return "signed"
    return TYPES[type(part_of(body, path))]


def part_of(body: Message, path: str) -> Any:  # noqa: ANN401 - of the field's type
    found: Any = body
    for name in path.split("."):
        found = getattr(found, name)
    return found if isinstance(found, str | int) else list(found)
