"""The edits that `Conversation.edit` applies, in order, all or none."""

from dataclasses import dataclass
from typing import TypeAlias

from remora.chat_format import ChatMessage
from remora.messages import Message, to_message
from remora.v1 import conversation_service_pb2


@dataclass(frozen=True, slots=True)
class Append:
    """Appends a message; if its id is already there, replaces that message."""

    message: ChatMessage

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        return conversation_service_pb2.Edit(append=to_message(self.message).to_proto())


@dataclass(frozen=True, slots=True)
class Replace:
    """Replaces the message with this id; it keeps its sequence and create_time."""

    message: Message

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        return conversation_service_pb2.Edit(replace=self.message.to_proto())


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes the message with this id."""

    message_id: str

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        return conversation_service_pb2.Edit(remove=self.message_id)


@dataclass(frozen=True, slots=True)
class RemoveAll:
    """Removes all messages."""

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        return conversation_service_pb2.Edit(remove_all=conversation_service_pb2.RemoveAll())


@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps the messages `[start:stop]` by position and removes the rest, as Python's slices do: `Keep(-20)`."""

    start: int | None = None
    stop: int | None = None

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        bounds = conversation_service_pb2.Slice(to=self.stop)
        if self.start is not None:
            setattr(bounds, "from", self.start)  # a keyword of Python cannot be written as an attribute
        return conversation_service_pb2.Edit(keep=bounds)


Edit: TypeAlias = Append | Replace | Remove | RemoveAll | Keep
