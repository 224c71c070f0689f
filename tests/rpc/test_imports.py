"""Imported records that no server made: refused, or made right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.input.callers import DirectCaller, ask, direct_caller

from remora.v1 import checkpoint_service_pb2 as checkpoints
from remora.v1 import memory_service_pb2 as memory
from remora.v1 import transfer_service_pb2 as pb
from remora.v1.fact_pb2 import Fact, FactIds
from remora_server.domain.differences import GREATEST_DEPTH
from remora_server.domain.status import ModelStatus

AT = {"seconds": 1_000}
SAID = Fact(subject="s", predicate="p", object="o")
VALUES = b"\x00\x00\x80?\x00\x00\x00\x00\x00\x00\x00\x00"
ITEM = {"id": "i", "user_id": "u", "create_time": AT, "update_time": AT}

STORE_ITEM = {"namespace": ["n"], "key": "k", "value": b"1", "create_time": AT, "update_time": AT}
SUMMARY = {"conversation_id": "c", "user_id": "u", "covers_through_sequence": 1, "text": "Rain.", "create_time": AT}


@pytest.fixture
def caller() -> Iterator[DirectCaller]:
    with direct_caller(ModelStatus("m", 3)) as made:
        yield made


@pytest.fixture
def fact(caller: DirectCaller) -> pb.Record:
    """A fact as a server exports it. It is no longer there."""
    ask(caller, "AddFacts", memory.AddFactsRequest(user_id="u", facts=[SAID]))
    exported: Any = ask(caller, "ExportRecords", pb.ExportRecordsRequest(user_id="u"))
    [record] = exported.records
    ask(caller, "ForgetFacts", memory.ForgetFactsRequest(user_id="u", all=memory.AllFacts()))
    return pb.Record.FromString(record.SerializeToString())


def refused(caller: DirectCaller, *records: pb.Record) -> list[str]:
    answer = caller.call("ImportRecords", pb.ImportRecordsRequest(records=records).SerializeToString())
    assert answer.reason == "INVALID_FIELD"
    return list(answer.paths)


def recorded(caller: DirectCaller) -> list[Fact]:
    listed: Any = ask(caller, "ListFacts", memory.ListFactsRequest(user_id="u"))
    return list(listed.facts)


@pytest.mark.parametrize(
    "given", ["working-memory", "f", "ba3534c382b20eed-a03051b7b7ab66a8-x", "ba3534c382b20eed-a03051b7b7ab66a8-0"]
)
def test_a_fact_has_the_id_of_what_it_says(caller: DirectCaller, fact: pb.Record, given: str) -> None:
    fact.fact.id = given

    assert refused(caller, fact) == ["records[0].fact.id"]
    assert recorded(caller) == []


def test_a_fact_whose_version_is_another_is_forgotten_as_others_are(caller: DirectCaller, fact: pb.Record) -> None:
    fact.fact.version = 5
    ask(caller, "ImportRecords", pb.ImportRecordsRequest(records=[fact]))

    assert [each.id for each in recorded(caller)] == [fact.fact.id]
    forgetting = memory.ForgetFactsRequest(user_id="u", ids=FactIds(ids=[fact.fact.id]))
    assert ask(caller, "ForgetFacts", forgetting).forgotten_facts == 1  # type: ignore[attr-defined]
    assert recorded(caller) == []


@pytest.mark.parametrize(
    ("given", "wrong"),
    [({"mentions": 0}, "mentions"), ({"mentions": -1}, "mentions"), ({"valid_to": {"seconds": -9}}, "valid_to")],
)
def test_a_fact_is_one_that_was_said_and_ends_behind_its_beginning(
    caller: DirectCaller, fact: pb.Record, given: dict[str, Any], wrong: str
) -> None:
    fact.fact.ClearField(wrong)  # type: ignore[arg-type]
    fact.fact.MergeFrom(Fact(**given))

    assert refused(caller, fact) == [f"records[0].fact.{wrong}"]
    assert recorded(caller) == []


def test_the_times_of_a_facts_sources_are_kept_to_the_microsecond(caller: DirectCaller, fact: pb.Record) -> None:
    fact.fact.sources.add(conversation_id="c", message_id="m").sent_time.nanos = 1_999
    ask(caller, "ImportRecords", pb.ImportRecordsRequest(records=[fact]))

    [found] = recorded(caller)
    assert [source.sent_time.nanos for source in found.sources] == [1_000]


@pytest.mark.parametrize("ids", [["a", ""], ["a", "a"]])
def test_static_facts_have_ids_of_their_own(caller: DirectCaller, ids: list[str]) -> None:
    facts: Any = [{"id": each, "content": "It rains."} for each in ids]
    record = pb.Record(static_facts={"facts": facts, "update_time": AT})  # type: ignore[arg-type]

    assert refused(caller, record) == ["records[0].static_facts.facts[1].id"]


def test_a_summary_is_of_the_user_of_its_conversation(caller: DirectCaller) -> None:
    chat = {"id": "c", "user_id": "u", "create_time": AT, "update_time": AT}
    records: Any = [{"conversation": {"conversation": chat}}, {"conversation_summary": {**SUMMARY, "user_id": "v"}}]

    assert refused(caller, *records) == ["records[1].conversation_summary.user_id"]
    records[1]["conversation_summary"]["user_id"] = "u"
    assert ask(caller, "ImportRecords", pb.ImportRecordsRequest(records=records)).imported_records == 2  # type: ignore[attr-defined]


def test_a_fact_that_ceased_before_it_was_recorded_is_imported(caller: DirectCaller, fact: pb.Record) -> None:
    """A server writes that whose clock was set back in between."""
    fact.fact.cease_time.seconds = fact.fact.record_time.seconds - 60

    assert ask(caller, "ImportRecords", pb.ImportRecordsRequest(records=[fact])).imported_records == 1  # type: ignore[attr-defined]


def test_a_fact_that_was_said_very_often_can_be_said_again(caller: DirectCaller, fact: pb.Record) -> None:
    fact.fact.mentions = 2**31 - 1
    fact.fact.earlier_sources.append(1)
    ask(caller, "ImportRecords", pb.ImportRecordsRequest(records=[fact]))
    ask(caller, "AddFacts", memory.AddFactsRequest(user_id="u", facts=[SAID]))

    [found] = recorded(caller)
    assert not found.earlier_sources
    assert found.mentions == 2**31 - 1


@pytest.mark.parametrize(
    ("model", "values", "wrong"),
    [
        ("m", b"abc", "values"),
        ("m", VALUES[:8] + b"\x00\x00\xc0\x7f", "values"),
        ("m", bytes(12), "values"),
        ("m", 2 * VALUES, "values"),
        ("", VALUES, "model"),
    ],
)
def test_the_vectors_of_facts_and_of_memory_items_are_vectors(
    caller: DirectCaller, fact: pb.Record, model: str, values: bytes, wrong: str
) -> None:
    fact.fact.model, fact.fact.values = model, values
    item = pb.Record(memory_item={**ITEM, "model": model, "values": values})  # type: ignore[arg-type]

    assert refused(caller, fact) == [f"records[0].fact.{wrong}"]
    assert refused(caller, item) == [f"records[0].memory_item.{wrong}"]


def test_an_item_whose_text_a_model_has_refused_is_imported(caller: DirectCaller, fact: pb.Record) -> None:
    fact.fact.model = "m"
    item = pb.Record(memory_item={**ITEM, "model": "m"})  # type: ignore[arg-type]

    reply = ask(caller, "ImportRecords", pb.ImportRecordsRequest(records=[fact, item]))

    assert reply.imported_records == 2  # type: ignore[attr-defined]


def test_a_collection_has_vectors_of_its_dimension(caller: DirectCaller) -> None:
    collection: Any = {"id": "c", "dimension": 3, "current_dimension": 5, "create_time": AT}
    record = pb.Record(vector_collection=collection)

    assert refused(caller, record) == ["records[0].vector_collection.current_dimension"]


def grown(caller: DirectCaller, times: int) -> list[pb.Record]:
    """The export of a thread whose channel has grown so often, each time by a few bytes."""
    for number in range(times):
        name = {"thread_id": "t", "id": f"{number:04}", "parent_id": f"{number - 1:04}" if number else ""}
        checkpoint: Any = {**name, "channels": [{"channel": "a", "version": {"integer": number}}]}
        value: Any = {"channel": "a", "value": {"data": bytes(range(200)) + b"+" * number}}
        draft: Any = {"checkpoint": checkpoint, "values": [value]}
        ask(caller, "SaveCheckpoints", checkpoints.SaveCheckpointsRequest(checkpoints=[draft]))
    exported: Any = ask(caller, "ExportRecords", pb.ExportRecordsRequest(page_size=1_000))
    return list(exported.records)


def other_tenant(caller: DirectCaller) -> DirectCaller:
    return DirectCaller(caller.methods, caller.store, (("remora-tenant", "another"),))


def test_the_value_of_a_channel_that_has_grown_often_is_imported(caller: DirectCaller) -> None:
    records = grown(caller, 102)
    other = other_tenant(caller)

    ask(other, "ImportRecords", pb.ImportRecordsRequest(records=records))

    newest: Any = {"thread_id": "t", "channel": {"channel": "a", "version": {"integer": 101}}}
    read: Any = ask(other, "ReadCheckpointValue", checkpoints.ReadCheckpointValueRequest(**newest))
    assert max(record.channel_blob.depth for record in records) == 101
    assert read.data == bytes(range(200)) + b"+" * 101


@pytest.mark.parametrize(
    ("depth", "wrong"), [(GREATEST_DEPTH - 1, []), (GREATEST_DEPTH, ["records[0].channel_blob.depth"])]
)
def test_a_value_has_at_most_the_greatest_depth(caller: DirectCaller, depth: int, wrong: list[str]) -> None:
    [record] = [record for record in grown(caller, 2) if record.channel_blob.depth]
    record.channel_blob.depth = depth
    request = pb.ImportRecordsRequest(records=[record])

    assert list(other_tenant(caller).call("ImportRecords", request.SerializeToString()).paths) == wrong


def test_a_record_whose_parent_is_not_there_is_named(caller: DirectCaller) -> None:
    before = pb.Record(working_memory={"scope": {"user_id": "u"}, "update_time": AT})  # type: ignore[arg-type]
    step: Any = {"id": "s", "entry_id": "nowhere", "create_time": AT, "update_time": AT}

    assert refused(caller, before, pb.Record(entry_step=step)) == ["records[1].entry_step"]


def test_a_record_that_is_too_long_is_named(caller: DirectCaller) -> None:
    times = dict.fromkeys(("start_time", "create_time", "update_time"), AT)
    run: Any = {**times, "id": "r", "workflow_id": "w", "status": 1, "input": bytes(3 << 20)}
    long: Any = {**run, "id": "l", "output": bytes(1 << 20)}

    assert refused(caller, pb.Record(workflow_run=run), pb.Record(workflow_run=long)) == ["records[1].workflow_run"]


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"mentions": 1, "earlier_sources": [1, 2]}, "mentions"),
        ({"mentions": 1, "sources": [{"message_id": "m"}, {"message_id": "n"}]}, "mentions"),
        ({"confidence": 0.0}, "confidence"),
        ({"text": ""}, "text"),
    ],
)
def test_a_fact_is_as_servers_record_facts(
    caller: DirectCaller, fact: pb.Record, given: dict[str, Any], wrong: str
) -> None:
    for name, value in given.items():
        fact.fact.ClearField(name)  # type: ignore[arg-type]
        fact.fact.MergeFrom(Fact(**{name: value}))

    assert refused(caller, fact) == [f"records[0].fact.{wrong}"]


def test_a_fact_of_which_nobody_is_sure_is_imported_as_it_was_exported(caller: DirectCaller) -> None:
    unsure = Fact(subject="s", predicate="p", object="o", confidence=1e-300)
    for _ in range(2):
        ask(caller, "AddFacts", memory.AddFactsRequest(user_id="u", facts=[unsure]))
    exported: Any = ask(caller, "ExportRecords", pb.ExportRecordsRequest())

    reply: Any = ask(other_tenant(caller), "ImportRecords", pb.ImportRecordsRequest(records=exported.records))

    assert exported.records[0].fact.confidence == pytest.approx(2e-300)
    assert reply.imported_records == 1


@pytest.mark.parametrize("dimension", [-1, 4_097])
def test_a_collection_has_a_dimension_that_vectors_can_have(caller: DirectCaller, dimension: int) -> None:
    collection: Any = {"id": "c", "current_dimension": dimension, "create_time": AT}

    assert refused(caller, pb.Record(vector_collection=collection)) == [
        "records[0].vector_collection.current_dimension"
    ]


def test_the_vectors_of_an_item_have_no_texts(caller: DirectCaller) -> None:
    item: Any = {**STORE_ITEM, "vectors": [{"values": VALUES}, {"text": "t"}]}

    assert refused(caller, pb.Record(store_item=item)) == ["records[0].store_item.vectors[1].text"]


@pytest.mark.parametrize(("name", "value"), [("token_count", -1), ("system_sequence", 2)])
def test_a_summary_counts_and_covers(caller: DirectCaller, name: str, value: int) -> None:
    summary: Any = {**SUMMARY, name: value}

    assert refused(caller, pb.Record(conversation_summary=summary)) == [f"records[0].conversation_summary.{name}"]


def test_what_an_import_ignores_is_not_exported(caller: DirectCaller) -> None:
    chat: Any = {"id": "c", "user_id": "u", "create_time": AT, "update_time": AT}
    summary: Any = {**SUMMARY, "window_revision": 7}
    item: Any = {**STORE_ITEM, "revision": 7}
    ask(caller, "ImportRecords", pb.ImportRecordsRequest(records=[pb.Record(store_item=item)]))
    records = [pb.Record(conversation={"conversation": chat}), pb.Record(conversation_summary=summary)]  # type: ignore[arg-type]
    ask(caller, "ImportRecords", pb.ImportRecordsRequest(records=records))

    exported: Any = ask(caller, "ExportRecords", pb.ExportRecordsRequest())
    _, found_summary, found_item = exported.records
    assert found_summary.conversation_summary.window_revision == 0
    assert found_item.store_item.revision == 0
