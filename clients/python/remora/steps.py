"""The steps of an agent within a conversation: text, tool calls and tools' results."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, Self, TypeAlias

from remora import _json
from remora._times import optional_time, to_timestamp
from remora._views import Decoders, View, unchanged, view
from remora.v1 import step_pb2

StepType: TypeAlias = Literal["text", "tool_call", "tool_result"]

_TYPES: dict[StepType, step_pb2.StepType.ValueType] = {
    "text": step_pb2.STEP_TYPE_TEXT,
    "tool_call": step_pb2.STEP_TYPE_TOOL_CALL,
    "tool_result": step_pb2.STEP_TYPE_TOOL_RESULT,
}
_NAMES = {value: name for name, value in _TYPES.items()}


@view
@dataclass(frozen=True)
class Step(View):
    """One step of an agent's operation."""

    id: str
    """Unique in its conversation, 1 to 512 bytes. Saving a known id replaces the step."""
    type: StepType
    """What it is."""
    role: str = field(default="", kw_only=True)
    """The role that speaks, up to 64 bytes."""
    content: str = field(default="", kw_only=True)
    """Its text, up to 1 MiB."""
    arguments: Any = field(default=None, kw_only=True)
    """A tool call's arguments, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON are returned parsed."""
    result: Any = field(default=None, kw_only=True)
    """A tool's result, likewise."""
    usage: Any = field(default=None, kw_only=True)
    """The model usage that it reports, likewise, up to 64 KiB."""
    step_index: int = field(default=0, kw_only=True)
    """Its index in the operation, from 0."""
    operation_id: str = field(default="", kw_only=True)
    """The operation (one call of the agent) that it belongs to, up to 512 bytes."""
    agent_id: str = field(default="", kw_only=True)
    """The agent that took it, up to 512 bytes."""
    agent_name: str = field(default="", kw_only=True)
    """The agent's name."""
    sub_agent_id: str = field(default="", kw_only=True)
    """The sub-agent that took it."""
    sub_agent_name: str = field(default="", kw_only=True)
    """The sub-agent's name."""
    create_time: datetime | None = field(default=None, kw_only=True)
    """When it was taken, by the caller's clock; None: when it was saved."""

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
            role=self.role,
            content=self.content,
            arguments=_json.to_opaque(self.arguments),
            result=_json.to_opaque(self.result),
            usage=_json.to_opaque(self.usage),
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
        **unchanged("agent_id", "agent_name", "sub_agent_id", "sub_agent_name"),
        "type": lambda wire: _NAMES.get(wire.type, "text"),
        "arguments": lambda wire: _json.from_opaque(wire.arguments),
        "result": lambda wire: _json.from_opaque(wire.result),
        "usage": lambda wire: _json.from_opaque(wire.usage),
        "create_time": lambda wire: optional_time(wire, "create_time"),
    }
