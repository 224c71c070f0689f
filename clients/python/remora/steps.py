"""The steps of an agent within a conversation: text, tool calls, tools' results and others."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from remora import _json
from remora._arguments import checked_fields
from remora._bounds import Between, Id, Name, OptionalId, Size, Time
from remora._times import optional_time, to_timestamp
from remora._views import Decoders, View, unchanged, view
from remora.v1 import step_pb2

StepType: TypeAlias = Literal["text", "tool_call", "tool_result", "other"]

_TYPES: dict[StepType, step_pb2.StepType.ValueType] = {
    "text": step_pb2.STEP_TYPE_TEXT,
    "tool_call": step_pb2.STEP_TYPE_TOOL_CALL,
    "tool_result": step_pb2.STEP_TYPE_TOOL_RESULT,
    "other": step_pb2.STEP_TYPE_OTHER,
}
_NAMES = {value: name for name, value in _TYPES.items()}


@checked_fields
@view
@dataclass(frozen=True)
class Step(View):
    """One step of an agent's operation.

    Attributes:
        id: Unique in its conversation, 1 to 512 bytes. Saving a known id replaces the step.
        type: What it is; `other`: what `other_type` says.
        role: The role that speaks, up to 64 bytes.
        content: Its text, up to 1 MiB.
        arguments: A tool call's arguments, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON are
            returned parsed.
        result: A tool's result, likewise.
        usage: The model usage that it reports, likewise, up to 64 KiB.
        step_index: Its index in the operation, from 0.
        operation_id: The operation (one call of the agent) that it belongs to, up to 512 bytes.
        agent_id: The agent that took it, up to 512 bytes.
        agent_name: The agent's name.
        sub_agent_id: The sub-agent that took it.
        sub_agent_name: The sub-agent's name.
        create_time: When it was taken, by the caller's clock; None: when it was saved.
        other_type: What it is in the caller's words, such as `reasoning`, if `type` is `other`, up to 64 bytes.
    """

    id: Id
    type: StepType
    role: Annotated[str, Name(64, optional=True)] = field(default="", kw_only=True)
    content: Annotated[str, Size(1 << 20)] = field(default="", kw_only=True)
    arguments: Any = field(default=None, kw_only=True)
    result: Any = field(default=None, kw_only=True)
    usage: Any = field(default=None, kw_only=True)
    step_index: Annotated[int, Between(0, 2**31 - 1)] = field(default=0, kw_only=True)
    operation_id: OptionalId = field(default="", kw_only=True)
    agent_id: OptionalId = field(default="", kw_only=True)
    agent_name: OptionalId = field(default="", kw_only=True)
    sub_agent_id: OptionalId = field(default="", kw_only=True)
    sub_agent_name: OptionalId = field(default="", kw_only=True)
    create_time: Time | None = field(default=None, kw_only=True)
    other_type: Annotated[str, Name(64, optional=True)] = field(default="", kw_only=True)

    def to_proto(self, conversation_id: str, user_id: str) -> step_pb2.Step:
        """The step on the wire."""
        return step_pb2.Step(
            id=self.id,
            conversation_id=conversation_id,
            user_id=user_id,
            agent_id=self.agent_id,
            agent_name=self.agent_name,
            operation_id=self.operation_id,
            step_index=self.step_index,
            type=_TYPES[self.type],
            other_type=self.other_type,
            role=self.role,
            content=self.content,
            arguments=_json.to_opaque(self.arguments, "arguments", 1 << 20),
            result=_json.to_opaque(self.result, "result", 1 << 20),
            usage=_json.to_opaque(self.usage, "usage", 64 << 10),
            sub_agent_id=self.sub_agent_id,
            sub_agent_name=self.sub_agent_name,
            create_time=to_timestamp(self.create_time) if self.create_time else None,
        )

    @classmethod
    def from_proto(cls, step: step_pb2.Step) -> Self:
        """The step from the wire, which must not change from then on."""
        return cls._of(step)

    _decoders: ClassVar[Decoders] = {
        **unchanged("id", "role", "content", "step_index", "operation_id"),
        **unchanged("agent_id", "agent_name", "sub_agent_id", "sub_agent_name", "other_type"),
        "type": lambda wire: _NAMES.get(wire.type, "text"),
        "arguments": lambda wire: _json.from_opaque(wire.arguments),
        "result": lambda wire: _json.from_opaque(wire.result),
        "usage": lambda wire: _json.from_opaque(wire.usage),
        "create_time": lambda wire: optional_time(wire, "create_time"),
    }
