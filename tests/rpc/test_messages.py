"""The RPCs of messages: what reaches the store, and what comes back."""

from __future__ import annotations

import struct
from typing import cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.rpc.running_server import RunningServer

from remora.v1 import conversation_service_pb2 as pb
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Embedding, Message, ToolCall
from remora.v1.scalar_pb2 import Scalar
from remora_server.domain.calls import Outcome, Placed
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.messages import (
    Append,
    Keep,
    MessageDraft,
    MessageEmbedding,
    MessagePage,
    MessageQuery,
    Remove,
    Replace,
    View,
)
from remora_server.domain.times import Between

VECTOR = struct.pack("<2f", 1, 2)
KEPT = {
    "role": "user",
    "name": "n",
    "text": "t",
    "parts": b"\x00p",
    "metadata": b"m",
    "attributes": {"a": Scalar(integer=1)},
    "tool_calls": [ToolCall(id="i", name="n", arguments=b"{}")],
    "tool_result_ids": ["j"],
    "session_id": "s",
}


def append(server: RunningServer, *messages: Message, **fields: object) -> tuple[object, ...]:
    """What the store is asked for an append."""
    server.call("AppendMessages", pb.AppendMessagesRequest(conversation_id="c", messages=messages, **fields))  # type: ignore[arg-type]
    return server.store.asked["append_messages"]


def drafts_of(server: RunningServer, *messages: Message) -> list[MessageDraft]:
    return cast("list[MessageDraft]", append(server, *messages)[3])


def test_the_body_is_what_the_caller_sets_without_identity_vector_and_the_servers_fields(server: RunningServer) -> None:
    message = Message(
        **KEPT,  # type: ignore[arg-type]
        id="m",
        user_id="other",
        embedding=Embedding(model="x", values=VECTOR),
        sequence=1,
        revision=2,
        create_time=Timestamp(seconds=3),
        update_time=Timestamp(seconds=4),
        token_count=5,
    )

    (draft,) = drafts_of(server, message)

    assert (draft.id, draft.role, draft.text) == ("m", "user", "t")
    assert draft.embedding == MessageEmbedding("x", VECTOR)
    assert Message.FromString(draft.body) == Message(**KEPT)  # type: ignore[arg-type]


def test_a_message_without_a_vector_has_none(server: RunningServer) -> None:
    assert drafts_of(server, Message(role="user"))[0].embedding is None


@pytest.mark.parametrize(("nanos", "kept"), [(0, 0), (999, 0), (1_999, 1_000), (999_999_999, 999_999_000)])
def test_times_are_cut_to_microseconds(server: RunningServer, nanos: int, kept: int) -> None:
    (draft,) = drafts_of(server, Message(role="user", sent_time=Timestamp(seconds=-1, nanos=nanos)))

    assert Message.FromString(draft.body).sent_time == Timestamp(seconds=-1, nanos=kept)


def test_messages_keep_their_order(server: RunningServer) -> None:
    drafts = drafts_of(server, *(Message(role="user", id=each) for each in "abc"))

    assert [draft.id for draft in drafts] == ["a", "b", "c"]


def test_no_conversation_is_made_unless_asked_for(server: RunningServer) -> None:
    assert append(server, Message(role="user"), user_id="u")[1:3] == ("c", "u")
    assert append(server, Message(role="user"))[4] is None


@pytest.mark.parametrize(
    ("given", "of_request", "owner"), [("", "", "default"), ("", "u", "u"), ("v", "u", "v"), ("v", "", "v")]
)
def test_a_conversation_that_is_made_has_the_requests_id_and_an_owner(
    server: RunningServer, given: str, of_request: str, owner: str
) -> None:
    asked = append(
        server,
        Message(role="user"),
        user_id=of_request,
        create_if_missing=Conversation(id="ignored", user_id=given, title="t"),
    )

    assert asked[4] == ConversationDraft("c", owner, title="t")


def test_an_append_answers_what_became_of_each_message(server: RunningServer) -> None:
    placed = (Placed("a", 1, 1_000_001, replaced=False), Placed("b", 2, 2_000_000, replaced=True))
    server.store.outcome = Outcome(revision=5, messages=placed, created=True, pruned_messages=3)

    reply = server.call(
        "AppendMessages", pb.AppendMessagesRequest(conversation_id="c", messages=[Message(role="user")])
    )

    assert reply == pb.AppendMessagesResponse(
        messages=[
            pb.AppendedMessage(id="a", sequence=1, create_time=Timestamp(seconds=1, nanos=1_000)),
            pb.AppendedMessage(id="b", sequence=2, create_time=Timestamp(seconds=2), replaced=True),
        ],
        conversation_created=True,
        pruned_messages=3,
        revision=5,
    )


def query_of(server: RunningServer, **fields: object) -> MessageQuery:
    server.call("ListMessages", pb.ListMessagesRequest(**{"conversation_id": "c", **fields}))  # type: ignore[arg-type]
    return cast("MessageQuery", server.store.asked["list_messages"][1])


def test_a_list_holds_the_newest_unless_asked_otherwise(server: RunningServer) -> None:
    assert query_of(server) == MessageQuery("c", limit=100, newest=True, view=View.WINDOW)


