"""What agents did, through the client, sync and async, and the server that it is for."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.patience import PATIENCE

from remora import EntryStep, HistoryEntry, Remora, SpanEvent, SpanLink, TimelineEvent, Trace, errors, testing
from remora.v1 import history_service_pb2, log_record_pb2, span_pb2

remora_server, remora_tenant = testing.remora_server, testing.remora_tenant

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ENTRY = HistoryEntry(
    "e1",
    "support",
    user_id="ana",
    conversation_id="c",
    status="working",
    input="Can I work abroad?",
    output=None,
    usage={"tokens": 7},
    metadata={"team": [1]},
    start_time=NOON,
    end_time=NOON + timedelta(seconds=1),
    create_time=NOON,
    update_time=NOON,
)
STEP = EntryStep(
    "s1",
    "e1",
    step_index=1,
    type="tool_call",
    name="weather",
    status="completed",
    content="Rome",
    arguments={"city": "Rome"},
    result=b"\xff\x00",
    usage={"tokens": 1},
    metadata=[1],
    start_time=NOON,
    end_time=NOON,
    create_time=NOON,
    update_time=NOON,
)
EVENT = TimelineEvent(
    "t1",
    "e1",
    name="agent:start",
    type="agent",
    user_id="ana",
    sequence=0,
    start_time=NOON,
    end_time=NOON,
    status="running",
    status_message={"why": "asked"},
    level="INFO",
    input=1,
    output=2,
    metadata={"a": None},
    event_id="x",
    parent_event_id="p",
    trace_id="t",
    version="1",
    tags=("a", "b"),
    create_time=NOON,
)


@pytest.fixture
def memory(connect: Callable[..., Remora], remora_server: str, remora_tenant: str) -> Iterator[Remora]:
    made = connect(remora_server, tenant=remora_tenant, timeout=PATIENCE)
    yield made
    made.close()


@pytest.fixture
def exporter(remora_server: str, remora_tenant: str) -> Iterator[Remora]:
    """What writes spans and log records."""
    with Remora(remora_server, tenant=remora_tenant, timeout=PATIENCE) as made:
        yield made


def test_every_field_of_an_entry_comes_back(memory: Remora) -> None:
    memory.history.save_entry(ENTRY)

    assert memory.history.get_entry("e1") == ENTRY


def test_an_update_replaces_what_it_names_and_nothing_else(memory: Remora) -> None:
    memory.history.save_entry(ENTRY)

    memory.history.update_entry("e1", status="completed", output="Yes.", usage=None, update_time=NOON)

    assert memory.history.get_entry("e1") == replace(ENTRY, status="completed", output="Yes.", usage=None)


def test_entries_are_listed_newest_first_and_counted(memory: Remora) -> None:
    for index in range(5):
        entry = replace(ENTRY, id=f"e{index}", start_time=NOON + timedelta(minutes=index), user_id=f"u{index % 2}")
        memory.history.save_entry(entry)
    memory.history.save_entry(HistoryEntry("other", "sales"))

    listed = [entry.id for entry in memory.history.list_entries(agent_id="support", limit=2, skip=1)]

    assert listed == ["e3", "e2"]
    assert [entry.id for entry in memory.history.list_entries(user_id="u1")] == ["e3", "e1"]
    assert memory.history.count_entries() == 6
    assert memory.history.count_entries(agent_id="support", user_id="u0") == 3


def test_an_entry_comes_with_what_belongs_to_it_and_takes_it_along(memory: Remora) -> None:
    memory.history.add_events([EVENT])
    memory.history.save_entry(ENTRY)
    memory.history.save_entry_steps([STEP, replace(STEP, id="s0", step_index=0)])

    found = memory.history.get_entry_with_related("e1")

    assert (found.entry, found.events) == (ENTRY, (EVENT,))
    assert [step.id for step in found.steps] == ["s0", "s1"]
    assert (found.more_steps, found.more_events) == (False, False)
    assert memory.history.delete_entry("e1")
    assert memory.history.list_events("e1") == []
    assert not memory.history.delete_entry("e1")


def test_a_step_is_saved_read_updated_and_deleted(memory: Remora) -> None:
    memory.history.save_entry(ENTRY)
    memory.history.save_entry_steps([STEP])

    assert memory.history.get_entry_step("s1") == STEP
    memory.history.update_entry_step("s1", entry_id="e1", result={"degrees": 19}, update_time=NOON)

    assert memory.history.list_entry_steps("e1") == [replace(STEP, result={"degrees": 19})]
    assert memory.history.delete_entry_step("s1", entry_id="e1")
    with pytest.raises(errors.EntryStepNotFoundError):
        memory.history.get_entry_step("s1")


def test_a_step_of_no_entry_is_refused(memory: Remora) -> None:
    with pytest.raises(errors.HistoryEntryNotFoundError):
        memory.history.save_entry_steps([STEP])


def test_an_event_never_changes(memory: Remora) -> None:
    memory.history.add_events([EVENT])
    memory.history.add_events([EVENT])

    assert memory.history.list_events("e1") == [EVENT]
    assert memory.history.get_event("t1", run_id="e1") == EVENT
    with pytest.raises(errors.TimelineEventExistsError):
        memory.history.add_events([replace(EVENT, name="agent:end")])
    assert memory.history.delete_event("t1")
    with pytest.raises(errors.TimelineEventNotFoundError):
        memory.history.get_event("t1")


def test_spans_are_read_as_they_were_exported(memory: Remora, exporter: Remora) -> None:
    span = span_pb2.SpanRecord(
        trace_id="t",
        span_id="s",
        parent_span_id="p",
        name="search",
        kind=span_pb2.SPAN_KIND_CLIENT,
        start_time=Timestamp(seconds=int(NOON.timestamp()), nanos=1_001),
        attributes=b'{ "agent": "support" }',
        status=span_pb2.SpanStatus(code=span_pb2.SPAN_STATUS_CODE_ERROR, message="late"),
        events=[span_pb2.SpanEvent(name="retry", attributes=b"{}")],
        links=[span_pb2.SpanLink(trace_id="t0", span_id="s0")],
        scope=span_pb2.InstrumentationScope(name="otel", version="1"),
        user_id="ana",
    )
    exporter.stubs.history.SaveSpans(history_service_pb2.SaveSpansRequest(spans=[span]))

    found = memory.history.get_span("s", trace_id="t")

    assert (found.name, found.kind, found.status, found.status_message) == ("search", "client", "error", "late")
    assert found.start_time == NOON + timedelta(microseconds=1)
    assert found.end_time is None
    assert found.attributes == {"agent": "support"}
    assert found.events == (SpanEvent("retry", None, {}),)
    assert found.links == (SpanLink("t0", "s0", "", None),)
    assert (found.scope_name, found.scope_version, found.user_id) == ("otel", "1", "ana")
    assert memory.history.list_spans("t") == [found]
    assert memory.history.list_traces(attributes={"agent": "support"}) == [Trace("t", found.start_time, 1)]
    assert memory.history.list_traces(user_id="ben") == []
    assert memory.history.prune_spans(started_before=NOON) == 0
    assert memory.history.prune_spans(started_before=NOON + timedelta(seconds=1)) == 1
    with pytest.raises(errors.SpanNotFoundError):
        memory.history.get_span("s")


def test_log_records_are_found_by_what_they_say(memory: Remora, exporter: Remora) -> None:
    records = [
        log_record_pb2.LogRecord(
            id=f"l{severity}",
            time=Timestamp(seconds=int(NOON.timestamp()) + severity),
            severity_number=severity,
            severity_text="INFO" if severity < 13 else "ERROR",
            body=b'"the model was late"',
            attributes=b'{"agent":"support"}',
        )
        for severity in (9, 17)
    ]
    exporter.stubs.history.SaveLogRecords(history_service_pb2.SaveLogRecordsRequest(records=records))

    listed = memory.history.list_log_records
    assert [record.id for record in listed(newest_first=True)] == ["l17", "l9"]
    assert [record.id for record in listed(min_severity_number=13)] == ["l17"]
    assert [record.id for record in listed(to_time=NOON + timedelta(seconds=9))] == ["l9"]
    assert [record.body for record in listed(body_contains="late", limit=1)] == ["the model was late"]
    assert listed(attributes={"agent": "sales"}) == []
    assert listed(severity_text="INFO")[0].attributes == {"agent": "support"}
    assert memory.history.prune_log_records(recorded_before=NOON + timedelta(seconds=10)) == 1
