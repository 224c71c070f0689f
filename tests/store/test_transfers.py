"""Exports and imports, in any store, and from each into each."""

from __future__ import annotations

import struct

import pytest
from msgspec.structs import replace
from tests.store.asking import NEW, Tenant, draft, listed, step_draft

from remora.v1.short_term_pb2 import ConversationSummary
from remora.v1.transfer_service_pb2 import Record
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import ConversationNotFound, InvalidField, RecordConflict
from remora_server.domain.messages import MessageEmbedding, MessageQuery, View
from remora_server.domain.transfers import ExportQuery, Import
from remora_server.domain.windows import Cover, Summary
from remora_server.domain.working_memory import ConversationMemory, UserMemory
from remora_server.rpc.handlers.transfers import import_of

VECTOR = MessageEmbedding("a-model", struct.pack("<3f", 1, 2, 3))


@pytest.fixture
def filled(tenant: Tenant) -> Tenant:
    """Two conversations with all that there is, one of them of Tom."""
    full = ConversationDraft("", "sarah", "room", "Trip", b"\x00", {"a": 1, "b": None}, storage_limit=3)
    tenant.append("1", "2", create=full)
    tenant.append("theirs", user="tom")
    tenant.append("3", "4")
    tenant.store.messages.append(tenant.write, "c", "sarah", [draft("3", "replaced", embedding=VECTOR)], None)
    tenant.store.steps.save(tenant.write, [step_draft("s", content="x"), step_draft("t", user="tom")])
    tenant.store.working_memories.set(tenant.write, ConversationMemory("c"), b"of c")
    tenant.append("a", conversation="d", user="tom")
    tenant.store.working_memories.set(tenant.write, UserMemory("sarah"), b"of sarah")
    tenant.store.working_memories.set(tenant.write, UserMemory("tom"), b"of tom")
    return tenant


def kinds(records: list[Record]) -> list[str]:
    return [str(record.WhichOneof("kind")) for record in records]


def requests(records: list[Record]) -> list[list[Record]]:
    """The records of each conversation, and those of users."""
    apart: dict[str, list[Record]] = {}
    for record in records:
        kind = record.WhichOneof("kind")
        if kind == "conversation":
            owner = record.conversation.conversation.id
        elif kind == "working_memory":
            owner = record.working_memory.scope.conversation_id
        else:
            owner = getattr(record, str(kind)).conversation_id
        apart.setdefault(owner, []).append(record)
    return list(apart.values())


def given(records: list[Record]) -> Import:
    """The records as the wire layer would hand them over, which uses its own up."""
    return import_of([Record.FromString(record.SerializeToString()) for record in records])


def imported(tenant: Tenant, records: list[Record]) -> int:
    return sum(tenant.store.imports.store(tenant.write, given(part)).imported_records for part in requests(records))


def test_an_export_has_every_record_in_order(filled: Tenant) -> None:
    records = filled.exported()

    assert kinds(records) == [
        "conversation", "message", "message", "message", "step", "step", "working_memory",
        "conversation", "message", "working_memory", "working_memory",
    ]  # fmt: skip
    assert [(record.message.message.text, record.message.message.sequence) for record in records[1:4]] == [
        ("theirs", 3),
        ("replaced", 4),
        ("4", 5),
    ]
    assert [record.message.message.embedding.values for record in records[1:4]] == [b"", VECTOR.values, b""]
    assert all(record.message.message.revision == 0 for record in records)
    assert records[0].conversation.conversation.last_sequence == 5
    assert records[6].working_memory.content == b"of c"


@pytest.mark.parametrize("limit", [1, 2, 5, 100])
def test_pages_of_any_size_hold_the_same(filled: Tenant, limit: int) -> None:
    assert filled.exported(ExportQuery(limit=limit)) == filled.exported()


def test_a_part_is_exported_alone(filled: Tenant) -> None:
    everything = filled.exported()

    assert filled.exported(ExportQuery(user_id="tom")) == [*everything[7:9], everything[10]]
    assert filled.exported(ExportQuery(conversation_id="c")) == everything[:7]
    with pytest.raises(ConversationNotFound):
        filled.exported(ExportQuery(user_id="tom", conversation_id="c"))
    with pytest.raises(ConversationNotFound):
        filled.exported(ExportQuery(conversation_id="nowhere"))


def test_what_comes_while_an_export_runs_is_left_out(filled: Tenant) -> None:
    before = filled.exported()
    first = filled.store.exports.page(filled.read, ExportQuery(limit=2))

    filled.append("late", conversation="new")
    filled.append("late")
    rest = filled.exported(ExportQuery(limit=2, position=first.following))

    texts = [record.message.message.text for record in rest if record.HasField("message")]
    assert "late" not in texts
    assert len(first.records) + len(rest) == len(before)


def test_a_working_memory_that_changes_while_an_export_runs_is_exported_once(filled: Tenant) -> None:
    before = filled.exported()
    first = filled.store.exports.page(filled.read, ExportQuery(limit=7))

    filled.store.working_memories.set(filled.write, ConversationMemory("c"), b"later")

    assert kinds(before)[6] == "working_memory"
    assert filled.exported(ExportQuery(position=first.following)) == before[7:]


