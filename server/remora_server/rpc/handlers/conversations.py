"""The RPCs of conversations."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import conversation_service_pb2 as pb
from remora.v1.conversation_pb2 import Conversation
from remora_server import wire
from remora_server.domain.calls import DEFAULT_USER
from remora_server.domain.conversations import (
    ConversationOrder,
    ConversationPosition,
    ConversationQuery,
    ConversationStore,
    ConversationUpdate,
    position_of,
)
from remora_server.domain.replies import fitting
from remora_server.domain.short_term import ShortTermPolicy
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode, encode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick

ORDERS = {
    pb.CONVERSATION_ORDER_UNSPECIFIED: ConversationOrder.UPDATE_TIME,
    pb.CONVERSATION_ORDER_CREATE_TIME: ConversationOrder.CREATE_TIME,
    pb.CONVERSATION_ORDER_UPDATE_TIME: ConversationOrder.UPDATE_TIME,
    pb.CONVERSATION_ORDER_TITLE: ConversationOrder.TITLE,
}


class ConversationHandlers(Struct, frozen=True):
    """Answers the RPCs of conversations."""

    conversations: ConversationStore
    page_tokens: PageTokens
    default_policy: ShortTermPolicy | None = None

    @quick
    def create_conversation(self, call: Call, request: pb.CreateConversationRequest) -> pb.CreateConversationResponse:
        given = request.conversation
        draft = decode.new_conversation(given, given.id, given.user_id or DEFAULT_USER, self.default_policy)
        outcome = self.conversations.create(call.write(request), draft)
        return pb.CreateConversationResponse(
            conversation_id=outcome.conversation_id,
            create_time=wire.timestamp(outcome.time),
            revision=outcome.revision,
        )

    @quick
    def get_conversation(self, call: Call, request: pb.GetConversationRequest) -> pb.GetConversationResponse:
        conversation, revision = self.conversations.get(call.read(request), request.conversation_id, request.user_id)
        return pb.GetConversationResponse(conversation=encode.conversation(conversation), revision=revision)

    def list_conversations(self, call: Call, request: pb.ListConversationsRequest) -> pb.ListConversationsResponse:
        order, size = ORDERS[request.order_by], decode.page_size(request.page_size)
        after = self.page_tokens.position(call, request, ConversationPosition)
        query = ConversationQuery(
            user_id=request.user_id,
            resource_id=request.resource_id,
            order_by=order,
            descending=request.direction != pb.DIRECTION_ASCENDING,
            limit=size + 1,
            skip=request.skip if after is None else 0,
            after=after,
        )
        found, revision = self.conversations.list(call.read(request), query)
        page = fitting(map(encode.conversation, found[:size]), Conversation.ByteSize)
        token = ""
        if len(page) < len(found):
            token = self.page_tokens.make(call, request, position_of(found[len(page) - 1], order))
        return pb.ListConversationsResponse(conversations=page, next_page_token=token, revision=revision)

    def count_conversations(self, call: Call, request: pb.CountConversationsRequest) -> pb.CountConversationsResponse:
        count, revision = self.conversations.count(call.read(request), request.user_id, request.resource_id)
        return pb.CountConversationsResponse(count=count, revision=revision)

    @quick
    def update_conversation(self, call: Call, request: pb.UpdateConversationRequest) -> pb.UpdateConversationResponse:
        given = request.conversation
        draft = wire.conversation_draft(given, given.id, given.user_id)
        update = ConversationUpdate(draft, frozenset(request.update_mask.paths))
        outcome = self.conversations.update(call.write(request), given.id, request.user_id, update)
        return pb.UpdateConversationResponse(update_time=wire.timestamp(outcome.time), revision=outcome.revision)

    @quick
    def delete_conversation(self, call: Call, request: pb.DeleteConversationRequest) -> pb.DeleteConversationResponse:
        outcome = self.conversations.delete(
            call.write(request), request.conversation_id, request.user_id, allow_missing=request.allow_missing
        )
        return pb.DeleteConversationResponse(
            deleted_messages=outcome.deleted_messages, deleted=outcome.deleted, revision=outcome.revision
        )
