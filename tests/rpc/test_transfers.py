"""What the RPCs of exports and imports ask the store, and what they make of its answers."""

from __future__ import annotations

from tests.rpc.running_server import RunningServer

from remora.v1 import transfer_service_pb2 as pb
from remora.v1.step_pb2 import Step
from remora.v1.working_memory_pb2 import WorkingMemoryRecord
from remora_server.domain.calls import Outcome, Read
from remora_server.domain.transfers import ExportPage, ExportPlace, ExportPosition, ExportQuery, Import

POSITION = ExportPosition(ExportPlace(2**64 - 1, 4, 2**63, 2**31 - 1, "é\x00".encode()), through=7, newest=2**63 - 1)


def export(server: RunningServer, **fields: object) -> pb.ExportRecordsResponse:
    reply = server.call("ExportRecords", pb.ExportRecordsRequest(**fields))  # type: ignore[arg-type]
    assert isinstance(reply, pb.ExportRecordsResponse)
    return reply


def asked(server: RunningServer) -> ExportQuery:
    read, query = server.store.asked["export_records"]
    assert isinstance(read, Read)
    assert isinstance(query, ExportQuery)
    return query


def test_a_page_holds_the_stores_records_and_leads_to_the_next(server: RunningServer) -> None:
    record = pb.Record(message=pb.MessageRecord(conversation_id="c"))
    server.store.export = ExportPage((record.SerializeToString(),), POSITION, revision=9)

    page = export(server, user_id="u", page_size=5)
    assert asked(server) == ExportQuery(user_id="u", limit=5)
    export(server, user_id="u", page_size=5, page_token=page.next_page_token)

    assert (list(page.records), page.revision) == ([record], 9)
    assert asked(server) == ExportQuery(user_id="u", limit=5, position=POSITION)


def test_the_last_page_leads_nowhere(server: RunningServer) -> None:
    server.store.export = ExportPage((), None, revision=9)

    assert export(server).next_page_token == ""


def imported(server: RunningServer, *records: object) -> Import:
    request = pb.ImportRecordsRequest(records=records)  # type: ignore[arg-type]
    server.store.outcome = Outcome(revision=9, imported_records=3)
    assert server.call("ImportRecords", request) == pb.ImportRecordsResponse(imported_records=3, revision=9)
    _, given = server.store.asked["import_records"]
    assert isinstance(given, Import)
    return given


def test_records_reach_the_store_by_kind_with_the_places_that_the_request_has_them_at(server: RunningServer) -> None:
    given = imported(
        server,
        {
            "conversation": {
                "conversation": {
                    "id": "c", "user_id": "u", "last_sequence": 9,
                    "create_time": {"seconds": 1}, "update_time": {"seconds": 2},
                },
                "last_append_time": {"seconds": 1, "nanos": 1_999},
            }
        },
        {
            "message": {
                "conversation_id": "c",
                "message": {
                    "id": "m", "user_id": "v", "role": "user", "sequence": 9, "revision": 4, "text": "hello",
                    "create_time": {"seconds": 1, "nanos": 1_999}, "update_time": {"seconds": 2},
                },
            }
        },
        {
            "step": {
                "id": "s", "conversation_id": "c", "user_id": "u", "type": 1,
                "create_time": {"seconds": 3, "nanos": 4_321},
            }
        },
        {"working_memory": {"scope": {"conversation_id": "c"}, "content": b"\xff", "update_time": {"seconds": 4}}},
    )  # fmt: skip

    assert given.conversation_id == "c"
    assert given.conversation is not None
    assert (given.conversation.last_sequence, given.conversation.last_time) == (9, 1_000_001)
    [message], [step, memory] = given.messages, given.records
    assert (message.field, message.user_id, message.sequence) == ("records[1].message", "v", 9)
    assert (message.create_time, message.update_time) == (1_000_001, 2_000_000)
    assert (message.draft.id, message.draft.text) == ("m", "hello")
    assert (step.field, step.kind) == ("records[2].step", "step")
    assert Step.FromString(step.body).create_time.nanos == 4_000, "times are kept to the microsecond"
    assert (memory.field, memory.kind) == ("records[3].working_memory", "working_memory")
    assert WorkingMemoryRecord.FromString(memory.body).content == b"\xff"


def test_users_working_memories_belong_to_no_conversation(server: RunningServer) -> None:
    given = imported(server, {"working_memory": {"scope": {"user_id": "u"}, "update_time": {"seconds": 4}}})

    assert given.conversation_id == ""
    assert [record.kind for record in given.records] == ["working_memory"]