def test_an_import_makes_the_same_again(filled: Tenant, other: Tenant) -> None:
    records = filled.exported()

    assert imported(other, records) == len(records)

    assert other.exported() == records
    assert imported(other, records) == 0, "what is there is not written again"
    assert other.texts("c", "sarah") == ["replaced", "4"]


def test_a_summary_is_imported_with_the_window_behind_it(tenant: Tenant, other: Tenant) -> None:
    tenant.append("1", "2", "3")
    conversation, _ = tenant.store.conversations.get(tenant.read, "c", "")
    _, _, revision = tenant.store.windows.current(tenant.read, "c", "")
    said = Summary("short", 2, "extractive", 1)
    tenant.store.windows.summarize(tenant.write, "c", conversation.uid, Cover(0, 2, revision), said)
    records = tenant.exported()

    assert imported(other, records) == len(records) == 5

    assert other.exported() == records
    assert imported(other, records) == 0
    window, summary, _ = other.store.windows.current(other.read, "c", "")
    assert summary is not None
    assert (summary.text, summary.covers_through, window.first_sequence) == ("short", 2, 3)
    assert listed(other.store, other.read, MessageQuery("c", view=View.WINDOW))[0].text == "3"
    changed = _changed(records, 4)
    changed.conversation_summary.text = "another"
    with pytest.raises(RecordConflict):
        other.store.imports.store(other.write, given([changed]))


def test_what_is_appended_behind_an_imported_summary_is_in_the_window(tenant: Tenant, other: Tenant) -> None:
    tenant.append("1", "2", "3")
    records = tenant.exported()
    summary = ConversationSummary(conversation_id="c", user_id="sarah", covers_through_sequence=100, text="short")
    summary.create_time.seconds = 1
    imported(other, [*records, Record(conversation_summary=summary)])

    other.append("4", create=None)

    assert [each.text for each in listed(other.store, other.read, MessageQuery("c", view=View.WINDOW))] == ["4"]


def test_an_import_goes_on_where_one_ended(filled: Tenant, other: Tenant) -> None:
    records = filled.exported()
    imported(other, records[:3])

    assert imported(other, records) == len(records) - 3
    assert other.exported() == records


def test_an_imported_conversation_goes_on(filled: Tenant, other: Tenant) -> None:
    imported(other, filled.exported())

    assert other.append("next").messages[0].sequence == 6
    assert other.store.messages.append(other.write, "c", "", [draft("4", "new")], None).messages[0].replaced


def _changed(records: list[Record], number: int) -> Record:
    changed = Record()
    changed.CopyFrom(records[number])
    return changed


def test_a_record_that_differs_from_what_is_there_is_refused(filled: Tenant) -> None:
    records = filled.exported()
    before = records
    conversation, message, step, memory = (_changed(records, number) for number in (0, 2, 4, 6))
    conversation.conversation.conversation.title = "Another"
    message.message.message.text = "another"
    step.step.content = "another"
    memory.working_memory.content = b"another"

    for changed in (conversation, message, step, memory):
        with pytest.raises(RecordConflict):
            filled.store.imports.store(filled.write, given([changed]))
    assert filled.exported() == before


def test_a_message_whose_id_stands_elsewhere_is_refused(filled: Tenant) -> None:
    moved = _changed(filled.exported(), 2)
    moved.message.message.sequence = 9

    with pytest.raises(RecordConflict):
        filled.store.imports.store(filled.write, given([moved]))


def test_records_of_no_conversation_are_refused(filled: Tenant, other: Tenant) -> None:
    with pytest.raises(ConversationNotFound):
        other.store.imports.store(other.write, given(filled.exported()[1:3]))


def test_messages_out_of_order_and_doubled_records_are_refused(filled: Tenant, other: Tenant) -> None:
    records = filled.exported()

    for wrong in (
        [records[0], records[3], records[2]],
        [records[0], records[4], records[4]],
        [records[0], records[6], records[6]],
    ):
        with pytest.raises(InvalidField):
            other.store.imports.store(other.write, given(wrong))
    assert other.exported() == []


def test_a_page_holds_three_mebibytes_and_one_record_at_least(tenant: Tenant) -> None:
    long = "x" * (1 << 20)
    tenant.store.messages.append(tenant.write, "c", "sarah", [draft(name, long) for name in "abcd"], NEW)
    tenant.store.messages.append(tenant.write, "c", "sarah", [draft("e", 3 * long)], NEW)

    sizes: list[int] = []
    query: ExportQuery | None = ExportQuery()
    while query is not None:
        page = tenant.store.exports.page(tenant.read, query)
        sizes.append(len(page.records))
        assert len(page.records) == 1 or sum(map(len, page.records)) <= 3 << 20
        query = replace(query, position=page.following) if page.following else None
    assert sizes == [3, 2, 1]
