"""The RPCs of working memory."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import memory_service_pb2 as pb
from remora.v1.working_memory_pb2 import (
    WORKING_MEMORY_FORMAT_JSON,
    WORKING_MEMORY_MODE_APPEND,
    WorkingMemoryScope,
)
from remora_server import wire
from remora_server.domain.json_schemas import json_schema
from remora_server.domain.working_memory import (
    ConversationMemory,
    JsonEdit,
    MarkdownEdit,
    Mode,
    UserMemory,
    WorkingMemoryEdit,
    WorkingMemoryOwner,
    WorkingMemoryStore,
    json_value,
)
from remora_server.rpc.calls import Call
from remora_server.rpc.methods import quick


class WorkingMemoryHandlers(Struct, frozen=True):
    """Answers the RPCs of working memory."""

    working_memories: WorkingMemoryStore

    @quick
    def get_working_memory(self, call: Call, request: pb.GetWorkingMemoryRequest) -> pb.GetWorkingMemoryResponse:
        memory = self.working_memories.get(call.read(request), _owner(request.scope, request.user_id))
        if memory.content is None:
            return pb.GetWorkingMemoryResponse(revision=memory.revision)
        return pb.GetWorkingMemoryResponse(
            content=memory.content,
            found=True,
            update_time=wire.timestamp(memory.update_time),
            revision=memory.revision,
        )

    @quick
    def set_working_memory(self, call: Call, request: pb.SetWorkingMemoryRequest) -> pb.SetWorkingMemoryResponse:
        owner = _owner(request.scope, request.user_id)
        outcome = self.working_memories.set(call.write(request), owner, request.content)
        return pb.SetWorkingMemoryResponse(update_time=wire.timestamp(outcome.time), revision=outcome.revision)

    def edit_working_memory(self, call: Call, request: pb.EditWorkingMemoryRequest) -> pb.EditWorkingMemoryResponse:
        owner = _owner(request.scope, request.user_id)
        outcome = self.working_memories.edit(call.write(request), owner, _edit(request))
        return pb.EditWorkingMemoryResponse(update_time=wire.timestamp(outcome.time), revision=outcome.revision)

    @quick
    def delete_working_memory(
        self, call: Call, request: pb.DeleteWorkingMemoryRequest
    ) -> pb.DeleteWorkingMemoryResponse:
        owner = _owner(request.scope, request.user_id)
        outcome = self.working_memories.delete(call.write(request), owner)
        return pb.DeleteWorkingMemoryResponse(deleted=outcome.deleted, revision=outcome.revision)


def _owner(scope: WorkingMemoryScope, user_id: str) -> WorkingMemoryOwner:
    if scope.WhichOneof("owner") == "conversation_id":
        return ConversationMemory(scope.conversation_id, user_id)
    return UserMemory(scope.user_id)


def _edit(request: pb.EditWorkingMemoryRequest) -> WorkingMemoryEdit:
    mode = Mode.APPEND if request.mode == WORKING_MEMORY_MODE_APPEND else Mode.REPLACE
    schema = json_schema("json_schema", request.json_schema) if request.json_schema else None
    if request.format == WORKING_MEMORY_FORMAT_JSON or schema is not None:
        return JsonEdit(json_value(request.content), mode, schema)
    return MarkdownEdit(request.content, mode)
