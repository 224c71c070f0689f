"""Values that the server gave back decode what is read of them, and behave as values that were made of their fields."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.message import Message as ProtobufMessage
from google.protobuf.timestamp_pb2 import Timestamp

from remora import (
    AppendedMessage,
    ConversationRecord,
    EntryStep,
    HistoryEntry,
    Hit,
    Item,
    LogRecord,
    Message,
    Span,
    SpanEvent,
    SpanLink,
    Step,
    Suspension,
    TimelineEvent,
    ToolCall,
    Vector,
    VectorHit,
    WorkflowRun,
    WorkflowStep,
    _json,
)
from remora._views import View
from remora.search import Component
from remora.v1 import (
    conversation_pb2,
    conversation_service_pb2,
    log_record_pb2,
    memory_service_pb2,
    message_pb2,
    scalar_pb2,
    span_pb2,
    step_pb2,
    vector_service_pb2,
)

NOON = datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=UTC)
NOON_ON_THE_WIRE = Timestamp(seconds=int(NOON.timestamp()), nanos=250_000_000)

MESSAGE = Message(
    "assistant",
    "Paris",
    name="Ada",
    id="m1",
    tool_calls=(ToolCall("c1", "weather", b"{}"),),
    tool_result_ids=("c0",),
    parts=b"\x00\x01",
    metadata={"a": [1, None]},
    attributes={"topic": "travel"},
    sent_time=NOON,
    session_id="s",
    user_id="sarah",
    sequence=7,
    revision=9,
    create_time=NOON,
    token_count=3,
)
MESSAGE_ON_THE_WIRE = message_pb2.Message(
    role="assistant",
    text="Paris",
    name="Ada",
    id="m1",
    tool_calls=[message_pb2.ToolCall(id="c1", name="weather", arguments=b"{}")],
    tool_result_ids=["c0"],
    parts=b"\x00\x01",
    metadata=b'{"a":[1,null]}',
    attributes={"topic": scalar_pb2.Scalar(text="travel")},
    sent_time=NOON_ON_THE_WIRE,
    session_id="s",
    user_id="sarah",
    sequence=7,
    revision=9,
    create_time=NOON_ON_THE_WIRE,
    token_count=3,
)

RECORDS: tuple[Any, ...] = (
    Vector("v", [0.5, 2], content="Leave", metadata={"page": 3}, attributes={"year": 2026}),
    WorkflowRun("r", "w", "suspended", suspension=Suspension(suspend_time=NOON, checkpoint=[1]), metadata={"a": 1}),
    WorkflowStep("s", "r", "error", parallel_index=0, error={"why": None}, start_time=NOON),
    HistoryEntry("e", "agent", input="hi", usage={"tokens": 1}, end_time=NOON),
    EntryStep("s", "e", type="tool_call", arguments={"city": "Rome"}, result=b"\xff"),
    TimelineEvent("t", "e", sequence=-1, tags=("a", "b"), status_message="late"),
)
"""Values that callers make."""

PAIRS: list[tuple[View, ProtobufMessage]] = [
    (MESSAGE, MESSAGE_ON_THE_WIRE),
    (Message("user"), message_pb2.Message(role="user")),
    (
        AppendedMessage("m1", 7, NOON, replaced=True),
        conversation_service_pb2.AppendedMessage(id="m1", sequence=7, create_time=NOON_ON_THE_WIRE, replaced=True),
    ),
    (
        Step("s1", "tool_result", role="tool", result=[1], step_index=2, operation_id="o", create_time=NOON),
        step_pb2.Step(
            id="s1",
            type=step_pb2.STEP_TYPE_TOOL_RESULT,
            role="tool",
            result=b"[1]",
            step_index=2,
            operation_id="o",
            create_time=NOON_ON_THE_WIRE,
        ),
    ),
    (
        Step("s2", "other", other_type="reasoning"),
        step_pb2.Step(id="s2", type=step_pb2.STEP_TYPE_OTHER, other_type="reasoning"),
    ),
    (
        ConversationRecord("c", "sarah", "", "Leave", {"a": 1}, {"n": 1.5}, None, None, 3, 9, 7, 5, NOON, NOON),
        conversation_pb2.Conversation(
            id="c",
            user_id="sarah",
            title="Leave",
            metadata=b'{"a":1}',
            attributes={"n": scalar_pb2.Scalar(number=1.5)},
            uid=3,
            revision=9,
            last_sequence=7,
            message_count=5,
            create_time=NOON_ON_THE_WIRE,
            update_time=NOON_ON_THE_WIRE,
        ),
    ),
    (
        Hit(MESSAGE, "c", 0.5, (Component("cosine", 0.5, 1.0),)),
        memory_service_pb2.Hit(
            message=MESSAGE_ON_THE_WIRE,
            conversation_id="c",
            score=0.5,
            components=[memory_service_pb2.Component(name="cosine", value=0.5, weight=1.0)],
        ),
    ),
    (
        Item(MESSAGE, "c", "recalled", 0.0, 4, "fits"),
        memory_service_pb2.Item(
            message=MESSAGE_ON_THE_WIRE,
            conversation_id="c",
            section=memory_service_pb2.SECTION_RECALLED,
            score=0.0,
            tokens=4,
            reason="fits",
        ),
    ),
    *((made, made.to_proto()) for made in RECORDS),
    (VectorHit(RECORDS[0], 0.5), vector_service_pb2.VectorHit(vector=RECORDS[0].to_proto(), score=0.5)),
    (
        Span(
            "t",
            "s",
            "",
            "",
            "search",
            "client",
            NOON,
            None,
            "ok",
            "",
            {"a": 1},
            (SpanEvent("retry", NOON, None),),
            (SpanLink("t", "s0", "", None),),
            None,
            "otel",
            "1",
            "ana",
        ),
        span_pb2.SpanRecord(
            trace_id="t",
            span_id="s",
            name="search",
            kind=span_pb2.SPAN_KIND_CLIENT,
            start_time=NOON_ON_THE_WIRE,
            status=span_pb2.SpanStatus(code=span_pb2.SPAN_STATUS_CODE_OK),
            attributes=b'{ "a": 1 }',
            events=[span_pb2.SpanEvent(name="retry", time=NOON_ON_THE_WIRE)],
            links=[span_pb2.SpanLink(trace_id="t", span_id="s0")],
            scope=span_pb2.InstrumentationScope(name="otel", version="1"),
            user_id="ana",
        ),
    ),
    (
        LogRecord("l", "t", "s", 1, NOON, None, 9, "INFO", "late", {}, [1], "", "", ""),
        log_record_pb2.LogRecord(
            id="l",
            trace_id="t",
            span_id="s",
            trace_flags=1,
            time=NOON_ON_THE_WIRE,
            severity_number=9,
            severity_text="INFO",
            body=b'"late"',
            resource=b"[1]",
        ),
    ),
]

each_kind = pytest.mark.parametrize(("made", "wire"), PAIRS, ids=[type(made).__name__ for made, _ in PAIRS])


def received(made: View, wire: ProtobufMessage) -> Any:  # noqa: ANN401 - a value of any of these classes
    """A value of the same class that nobody has read yet."""
    return type(made).from_proto(type(wire).FromString(wire.SerializeToString()))  # type: ignore[attr-defined]


@each_kind
def test_a_received_value_is_the_one_that_its_fields_make(made: View, wire: ProtobufMessage) -> None:
    assert received(made, wire) == made
    assert made == received(made, wire)
    assert received(made, wire) == received(made, wire)
    assert repr(received(made, wire)) == repr(made)


@each_kind
def test_each_field_can_be_read_first_and_again(made: View, wire: ProtobufMessage) -> None:
    names = [one.name for one in fields(made)]  # type: ignore[arg-type] # a View is a dataclass

    assert names
    for name in names:
        value = received(made, wire)
        assert getattr(value, name) == getattr(made, name)
        assert getattr(value, name) is getattr(value, name)


@each_kind
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_received_value_is_copied_and_pickled(
    made: View, wire: ProtobufMessage, copied: Callable[[View], View]
) -> None:
    twin = copied(received(made, wire))

    assert type(twin) is type(made)
    assert twin == made


def test_a_received_value_has_another_field_after_a_replacement() -> None:
    assert replace(received(MESSAGE, MESSAGE_ON_THE_WIRE), text="Rome") == replace(MESSAGE, text="Rome")


def test_a_received_value_becomes_a_mapping() -> None:
    assert asdict(received(MESSAGE, MESSAGE_ON_THE_WIRE)) == asdict(MESSAGE)


def test_a_received_message_takes_part_in_pattern_matching() -> None:
    match received(MESSAGE, MESSAGE_ON_THE_WIRE):
        case Message(role, text):
            assert (role, text) == ("assistant", "Paris")


@each_kind
def test_a_received_value_cannot_be_changed(made: View, wire: ProtobufMessage) -> None:
    value = received(made, wire)
    name = fields(made)[0].name  # type: ignore[arg-type] # a View is a dataclass

    with pytest.raises(FrozenInstanceError):
        setattr(value, name, "other")
    with pytest.raises(FrozenInstanceError):
        delattr(value, name)
    assert value == made


def test_what_is_not_read_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    monkeypatch.setattr(_json, "from_opaque", decoded.append)
    message = received(MESSAGE, MESSAGE_ON_THE_WIRE)

    assert (message.role, message.id, message.text) == ("assistant", "m1", "Paris")
    assert decoded == []
    assert message.metadata is None
    assert decoded == [b'{"a":[1,null]}']


def test_a_name_that_is_no_field_is_refused_by_python_and_by_type_checkers() -> None:
    message: Message = received(MESSAGE, MESSAGE_ON_THE_WIRE)

    with pytest.raises(AttributeError, match="'Message' object has no attribute 'content'"):
        _ = message.content  # type: ignore[attr-defined] # what is refused
    with pytest.raises(AttributeError, match="'Message' object has no attribute 'content'"):
        _ = MESSAGE.content  # type: ignore[attr-defined] # what is refused