def test_a_list_is_filtered_as_asked(server: RunningServer) -> None:
    query = query_of(
        server,
        user_id="u",
        roles=["user", "tool"],
        sent_after=Timestamp(seconds=1, nanos=1_500),
        sent_before=Timestamp(seconds=2),
        received_before=Timestamp(seconds=3),
        after_sequence=0,
        before_sequence=2**64 - 1,
        page_order=pb.PAGE_ORDER_OLDEST_FIRST,
        page_size=7,
    )

    assert query == MessageQuery(
        "c",
        user_id="u",
        roles=("user", "tool"),
        sent=Between(1_000_001, 2_000_000),
        received=Between(None, 3_000_000),
        after_sequence=0,
        before_sequence=2**63 - 1,
        newest=False,
        limit=7,
        view=View.WINDOW,
    )


def test_a_page_is_the_stores_bytes_as_they_are(server: RunningServer) -> None:
    messages = [Message(id="a", text="é" * 100), Message(id="b")]
    encoded = pb.ListMessagesResponse(messages=messages).SerializeToString()
    server.store.page = MessagePage(encoded, 2, first_sequence=4, last_sequence=5, more=False, revision=6, uid=1)

    reply = server.call("ListMessages", pb.ListMessagesRequest(conversation_id="c"))

    assert reply == pb.ListMessagesResponse(messages=messages, revision=6)


@pytest.mark.parametrize(
    ("order", "bounds", "next_bounds"),
    [
        (pb.PAGE_ORDER_NEWEST_FIRST, {}, (None, 4)),
        (pb.PAGE_ORDER_NEWEST_FIRST, {"after_sequence": 1, "before_sequence": 9}, (1, 4)),
        (pb.PAGE_ORDER_OLDEST_FIRST, {}, (5, None)),
        (pb.PAGE_ORDER_OLDEST_FIRST, {"after_sequence": 1, "before_sequence": 9}, (5, 9)),
    ],
)
def test_the_next_page_begins_where_this_one_ends(
    server: RunningServer, order: int, bounds: dict[str, int], next_bounds: tuple[int | None, int | None]
) -> None:
    server.store.page = MessagePage(b"", 2, first_sequence=4, last_sequence=5, more=True, revision=6, uid=1)
    fields = {"conversation_id": "c", "page_order": order, **bounds}

    first = cast("pb.ListMessagesResponse", server.call("ListMessages", pb.ListMessagesRequest(**fields)))  # type: ignore[arg-type]
    query = query_of(server, **fields, page_token=first.next_page_token)

    assert (query.after_sequence, query.before_sequence) == next_bounds


def test_messages_are_deleted_by_id(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=5, deleted_messages=2)

    reply = server.call(
        "DeleteMessages", pb.DeleteMessagesRequest(conversation_id="c", user_id="u", message_ids=["a", "b", "a"])
    )

    assert server.store.asked["delete_messages"][1:] == ("c", "u", ["a", "b", "a"])
    assert reply == pb.DeleteMessagesResponse(deleted_messages=2, revision=5)


@pytest.mark.parametrize(
    ("conversation", "user", "asked"),
    [
        ("c", "u", {"clear_messages": ("c", "u")}),
        ("c", "", {"clear_messages": ("c", "")}),
        ("", "u", {"clear_user": ("u",)}),
    ],
)
def test_a_users_messages_are_cleared(
    server: RunningServer, conversation: str, user: str, asked: dict[str, tuple[str, ...]]
) -> None:
    server.store.outcome = Outcome(revision=5, deleted_messages=2)

    reply = server.call("ClearMessages", pb.ClearMessagesRequest(conversation_id=conversation, user_id=user))

    assert {name: arguments[1:] for name, arguments in server.store.asked.items()} == asked
    assert reply == pb.ClearMessagesResponse(deleted_messages=2, revision=5)


def test_edits_reach_the_store_in_order(server: RunningServer) -> None:
    message = Message(role="user", id="m", text="t")
    draft = MessageDraft("m", "user", "t", Message(role="user", text="t").SerializeToString())
    slices = [pb.Slice(**{"from": -2}), pb.Slice(to=3), pb.Slice(), pb.Slice(**{"from": 0, "to": 0})]
    edits = [
        pb.Edit(append=message),
        pb.Edit(replace=message),
        pb.Edit(remove="m"),
        pb.Edit(remove_all=pb.RemoveAll()),
        *(pb.Edit(keep=kept) for kept in slices),
    ]

    server.call(
        "EditMessages", pb.EditMessagesRequest(conversation_id="c", user_id="u", edits=edits, allow_missing=True)
    )

    _, conversation, user, asked, allow_missing = server.store.asked["edit_messages"]
    assert (conversation, user, allow_missing) == ("c", "u", True)
    assert asked == [
        Append(draft),
        Replace(draft),
        Remove("m"),
        Keep(0, 0),
        Keep(-2, None),
        Keep(None, 3),
        Keep(None, None),
        Keep(0, 0),
    ]


def test_an_edit_answers_what_it_did(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=5, messages=(Placed("a", 1, 0, replaced=False),), deleted_messages=2)

    reply = server.call("EditMessages", pb.EditMessagesRequest(conversation_id="c", edits=[pb.Edit(remove="a")]))

    placed = pb.AppendedMessage(id="a", sequence=1, create_time=Timestamp())
    assert reply == pb.EditMessagesResponse(messages=[placed], deleted_messages=2, revision=5)


def test_a_repeat_is_answered_with_the_same_bytes(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=5, messages=(Placed("a", 1, 7, replaced=False),), created=True)
    request = pb.AppendMessagesRequest(conversation_id="c", request_id="r", messages=[Message(role="user")])

    replies = {server.call("AppendMessages", request).SerializeToString() for _ in range(3)}

    assert len(replies) == 1
