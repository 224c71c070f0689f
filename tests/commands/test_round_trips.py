"""Whatever a tenant holds: exported and imported, it reads the same and is exported as the same bytes."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.input.callers import METHODS, DirectCaller, ask, direct_caller

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import history_service_pb2 as history
from remora.v1 import memory_item_pb2
from remora.v1 import memory_service_pb2 as memory
from remora.v1 import transfer_service_pb2 as transfers
from remora.v1.span_pb2 import SpanKind
from remora.v1.working_memory_pb2 import WorkingMemoryScope
from remora_server.commands.records import LineError, parse_line, parse_record, record_line
from remora_server.domain.status import ModelStatus
from remora_server.rpc.handlers.exported import conversation_of
from remora_server.storage.transfer.exports import CONVERSATIONS_AT_ONCE

USERS = ("u", "v")
CONVERSATIONS = ("c", "d", "é\0")
NAMES = st.sampled_from(CONVERSATIONS)
TEXTS = st.text(max_size=20)
BYTES = st.binary(max_size=20)
TIMES = st.builds(
    lambda seconds, micros: Timestamp(seconds=seconds, nanos=micros * 1000),
    st.integers(-62_135_596_800, 253_402_300_799),
    st.integers(0, 999_999),
)
SCALARS = st.one_of(
    st.just({"null_value": 0}),
    st.fixed_dictionaries({"boolean": st.booleans()}),
    st.fixed_dictionaries({"integer": st.integers(-(2**63), 2**63 - 1)}),
    st.fixed_dictionaries({"number": st.floats(allow_nan=False, allow_infinity=False)}),
    st.fixed_dictionaries({"text": TEXTS}),
)
ATTRIBUTES = st.dictionaries(st.text(min_size=1, max_size=5), SCALARS, max_size=3)
VECTORS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=4).filter(any)
EMBEDDINGS = st.builds(
    lambda model, vector: {"model": model, "values": struct.pack(f"<{len(vector)}f", *vector)},
    st.sampled_from(["mine", "yours"]),
    VECTORS,
)
CALLS = st.fixed_dictionaries({"id": st.sampled_from(["t1", "t2"]), "name": st.just("look"), "arguments": BYTES})
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "other"]), "id": st.sampled_from(["", "m1", "m2", "m3"])},
    optional={
        "name": TEXTS,
        "text": TEXTS,
        "parts": BYTES,
        "metadata": BYTES,
        "attributes": ATTRIBUTES,
        "tool_calls": st.lists(CALLS, max_size=2),
        "tool_result_ids": st.lists(st.sampled_from(["t1", "t2"]), max_size=2),
        "sent_time": TIMES,
        "session_id": TEXTS,
        "embedding": EMBEDDINGS,
    },
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "resource_id": TEXTS,
        "title": TEXTS,
        "metadata": BYTES,
        "attributes": ATTRIBUTES,
        "storage_limit": st.integers(1, 6),
    },
)
STEPS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["s1", "s2", "s3"]),
        "conversation_id": NAMES,
        "type": st.sampled_from([1, 2, 3]),
        "step_index": st.integers(0, 2),
    },
    optional={
        "user_id": st.sampled_from(USERS),
        "operation_id": TEXTS,
        "content": TEXTS,
        "arguments": BYTES,
        "result": BYTES,
        "usage": BYTES,
        "create_time": TIMES,
    },
)


def requests(method: str, **fields: Any) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:  # noqa: ANN401
    return st.tuples(st.just(method), st.fixed_dictionaries(fields))


WRITES = st.one_of(
    requests(
        "AppendMessages",
        conversation_id=NAMES,
        user_id=st.sampled_from(USERS),
        messages=st.lists(MESSAGES, min_size=1, max_size=5),
        create_if_missing=FIELDS,
    ),
    requests("AppendMessages", conversation_id=NAMES, messages=st.lists(MESSAGES, min_size=1, max_size=3)),
    requests("DeleteMessages", conversation_id=NAMES, message_ids=st.lists(st.sampled_from(["m1", "m2"]), max_size=2)),
    requests("SaveSteps", steps=st.lists(STEPS, min_size=1, max_size=3)),
    requests("SetWorkingMemory", scope=st.fixed_dictionaries({"conversation_id": NAMES}), content=BYTES),
    requests("SetWorkingMemory", scope=st.fixed_dictionaries({"user_id": st.sampled_from(USERS)}), content=BYTES),
    requests("ClearMessages", conversation_id=NAMES, user_id=st.sampled_from(USERS)),
    requests("DeleteConversation", conversation_id=NAMES),
)

OWNERS = st.sampled_from(USERS)
KEYS = st.sampled_from(["k", "l", "m"])
JSON = st.sampled_from([b"{}", b'{"a": [1, {"b": null}]}'])
FACTS = st.fixed_dictionaries(
    {name: st.sampled_from(["a", "b"]) for name in ("subject", "predicate", "object")},
    optional={
        "text": TEXTS,
        "confidence": st.sampled_from([5e-324, 1e-17, 0.5, 1.0]),
        "valid_from": TIMES,
        "valid_to": TIMES,
        "exclusive": st.booleans(),
        "extractor": TEXTS,
    },
)
SAID_IN = st.fixed_dictionaries({"conversation_id": NAMES, "message_id": KEYS}, optional={"sent_time": TIMES})
ITEMS = st.fixed_dictionaries(
    {"id": KEYS},
    optional={
        "text": TEXTS,
        "conversation": st.lists(st.fixed_dictionaries({"role": TEXTS, "content": TEXTS}), max_size=2),
        "tags": st.lists(KEYS, max_size=2),
        "metadata": JSON,
    },
)
STORED_VECTORS = st.lists(
    VECTORS.map(lambda vector: {"values": struct.pack("<f", vector[0]), "model": "m"}), max_size=2
)
STORE_ITEMS = st.fixed_dictionaries(
    {"namespace": st.lists(KEYS, min_size=1, max_size=2), "key": KEYS, "value": JSON},
    optional={"user_id": OWNERS, "ttl": st.just(Duration(seconds=3_600)), "vectors": STORED_VECTORS},
)
PLANE = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=2)
SPANS = st.fixed_dictionaries(
    {"trace_id": KEYS, "span_id": KEYS, "start_time": TIMES, "kind": st.sampled_from(SpanKind.values())}
)
POINTS = st.fixed_dictionaries(
    {"id": KEYS, "values": PLANE.map(lambda vector: struct.pack("<2f", *vector))},
    optional={"content": TEXTS, "metadata": BYTES, "attributes": ATTRIBUTES},
)
VALUES = st.integers(0, 9).map(lambda count: {"type": "b", "data": bytes(range(100)) + b"+" * count})
CHANNELS = st.fixed_dictionaries({"channel": st.just("a"), "version": st.builds(dict, integer=st.integers(0, 3))})
CHECKPOINTS = st.fixed_dictionaries(
    {
        "checkpoint": st.fixed_dictionaries(
            {"thread_id": KEYS, "id": KEYS, "channels": st.lists(CHANNELS, min_size=1, max_size=1)},
            optional={"parent_id": KEYS, "user_id": OWNERS, "metadata": JSON, "data": BYTES},
        )
    },
    optional={"values": VALUES.map(lambda value: [{"channel": "a", "value": value}])},
)
TASKS = st.fixed_dictionaries(
    {
        "name": st.fixed_dictionaries({"thread_id": KEYS, "checkpoint_id": KEYS}),
        "task_id": KEYS,
        "writes": VALUES.map(lambda value: [{"channel": "a", "value": value}]),
    }
)
NAMED = st.fixed_dictionaries({"id": KEYS}, optional={"start_time": TIMES, "end_time": TIMES, "create_time": TIMES})


def named(**more: Any) -> st.SearchStrategy[dict[str, Any]]:  # noqa: ANN401
    """Something with an id and times, and more fields."""
    return st.builds(dict[str, Any].__or__, NAMED, st.fixed_dictionaries(more))


def some(of: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, min_size=1, max_size=3)


OF_NO_CONVERSATION = st.one_of(
    requests("AddFacts", user_id=OWNERS, facts=some(FACTS), source=SAID_IN),
    requests("AddFacts", user_id=OWNERS, facts=some(FACTS)),
    requests("ForgetFacts", user_id=OWNERS, conversation_id=NAMES),
    requests("SetStaticFacts", facts=st.lists(st.builds(dict, content=st.text(min_size=1, max_size=5)), max_size=3)),
    requests("AddMemoryItems", user_id=OWNERS, items=some(ITEMS)),
    requests("PutItems", items=some(STORE_ITEMS)),
    requests("UpsertVectors", collection_id=KEYS, user_id=OWNERS, vectors=some(POINTS)),
    requests("CreateCollection", collection=st.fixed_dictionaries({"id": KEYS, "dimension": st.sampled_from([0, 2])})),
    requests("ClearCollection", collection_id=KEYS),
    requests("SaveCheckpoints", checkpoints=some(CHECKPOINTS), writes=st.lists(TASKS, max_size=2)),
    requests("SaveWorkflowRun", run=named(workflow_id=KEYS, status=st.just(1), metadata=JSON, user_id=OWNERS)),
    requests("SaveWorkflowSteps", steps=some(named(run_id=KEYS, status=st.just(1), step_index=st.integers(0, 2)))),
    requests("AddTimelineEvents", events=some(named(run_id=KEYS, sequence=st.integers(-1, 1)))),
    requests("SaveHistoryEntry", entry=named(agent_id=KEYS, conversation_id=NAMES, user_id=OWNERS)),
    requests("SaveEntrySteps", steps=some(named(entry_id=KEYS, step_index=st.integers(0, 2)))),
    requests("SaveSpans", spans=some(SPANS)),
    requests("SaveLogRecords", records=some(st.fixed_dictionaries({"time": TIMES, "attributes": JSON, "body": BYTES}))),
)


@pytest.fixture(scope="module")
def caller() -> Iterator[DirectCaller]:
    with direct_caller(ModelStatus()) as caller:
        yield caller


def tenant(caller: DirectCaller) -> DirectCaller:
    return DirectCaller(caller.methods, caller.store, (("remora-tenant", uuid.uuid4().hex),))


def built(method: str, fields: dict[str, Any]) -> Message:
    kind: Any = GetMessageClass(METHODS[method].input_type)
    request: Message = kind(**fields)
    return request


def exported(caller: DirectCaller, page_size: int, **scope: Any) -> list[bytes]:  # noqa: ANN401
    """All records as lines."""
    lines: list[bytes] = []
    request = transfers.ExportRecordsRequest(page_size=page_size, **scope)
    while True:
        page: Any = ask(caller, "ExportRecords", request)
        assert 0 < len(page.records) <= page_size or not page.next_page_token
        lines.extend(map(record_line, page.records))
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return lines


def imported(caller: DirectCaller, lines: list[bytes], sizes: list[int]) -> int:
    """How many records were stored: those of a conversation at once, in groups of the sizes given, round and round."""
    stored, number = 0, 0
    group: list[transfers.Record] = []
    for line in lines:
        record = parse_record(parse_line(line))
        if group and (len(group) >= sizes[number % len(sizes)] or conversation_of(group[0]) != conversation_of(record)):
            stored, group, number = stored + send(caller, group), [], number + 1
        group.append(record)
    return stored + send(caller, group) if group else stored


def send(caller: DirectCaller, records: list[transfers.Record]) -> int:
    reply: Any = ask(caller, "ImportRecords", transfers.ImportRecordsRequest(records=records))
    return int(reply.imported_records)


def readable(caller: DirectCaller) -> list[Message]:
    """All that reads show, in order, without the store's own uids and revisions."""
    orders = (pb.CONVERSATION_ORDER_CREATE_TIME, pb.CONVERSATION_ORDER_UPDATE_TIME, pb.CONVERSATION_ORDER_TITLE)
    found: list[Any] = [ask(caller, "ListConversations", pb.ListConversationsRequest(order_by=o)) for o in orders]
    for conversation in found[0].conversations:
        for user in USERS:
            for method, kind in (("ListMessages", pb.ListMessagesRequest), ("ListSteps", history.ListStepsRequest)):
                found.append(ask(caller, method, kind(conversation_id=conversation.id, user_id=user)))
        found.append(memory_of(caller, conversation_id=conversation.id))
    found.extend(memory_of(caller, user_id=user) for user in USERS)
    for reply in found:
        reply.revision = 0
        for part in (*getattr(reply, "conversations", ()), *getattr(reply, "messages", ())):
            part.ClearField("revision")
            if part.DESCRIPTOR.name == "Conversation":
                part.ClearField("uid")
    return found


