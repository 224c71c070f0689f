"""A conversation without its messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypedDict

from remora import _json
from remora._bounds import Between, Name, Size
from remora._times import from_timestamp
from remora._views import Decoders, View, unchanged, view
from remora.attributes import Attributes, attributes_from_proto, attributes_to_proto
from remora.short_term import ShortTerm, short_term_from_proto
from remora.v1 import conversation_pb2, conversation_service_pb2


class ConversationFields(TypedDict, total=False):
    """The fields of a conversation that its caller sets.

    Attributes:
        resource_id: What else it belongs to (an agent, a page), up to 512 bytes.
        title: A title for people, up to 4,096 bytes.
        metadata: The caller's metadata, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON are returned
            parsed.
        attributes: Typed values beside the metadata.
        storage_limit: How many messages are kept, from 1 to 1,000,000; None: all.
        short_term: How large its window may grow: `Trim(8_000)`, `DeleteOldest(8_000)`, `Flush(8_000)` or
            `Summarize(8_000)`; None: the window is all of its messages. Where nothing is said, a new conversation gets
            the server's default policy, which is none unless the server's settings say otherwise.
    """

    resource_id: Annotated[str, Name(512)]
    title: Annotated[str, Size(4096)]
    metadata: Any
    attributes: Attributes
    storage_limit: Annotated[int, Between(1, 1_000_000)] | None
    short_term: ShortTerm | None


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


@view
@dataclass(frozen=True)
class ConversationRecord(View):
    """A conversation as it is stored.

    Attributes:
        id: Its id, unique in the tenant.
        user_id: Its owner.
        resource_id: What else it belongs to.
        title: Its title for people.
        metadata: The caller's metadata, as it was given; bytes of compact JSON are parsed.
        attributes: Typed values beside the metadata.
        storage_limit: How many messages are kept; None: all.
        short_term: How large its window may grow; None: the window is all of its messages.
        uid: The revision that created it: a deleted and recreated id is another conversation.
        revision: The revision that last changed it or its messages.
        last_sequence: The sequence of the newest message ever appended; 0 if there was none.
        message_count: How many messages it holds, of all users.
        create_time: When it was created.
        update_time: When it, or its messages, last changed.
    """

    id: str
    user_id: str
    resource_id: str
    title: str
    metadata: Any
    attributes: Attributes
    storage_limit: int | None
    short_term: ShortTerm | None
    uid: int
    revision: int
    last_sequence: int
    message_count: int
    create_time: datetime
    update_time: datetime

    @classmethod
    def from_proto(cls, conversation: conversation_pb2.Conversation) -> Self:
        """The conversation from the wire, which must not change from then on."""
        return cls._of(conversation)

    _decoders: ClassVar[Decoders] = {
        **unchanged("id", "user_id", "resource_id", "title", "uid", "revision", "last_sequence", "message_count"),
        "metadata": lambda wire: _json.from_opaque(wire.metadata),
        "attributes": lambda wire: attributes_from_proto(wire.attributes),
        "storage_limit": lambda wire: wire.storage_limit if wire.HasField("storage_limit") else None,
        "short_term": lambda wire: short_term_from_proto(wire.short_term) if wire.HasField("short_term") else None,
        "create_time": lambda wire: from_timestamp(wire.create_time),
        "update_time": lambda wire: from_timestamp(wire.update_time),
    }


def to_proto(conversation_id: str, user_id: str, fields: ConversationFields) -> conversation_pb2.Conversation:
    """The conversation on the wire, without what the server sets."""
    short_term = fields.get("short_term")
    return conversation_pb2.Conversation(
        id=conversation_id,
        user_id=user_id,
        resource_id=fields.get("resource_id", ""),
        title=fields.get("title", ""),
        metadata=_json.to_opaque(fields.get("metadata"), "metadata", 1 << 20),
        attributes=attributes_to_proto(fields.get("attributes", {})),
        storage_limit=fields.get("storage_limit"),
        short_term=short_term.to_proto() if short_term else None,
        without_short_term="short_term" in fields and short_term is None,
    )
