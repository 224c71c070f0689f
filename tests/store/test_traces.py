"""Spans of traces and log records, as any store keeps them."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.store.asking import Tenant
from tests.store.test_workflows import imported

from remora.v1 import history_service_pb2
from remora.v1.log_record_pb2 import LogRecord
from remora.v1.span_pb2 import SPAN_STATUS_CODE_ERROR, InstrumentationScope, SpanEvent, SpanRecord, SpanStatus
from remora_server import wire
from remora_server.domain.errors import RequestTooLarge, SpanNotFound
from remora_server.domain.json_members import digests
from remora_server.domain.traces import LogQuery, LogRecordDraft, Trace, TracePosition, TraceQuery
from remora_server.domain.workflows import PartDraft, PartName, PartPosition, PartQuery

FIRST, LAST = -(2**63), 2**63 - 1


def ns(nanos: int) -> Timestamp:
    """So long after the second 1,700,000,000."""
    return wire.timestamp_of_nanos(1_700_000_000 * 10**9 + nanos)


def span(span_id: str, trace_id: str = "t", start: int = 0, **fields: Any) -> SpanRecord:  # noqa: ANN401 - of any type
    return SpanRecord(trace_id=trace_id, span_id=span_id, **{"start_time": ns(start), **fields})


def draft(given: SpanRecord) -> PartDraft:
    return PartDraft(PartName(given.span_id, given.trace_id), given.SerializeToString())


def save(tenant: Tenant, *spans: SpanRecord) -> None:
    tenant.store.spans.save(tenant.write, [draft(each) for each in spans])


def update(tenant: Tenant, span_id: str, *mask: str, trace_id: str = "t", **fields: Any) -> None:  # noqa: ANN401
    given = SpanRecord(trace_id=trace_id, span_id=span_id, **fields)
    tenant.store.spans.update(tenant.write, draft(given), frozenset(mask or fields))


def get(tenant: Tenant, span_id: str = "s", trace_id: str = "t") -> SpanRecord:
    return SpanRecord.FromString(tenant.store.spans.get(tenant.read, PartName(span_id, trace_id))[0])


def trace(tenant: Tenant, trace_id: str = "t") -> list[str]:
    """The ids of a trace's spans, page by page."""
    found: list[str] = []
    after: PartPosition | None = None
    while True:
        page = tenant.store.spans.list(tenant.read, PartQuery(trace_id, 2, after))
        found += [one.span_id for one in history_service_pb2.ListSpansResponse.FromString(page.encoded).spans]
        after = page.following
        if after is None:
            return found


def traces(tenant: Tenant, **wanted: Any) -> list[Trace]:  # noqa: ANN401 - of any type
    """The traces of a query, page by page."""
    found: list[Trace] = []
    after: TracePosition | None = None
    skip = wanted.pop("skip", 0)
    while True:
        query = TraceQuery(**{"limit": 2, **wanted}, after=after, skip=0 if after else skip)
        page = tenant.store.spans.traces(tenant.read, query)
        found += page.traces
        if not page.more:
            return found
        after = TracePosition(found[-1].start_time, found[-1].trace_id)


def trace_ids(tenant: Tenant, **wanted: Any) -> list[str]:  # noqa: ANN401 - of any type
    return [one.trace_id for one in traces(tenant, **wanted)]


def log(record_id: str = "", time: int | None = 0, **fields: Any) -> LogRecord:  # noqa: ANN401 - of any type
    return LogRecord(id=record_id, time=None if time is None else ns(time), **fields)


def write_logs(tenant: Tenant, *records: LogRecord) -> None:
    drafts = [LogRecordDraft(one.id, one.trace_id, one.SerializeToString()) for one in records]
    tenant.store.log_records.save(tenant.write, drafts)