def memory_of(caller: DirectCaller, **owner: str) -> Message:
    return ask(caller, "GetWorkingMemory", memory.GetWorkingMemoryRequest(scope=WorkingMemoryScope(**owner)))


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    writes=st.lists(WRITES, min_size=1, max_size=12),
    page_size=st.integers(1, 7),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
)
def test_what_was_imported_reads_as_it_did_and_is_exported_as_the_same_bytes(
    caller: DirectCaller, writes: list[tuple[str, dict[str, Any]]], page_size: int, sizes: list[int]
) -> None:
    source, target = tenant(caller), tenant(caller)
    for method, fields in writes:
        source.call(method, built(method, fields).SerializeToString())

    lines = exported(source, page_size)
    stored = imported(target, lines, sizes)

    assert stored == len(lines)
    assert exported(target, 1000) == lines
    assert readable(target) == readable(source)
    assert imported(target, lines, [1000]) == 0, "a second time nothing is left to store"
    assert exported(target, 1000) == lines


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(writes=st.lists(OF_NO_CONVERSATION, min_size=1, max_size=12), sizes=some(st.integers(1, 9)))
def test_what_belongs_to_no_conversation_is_imported_and_exported_as_the_same_bytes(
    caller: DirectCaller, writes: list[tuple[str, dict[str, Any]]], sizes: list[int]
) -> None:
    source, target = tenant(caller), tenant(caller)
    for method, fields in writes:
        source.call(method, built(method, fields).SerializeToString())

    lines = exported(source, 7)
    stored = imported(target, lines, sizes)

    assert stored == len(lines)
    assert exported(target, 1000) == lines
    assert imported(target, lines, [1000]) == 0


