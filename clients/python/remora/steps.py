"""The steps that an agent takes within a conversation: text, tool calls and tools' results."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias

from remora import _json
from remora._times import from_timestamp, to_timestamp
from remora.v1 import step_pb2

StepType: TypeAlias = Literal["text", "tool_call", "tool_result"]

_TYPES: dict[StepType, step_pb2.StepType.ValueType] = {
    "text": step_pb2.STEP_TYPE_TEXT,
    "tool_call": step_pb2.STEP_TYPE_TOOL_CALL,
    "tool_result": step_pb2.STEP_TYPE_TOOL_RESULT,
}
_NAMES = {value: name for name, value in _TYPES.items()}


@dataclass(frozen=True, slots=True)
class Step:
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
    """A tool call's arguments, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON come back parsed."""
    result: Any = field(default=None, kw_only=True)
    """A tool's result, likewise."""
    usage: Any = field(default=None, kw_only=True)
    """The model usage that it reports, likewise, up to 64 KiB."""
    step_index: int = field(default=0, kw_only=True)
    """Its place in the operation, from 0."""
    operation_id: str = field(default="", kw_only=True)
    """The operation (one call of the agent) that it belongs to, up to 512 bytes."""
    agent_id: str = field(default="", kw_only=True)
    """The agent that took it, up to 512 bytes."""
    agent_name: str = field(default="", kw_only=True)
    """That agent's name."""
    sub_agent_id: str = field(default="", kw_only=True)
    """The sub-agent that took it."""
    sub_agent_name: str = field(default="", kw_only=True)
    """That sub-agent's name."""
    create_time: datetime | None = field(default=None, kw_only=True)
    """When it was taken, by the caller's clock; where None, when it was saved."""

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
        """The step from the wire."""
        return cls(
            id=step.id,
            type=_NAMES.get(step.type, "text"),
            role=step.role,
            content=step.content,
            arguments=_json.from_opaque(step.arguments),
            result=_json.from_opaque(step.result),
            usage=_json.from_opaque(step.usage),
            step_index=step.step_index,
            operation_id=step.operation_id,
            agent_id=step.agent_id,
            agent_name=step.agent_name,
            sub_agent_id=step.sub_agent_id,
            sub_agent_name=step.sub_agent_name,
            create_time=from_timestamp(step.create_time) if step.HasField("create_time") else None,
        )
