"""The edits that `Conversation.edit` applies, in order, all or none."""

from dataclasses import dataclass
from typing import TypeAlias

from remora._arguments import checked_fields
from remora._bounds import Id
from remora.messages import Message, MessageLike, to_message
from remora.v1 import conversation_service_pb2


@checked_fields
@dataclass(frozen=True, slots=True)
class Append:
    """Appends a message; if its id is already there, replaces that message.

    Attributes:
        message: The message: see `Conversation.append`.
    """

    message: MessageLike

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        return conversation_service_pb2.Edit(append=to_message(self.message).to_proto())


@checked_fields
@dataclass(frozen=True, slots=True)
class Replace:
    """Replaces the message with this id; it keeps its sequence and create_time.

    Attributes:
        message: What stands there from then on; its id says which message it replaces.
    """

    message: Message

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        return conversation_service_pb2.Edit(replace=self.message.to_proto())


@checked_fields
@dataclass(frozen=True, slots=True)
class Remove:
    """Removes the message with this id.

    Attributes:
        message_id: The id of the message.
    """

    message_id: Id

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        return conversation_service_pb2.Edit(remove=self.message_id)


@dataclass(frozen=True, slots=True)
class RemoveAll:
    """Removes all messages."""

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        return conversation_service_pb2.Edit(remove_all=conversation_service_pb2.RemoveAll())


@checked_fields
@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps the messages `[start:stop]` by position and removes the rest, as Python's slices do: `Keep(-20)`.

    Attributes:
        start: The position of the first that is kept; negative: counted from the end; None: the first of all.
        stop: The position of the first after them that is not kept; negative: counted from the end; None: all are.
    """

    start: int | None = None
    stop: int | None = None

    def to_proto(self) -> conversation_service_pb2.Edit:
        """The edit on the wire."""
        bounds = conversation_service_pb2.Slice(to=self.stop)
        if self.start is not None:
            setattr(bounds, "from", self.start)  # a keyword of Python cannot be written as an attribute
        return conversation_service_pb2.Edit(keep=bounds)


Edit: TypeAlias = Append | Replace | Remove | RemoveAll | Keep
