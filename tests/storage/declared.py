"""Kinds that only tests declare. Nothing else in the server knows them."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2
from google.protobuf.message_factory import GetMessageClass

from remora.v1 import step_pb2, working_memory_pb2
from remora_server.storage.schema.kinds import BODY_PARTS, CONVERSATION_BODY_PARTS, KINDS, Kind, Kinds

_Field = descriptor_pb2.FieldDescriptorProto


def _item_class() -> Any:  # noqa: ANN401 - a message that is declared here
    """A message with a field of each type: an item of a namespace."""
    file = descriptor_pb2.FileDescriptorProto(name="tests/item.proto", package="tests", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    item = file.message_type.add(name="Item")
    kinds = {
        "namespace": _Field.TYPE_STRING,
        "id": _Field.TYPE_STRING,
        "number": _Field.TYPE_INT64,
        "score": _Field.TYPE_DOUBLE,
        "done": _Field.TYPE_BOOL,
        "status": _Field.TYPE_STRING,
        "digest": _Field.TYPE_BYTES,
        "content": _Field.TYPE_BYTES,
    }
    for number, (name, kind) in enumerate(kinds.items(), 1):
        label = _Field.LABEL_REPEATED if name == "namespace" else _Field.LABEL_OPTIONAL
        item.field.add(name=name, number=number, type=kind, label=label)
    item.field.add(
        name="expire_time",
        number=len(kinds) + 1,
        type=_Field.TYPE_MESSAGE,
        type_name=".google.protobuf.Timestamp",
        label=_Field.LABEL_OPTIONAL,
    )
    assert timestamp_pb2.DESCRIPTOR.name == file.dependency[0]
    declared: Any = descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
    return GetMessageClass(declared.message_types_by_name["Item"])


Item = _item_class()

ITEMS = Kind(
    number=100,
    name="items",
    message=Item,
    partition=["namespace"],
    key=["id"],
    columns=["number", "score", "done", "status", "digest"],
    orders=[["number"], ["status", "score"]],
    expires="expire_time",
)
"""Items of the tenant, in namespaces, that may expire."""
PROFILES = Kind(
    number=101,
    name="profiles",
    message=working_memory_pb2.WorkingMemoryRecord,
    partition=["scope.user_id"],
    user="scope.user_id",
    transfer="working_memory",
)
"""One profile of each user."""
NOTES = Kind(
    number=102,
    name="notes",
    message=step_pb2.Step,
    partition=["user_id"],
    key=["id"],
    columns=["operation_id", "step_index"],
    orders=[["step_index"], ["operation_id", "step_index"]],
    parent=PROFILES,
    transfer="step",
)
"""Notes of a profile, with which they go."""
LINES = Kind(
    number=103,
    name="lines",
    message=step_pb2.Step,
    partition=["user_id", "id"],
    key=["step_index"],
    parent=NOTES,
)
"""Lines of a note."""
DRAFTS = Kind(
    number=104,
    name="drafts",
    message=step_pb2.Step,
    partition=["user_id"],
    key=["id"],
    conversation="conversation_id",
    user="user_id",
    expires="create_time",
)
"""Drafts of a user in a conversation, until the time that a step calls its creation."""
LEASES = Kind(
    number=105,
    name="leases",
    message=step_pb2.Step,
    partition=["user_id"],
    key=["id"],
    user="user_id",
    expires="create_time",
    transfer="step",
)
"""What a user has until the time that a step calls its creation; exported."""

FAMILY = Kinds(ITEMS, PROFILES, NOTES, LINES, BODY_PARTS, CONVERSATION_BODY_PARTS)
"""What a store has whose every kind is one of a test: exported under names that other kinds have otherwise."""
WITH_ITEMS = Kinds(*KINDS, ITEMS)
"""The server's kinds, and items."""
