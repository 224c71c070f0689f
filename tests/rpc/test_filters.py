"""What filters let through, of messages that are stored, against their definition; and bounds of times."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from tests.input.callers import DirectCaller, ask, direct_caller

from remora.v1 import conversation_service_pb2 as conversations
from remora.v1 import filter_pb2
from remora.v1 import memory_service_pb2 as memory
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message
from remora.v1.scalar_pb2 import Scalar
from remora_server.domain.status import ModelStatus

KEYS = st.sampled_from(["a", "b"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([-1.5, 0.0, 1.0, 2.0**53, 1e300]),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1]),
    st.sampled_from(["", "a", "b", "é", "\U0001f600", "\uffff"]),
)
ATTRIBUTES = st.dictionaries(KEYS, VALUES, max_size=2)
ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}
ORDERED_VALUES = VALUES.filter(lambda value: value is not None and not isinstance(value, bool))
CONDITIONS = st.one_of(
    st.tuples(KEYS, st.sampled_from(["EQ", "NE"]), st.tuples(VALUES)),
    st.tuples(KEYS, st.sampled_from(sorted(ORDERED)), st.tuples(ORDERED_VALUES)),
    st.tuples(KEYS, st.just("IN"), st.lists(VALUES, min_size=1, max_size=3)),
    st.tuples(KEYS, st.sampled_from(["PRESENT", "ABSENT"]), st.just(())),
)
TREES = st.recursive(
    CONDITIONS.map(lambda condition: ("condition", condition)),
    lambda trees: st.one_of(
        st.tuples(st.sampled_from(["all_of", "any_of"]), st.lists(trees, min_size=1, max_size=3)),
        st.tuples(st.just("negated"), trees),
    ),
    max_leaves=6,
)


def kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
    return type(value).__name__


def equal(one: object, other: object) -> bool:
    return kind(one) == kind(other) and one == other


def meets(attributes: Mapping[str, Any], key: str, name: str, values: Any) -> bool:  # noqa: ANN401
    """The rules of `remora.v1.Condition`, word by word. Python compares integers and doubles exactly."""
    if name in ("PRESENT", "ABSENT"):
        return (key in attributes) == (name == "PRESENT")
    if key not in attributes:
        return name == "NE"
    value = attributes[key]
    if name in ORDERED:
        return kind(value) == kind(values[0]) and ORDERED[name](value, values[0])
    return any(equal(value, other) for other in values) != (name == "NE")


def holds(attributes: Mapping[str, Any], tree: Any) -> bool:  # noqa: ANN401
    match tree:
        case ("all_of", parts):
            return all(holds(attributes, part) for part in parts)
        case ("any_of", parts):
            return any(holds(attributes, part) for part in parts)
        case ("negated", part):
            return not holds(attributes, part)
        case (_, condition):
            return meets(attributes, *condition)
    raise AssertionError(tree)


def scalar(value: object) -> Scalar:
    match value:
        case None:
            return Scalar(null_value=0)  # type: ignore[arg-type]
        case bool():
            return Scalar(boolean=value)
        case int():
            return Scalar(integer=value)
        case float():
            return Scalar(number=value)
    return Scalar(text=str(value))


def filter_of(tree: Any) -> filter_pb2.Filter:  # noqa: ANN401
    match tree:
        case ("negated", part):
            return filter_pb2.Filter(negated=filter_of(part))
        case ("condition", (key, name, values)):
            number = filter_pb2.Operator.Value(f"OPERATOR_{name}")
            condition = filter_pb2.Condition(key=key, operator=number, values=map(scalar, values))
            return filter_pb2.Filter(condition=condition)
        case ("all_of", parts):
            return filter_pb2.Filter(all_of=filter_pb2.Filters(filters=map(filter_of, parts)))
        case ("any_of", parts):
            return filter_pb2.Filter(any_of=filter_pb2.Filters(filters=map(filter_of, parts)))
    raise AssertionError(tree)


@pytest.fixture(scope="module")
def store() -> Iterator[DirectCaller]:
    with direct_caller(ModelStatus()) as caller:
        yield caller


def stored(store: DirectCaller, messages: list[Message]) -> DirectCaller:
    """The store as a tenant that has these messages, each of which says `boat`."""
    tenant = DirectCaller(store.methods, store.store, (("remora-tenant", uuid.uuid4().hex),))
    request = conversations.AppendMessagesRequest(
        conversation_id="c", messages=messages, create_if_missing=Conversation()
    )
    ask(tenant, "AppendMessages", request)
    return tenant


def found(tenant: DirectCaller, message_filter: memory.MessageFilter) -> set[str]:
    options = memory.SearchOptions(k=100, profile=memory.PROFILE_LEXICAL, filter=message_filter)
    request = memory.SearchMessagesRequest(tenant=memory.TenantScope(), text="boat", options=options)
    reply: Any = ask(tenant, "SearchMessages", request)
    return {hit.message.id for hit in reply.hits}


def listed(tenant: DirectCaller, bounds: Mapping[str, int]) -> list[Message]:
    request = conversations.ListMessagesRequest(conversation_id="c")
    put(request, bounds)
    reply: Any = ask(tenant, "ListMessages", request)
    return list(reply.messages)


def put(holder: Any, bounds: Mapping[str, int]) -> None:  # noqa: ANN401
    for name, micros in bounds.items():
        getattr(holder, name).FromMicroseconds(micros)


def boat(number: int, **fields: Any) -> Message:  # noqa: ANN401
    return Message(id=str(number), role="user", text="boat", **fields)


@pytest.mark.slow
@given(st.lists(ATTRIBUTES, min_size=1, max_size=6), TREES)
def test_a_filter_lets_through_what_its_definition_does(
    store: DirectCaller,
    documents: list[dict[str, Any]],
    tree: Any,  # noqa: ANN401
) -> None:
    attributes = [{key: scalar(value) for key, value in document.items()} for document in documents]
    tenant = stored(store, [boat(number, attributes=given) for number, given in enumerate(attributes)])

    expected = {str(number) for number, document in enumerate(documents) if holds(document, tree)}
    assert found(tenant, memory.MessageFilter(where=filter_of(tree))) == expected
    listing = conversations.ListMessagesRequest(conversation_id="c", filter=filter_of(tree))
    reply: Any = ask(tenant, "ListMessages", listing)
    assert {message.id for message in reply.messages} == expected


NAMES = ("sent_after", "sent_before", "received_after", "received_before")
BOUNDS = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, st.integers(0, 20)))
SENT = st.lists(st.none() | st.integers(-3, 3), min_size=1, max_size=3)


@pytest.mark.slow
@given(SENT, SENT, BOUNDS)
def test_bounds_of_times_hold_in_lists_and_in_searches(
    store: DirectCaller, first: list[int | None], second: list[int | None], bounds: dict[str, int]
) -> None:
    """Messages are sent some microseconds before or after the first is received; bounds are times of some of them."""
    tenant = stored(store, [boat(0)])
    start = received(listed(tenant, {})[0])
    for sent in (first, second):
        messages = [Message(role="user", text="boat", sent_time=stamp(start, at)) for at in sent]
        ask(tenant, "AppendMessages", conversations.AppendMessagesRequest(conversation_id="c", messages=messages))
    messages = listed(tenant, {})
    times_there = sorted({time(message) for message in messages for time in (received, said)})
    asked = {name: times_there[place % len(times_there)] for name, place in bounds.items()}
    message_filter = memory.MessageFilter()
    put(message_filter, asked)

    expected = [message.id for message in messages if within(message, asked)]
    assert [message.id for message in listed(tenant, asked)] == expected
    assert found(tenant, message_filter) == set(expected)


def stamp(start: int, at: int | None) -> Timestamp | None:
    if at is None:
        return None
    made = Timestamp()
    made.FromMicroseconds(start + at)
    return made


def received(message: Message) -> int:
    return message.create_time.ToMicroseconds()


def said(message: Message) -> int:
    return message.sent_time.ToMicroseconds() if message.HasField("sent_time") else received(message)


def within(message: Message, bounds: Mapping[str, int]) -> bool:
    return bounds.get("sent_after", NEVER) < said(message) < bounds.get("sent_before", EVER) and bounds.get(
        "received_after", NEVER
    ) < received(message) < bounds.get("received_before", EVER)


NEVER, EVER = -(2**63), 2**63