def logs(tenant: Tenant, **wanted: Any) -> list[LogRecord]:  # noqa: ANN401 - of any type
    """The records of a query, page by page."""
    found: list[LogRecord] = []
    after: PartPosition | None = None
    skip = wanted.pop("skip", 0)
    while True:
        query = LogQuery(**{"limit": 2, **wanted}, after=after, skip=0 if after else skip)
        page = tenant.store.log_records.list(tenant.read, query)
        found += history_service_pb2.ListLogRecordsResponse.FromString(page.encoded).records
        after = page.following
        if after is None:
            return found


def log_ids(tenant: Tenant, **wanted: Any) -> list[str]:  # noqa: ANN401 - of any type
    return [one.id for one in logs(tenant, **wanted)]


def members(json: bytes) -> tuple[str, ...]:
    return tuple(digests(json))


def test_a_span_comes_back_whole_to_the_nanosecond(tenant: Tenant) -> None:
    given = span(
        "s",
        start=123_456_789,
        end_time=ns(999_999_999),
        name="chat",
        attributes=b'{ "entity.id": "a", "n": 1.0 }',
        events=[SpanEvent(name="tool", time=ns(5), attributes=b"\0\xff")],
        status=SpanStatus(code=SPAN_STATUS_CODE_ERROR, message="why"),
        scope=InstrumentationScope(name="voltagent", version="2"),
        resource=b"{}",
        user_id="sarah",
    )

    save(tenant, given)

    assert get(tenant) == given


def test_spans_of_a_trace_are_listed_by_start_to_the_nanosecond(tenant: Tenant) -> None:
    save(tenant, span("c", start=3), span("a", start=1), span("b", start=2))
    save(tenant, span("d", start=3), span("x", "another"))

    assert trace(tenant) == ["a", "b", "c", "d"]
    assert trace(tenant, "none") == []


def test_of_two_spans_with_one_id_the_last_wins(tenant: Tenant) -> None:
    save(tenant, span("s", name="first"), span("s", name="last"))
    assert get(tenant).name == "last"

    save(tenant, span("s", start=7))
    assert get(tenant) == span("s", start=7)
    assert trace(tenant) == ["s"]


def test_what_a_request_has_twice_counts_as_saved_where_it_comes_last(tenant: Tenant) -> None:
    save(tenant, span("a"), span("b"), span("a"))
    write_logs(tenant, log("a"), log("b"), log("a"))

    assert trace(tenant) == ["b", "a"]
    assert [record.id for record in logs(tenant)] == ["b", "a"]


def test_an_updated_span_keeps_what_the_mask_does_not_name(tenant: Tenant) -> None:
    save(tenant, span("s", start=5, name="chat", attributes=b'{"a":1}', parent_span_id="p"))

    update(tenant, "s", "end_time", "attributes", "parent_span_id", end_time=ns(9), attributes=b'{"b":2}')

    assert get(tenant) == span("s", start=5, name="chat", attributes=b'{"b":2}', end_time=ns(9))
    assert trace_ids(tenant, members=members(b'{"b": 2.0}')) == ["t"]
    assert trace_ids(tenant, members=members(b'{"a": 1}')) == []


def test_a_span_is_found_by_its_id_alone_the_newest_of_several(tenant: Tenant) -> None:
    save(tenant, span("s", "t"))
    save(tenant, span("s", "u"))

    update(tenant, "s", trace_id="", name="found")

    assert (get(tenant, "s", "").trace_id, get(tenant, "s", "").name, get(tenant).name) == ("u", "found", "")


def test_a_span_that_is_not_there_is_not_found(tenant: Tenant) -> None:
    for trace_id in ("", "t"):
        with pytest.raises(SpanNotFound):
            get(tenant, "s", trace_id)
        with pytest.raises(SpanNotFound):
            update(tenant, "s", trace_id=trace_id, name="n")


def test_a_span_that_grows_too_large_is_refused(tenant: Tenant) -> None:
    events = [SpanEvent(attributes=bytes(1 << 20))] * 3
    save(tenant, span("s", events=events))

    with pytest.raises(RequestTooLarge):
        update(tenant, "s", attributes=b"{" + b" " * (1 << 20) + b"}")

    assert get(tenant).attributes == b""


