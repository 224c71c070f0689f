"""Every limit that the contract states: at the limit a request is accepted, beyond it the field is named."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message as AnyMessage
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import memory_service_pb2 as memory
from remora.v1 import text_service_pb2 as texts
from remora.v1.message_pb2 import Origin
from remora.v1.scalar_pb2 import Operator, Scalar
from remora_server.domain.errors import InvalidField
from remora_server.domain.status import ModelStatus
from remora_server.rpc.limits import Limits
from remora_server.rpc.rules import Fields, anything
from remora_server.rpc.server import SERVICES

KIB, MIB = 1024, 1024 * 1024
LIMITS = Limits(ModelStatus("minilm", dimension=3, precision="f32"))


@dataclass(frozen=True)
class Case:
    """A field by its path, how a request gets a value there, values that are accepted and values that are not."""

    path: str
    request: Callable[[Any], AnyMessage]
    accepted: tuple[Any, ...]
    refused: tuple[Any, ...]


def up_to(size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts of at most so many bytes, in letters of one and of two bytes; and longer ones."""
    return ("", "a" * size, "é" * (size // 2)), ("a" * (size + 1), "é" * (size // 2 + 1))


def one_to(size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The same, where empty is refused."""
    accepted, refused = up_to(size)
    return accepted[1:], ("", *refused)


def bytes_up_to(size: int) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    return (b"", b"\0" * size), (b"\0" * (size + 1),)


def counts_up_to(size: int, element: object) -> tuple[tuple[list[object], ...], tuple[list[object], ...]]:
    return ([], [element] * size), ([element] * (size + 1),)


def cases(path: str, request: Callable[[Any], AnyMessage], values: tuple[tuple[Any, ...], tuple[Any, ...]]) -> Case:
    return Case(path, request, *values)


STEP = {"id": "s", "conversation_id": "c", "type": 1}


def built(kind: Callable[..., AnyMessage], **fields: object) -> AnyMessage:
    """A message of dicts and lists."""
    return kind(**fields)


def append(**fields: object) -> AnyMessage:
    return built(pb.AppendMessagesRequest, conversation_id="c", messages=[{"role": "user", **fields}])


def create(**fields: object) -> AnyMessage:
    return built(pb.CreateConversationRequest, conversation=fields)


def update(**fields: object) -> AnyMessage:
    return built(pb.UpdateConversationRequest, **{"conversation": {"id": "c"}, **fields})


def edit(*edits: object) -> AnyMessage:
    return built(pb.EditMessagesRequest, conversation_id="c", edits=edits)


def save(**fields: object) -> AnyMessage:
    return built(pb.SaveStepsRequest, steps=[{**STEP, **fields}])


def call_tool(**fields: object) -> AnyMessage:
    return append(tool_calls=[{"id": "i", "name": "n", **fields}])


def search(**fields: object) -> AnyMessage:
    return built(memory.SearchMessagesRequest, **{"user_id": "u", "text": "t", **fields})


def search_with(**options: object) -> AnyMessage:
    return search(options=options)


def weighing(name: str, weight: float) -> AnyMessage:
    return search_with(weights={name: weight})


def filtered(**fields: object) -> AnyMessage:
    return search_with(filter=fields)


def on_condition(
    values: Iterable[object] = (1,), *, key: str = "k", operator: int = Operator.OPERATOR_EQ
) -> AnyMessage:
    scalars = [{"integer": value} if isinstance(value, int) else value for value in values]
    return filtered(conditions=[{"key": key, "operator": operator, "values": scalars}])


def assemble(**fields: object) -> AnyMessage:
    return built(memory.AssembleContextRequest, **{"conversation_id": "c", "max_tokens": 1, **fields})


def list_messages(**fields: object) -> AnyMessage:
    return built(pb.ListMessagesRequest, **{"conversation_id": "c", **fields})


def count(**fields: object) -> AnyMessage:
    return built(texts.CountTokensRequest, **fields)


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def times(seconds: int, nanos: int = 0) -> Timestamp:
    return Timestamp(seconds=seconds, nanos=nanos)


WRITES: dict[type[AnyMessage], dict[str, Any]] = {
    pb.CreateConversationRequest: {"conversation": {}},
    pb.UpdateConversationRequest: {"conversation": {"id": "c"}},
    pb.DeleteConversationRequest: {"conversation_id": "c"},
    pb.AppendMessagesRequest: {"conversation_id": "c", "messages": [{"role": "user"}]},
    pb.DeleteMessagesRequest: {"conversation_id": "c"},
    pb.ClearMessagesRequest: {"user_id": "u"},
    pb.DeleteUserRequest: {"user_id": "u"},
    pb.EditMessagesRequest: {"conversation_id": "c", "edits": [{"remove": "m"}]},
    pb.SaveStepsRequest: {"steps": [STEP]},
    pb.SetWorkingMemoryRequest: {"scope": {"user_id": "u"}},
    pb.DeleteWorkingMemoryRequest: {"scope": {"user_id": "u"}},
}
"""The least that each write needs."""


def of_write(kind: type[AnyMessage]) -> Iterator[Case]:
    """What every write has besides its own fields."""
    least = WRITES[kind]
    yield cases("request_id", lambda v: kind(**least, request_id=v), up_to(128))
    yield cases("origin.agent_id", lambda v: kind(**least, origin={"agent_id": v}), up_to(512))
    yield cases("origin.run_id", lambda v: kind(**least, origin={"run_id": v}), up_to(512))


YEAR_1, YEAR_9999 = -62_135_596_800, 253_402_300_799
NOT_NEGATIVE = ((0, 1, 2**31 - 1), (-1,))
ROLES: tuple[tuple[list[str], ...], tuple[list[str], ...]] = (([], ["r" * 64] * 16), (["user"] * 17,))
INDEX_WAITS = (
    (Duration(), Duration(seconds=60), Duration(nanos=1)),
    (Duration(seconds=60, nanos=1), Duration(seconds=-1), Duration(nanos=-1), Duration(nanos=1_000_000_000)),
)
SCALARS = (
    (Scalar(text="é" * 512), Scalar(number=1.5), Scalar(integer=-(2**63)), Scalar(boolean=False), {"null_value": 0}),
    (),
)

CASES: list[Case] = [
    *(case for kind in WRITES for case in of_write(kind)),
    cases("conversation.id", lambda v: create(id=v), up_to(512)),
    cases("conversation.user_id", lambda v: create(user_id=v), up_to(512)),
    cases("conversation.resource_id", lambda v: create(resource_id=v), up_to(512)),
    cases("conversation.title", lambda v: create(title=v), up_to(4_096)),
    cases("conversation.metadata", lambda v: create(metadata=v), bytes_up_to(MIB)),
    cases("conversation.storage_limit", lambda v: create(storage_limit=v), ((None, 1, 1_000_000), (-1, 0, 1_000_001))),
    cases(
        "conversation.attributes",
        lambda v: create(attributes=v),
        (
            ({}, {str(n): Scalar(integer=n) for n in range(64)}, {"k" * 256: Scalar(integer=1)}),
            ({str(n): Scalar(integer=n) for n in range(65)}, {"": Scalar(integer=1)}, {"k" * 257: Scalar(integer=1)}),
        ),
    ),
    cases('conversation.attributes["a"].kind', lambda v: create(attributes={"a": v}), (SCALARS[0], (Scalar(),))),
    cases(
        'conversation.attributes["a"].number',
        lambda v: create(attributes={"a": Scalar(number=v)}),
        ((0.0, -1e300), (math.inf, -math.inf, math.nan)),
    ),
    cases('conversation.attributes["a"].text', lambda v: create(attributes={"a": Scalar(text=v)}), up_to(1_024)),
    cases(
        'conversation.attributes["a"].null_value',
        lambda v: create(attributes={"a": Scalar(null_value=v)}),
        ((0,), (1,)),
    ),
    cases(
        "conversation",
        lambda v: built(pb.CreateConversationRequest, conversation=v),
        (({},), (None,)),
    ),
    cases(
        "conversation",
        lambda v: update(conversation=v),
        (({"id": "c"},), (None,)),
    ),
    cases("conversation.id", lambda v: update(conversation={"id": v}), one_to(512)),
    cases(
        "update_mask.paths[1]",
        lambda v: update(update_mask=FieldMask(paths=["title", v])),
        (("resource_id", "metadata", "attributes", "storage_limit"), ("id", "user_id", "", "title.x")),
    ),
    cases("user_id", lambda v: update(user_id=v), up_to(512)),
    cases("conversation_id", lambda v: built(pb.GetConversationRequest, conversation_id=v), one_to(512)),
    cases("user_id", lambda v: built(pb.GetConversationRequest, conversation_id="c", user_id=v), up_to(512)),
    cases("user_id", lambda v: built(pb.ListConversationsRequest, user_id=v), up_to(512)),
    cases("resource_id", lambda v: built(pb.ListConversationsRequest, resource_id=v), up_to(512)),
    cases("order_by", lambda v: built(pb.ListConversationsRequest, order_by=v), ((0, 1, 2, 3), (4, -1))),
    cases("direction", lambda v: built(pb.ListConversationsRequest, direction=v), ((0, 1, 2), (3,))),
    cases("page_size", lambda v: built(pb.ListConversationsRequest, page_size=v), NOT_NEGATIVE),
    cases("skip", lambda v: built(pb.ListConversationsRequest, skip=v), NOT_NEGATIVE),
    cases("user_id", lambda v: built(pb.CountConversationsRequest, user_id=v), up_to(512)),
    cases("resource_id", lambda v: built(pb.CountConversationsRequest, resource_id=v), up_to(512)),
    cases("conversation_id", lambda v: built(pb.DeleteConversationRequest, conversation_id=v), one_to(512)),
    cases("user_id", lambda v: built(pb.DeleteConversationRequest, conversation_id="c", user_id=v), up_to(512)),
    cases(
        "conversation_id",
        lambda v: built(pb.AppendMessagesRequest, conversation_id=v, messages=[{"role": "user"}]),
        one_to(512),
    ),
    cases(
        "messages",
        lambda v: built(pb.AppendMessagesRequest, conversation_id="c", messages=v),
        (([{"role": "user"}] * 1_000,), ([], [{"role": "user"}] * 1_001)),
    ),
    cases(
        "create_if_missing.title",
        lambda v: built(
            pb.AppendMessagesRequest, conversation_id="c", messages=[{"role": "user"}], create_if_missing={"title": v}
        ),
        up_to(4_096),
    ),
    cases(
        "user_id",
        lambda v: built(pb.AppendMessagesRequest, conversation_id="c", user_id=v, messages=[{"role": "user"}]),
        up_to(512),
    ),
    cases("messages[0].id", lambda v: append(id=v), up_to(512)),
    cases("messages[0].role", lambda v: append(role=v), one_to(64)),
    cases("messages[0].name", lambda v: append(name=v), up_to(256)),
    cases("messages[0].text", lambda v: append(text=v), up_to(MIB)),
    cases("messages[0].parts", lambda v: append(parts=v), bytes_up_to(2 * MIB)),
    cases("messages[0].metadata", lambda v: append(metadata=v), bytes_up_to(256 * KIB)),
    cases(
        "messages[0].attributes",
        lambda v: append(attributes={"k" * v: Scalar(integer=1)}),
        ((1, 256), (0, 257)),
    ),
    cases(
        "messages[0].tool_calls",
        lambda v: append(tool_calls=v),
        counts_up_to(128, {"id": "i", "name": "n"}),
    ),
    cases("messages[0].tool_calls[0].id", lambda v: call_tool(id=v), one_to(512)),
    cases("messages[0].tool_calls[0].name", lambda v: call_tool(name=v), one_to(256)),
    cases("messages[0].tool_calls[0].arguments", lambda v: call_tool(arguments=v), bytes_up_to(MIB)),
    cases("messages[0].tool_result_ids", lambda v: append(tool_result_ids=v), counts_up_to(128, "i")),
    cases("messages[0].tool_result_ids[1]", lambda v: append(tool_result_ids=["i", v]), one_to(512)),
    cases(
        "messages[0].sent_time.seconds",
        lambda v: append(sent_time=times(v)),
        ((0, YEAR_1, YEAR_9999), (YEAR_1 - 1, YEAR_9999 + 1, 2**63 - 1)),
    ),
    cases(
        "messages[0].sent_time.nanos",
        lambda v: append(sent_time=times(0, v)),
        ((0, 999_999_999), (-1, 1_000_000_000)),
    ),
    cases("messages[0].session_id", lambda v: append(session_id=v), up_to(512)),
    cases("messages[0].embedding.model", lambda v: append(embedding={"model": v, "values": vector(1)}), one_to(256)),
    cases(
        "messages[0].embedding.values",
        lambda v: append(embedding={"model": "other", "values": v}),
        (
            (vector(1), vector(0, -1), vector(*[1.0] * 4_096), vector(3e38, 3e38), vector(1e-45)),
            (
                b"",
                b"\0\0\0",
                b"12345",
                vector(*[1.0] * 4_097),
                vector(0, -0.0),
                vector(1, math.nan),
                vector(math.inf, -math.inf),
            ),
        ),
    ),
    cases(
        "messages[0].embedding.values",
        lambda v: append(embedding={"model": "minilm", "values": v}),
        ((vector(1, 2, 3),), (vector(1, 2), vector(1, 2, 3, 4))),
    ),
    cases("conversation_id", lambda v: list_messages(conversation_id=v), one_to(512)),
    cases("user_id", lambda v: list_messages(user_id=v), up_to(512)),
    cases("roles", lambda v: list_messages(roles=v), ROLES),
    cases("roles[0]", lambda v: list_messages(roles=[v]), one_to(64)),
    cases("after_time.seconds", lambda v: list_messages(after_time=times(v)), ((YEAR_1,), (YEAR_1 - 1,))),
    cases("before_time.seconds", lambda v: list_messages(before_time=times(v)), ((YEAR_9999,), (YEAR_9999 + 1,))),
    cases("page_order", lambda v: list_messages(page_order=v), ((0, 1, 2), (3,))),
    cases("page_size", lambda v: list_messages(page_size=v), NOT_NEGATIVE),
    cases("conversation_id", lambda v: built(pb.DeleteMessagesRequest, conversation_id=v), one_to(512)),
    cases("user_id", lambda v: built(pb.DeleteMessagesRequest, conversation_id="c", user_id=v), up_to(512)),
    cases(
        "message_ids",
        lambda v: built(pb.DeleteMessagesRequest, conversation_id="c", message_ids=v),
        counts_up_to(10_000, "i"),
    ),
    cases(
        "message_ids[0]", lambda v: built(pb.DeleteMessagesRequest, conversation_id="c", message_ids=[v]), one_to(512)
    ),
    cases("conversation_id", lambda v: built(pb.ClearMessagesRequest, user_id="u", conversation_id=v), up_to(512)),
    cases("user_id", lambda v: built(pb.ClearMessagesRequest, user_id=v), one_to(512)),
    cases("user_id", lambda v: built(pb.ClearMessagesRequest, conversation_id="c", user_id=v), up_to(512)),
    cases("user_id", lambda v: built(pb.DeleteUserRequest, user_id=v), one_to(512)),
    cases(
        "conversation_id",
        lambda v: built(pb.EditMessagesRequest, conversation_id=v, edits=[{"remove": "m"}]),
        one_to(512),
    ),
    cases(
        "user_id",
        lambda v: built(pb.EditMessagesRequest, conversation_id="c", user_id=v, edits=[{"remove": "m"}]),
        up_to(512),
    ),
    cases(
        "edits",
        lambda v: edit(*v),
        (
            ([{"remove": "m"}] * 1_000, [{"remove_all": {}}, {"keep": {}}]),
            ([], [{"remove": "m"}] * 1_001),
        ),
    ),
    cases(
        "edits[0].action",
        edit,
        (({"keep": {"to": -1}},), ({},)),
    ),
    cases(
        "edits[0].append.role",
        lambda v: edit({"append": {"role": v}}),
        one_to(64),
    ),
    cases(
        "edits[0].replace.id",
        lambda v: edit({"replace": {"role": "user", "id": v}}),
        one_to(512),
    ),
    cases(
        "edits[1].remove",
        lambda v: edit({"remove": "m"}, {"remove": v}),
        one_to(512),
    ),
    cases(
        "steps",
        lambda v: built(pb.SaveStepsRequest, steps=v),
        (
            ([STEP] * 1_000,),
            ([], [STEP] * 1_001),
        ),
    ),
    cases("steps[0].id", lambda v: save(id=v), one_to(512)),
    cases("steps[0].conversation_id", lambda v: save(conversation_id=v), one_to(512)),
    cases("steps[0].user_id", lambda v: save(user_id=v), up_to(512)),
    cases("steps[0].agent_id", lambda v: save(agent_id=v), up_to(512)),
    cases("steps[0].agent_name", lambda v: save(agent_name=v), up_to(512)),
    cases("steps[0].operation_id", lambda v: save(operation_id=v), up_to(512)),
    cases("steps[0].step_index", lambda v: save(step_index=v), NOT_NEGATIVE),
    cases("steps[0].type", lambda v: save(type=v), ((1, 2, 3), (0, 4))),
    cases("steps[0].role", lambda v: save(role=v), up_to(64)),
    cases("steps[0].content", lambda v: save(content=v), up_to(MIB)),
    cases("steps[0].arguments", lambda v: save(arguments=v), bytes_up_to(MIB)),
    cases("steps[0].result", lambda v: save(result=v), bytes_up_to(MIB)),
    cases("steps[0].usage", lambda v: save(usage=v), bytes_up_to(64 * KIB)),
    cases("steps[0].sub_agent_id", lambda v: save(sub_agent_id=v), up_to(512)),
    cases("steps[0].sub_agent_name", lambda v: save(sub_agent_name=v), up_to(512)),
    cases("steps[0].create_time.seconds", lambda v: save(create_time=times(v)), ((YEAR_9999,), (YEAR_9999 + 1,))),
    cases("conversation_id", lambda v: built(pb.ListStepsRequest, conversation_id=v), one_to(512)),
    cases("user_id", lambda v: built(pb.ListStepsRequest, conversation_id="c", user_id=v), up_to(512)),
    cases("operation_id", lambda v: built(pb.ListStepsRequest, conversation_id="c", operation_id=v), up_to(512)),
    cases("limit", lambda v: built(pb.ListStepsRequest, conversation_id="c", limit=v), NOT_NEGATIVE),
    cases("page_size", lambda v: built(pb.ListStepsRequest, conversation_id="c", page_size=v), NOT_NEGATIVE),
    cases("skip", lambda v: built(pb.ListStepsRequest, conversation_id="c", skip=v), NOT_NEGATIVE),
    *(
        case
        for kind in (pb.GetWorkingMemoryRequest, pb.SetWorkingMemoryRequest, pb.DeleteWorkingMemoryRequest)
        for case in (
            cases("scope", lambda v, kind=kind: built(kind, scope=v), (({"user_id": "u"},), (None,))),  # type: ignore[misc]
            cases("scope.owner", lambda v, kind=kind: built(kind, scope=v), (({"user_id": "u"},), ({},))),  # type: ignore[misc]
            cases("scope.user_id", lambda v, kind=kind: built(kind, scope={"user_id": v}), one_to(512)),  # type: ignore[misc]
            cases(
                "scope.conversation_id",
                lambda v, kind=kind: built(kind, scope={"conversation_id": v}),  # type: ignore[misc]
                one_to(512),
            ),
            cases(
                "user_id",
                lambda v, kind=kind: built(kind, scope={"conversation_id": "c"}, user_id=v),  # type: ignore[misc]
                up_to(512),
            ),
        )
    ),
    cases("content", lambda v: built(pb.SetWorkingMemoryRequest, scope={"user_id": "u"}, content=v), bytes_up_to(MIB)),
    cases(
        "scope",
        lambda v: built(memory.SearchMessagesRequest, text="t", **v),
        (({"user_id": "u"}, {"tenant": {}}, {"conversation": {"conversation_id": "c"}}), ({},)),
    ),
    cases("query", lambda v: built(memory.SearchMessagesRequest, user_id="u", **v), (({"text": "t"},), ({},))),
    cases(
        "conversation.conversation_id",
        lambda v: built(memory.SearchMessagesRequest, text="t", conversation={"conversation_id": v}),
        one_to(512),
    ),
    cases(
        "conversation.user_id",
        lambda v: built(memory.SearchMessagesRequest, text="t", conversation={"conversation_id": "c", "user_id": v}),
        up_to(512),
    ),
    cases("user_id", lambda v: search(user_id=v), one_to(512)),
    cases("text", lambda v: search(text=v), one_to(32 * KIB)),
    cases(
        "embedding.values",
        lambda v: built(memory.SearchMessagesRequest, user_id="u", embedding={"model": "minilm", "values": v}),
        ((vector(1, 2, 3),), (vector(1), vector(0, 0, 0))),
    ),
    cases(
        "options.profile",
        lambda v: built(
            memory.SearchMessagesRequest,
            user_id="u",
            embedding={"model": "m", "values": vector(1)},
            options={"profile": v},
        ),
        ((memory.PROFILE_UNSPECIFIED, memory.PROFILE_VECTOR), (memory.PROFILE_HYBRID, memory.PROFILE_LEXICAL)),
    ),
    cases("options.profile", lambda v: search_with(profile=v), ((0, 1, 2, 3), (4,))),
    cases("options.k", lambda v: search_with(k=v), NOT_NEGATIVE),
    cases("options.threshold", lambda v: search_with(threshold=v), ((0.0, -1.0, 1e9), (math.nan, math.inf))),
    cases(
        "options.weights.cosine", lambda v: search_with(weights={"cosine": v}), ((0.0, 100.0), (-0.1, 100.1, math.nan))
    ),
    *(
        cases(f"options.weights.{name}", partial(weighing, name), ((0.0, 100.0), (-0.1, 100.1, math.inf)))
        for name in ("bm25", "answer", "next", "speaker", "temporal", "date", "session")
    ),
    cases(
        "options.weights",
        lambda v: search_with(profile=v, weights={"bm25": 1.0}),
        (
            (memory.PROFILE_UNSPECIFIED, memory.PROFILE_HYBRID),
            (memory.PROFILE_VECTOR, memory.PROFILE_LEXICAL),
        ),
    ),
    cases(
        "options.weights",
        lambda v: built(
            memory.SearchMessagesRequest,
            user_id="u",
            embedding={"model": "m", "values": vector(1)},
            options={"weights": v},
        ),
        (({},), ({"cosine": 1.0},)),
    ),
    cases("options.filter.roles", lambda v: filtered(roles=v), ROLES),
    cases("options.filter.after_time.seconds", lambda v: filtered(after_time=times(v)), ((0,), (YEAR_1 - 1,))),
    cases("options.filter.before_time.nanos", lambda v: filtered(before_time=times(0, v)), ((0,), (-1,))),
    cases(
        "options.filter.conditions",
        lambda v: filtered(conditions=v),
        counts_up_to(32, {"key": "k", "operator": Operator.OPERATOR_PRESENT}),
    ),
    cases("options.filter.conditions[0].key", lambda v: on_condition(key=v), one_to(256)),
    cases(
        "options.filter.conditions[0].operator",
        lambda v: on_condition(operator=v),
        ((Operator.OPERATOR_EQ,), (Operator.OPERATOR_UNSPECIFIED, 10)),
    ),
    *(
        cases(
            "options.filter.conditions[0].values",
            lambda v, operator=operator: on_condition(v, operator=operator),  # type: ignore[misc]
            (([1],), ([], [1, 2])),
        )
        for operator in range(Operator.OPERATOR_EQ, Operator.OPERATOR_IN)
    ),
    *(
        cases(
            "options.filter.conditions[0].values[0]",
            lambda v, operator=operator: on_condition([v], operator=operator),  # type: ignore[misc]
            (
                (Scalar(integer=1), Scalar(number=0.5), Scalar(text="")),
                (Scalar(boolean=True), {"null_value": 0}),
            ),
        )
        for operator in range(Operator.OPERATOR_LT, Operator.OPERATOR_IN)
    ),
    cases(
        "options.filter.conditions[0].values",
        lambda v: on_condition(v, operator=Operator.OPERATOR_IN),
        (([1], range(256)), ([], range(257))),
    ),
    *(
        cases(
            "options.filter.conditions[0].values",
            lambda v, operator=operator: on_condition(v, operator=operator),  # type: ignore[misc]
            (([],), ([1],)),
        )
        for operator in (Operator.OPERATOR_PRESENT, Operator.OPERATOR_ABSENT)
    ),
    cases("index_wait", lambda v: search(index_wait=v), INDEX_WAITS),
    cases("conversation_id", lambda v: assemble(conversation_id=v), one_to(512)),
    cases("user_id", lambda v: assemble(user_id=v), up_to(512)),
    cases("query", lambda v: assemble(query=v), up_to(32 * KIB)),
    cases("max_tokens", lambda v: assemble(max_tokens=v), ((1, 10_000_000), (0, -1, 10_000_001))),
    cases("recent_messages", lambda v: assemble(recent_messages=v), ((None, *NOT_NEGATIVE[0]), NOT_NEGATIVE[1])),
    cases("search.k", lambda v: assemble(search={"k": v}), NOT_NEGATIVE),
    cases("merge", lambda v: assemble(merge=v), ((0, 1, 2, 3), (4,))),
    cases("rendering", lambda v: assemble(rendering=v), ((0, 1, 2), (3,))),
    cases("index_wait", lambda v: assemble(index_wait=v), INDEX_WAITS),
    cases(
        "encoding.name",
        lambda v: assemble(encoding={"name": v}),
        (("o200k_base", "cl100k_base", "approximate"), ("", "p50k_base")),
    ),
    cases("encoding.model", lambda v: assemble(encoding={"model": v}), one_to(256)),
    cases("texts", lambda v: count(texts=v), counts_up_to(10_000, "t")),
    cases("messages", lambda v: count(messages=v), counts_up_to(10_000, {"role": "user"})),
    cases(
        "messages",
        lambda v: count(messages=[{"role": "user"}], texts=v),
        (([],), (["t"],)),
    ),
    cases("encoding.name", lambda v: count(encoding={"name": v}), (("approximate",), ("words",))),
    cases("texts", lambda v: built(texts.EmbedRequest, texts=v), ((["t"] * 256, [""]), ([], ["t"] * 257))),
]


def named(values: str) -> list[Any]:
    """Each case with each of its values, by its type and path."""
    return [
        pytest.param(case, value, id=f"{case.request(value).DESCRIPTOR.name}-{case.path}-{number}")
        for case in CASES
        for number, value in enumerate(getattr(case, values))
    ]


def check(request: AnyMessage) -> None:
    LIMITS.rules(type(request))(request)


@pytest.mark.parametrize(("case", "value"), named("accepted"))
def test_a_value_at_its_limit_is_accepted(case: Case, value: object) -> None:
    check(case.request(value))


@pytest.mark.parametrize(("case", "value"), named("refused"))
def test_a_value_beyond_its_limit_is_refused_by_its_path(case: Case, value: object) -> None:
    with pytest.raises(InvalidField) as refusal:
        check(case.request(value))

    assert refusal.value.field == case.path
    assert refusal.value.description


def fields_of_path(kind: type[AnyMessage], path: str) -> Iterator[FieldDescriptor]:
    """The field that each word of a path names."""
    descriptor = cast("Descriptor", kind.DESCRIPTOR)
    for word in path.split("."):
        field = descriptor.fields_by_name.get(word.split("[")[0])
        if field is None:
            return
        yield field
        inner = field.message_type
        if inner is not None:
            of_map = inner.GetOptions().map_entry
            descriptor = (of_map and inner.fields_by_name["value"].message_type) or inner


UNLIMITED = {
    "remora.v1.Conversation": {"uid", "revision", "last_sequence", "message_count", "create_time", "update_time"},
    "remora.v1.Message": {"user_id", "sequence", "revision", "create_time", "update_time", "token_count"},
    "remora.v1.Scalar": {"boolean", "integer"},
    "remora.v1.Edit": {"remove_all", "keep"},
    "remora.v1.Slice": {"from", "to"},
    "remora.v1.ListMessagesRequest": {"after_sequence", "before_sequence"},
    "remora.v1.SearchMessagesRequest": {"tenant", "explain"},
    "remora.v1.AssembleContextRequest": {"search_user_scope"},
}
"""What takes every value, or is ignored in requests."""

UNLIMITED_EVERYWHERE = {"min_revision", "page_token", "allow_missing"}


def reachable(descriptor: Descriptor, seen: set[str]) -> Iterator[FieldDescriptor]:
    """The fields of a message and of those in it that are Remora's own."""
    if descriptor.full_name in seen or not descriptor.full_name.startswith("remora."):
        return
    seen.add(descriptor.full_name)
    for field in descriptor.fields:
        if descriptor.GetOptions().map_entry:
            yield from reachable(field.message_type, seen) if field.message_type else ()
            continue
        yield field
        if field.message_type is not None:
            yield from reachable(field.message_type, seen)


def test_every_field_of_every_request_has_a_case_or_no_limit() -> None:
    seen: set[str] = set()
    requests = [method.input_type for service in SERVICES for method in service.methods]
    fields = {field.full_name for request in requests for field in reachable(request, seen)}
    unlimited = {f"{kind}.{name}" for kind, names in UNLIMITED.items() for name in names}

    tested = {
        field.full_name for case in CASES for field in fields_of_path(type(case.request(case.refused[0])), case.path)
    }
    untested = fields - tested - unlimited

    assert len(fields) > 150
    assert unlimited <= fields
    assert {name for name in untested if name.rpartition(".")[2] not in UNLIMITED_EVERYWHERE} == set()


def test_every_request_of_every_service_has_rules() -> None:
    methods = [method for service in SERVICES for method in service.methods]

    assert methods
    for method in methods:
        assert callable(LIMITS.rules(GetMessageClass(method.input_type)))


def test_rules_that_leave_a_field_out_are_refused() -> None:
    with pytest.raises(TypeError, match=r"remora\.v1\.Origin and its fields differ: \['run_id'\]"):
        Fields(Origin, agent_id=anything)
