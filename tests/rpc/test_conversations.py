"""The RPCs of conversations: what reaches the store, and what comes back."""

from __future__ import annotations

from typing import cast

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.error_details_pb2 import ErrorInfo
from tests.rpc.fake_store import conversation
from tests.rpc.running_server import RunningServer, detail

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import user_service_pb2 as users
from remora.v1.conversation_pb2 import Conversation
from remora.v1.scalar_pb2 import Scalar
from remora_server.domain.calls import Outcome
from remora_server.domain.conversations import (
    ConversationDraft,
    ConversationOrder,
    ConversationQuery,
    ConversationUpdate,
)
from remora_server.domain.replies import REPLY_BYTES

FULL = Conversation(
    id="c",
    user_id="u",
    resource_id="r",
    title="t",
    metadata=b"\x00m",
    attributes={
        "null": Scalar(null_value=0),  # type: ignore[arg-type]
        "boolean": Scalar(boolean=False),
        "integer": Scalar(integer=-1),
        "number": Scalar(number=0.5),
        "text": Scalar(text="é"),
    },
    storage_limit=5,
    uid=99,
)
ATTRIBUTES = {"null": None, "boolean": False, "integer": -1, "number": 0.5, "text": "é"}
DRAFT = ConversationDraft("c", "u", "r", "t", b"\x00m", ATTRIBUTES, 5)


def test_a_conversation_is_created_from_the_fields_that_a_caller_sets(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=4, conversation_id="c", time=1_000_002)

    reply = server.call("CreateConversation", pb.CreateConversationRequest(conversation=FULL))

    assert server.store.asked["create_conversation"][1] == DRAFT
    assert reply == pb.CreateConversationResponse(
        conversation_id="c", create_time=Timestamp(seconds=1, nanos=2_000), revision=4
    )


def test_a_conversation_without_a_user_is_the_default_users(server: RunningServer) -> None:
    server.call("CreateConversation", pb.CreateConversationRequest(conversation=Conversation()))

    assert server.store.asked["create_conversation"][1] == ConversationDraft("", "default")


def test_a_conversation_is_read_with_all_its_fields(server: RunningServer) -> None:
    fields = {"resource_id": "r", "title": "t", "metadata": b"\x00m", "attributes": ATTRIBUTES, "storage_limit": 5}
    server.store.conversations = [conversation("c", **fields)]  # type: ignore[arg-type]

    reply = server.call("GetConversation", pb.GetConversationRequest(conversation_id="c", user_id="u"))

    expected = pb.GetConversationResponse(conversation=FULL, revision=9)
    expected.conversation.MergeFrom(
        Conversation(
            uid=1,
            revision=2,
            last_sequence=3,
            message_count=4,
            create_time=Timestamp(nanos=5_000),
            update_time=Timestamp(nanos=6_000),
        )
    )
    assert reply == expected
    assert server.store.asked["get_conversation"][1:] == ("c", "u")


def query_of(server: RunningServer, **fields: object) -> ConversationQuery:
    server.call("ListConversations", pb.ListConversationsRequest(**fields))  # type: ignore[arg-type]
    return cast("ConversationQuery", server.store.asked["list_conversations"][1])


def test_a_list_has_the_newest_updates_first_unless_asked_otherwise(server: RunningServer) -> None:
    query = query_of(server)

    assert (query.order_by, query.descending, query.skip) == (ConversationOrder.UPDATE_TIME, True, 0)


def test_a_list_is_ordered_and_filtered_as_asked(server: RunningServer) -> None:
    query = query_of(
        server,
        user_id="u",
        resource_id="r",
        order_by=pb.CONVERSATION_ORDER_TITLE,
        direction=pb.DIRECTION_ASCENDING,
        skip=3,
    )

    assert (query.user_id, query.resource_id, query.skip) == ("u", "r", 3)
    assert (query.order_by, query.descending) == (ConversationOrder.TITLE, False)


