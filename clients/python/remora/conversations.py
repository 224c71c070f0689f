"""What is known of a conversation besides its messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias, TypedDict

from remora import _json
from remora._times import from_timestamp
from remora.attributes import Attributes, attributes_from_proto, attributes_to_proto
from remora.v1 import conversation_pb2, conversation_service_pb2


class ConversationFields(TypedDict, total=False):
    """The fields of a conversation that its caller sets."""

    resource_id: str
    """What it belongs to besides its user (an agent, a page), up to 512 bytes."""
    title: str
    """A title for people, up to 4,096 bytes."""
    metadata: Any
    """The caller's metadata, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON come back parsed."""
    attributes: Attributes
    """Typed values beside the metadata."""
    storage_limit: int | None
    """How many messages are kept, from 1 to 1,000,000; None: all."""


Order: TypeAlias = Literal["create_time", "update_time", "title"]

_ORDERS: Mapping[Order | None, conversation_service_pb2.ConversationOrder.ValueType] = {
    None: conversation_service_pb2.CONVERSATION_ORDER_UNSPECIFIED,
    "create_time": conversation_service_pb2.CONVERSATION_ORDER_CREATE_TIME,
    "update_time": conversation_service_pb2.CONVERSATION_ORDER_UPDATE_TIME,
    "title": conversation_service_pb2.CONVERSATION_ORDER_TITLE,
}


def list_request(
    user_id: str, resource_id: str, order_by: Order | None, *, descending: bool, page_size: int, skip: int
) -> conversation_service_pb2.ListConversationsRequest:
    """The request for the first page of a list."""
    ascending = conversation_service_pb2.DIRECTION_ASCENDING
    return conversation_service_pb2.ListConversationsRequest(
        user_id=user_id,
        resource_id=resource_id,
        order_by=_ORDERS[order_by],
        direction=conversation_service_pb2.DIRECTION_DESCENDING if descending else ascending,
        page_size=page_size,
        skip=skip,
    )


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """A conversation as it is stored."""

    id: str
    user_id: str
    resource_id: str
    title: str
    metadata: Any
    attributes: Attributes
    storage_limit: int | None
    uid: int
    """The revision that created it: a deleted and recreated id is another conversation."""
    revision: int
    """The revision that last changed it or its messages."""
    last_sequence: int
    """The sequence of the newest message ever appended; 0 where there was none."""
    message_count: int
    """How many messages it holds, of all users."""
    create_time: datetime
    update_time: datetime
    """When it, or its messages, last changed."""

    @classmethod
    def from_proto(cls, conversation: conversation_pb2.Conversation) -> Self:
        """The conversation from the wire."""
        return cls(
            id=conversation.id,
            user_id=conversation.user_id,
            resource_id=conversation.resource_id,
            title=conversation.title,
            metadata=_json.from_opaque(conversation.metadata),
            attributes=attributes_from_proto(conversation.attributes),
            storage_limit=conversation.storage_limit if conversation.HasField("storage_limit") else None,
            uid=conversation.uid,
            revision=conversation.revision,
            last_sequence=conversation.last_sequence,
            message_count=conversation.message_count,
            create_time=from_timestamp(conversation.create_time),
            update_time=from_timestamp(conversation.update_time),
        )


def to_proto(conversation_id: str, user_id: str, fields: ConversationFields) -> conversation_pb2.Conversation:
    """The conversation on the wire, without what the server sets."""
    return conversation_pb2.Conversation(
        id=conversation_id,
        user_id=user_id,
        resource_id=fields.get("resource_id", ""),
        title=fields.get("title", ""),
        metadata=_json.to_opaque(fields.get("metadata")),
        attributes=attributes_to_proto(fields.get("attributes", {})),
        storage_limit=fields.get("storage_limit"),
    )