def test_traces_are_listed_by_their_start_the_newest_first(tenant: Tenant) -> None:
    save(tenant, span("root", "a", 1), span("child", "a", 9), span("root", "b", 3), span("root", "c", 2))
    save(tenant, span("root", "d", 3), span("late", "b", 30))

    assert [(one.trace_id, one.spans) for one in traces(tenant)] == [("d", 1), ("b", 2), ("c", 1), ("a", 2)]
    assert [one.start_time - wire.nanos(ns(0)) for one in traces(tenant)] == [3, 3, 2, 1]
    assert trace_ids(tenant, skip=1) == ["b", "c", "a"]
    assert trace_ids(tenant, skip=9) == []


def test_traces_are_found_by_the_attributes_of_one_of_their_spans(tenant: Tenant) -> None:
    save(tenant, span("s", "a", 1, attributes=b'{"entity.id": "x", "entity.type": "agent", "n": [1, null]}'))
    save(tenant, span("r", "a", 2), span("s", "b", 3, attributes=b'{"entity.type": "workflow", "entity.id": "x"}'))
    save(tenant, span("s", "c", 4, attributes=b'{"entity.id": "y"}'), span("r", "c", 5, attributes=b'{"n": 1}'))

    assert trace_ids(tenant, members=members(b'{"entity.id": "x"}')) == ["b", "a"]
    assert trace_ids(tenant, members=members(b'{"entity.id": "x", "entity.type": "agent"}')) == ["a"]
    assert trace_ids(tenant, members=members(b'{"n": [1.0, null]}')) == ["a"]
    assert trace_ids(tenant, members=members(b'{"entity.id": "y", "n": 1}')) == []
    assert [one.spans for one in traces(tenant, members=members(b'{"entity.id": "y"}'))] == [2]


def test_traces_are_found_by_the_user_of_one_of_their_spans(tenant: Tenant) -> None:
    save(tenant, span("s", "a", 1, user_id="sarah"), span("s", "b", 2, user_id="tom"), span("r", "b", 3))
    save(tenant, span("s", "c", 4, user_id="sarah", attributes=b'{"k": 1}'))

    assert trace_ids(tenant, user_id="sarah") == ["c", "a"]
    assert trace_ids(tenant, user_id="sarah", members=members(b'{"k": 1}')) == ["c"]
    assert trace_ids(tenant, user_id="tom", members=members(b'{"k": 1}')) == []


def test_a_long_attribute_is_kept_though_it_is_not_compared(tenant: Tenant) -> None:
    given = b'{"input": "%s", "k": 1}' % (b"x" * 5_000)
    save(tenant, span("s", attributes=given))

    assert get(tenant).attributes == given
    assert trace_ids(tenant, members=members(b'{"k": 1}')) == ["t"]


def test_times_that_64_bits_cannot_hold_are_kept(tenant: Tenant) -> None:
    early, late = Timestamp(seconds=-60_000_000_000, nanos=7), Timestamp(seconds=250_000_000_000)
    save(tenant, span("b"), span("c", start_time=late), span("a", start_time=early))

    assert trace(tenant) == ["a", "b", "c"]
    assert (get(tenant, "a").start_time, get(tenant, "c").start_time) == (early, late)
    assert [one.start_time for one in traces(tenant)] == [FIRST]


def test_the_oldest_spans_are_pruned(tenant: Tenant) -> None:
    save(tenant, *(span(f"s{number}", f"t{number % 2}", number) for number in range(6)))

    assert tenant.store.spans.prune(tenant.write, wire.nanos(ns(4))).deleted_records == 4
    assert (trace(tenant, "t0"), trace(tenant, "t1")) == (["s4"], ["s5"])
    assert tenant.store.spans.prune(tenant.write, wire.nanos(ns(4))).deleted_records == 0
    assert tenant.store.spans.prune(tenant.write, LAST).deleted_records == 2
    assert traces(tenant) == []


