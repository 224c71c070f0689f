"""The RPCs of messages."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain.calls import DEFAULT_USER
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.messages import Append, Edit, Keep, MessageQuery, MessageStore, Remove, Replace, View
from remora_server.domain.short_term import ShortTermPolicy
from remora_server.domain.users import UserStore
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode, encode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class MessageHandlers(Struct, frozen=True):
    """Answers the RPCs of messages."""

    messages: MessageStore
    users: UserStore
    page_tokens: PageTokens
    default_policy: ShortTermPolicy | None = None

    @quick
    def append_messages(self, call: Call, request: pb.AppendMessagesRequest) -> pb.AppendMessagesResponse:
        write = call.write(request)
        create = _conversation_to_create(request, self.default_policy)
        drafts = [decode.message(message) for message in request.messages]
        outcome = self.messages.append(write, request.conversation_id, request.user_id, drafts, create)
        reply = pb.AppendMessagesResponse(
            conversation_created=outcome.created, pruned_messages=outcome.pruned_messages, revision=outcome.revision
        )
        encode.add_placed(outcome.messages, reply.messages.add)
        return reply

    @quick
    def list_messages(self, call: Call, request: pb.ListMessagesRequest) -> bytes:
        query = _query(request, self.page_tokens.position(call, request, int))
        page = self.messages.list(call.read(request), query)
        boundary = page.first_sequence if query.newest else page.last_sequence
        token = self.page_tokens.make(call, request, boundary) if page.more else ""
        rest = pb.ListMessagesResponse(next_page_token=token, revision=page.revision)
        return page.encoded + rest.SerializeToString()

    @quick
    def delete_messages(self, call: Call, request: pb.DeleteMessagesRequest) -> pb.DeleteMessagesResponse:
        outcome = self.messages.delete(
            call.write(request), request.conversation_id, request.user_id, list(request.message_ids)
        )
        return pb.DeleteMessagesResponse(deleted_messages=outcome.deleted_messages, revision=outcome.revision)

    def clear_messages(self, call: Call, request: pb.ClearMessagesRequest) -> pb.ClearMessagesResponse:
        write = call.write(request)
        if request.conversation_id:
            outcome = self.messages.clear(write, request.conversation_id, request.user_id)
        else:
            outcome = self.users.clear(write, request.user_id)
        return pb.ClearMessagesResponse(deleted_messages=outcome.deleted_messages, revision=outcome.revision)

    def edit_messages(self, call: Call, request: pb.EditMessagesRequest) -> pb.EditMessagesResponse:
        write = call.write(request)
        edits = [_edit(edit) for edit in request.edits]
        outcome = self.messages.edit(
            write, request.conversation_id, request.user_id, edits, allow_missing=request.allow_missing
        )
        reply = pb.EditMessagesResponse(
            deleted_messages=outcome.deleted_messages,
            pruned_messages=outcome.pruned_messages,
            revision=outcome.revision,
        )
        encode.add_placed(outcome.messages, reply.messages.add)
        return reply


def _conversation_to_create(
    request: pb.AppendMessagesRequest, default_policy: ShortTermPolicy | None
) -> ConversationDraft | None:
    if not request.HasField("create_if_missing"):
        return None
    given = request.create_if_missing
    owner = given.user_id or request.user_id or DEFAULT_USER
    return decode.new_conversation(given, request.conversation_id, owner, default_policy)


def _query(request: pb.ListMessagesRequest, boundary: int | None) -> MessageQuery:
    newest = request.page_order != pb.PAGE_ORDER_OLDEST_FIRST
    after = decode.optional_sequence(request, "after_sequence")
    before = decode.optional_sequence(request, "before_sequence")
    if boundary is not None:
        after, before = (after, boundary) if newest else (boundary, before)
    return MessageQuery(
        conversation_id=request.conversation_id,
        user_id=request.user_id,
        roles=tuple(request.roles),
        sent=decode.between(request, "sent"),
        received=decode.between(request, "received"),
        after_sequence=after,
        before_sequence=before,
        newest=newest,
        limit=decode.page_size(request.page_size),
        filter=decode.attribute_filter(request.filter) if request.HasField("filter") else None,
        view=View.ALL if request.view == pb.MESSAGE_VIEW_ALL else View.WINDOW,
    )


def _edit(edit: pb.Edit) -> Edit:
    match edit.WhichOneof("action"):
        case "append":
            return Append(decode.message(edit.append))
        case "replace":
            return Replace(decode.message(edit.replace))
        case "remove":
            return Remove(edit.remove)
        case "keep":
            return _kept(edit.keep)
        case _:
            return Keep(0, 0)


def _kept(given: pb.Slice) -> Keep:
    return Keep(
        getattr(given, "from") if given.HasField("from") else None,  # a keyword of Python
        given.to if given.HasField("to") else None,
    )
