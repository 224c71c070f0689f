"""The table of bad input: for every field of every request, what it may be and what it may not be.

A field is found by its place (`AppendMessagesRequest.messages.role`), else by the message that it is of
(`Message.role`), else by its name (`user_id`), else by its type. `test_fields` fails where a field is not found at all.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message as AnyMessage
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from tests.input.places import Place, holder, places, put, step

from remora.v1.memory_service_pb2 import Weights
from remora.v1.scalar_pb2 import Operator
from remora_server.domain.status import ModelStatus
from remora_server.rpc.server import SERVICES

KIB, MIB = 1024, 1024 * 1024
MODEL = ModelStatus("all-MiniLM-L6-v2/f32", dimension=384, precision="f32")
METHODS = {method.name: method for service in SERVICES for method in service.methods}
REQUESTS: dict[str, Descriptor] = {method.input_type.name: method.input_type for method in METHODS.values()}

Json: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Values:
    """Values of a field that are accepted, and values that are not."""

    accepted: tuple[Any, ...]
    refused: tuple[Any, ...] = ()


def up_to(size: int) -> Values:
    """Texts of at most so many bytes, in letters of one and of two bytes; and longer ones."""
    return Values(("", "\0", "a" * size, "é" * (size // 2)), ("a" * (size + 1), "é" * (size // 2 + 1)))


def one_to(size: int) -> Values:
    """The same, where empty is refused."""
    values = up_to(size)
    return Values(values.accepted[1:], ("", *values.refused))


def bytes_up_to(size: int) -> Values:
    """Anything that long: bytes that are no text, and JSON nested deep, which nobody reads."""
    return Values((b"", b"\xff\0" * (size // 2), b"[" * size), (bytes(size + 1),))


def lists_up_to(size: int, element: object, least: int = 0) -> Values:
    too_short: tuple[Any, ...] = ([],) if least else ()
    return Values(([element] * least, [element] * size), (*too_short, [element] * (size + 1)))


def from_to(least: int, most: int) -> Values:
    return Values((least, most), (least - 1, most + 1, -(2**31), 2**31 - 1))


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


ANYTHING = Values(())
NOT_NEGATIVE = Values((0, 1, 2**31 - 1), (-1, -(2**31)))
INTEGERS = Values((0, -1, -(2**63), 2**63 - 1))
SEQUENCES = Values((0, 1, 2**63, 2**64 - 1))
REQUIRED = Values((), (None,))
FINITE = Values((0.0, -1.0, 1e300, 5e-324), (math.nan, math.inf, -math.inf))
WEIGHT = Values((0.0, 100.0), (-0.1, 100.1, 1e300, math.nan, math.inf, -math.inf))
INDEX_WAIT = Values(
    (Duration(), Duration(nanos=1), Duration(seconds=60)),
    (
        Duration(seconds=60, nanos=1),
        Duration(seconds=-1),
        Duration(nanos=-1),
        Duration(nanos=1_000_000_000),
        Duration(seconds=2**63 - 1),
        Duration(seconds=-(2**63)),
    ),
)
SECONDS = Values((0, -62_135_596_800, 253_402_300_799), (-62_135_596_801, 253_402_300_800, 2**63 - 1, -(2**63)))
NANOS = Values((0, 999_999_999), (-1, 1_000_000_000, 2**31 - 1, -(2**31)))
ONE = {"integer": 1}
ATTRIBUTES = Values(
    ({}, {str(n): ONE for n in range(64)}, {"k" * 256: ONE}, {"\0": ONE}, {"é" * 128: ONE}),
    ({str(n): ONE for n in range(65)}, {"": ONE}, {"k" * 257: ONE}, {"é" * 129: ONE}),
)
STEP: Json = {"id": "s", "conversation_id": "c", "type": 1}
CONDITION: Json = {"key": "k", "operator": Operator.OPERATOR_EQ, "values": [ONE]}
CALL: Json = {"id": "i", "name": "n"}
EMBEDDING: Json = {"model": "another", "values": vector(1)}
USER: Json = {"user_id": "u"}
SAID: Json = {"role": "user"}
EPOCH = Timestamp()
WRITTEN: Json = {"user_id": "u", "create_time": EPOCH, "update_time": EPOCH}
KEPT: Json = {"scope": USER, "update_time": EPOCH}

LEAST: dict[str, Json] = {
    "CreateConversationRequest": {"conversation": {}},
    "GetConversationRequest": {"conversation_id": "c"},
    "ListConversationsRequest": {},
    "CountConversationsRequest": {},
    "UpdateConversationRequest": {"conversation": {"id": "c"}},
    "DeleteConversationRequest": {"conversation_id": "c"},
    "AppendMessagesRequest": {"conversation_id": "c", "messages": [SAID]},
    "ListMessagesRequest": {"conversation_id": "c"},
    "DeleteMessagesRequest": {"conversation_id": "c"},
    "ClearMessagesRequest": {"conversation_id": "c"},
    "DeleteUserRequest": {"user_id": "u"},
    "EditMessagesRequest": {"conversation_id": "c", "edits": [{"remove": "m"}]},
    "SaveStepsRequest": {"steps": [STEP]},
    "ListStepsRequest": {"conversation_id": "c"},
    "GetWorkingMemoryRequest": {"scope": USER},
    "SetWorkingMemoryRequest": {"scope": USER},
    "DeleteWorkingMemoryRequest": {"scope": USER},
    "SearchMessagesRequest": {"user_id": "u", "text": "t", "index_wait": Duration()},
    "AssembleContextRequest": {"conversation_id": "c", "max_tokens": 100, "index_wait": Duration()},
    "CountTokensRequest": {},
    "EmbedRequest": {"texts": ["t"]},
    "GetStatusRequest": {},
    "ExportRecordsRequest": {},
    "ImportRecordsRequest": {"records": [{"working_memory": KEPT}]},
    "CreateBackupRequest": {},
    "ReadBackupRequest": {"backup_id": "b"},
    "DeleteBackupRequest": {"backup_id": "b"},
}
"""The least that each request needs."""

TEMPLATES: dict[str, Json] = {
    "remora.v1.Message": SAID,
    "remora.v1.ToolCall": CALL,
    "remora.v1.Scalar": ONE,
    "remora.v1.Embedding": EMBEDDING,
    "remora.v1.Condition": CONDITION,
    "remora.v1.Step": STEP,
    "remora.v1.SearchOptions": {"profile": 4},
    "remora.v1.Edit": {"remove": "m"},
    "remora.v1.Edit.replace": {**SAID, "id": "m"},
    "remora.v1.ConversationScope": {"conversation_id": "c"},
    "remora.v1.Record": {"working_memory": KEPT},
    "remora.v1.ConversationRecord": {"conversation": {**WRITTEN, "id": "c"}},
    "remora.v1.MessageRecord": {"conversation_id": "c", "message": {**SAID, **WRITTEN, "id": "m", "sequence": 1}},
    "remora.v1.Record.step": {**STEP, "user_id": "u", "create_time": EPOCH},
    "remora.v1.WorkingMemoryRecord": KEPT,
}
"""The least that messages within requests need, where that is not nothing: by the message or a field that has it."""

IGNORED = frozenset(
    f"remora.v1.{name}"
    for name in (
        "Conversation.uid",
        "Conversation.revision",
        "Conversation.last_sequence",
        "Conversation.message_count",
        "Conversation.create_time",
        "Conversation.update_time",
        "Message.user_id",
        "Message.sequence",
        "Message.revision",
        "Message.create_time",
        "Message.update_time",
        "Message.token_count",
    )
)
"""What is output only, and may be anything in a request that does not say otherwise by its place."""

MOST = 2**63 - 1
"""The greatest sequence."""


def _kept_by(count: int) -> list[Json]:
    """Working memories of so many users."""
    return [{"working_memory": {**KEPT, "scope": {"user_id": f"u{number}"}}} for number in range(count)]


BY_PLACE: dict[str, Values] = {
    "CreateConversationRequest.conversation": REQUIRED,
    "UpdateConversationRequest.conversation": REQUIRED,
    "UpdateConversationRequest.conversation.id": one_to(512),
    "ClearMessagesRequest.conversation_id": Values(one_to(512).accepted, up_to(512).refused),
    "ClearMessagesRequest.user_id": up_to(512),
    "DeleteUserRequest.user_id": one_to(512),
    "SearchMessagesRequest.user_id": one_to(512),
    "SearchMessagesRequest.text": one_to(32 * KIB),
    "AssembleContextRequest.query": up_to(32 * KIB),
    "AssembleContextRequest.max_tokens": from_to(1, 10_000_000),
    "AssembleContextRequest.recent_messages": NOT_NEGATIVE,
    "AppendMessagesRequest.messages": lists_up_to(1_000, SAID, least=1),
    "EditMessagesRequest.edits": lists_up_to(1_000, {"remove": "m"}, least=1),
    "EditMessagesRequest.edits.replace.id": one_to(512),
    "DeleteMessagesRequest.message_ids": lists_up_to(10_000, "i"),
    "SaveStepsRequest.steps": lists_up_to(1_000, STEP, least=1),
    "CountTokensRequest.texts": lists_up_to(10_000, "t"),
    "CountTokensRequest.messages": lists_up_to(10_000, SAID),
    "EmbedRequest.texts": Values((["t"] * 256, [""]), ([], ["t"] * 257)),
    "ListConversationsRequest.skip": NOT_NEGATIVE,
    "ListStepsRequest.skip": NOT_NEGATIVE,
    "ListStepsRequest.limit": NOT_NEGATIVE,
    "GetWorkingMemoryRequest.scope": REQUIRED,
    "SetWorkingMemoryRequest.scope": REQUIRED,
    "SetWorkingMemoryRequest.content": bytes_up_to(MIB),
    "DeleteWorkingMemoryRequest.scope": REQUIRED,
    "ExportRecordsRequest.conversation_id": up_to(512),
    "ImportRecordsRequest.records": Values((_kept_by(1), _kept_by(1_000)), ([], _kept_by(1_001))),
    "ImportRecordsRequest.records.conversation.conversation": REQUIRED,
    "ImportRecordsRequest.records.conversation.conversation.id": one_to(512),
    "ImportRecordsRequest.records.conversation.conversation.user_id": one_to(512),
    "ImportRecordsRequest.records.conversation.conversation.last_sequence": Values((0, 1, MOST), (MOST + 1, 2**64 - 1)),
    "ImportRecordsRequest.records.conversation.conversation.create_time": REQUIRED,
    "ImportRecordsRequest.records.conversation.conversation.update_time": REQUIRED,
    "ImportRecordsRequest.records.message.message": REQUIRED,
    "ImportRecordsRequest.records.message.message.id": one_to(512),
    "ImportRecordsRequest.records.message.message.user_id": one_to(512),
    "ImportRecordsRequest.records.message.message.sequence": Values((1, MOST), (0, MOST + 1, 2**64 - 1)),
    "ImportRecordsRequest.records.message.message.create_time": REQUIRED,
    "ImportRecordsRequest.records.message.message.update_time": REQUIRED,
    "ImportRecordsRequest.records.step.user_id": one_to(512),
    "ImportRecordsRequest.records.step.create_time": REQUIRED,
    "ImportRecordsRequest.records.working_memory.scope": REQUIRED,
    "ImportRecordsRequest.records.working_memory.content": bytes_up_to(MIB),
    "ImportRecordsRequest.records.working_memory.update_time": REQUIRED,
    "ReadBackupRequest.backup_id": one_to(64),
    "ReadBackupRequest.offset": Values((0, 1, 2**63 - 1), (-1, -(2**63))),
    "DeleteBackupRequest.backup_id": one_to(64),
}

BY_MESSAGE: dict[str, Values] = {
    "Conversation.id": up_to(512),
    "Conversation.resource_id": up_to(512),
    "Conversation.title": up_to(4_096),
    "Conversation.metadata": bytes_up_to(MIB),
    "Conversation.attributes": ATTRIBUTES,
    "Conversation.storage_limit": Values((None, 1, 1_000_000), (-1, 0, 1_000_001, -(2**31), 2**31 - 1)),
    "Message.id": up_to(512),
    "Message.role": one_to(64),
    "Message.name": up_to(256),
    "Message.text": up_to(MIB),
    "Message.parts": bytes_up_to(2 * MIB),
    "Message.metadata": bytes_up_to(256 * KIB),
    "Message.attributes": ATTRIBUTES,
    "Message.tool_calls": lists_up_to(128, CALL),
    "Message.tool_result_ids": lists_up_to(128, "i"),
    "Message.session_id": up_to(512),
    "ToolCall.id": one_to(512),
    "ToolCall.name": one_to(256),
    "ToolCall.arguments": bytes_up_to(MIB),
    "Embedding.model": one_to(256),
    "Embedding.values": Values(
        (vector(1), vector(0, -1), vector(*[1.0] * 4_096), vector(3e38, 3e38), vector(1e-45)),
        (
            b"",
            b"\0\0\0",
            b"12345",
            vector(*[1.0] * 4_097),
            vector(0, -0.0),
            vector(1, math.nan),
            vector(math.inf),
            vector(math.inf, -math.inf),
        ),
    ),
    "Scalar.null_value": Values((0,), (1, -1)),
    "Scalar.integer": INTEGERS,
    "Scalar.number": FINITE,
    "Scalar.text": up_to(1_024),
    "Origin.agent_id": up_to(512),
    "Origin.run_id": up_to(512),
    "Edit.remove": one_to(512),
    "Slice.from": INTEGERS,
    "Slice.to": INTEGERS,
    "Step.id": one_to(512),
    "Step.agent_id": up_to(512),
    "Step.agent_name": up_to(512),
    "Step.operation_id": up_to(512),
    "Step.step_index": NOT_NEGATIVE,
    "Step.type": Values((1, 2, 3), (0, 4, -1, 2**31 - 1)),
    "Step.role": up_to(64),
    "Step.content": up_to(MIB),
    "Step.arguments": bytes_up_to(MIB),
    "Step.result": bytes_up_to(MIB),
    "Step.usage": bytes_up_to(64 * KIB),
    "Step.sub_agent_id": up_to(512),
    "Step.sub_agent_name": up_to(512),
    "WorkingMemoryScope.user_id": one_to(512),
    "SearchOptions.k": NOT_NEGATIVE,
    "SearchOptions.threshold": FINITE,
    "MessageFilter.conditions": lists_up_to(32, {"key": "k", "operator": Operator.OPERATOR_PRESENT}),
    "Condition.key": one_to(256),
    "Condition.operator": Values((1, 2, 3, 4, 5, 6, 7), (0, 10, -1, 2**31 - 1)),
    "Condition.values": Values(([ONE],), ([], [ONE, ONE])),
    "Encoding.name": Values(("o200k_base", "cl100k_base", "approximate"), ("", "\0", "p50k_base", "O200K_BASE")),
    "Encoding.model": one_to(256),
    "FieldMask.paths": Values(
        ([], ["title", "title"], ["resource_id", "title", "metadata", "attributes", "storage_limit"]),
    ),
    "Timestamp.seconds": SECONDS,
    "Timestamp.nanos": NANOS,
}

BY_NAME: dict[str, Values] = {
    "user_id": up_to(512),
    "conversation_id": one_to(512),
    "resource_id": up_to(512),
    "operation_id": up_to(512),
    "request_id": up_to(128),
    "min_revision": ANYTHING,
    "page_token": ANYTHING,
    "page_size": NOT_NEGATIVE,
    "after_sequence": SEQUENCES,
    "before_sequence": SEQUENCES,
    "roles": lists_up_to(16, "r" * 64),
    "index_wait": INDEX_WAIT,
}
"""Fields that mean the same wherever they are. Tokens and revisions have tests of their own."""

OF_ELEMENTS: dict[str, Values] = {
    "roles": one_to(64),
    "tool_result_ids": one_to(512),
    "message_ids": one_to(512),
    "texts": Values(("", "\0", "a" * KIB)),
    "paths": Values(
        ("resource_id", "title", "metadata", "attributes", "storage_limit"),
        ("", "\0", "id", "user_id", "uid", "title.x", "Title", "*"),
    ),
}

WEIGHTS = "remora.v1.Weights"


def values_of(place: Place) -> Values:
    """What the table says of a place. KeyError where it says nothing."""
    field, named = place.field, f"{place.request.name}.{place.names}"
    if field.full_name in IGNORED and named not in BY_PLACE:
        return ANYTHING
    if place.of_element:
        return OF_ELEMENTS[field.name]
    keys = (
        (BY_PLACE, named),
        (BY_MESSAGE, f"{place.holder.name}.{field.name}"),
        (BY_NAME, field.name),
    )
    found = next((table[key] for table, key in keys if key in table), None)
    return _by_type(place) if found is None else found


def _by_type(place: Place) -> Values:
    field = place.field
    if place.holder.full_name == WEIGHTS:
        return WEIGHT
    if field.enum_type is not None:
        numbers = tuple(field.enum_type.values_by_number)
        return Values(numbers, (max(numbers) + 1, -1, 2**31 - 1, -(2**31)))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return Values((False, True))
    if field.message_type is not None:
        return ANYTHING
    raise KeyError(f"{place} is in no table: what may it be?")


@dataclass(frozen=True)
class Case:
    """A request with a value, and the path by which it is refused; None where it is accepted."""

    request: AnyMessage
    path: str | None
    what: str


def cases(request: str) -> Iterator[Case]:
    """The cases of a request, by its name."""
    for place in places(REQUESTS[request], IGNORED):
        values = values_of(place)
        for value in values.accepted:
            yield Case(_with(place, value), None, f"{place} = {_short(value)}")
        for value in values.refused:
            yield Case(_with(place, value), place.path, f"{place} = {_short(value)}")
    yield from _of_oneofs(request)
    for path, built in COMBINED.get(request, ()):
        yield Case(cast("Any", GetMessageClass(REQUESTS[request]))(**built), path, f"{request} {path} {_short(built)}")


def _with(place: Place, value: Any) -> AnyMessage:  # noqa: ANN401
    return put(least(place.request.name), place, value, TEMPLATES)


def least(request: str) -> AnyMessage:
    """The least request of a name. KeyError where the table has none."""
    return cast("AnyMessage", cast("Any", GetMessageClass(REQUESTS[request]))(**LEAST[request]))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:40]}... ({len(text)} characters)"


REQUIRED_ONEOFS = {
    "Scalar.kind",
    "Edit.action",
    "WorkingMemoryScope.owner",
    "SearchMessagesRequest.scope",
    "SearchMessagesRequest.query",
    "Record.kind",
}


def _of_oneofs(request: str) -> Iterator[Case]:
    """Requests in which a oneof that is required has nothing set."""
    seen: set[str] = set()
    for place in places(REQUESTS[request], IGNORED):
        one_of = place.field.containing_oneof
        if one_of is None or f"{place.holder.name}.{one_of.name}" not in REQUIRED_ONEOFS:
            continue
        path = ".".join([*map(step, place.fields[:-1]), one_of.name])
        if path not in seen:
            seen.add(path)
            emptied = least(request)
            holder(emptied, place, TEMPLATES).ClearField(one_of.name)
            yield Case(emptied, path, f"{request} without {path}")


def _searched(**fields: object) -> Json:
    return {"user_id": "u", "text": "t", **fields}


def _by_vector(**options: object) -> Json:
    return {"user_id": "u", "embedding": EMBEDDING, "options": options}


def _on(operator: int, values: list[Any]) -> Json:
    condition = {"key": "k", "operator": operator, "values": [one if isinstance(one, dict) else ONE for one in values]}
    return _searched(options={"filter": {"conditions": [condition]}})


def _of_model(dimensions: int) -> Json:
    return {"model": MODEL.name, "values": vector(*[1.0] * dimensions)}


def _said_with(dimensions: int) -> Json:
    return {**SAID, "embedding": _of_model(dimensions)}


def _imported(kind: str, **fields: object) -> Json:
    """A record of a conversation or a message."""
    least = TEMPLATES[f"remora.v1.{kind.title()}Record"]
    return {kind: {**least, kind: {**least[kind], **fields}}}


_VALUES = "options.filter.conditions[0].values"
_ORDERED = range(Operator.OPERATOR_LT, Operator.OPERATOR_IN)
_DIMENSIONS = (1, MODEL.dimension - 1, MODEL.dimension + 1)
_NO_WEIGHTS = {field.name: 0.0 for field in Weights.DESCRIPTOR.fields if field.name != "late"}
_PASSED_ON: list[Json] = [{}, {"answer": 1.0, "next": 1.0}, {"session": 1.0, "nearby": 1.0}]
_TOGETHER_IN_SEARCH: list[tuple[str | None, Json]] = [
    *((None, _by_vector(profile=profile)) for profile in (0, 2)),
    *(("options.profile", _by_vector(profile=profile)) for profile in (1, 3, 4)),
    (None, _by_vector(weights={})),
    ("options.weights", _by_vector(weights={"cosine": 1.0})),
    *((None, _searched(options={"profile": profile, "weights": {"bm25": 1.0}})) for profile in (0, 1, 4)),
    (None, _searched(options={"profile": 4, "weights": {"late": 1.0}})),
    *(("options.weights", _searched(options={"weights": {**_NO_WEIGHTS, **left}})) for left in _PASSED_ON),
    ("options.weights", _searched(options={"profile": 4, "weights": {**_NO_WEIGHTS, "late": 0.0}})),
    *((None, _searched(options={"weights": {**_NO_WEIGHTS, name: 1.0}})) for name in ("cosine", "speaker", "passage")),
    (None, _searched(options={"profile": 4, "weights": _NO_WEIGHTS})),
    *(
        ("options.weights.late", _searched(options={"profile": profile, "weights": {"late": 1.0}}))
        for profile in (0, 1)
    ),
    *(("options.weights", _searched(options={"profile": profile, "weights": {"bm25": 1.0}})) for profile in (2, 3)),
    *((_VALUES, _on(operator, values)) for operator in range(1, 7) for values in ([], [1, 1])),
    *((None, _on(operator, [one])) for operator in _ORDERED for one in ({"number": 0.5}, {"text": ""})),
    *(
        (f"{_VALUES}[0]", _on(operator, [one]))
        for operator in _ORDERED
        for one in ({"boolean": True}, {"null_value": 0})
    ),
    *((None, _on(Operator.OPERATOR_IN, [1] * count)) for count in (1, 256)),
    *((_VALUES, _on(Operator.OPERATOR_IN, [1] * count)) for count in (0, 257)),
    *((None, _on(operator, [])) for operator in (Operator.OPERATOR_PRESENT, Operator.OPERATOR_ABSENT)),
    *((_VALUES, _on(operator, [1])) for operator in (Operator.OPERATOR_PRESENT, Operator.OPERATOR_ABSENT)),
    (None, {"user_id": "u", "embedding": _of_model(MODEL.dimension)}),
    *(("embedding.values", {"user_id": "u", "embedding": _of_model(count)}) for count in _DIMENSIONS),
]

COMBINED: Mapping[str, list[tuple[str | None, Json]]] = {
    "SearchMessagesRequest": _TOGETHER_IN_SEARCH,
    "AssembleContextRequest": [
        ("search.weights", {**LEAST["AssembleContextRequest"], "search": {"profile": 3, "weights": {"next": 0.0}}}),
        ("search.weights", {**LEAST["AssembleContextRequest"], "search": {"weights": _NO_WEIGHTS}}),
    ],
    "AppendMessagesRequest": [
        (None, {"conversation_id": "c", "messages": [_said_with(MODEL.dimension)]}),
        *(
            ("messages[1].embedding.values", {"conversation_id": "c", "messages": [SAID, _said_with(count)]})
            for count in _DIMENSIONS
        ),
    ],
    "EditMessagesRequest": [
        (
            "edits[1].append.embedding.values",
            {
                "conversation_id": "c",
                "edits": [{"remove": "m"}, {"append": _said_with(count)}],
            },
        )
        for count in _DIMENSIONS
    ],
    "ClearMessagesRequest": [("user_id", {}), (None, {"user_id": "u"})],
    "ImportRecordsRequest": [
        (
            f"records[0].{kind}.{kind}.{name}.seconds",
            {"records": [_imported(kind, **{name: Timestamp(seconds=1 << 60)})]},
        )
        for kind in ("conversation", "message")
        for name in ("create_time", "update_time")
    ],
    "CountTokensRequest": [
        ("messages", {"texts": ["t"], "messages": [SAID]}),
        *(("messages[0].embedding.values", {"messages": [_said_with(count)]}) for count in _DIMENSIONS),
    ],
}
"""Fields that are right alone and wrong together: the path that is named, None where they are accepted; the request."""