def test_a_thousand_spans_are_pruned_at_a_time(tenant: Tenant) -> None:
    for part in range(2):
        save(tenant, *(span(f"{part} {number}", f"t{number % 7}", part * 1_000 + number) for number in range(600)))

    assert tenant.store.spans.prune(tenant.write, LAST).deleted_records == 1_000
    left = [span_id for number in range(7) for span_id in trace(tenant, f"t{number}")]
    assert sorted(left) == sorted(f"1 {number}" for number in range(400, 600))
    assert tenant.store.spans.prune(tenant.write, LAST).deleted_records == 200


def test_a_log_record_comes_back_whole_to_the_nanosecond(tenant: Tenant) -> None:
    given = log(
        "l",
        123_456_789,
        observed_time=ns(1),
        trace_id="t",
        span_id="s",
        trace_flags=1,
        severity_number=9,
        severity_text="INFO",
        body=b'"said"',
        attributes=b'{ "k": 1.0 }',
        resource=b"\0\xff",
        scope=InstrumentationScope(name="voltagent"),
        user_id="sarah",
    )

    write_logs(tenant, given)

    assert logs(tenant) == [given]


def test_a_log_record_without_id_and_time_gets_them(tenant: Tenant) -> None:
    write_logs(tenant, log(time=None, body=b"a"), log(time=None, body=b"b", observed_time=ns(1)))

    observed, now = logs(tenant)
    assert (observed.body, observed.time, now.body) == (b"b", ns(1), b"a")
    assert now.time.seconds > ns(0).seconds
    assert len({observed.id, now.id, ""}) == 3


def test_a_log_record_with_a_known_id_is_replaced(tenant: Tenant) -> None:
    write_logs(tenant, log("l", body=b"a"), log("l", body=b"b"), log("l", trace_id="t"))
    write_logs(tenant, log("l", body=b"c"))

    assert [(one.trace_id, one.body) for one in logs(tenant)] == [("t", b""), ("", b"c")]


def test_log_records_are_listed_by_time_then_in_the_order_of_saving(tenant: Tenant) -> None:
    write_logs(tenant, log("c", 2), log("b", 1), log("d", 2))
    write_logs(tenant, log("e", 2), log("a", 0))

    assert log_ids(tenant) == ["a", "b", "c", "d", "e"]
    assert log_ids(tenant, newest_first=True) == ["e", "d", "c", "b", "a"]
    assert log_ids(tenant, skip=1) == ["b", "c", "d", "e"]
    assert log_ids(tenant, newest_first=True, skip=3, limit=1) == ["b", "a"]


def test_log_records_are_found_by_what_they_are_of(tenant: Tenant) -> None:
    scope = InstrumentationScope(name="voltagent")
    write_logs(tenant, log("a", trace_id="t", span_id="s", severity_number=9, severity_text="INFO", user_id="sarah"))
    write_logs(tenant, log("b", 1, trace_id="t", span_id="r", severity_number=17, severity_text="ERROR", scope=scope))
    write_logs(tenant, log("c", 2, trace_id="tt", severity_number=13), log("d", 3))

    assert log_ids(tenant, trace_id="t") == ["a", "b"]
    assert log_ids(tenant, span_id="s") == ["a"]
    assert log_ids(tenant, trace_id="tt", span_id="s") == []
    assert log_ids(tenant, user_id="sarah") == ["a"]
    assert log_ids(tenant, severity_text="ERROR") == ["b"]
    assert log_ids(tenant, scope_name="voltagent") == ["b"]
    assert log_ids(tenant, min_severity=13) == ["b", "c"]
    assert log_ids(tenant, max_severity=13) == ["a", "c", "d"]
    assert log_ids(tenant, min_severity=13, max_severity=13) == ["c"]
    assert log_ids(tenant, from_time=wire.nanos(ns(1)), to_time=wire.nanos(ns(2))) == ["b", "c"]