@pytest.mark.parametrize(("asked", "given"), [(0, 100), (1, 1), (1_000, 1_000), (1_001, 1_000), (2**31 - 1, 1_000)])
def test_a_page_holds_100_unless_asked_otherwise_and_1000_at_most(
    server: RunningServer, asked: int, given: int
) -> None:
    server.store.conversations = [conversation(str(number)) for number in range(1_200)]

    reply = cast("pb.ListConversationsResponse", server.call("ListConversations", _list(page_size=asked)))

    assert len(reply.conversations) == given


def _list(**fields: object) -> pb.ListConversationsRequest:
    return pb.ListConversationsRequest(**fields)  # type: ignore[arg-type]


def pages(server: RunningServer, **fields: object) -> list[list[str]]:
    """The ids on each page."""
    found, token = [], ""
    while True:
        reply = cast(
            "pb.ListConversationsResponse", server.call("ListConversations", _list(page_token=token, **fields))
        )
        found.append([each.id for each in reply.conversations])
        token = reply.next_page_token
        if not token:
            return found


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7])
@pytest.mark.parametrize("skip", [0, 2])
def test_pages_joined_are_the_list(server: RunningServer, count: int, skip: int) -> None:
    server.store.conversations = [conversation(str(number), uid=number) for number in range(count)]

    found = pages(server, page_size=3, skip=skip)

    assert [each for page in found for each in page] == [str(number) for number in range(skip, count)]
    assert len(found) == max(1, -(-(count - skip) // 3))


def test_a_page_ends_before_3_mib_but_holds_one(server: RunningServer) -> None:
    half = b"m" * (REPLY_BYTES // 2 - 100)
    server.store.conversations = [conversation(each, uid, metadata=half) for uid, each in enumerate("abc")]
    server.store.conversations.append(conversation("d", 3, metadata=2 * half))

    found = pages(server)

    assert found == [["a", "b"], ["c"], ["d"]]


def test_a_forged_page_token_is_refused(server: RunningServer) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        server.call("ListConversations", _list(page_token="AAAA"))

    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert info.reason == "PAGE_TOKEN_INVALID"


def test_conversations_are_counted(server: RunningServer) -> None:
    server.store.conversations = [conversation()]

    reply = server.call("CountConversations", pb.CountConversationsRequest(user_id="u", resource_id="r"))

    assert reply == pb.CountConversationsResponse(count=1, revision=9)
    assert server.store.asked["count_conversations"][1:] == ("u", "r")


def test_an_update_takes_the_masked_fields(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=4, time=7)
    mask = FieldMask(paths=["title", "storage_limit"])

    reply = server.call(
        "UpdateConversation", pb.UpdateConversationRequest(conversation=FULL, update_mask=mask, user_id="v")
    )

    update = ConversationUpdate(DRAFT, frozenset({"title", "storage_limit"}))
    assert server.store.asked["update_conversation"][1:] == ("c", "v", update)
    assert reply == pb.UpdateConversationResponse(update_time=Timestamp(nanos=7_000), revision=4)


def test_a_limit_that_is_not_set_is_none(server: RunningServer) -> None:
    mask = FieldMask(paths=["storage_limit"])

    server.call("UpdateConversation", pb.UpdateConversationRequest(conversation={"id": "c"}, update_mask=mask))  # type: ignore[arg-type]

    update = cast("ConversationUpdate", server.store.asked["update_conversation"][3])
    assert update.draft.storage_limit is None


def test_a_deleted_conversation_is_counted_out(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=4, deleted=True, deleted_messages=2)

    reply = server.call(
        "DeleteConversation", pb.DeleteConversationRequest(conversation_id="c", user_id="u", allow_missing=True)
    )

    assert server.store.asked["delete_conversation"][1:] == ("c", "u", True)
    assert reply == pb.DeleteConversationResponse(deleted_messages=2, deleted=True, revision=4)


def test_a_deleted_user_is_counted_out(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=4, deleted_conversations=3, deleted_messages=2)

    reply = server.call("DeleteUser", users.DeleteUserRequest(user_id="u"))

    assert server.store.asked["delete_user"][1:] == ("u",)
    assert reply == users.DeleteUserResponse(deleted_conversations=3, deleted_messages=2, revision=4)