@pytest.mark.slow
def test_many_small_conversations_are_all_exported(caller: DirectCaller) -> None:
    source, target = tenant(caller), tenant(caller)
    count = 2 * CONVERSATIONS_AT_ONCE
    for number in range(count):
        append(source, f"c{number}", number % 2)

    for page_size in (1, 7, CONVERSATIONS_AT_ONCE, 1000):
        kinds = [parse_line(line)["kind"] for line in exported(source, page_size)]
        assert (kinds.count("conversation"), kinds.count("message")) == (count, count // 2)
    lines = exported(source, 1000)
    assert imported(target, lines, [3]) == len(lines)
    assert exported(target, 10) == lines


@pytest.mark.slow
def test_a_scope_takes_the_conversations_of_a_user_or_one_alone(caller: DirectCaller) -> None:
    source = tenant(caller)
    for name, owner in (("c", "u"), ("d", "v")):
        for user in USERS:
            said: Any = [{"role": "user", "text": f"{user} in {name}"}]
            ask(source, "AppendMessages", pb.AppendMessagesRequest(
                conversation_id=name, user_id=user, messages=said, create_if_missing={"user_id": owner}  # type: ignore[arg-type]
            ))  # fmt: skip
        scope = WorkingMemoryScope(user_id=owner)
        ask(source, "SetWorkingMemory", memory.SetWorkingMemoryRequest(scope=scope, content=b"held"))

    of_user = [parse_line(line) for line in exported(source, 2, user_id="v")]
    of_one = [parse_line(line) for line in exported(source, 2, conversation_id="c")]

    assert [line["kind"] for line in of_user] == ["conversation", "message", "message", "working_memory"]
    assert {line.get("conversation_id", "d") for line in of_user} == {"d"}
    assert of_user[-1]["scope"] == {"user_id": "v"}
    assert [line["kind"] for line in of_one] == ["conversation", "message", "message"]
    refused = source.call(
        "ExportRecords",
        transfers.ExportRecordsRequest(conversation_id="c", user_id="v").SerializeToString(),
    )
    assert refused.reason == "CONVERSATION_NOT_FOUND"


def test_what_is_appended_while_a_conversation_is_exported_is_left_out(caller: DirectCaller) -> None:
    source = tenant(caller)
    append(source, "c", 3)
    first: Any = ask(source, "ExportRecords", transfers.ExportRecordsRequest(page_size=2))

    append(source, "c", 2)
    append(source, "later", 1)
    rest: Any = ask(
        source, "ExportRecords", transfers.ExportRecordsRequest(page_size=2, page_token=first.next_page_token)
    )

    assert first.records[0].conversation.conversation.last_sequence == 3
    assert [record.message.message.sequence for record in (first.records[1], *rest.records)] == [1, 2, 3]
    assert not rest.next_page_token


def append(caller: DirectCaller, conversation: str, count: int) -> None:
    if not count:
        created: Any = {"id": conversation}
        ask(caller, "CreateConversation", pb.CreateConversationRequest(conversation=created))
        return
    said: Any = [{"role": "user", "text": "said"}] * count
    request = pb.AppendMessagesRequest(
        conversation_id=conversation, messages=said, create_if_missing={}  # type: ignore[arg-type]
    )  # fmt: skip
    ask(caller, "AppendMessages", request)


def test_another_record_in_a_place_is_refused_by_its_path_and_changes_nothing(caller: DirectCaller) -> None:
    source, target = tenant(caller), tenant(caller)
    append(source, "c", 3)
    lines = exported(source, 10)
    imported(target, lines, [10])
    for number, old, new in ((0, b'"c"', b'"c","title":"x"'), (2, b'"said"', b'"sang"'), (3, b'"said"', b'"sang"')):
        changed = [*lines[:number], lines[number].replace(old, new), *lines[number + 1 :]]
        records = [parse_record(parse_line(line)) for line in changed]
        assert changed != lines

        answer = target.call("ImportRecords", transfers.ImportRecordsRequest(records=records).SerializeToString())

        kind = "conversation" if number == 0 else "message"
        assert (answer.code, answer.reason) == ("ALREADY_EXISTS", "RECORD_CONFLICT")
        assert answer.info.metadata["field"] == f"records[{number}].{kind}"
    assert exported(target, 10) == lines


@pytest.mark.parametrize(
    ("order", "path"),
    [
        ([1, 0], "records[1].conversation"),
        ([0, 2, 1], "records[2].message.message.sequence"),
        ([0, 1, 1], "records[2].message.message.sequence"),
        ([0, 1, 4], "records[2].conversation"),
        ([0, 5], "records[1].message"),
    ],
)
def test_records_out_of_order_or_of_two_conversations_are_refused(
    caller: DirectCaller, order: list[int], path: str
) -> None:
    source, target = tenant(caller), tenant(caller)
    append(source, "c", 2)
    append(source, "d", 1)
    lines = exported(source, 10)
    lines.insert(3, b"")
    records = [parse_record(parse_line(lines[number])) for number in order]

    answer = target.call("ImportRecords", transfers.ImportRecordsRequest(records=records).SerializeToString())

    assert (answer.reason, answer.paths) == ("INVALID_FIELD", [path])
    assert exported(target, 10) == []


def test_messages_without_their_conversation_are_not_found(caller: DirectCaller) -> None:
    source, target = tenant(caller), tenant(caller)
    append(source, "c", 1)
    records = [parse_record(parse_line(exported(source, 10)[1]))]

    answer = target.call("ImportRecords", transfers.ImportRecordsRequest(records=records).SerializeToString())

    assert answer.reason == "CONVERSATION_NOT_FOUND"


@pytest.mark.slow
def test_a_message_that_is_large_ends_its_page(caller: DirectCaller) -> None:
    source, target = tenant(caller), tenant(caller)
    for _ in range(3):
        large: Any = [{"role": "user", "parts": bytes(2 << 20)}]
        ask(source, "AppendMessages", pb.AppendMessagesRequest(
            conversation_id="c", messages=large, create_if_missing={}  # type: ignore[arg-type]
        ))  # fmt: skip

    first: Any = ask(source, "ExportRecords", transfers.ExportRecordsRequest(page_size=1000))
    lines = exported(source, 1000)

    assert len(first.records) == 2
    assert imported(target, lines, [1]) == 4
    assert exported(target, 1000) == lines


def test_an_item_is_imported_whatever_filters_see_of_it(caller: DirectCaller) -> None:
    source, target = tenant(caller), tenant(caller)
    metadata = b'{"of":{"an":"object"},"long":"%s"}' % (b"x" * 2_000)
    item = memory_item_pb2.MemoryItem(id="i", text="tea", metadata=metadata)
    ask(source, "AddMemoryItems", memory.AddMemoryItemsRequest(user_id="u", items=[item]))
    lines = exported(source, 1000)

    assert imported(target, lines, [1000]) == 1
    assert exported(target, 1000) == lines


def test_a_spans_own_kind_stands_beside_that_of_its_line_also_in_older_files() -> None:
    record = transfers.Record(span={"trace_id": "t", "span_id": "s", "kind": SpanKind.SPAN_KIND_CLIENT})  # type: ignore[arg-type]
    line = record_line(record)

    assert line.startswith(b'{"kind":"span",')
    older = line.replace(b',"span_kind":"SPAN_KIND_CLIENT"', b"").replace(b'"span"', b'"SPAN_KIND_CLIENT"')
    assert [parse_record(parse_line(each)) for each in (line, older)] == [record, record]


def test_half_a_surrogate_pair_breaks_a_line() -> None:
    with pytest.raises(LineError, match="is not a record of the kind workflow_run"):
        parse_record(parse_line(rb'{"kind":"workflow_run","status":"\ud800"}'))