def test_log_records_are_found_by_their_attributes_and_by_text(tenant: Tenant) -> None:
    write_logs(tenant, log("a", attributes=b'{"k": {"b": 1, "c": 2}}', body=b'"a \\"quoted\\" word"'))
    write_logs(tenant, log("b", 1, attributes=b'{"k": "v", "n": null}', body=b'{"said": "a word"}'))
    write_logs(tenant, log("c", 2, body=b"\xff word"), log("d", 3, body=b'"torn'), log("e", 4, body=b'"\\ud800"'))

    assert log_ids(tenant, members=members(b'{"k": {"c": 2, "b": 1}}')) == ["a"]
    assert log_ids(tenant, members=members(b'{"n": null}')) == ["b"]
    assert log_ids(tenant, body_contains="word") == ["a", "b", "c"]
    assert log_ids(tenant, body_contains='a "quoted"') == ["a"]
    assert log_ids(tenant, body_contains='"said"') == ["b"]
    assert log_ids(tenant, body_contains='"torn') == ["d"]


def test_the_oldest_log_records_are_pruned(tenant: Tenant) -> None:
    write_logs(tenant, *(log(str(number), number, trace_id=f"t{number % 2}") for number in range(6)))

    assert tenant.store.log_records.prune(tenant.write, wire.nanos(ns(4))).deleted_records == 4
    assert log_ids(tenant) == ["4", "5"]
    assert tenant.store.log_records.prune(tenant.write, wire.nanos(ns(4))).deleted_records == 0


def test_spans_and_log_records_go_with_their_user(tenant: Tenant) -> None:
    for user in ("sarah", "tom", ""):
        save(tenant, span(f"of {user}", user_id=user))
        write_logs(tenant, log(f"of {user}", user_id=user))

    tenant.store.users.delete(tenant.write, "sarah")

    assert trace(tenant) == ["of tom", "of "]
    assert log_ids(tenant) == ["of tom", "of "]


def test_traces_and_log_records_of_another_tenant_are_not_seen(tenant: Tenant, other: Tenant) -> None:
    save(tenant, span("s", attributes=b'{"k": 1}'))
    write_logs(tenant, log("l", trace_id="t", body=b"word"))

    assert (trace(other), traces(other), traces(other, members=members(b'{"k": 1}'))) == ([], [], [])
    assert (logs(other), logs(other, trace_id="t"), logs(other, body_contains="word")) == ([], [], [])
    assert other.store.spans.prune(other.write, LAST).deleted_records == 0
    assert other.store.log_records.prune(other.write, LAST).deleted_records == 0
    with pytest.raises(SpanNotFound):
        get(other, "s", "")
    assert (trace(tenant), log_ids(tenant)) == (["s"], ["l"])


def test_a_repeated_save_of_log_records_is_answered_as_the_first(tenant: Tenant) -> None:
    write = tenant.request("logs")
    given = [LogRecordDraft("", "", log(body=b"once").SerializeToString())]

    first = tenant.store.log_records.save(write, given)

    assert tenant.store.log_records.save(write, given) == first
    assert [one.body for one in logs(tenant)] == [b"once"]


def test_spans_and_log_records_are_exported_and_imported(tenant: Tenant, other: Tenant) -> None:
    save(tenant, span("s", start=7, user_id="sarah", attributes=b'{"k": 1}'))
    write_logs(tenant, log("l", 9, trace_id="t", body=b"word"), log("m", 11))
    records = tenant.exported()

    outcomes = [imported(other, records).imported_records for _ in range(2)]

    assert [one.WhichOneof("kind") for one in records] == ["span", "log_record", "log_record"]
    assert outcomes == [3, 0]
    assert (get(other), logs(other)) == (get(tenant), logs(tenant))
    assert trace_ids(other, members=members(b'{"k": 1}')) == ["t"]
    assert log_ids(other, body_contains="word") == ["l"]
