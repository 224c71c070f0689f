"""What each method asks the server for, and what it makes of the reply."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from tests.client.scripted_server import ScriptedServer

from remora import Condition, Embedding, Message, Remora, Step, edits
from remora.search import Hit
from remora.v1 import (
    admin_service_pb2,
    conversation_pb2,
    filter_pb2,
    memory_service_pb2,
    message_pb2,
    scalar_pb2,
    text_service_pb2,
    transfer_service_pb2,
)
from remora.v1 import conversation_service_pb2 as wire
from remora.v1 import history_service_pb2 as history
from remora.v1 import user_service_pb2 as users
from remora.v1.working_memory_pb2 import WorkingMemoryScope

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
HELLO = {"role": "user", "content": "hello"}


def stamp(time: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp


def test_append_creates_the_conversation_with_the_handles_user_and_fields(
    client: Remora, server: ScriptedServer
) -> None:
    chat = client.conversation("c", user_id="sarah", title="Leave", metadata={"team": 7}, storage_limit=50)

    chat.append(HELLO)

    request = server.request(wire.AppendMessagesRequest)
    assert (request.conversation_id, request.user_id) == ("c", "sarah")
    assert request.create_if_missing == conversation_pb2.Conversation(
        id="c", user_id="sarah", title="Leave", metadata=b'{"team":7}', storage_limit=50
    )


def test_append_can_leave_a_missing_conversation_missing(client: Remora, server: ScriptedServer) -> None:
    client.conversation("c").append(HELLO, create_if_missing=False)

    assert not server.request(wire.AppendMessagesRequest).HasField("create_if_missing")


def test_append_takes_one_message_or_several_in_order(client: Remora, server: ScriptedServer) -> None:
    client.conversation("c").append([HELLO, Message("assistant", "hi", id="m2")])

    messages = server.request(wire.AppendMessagesRequest).messages
    assert [(message.role, message.text, message.id) for message in messages] == [
        ("user", "hello", ""),
        ("assistant", "hi", "m2"),
    ]


def test_append_says_what_became_of_each_message(client: Remora, server: ScriptedServer) -> None:
    server.answer(
        "AppendMessages",
        wire.AppendMessagesResponse(
            messages=[
                wire.AppendedMessage(id="a", sequence=1, create_time=stamp(NOON)),
                wire.AppendedMessage(id="b", sequence=5, create_time=stamp(NOON), replaced=True),
            ],
            conversation_created=True,
            pruned_messages=2,
            revision=9,
        ),
    )

    appended = client.conversation("c").append([HELLO, HELLO])

    assert appended.ids == ["a", "b"]
    assert appended.sequences == [1, 5]
    assert [message.replaced for message in appended.messages] == [False, True]
    assert appended.messages[0].create_time == NOON
    assert (appended.conversation_created, appended.deleted_messages, appended.revision) == (True, 2, 9)


def stored(count: int) -> list[message_pb2.Message]:
    return [message_pb2.Message(role="user", text=str(number), sequence=number) for number in range(1, count + 1)]


def list_messages(
    everything: list[message_pb2.Message], shortest: int
) -> Callable[[wire.ListMessagesRequest], wire.ListMessagesResponse]:
    """ListMessages over these messages; a page may end early, but not below `shortest`."""

    def answer(request: wire.ListMessagesRequest) -> wire.ListMessagesResponse:
        oldest = request.page_order == wire.PAGE_ORDER_OLDEST_FIRST
        ordered = everything if oldest else everything[::-1]
        start = int(request.page_token or 0)
        stop = start + min(request.page_size, shortest)
        page = ordered[start:stop] if oldest else ordered[start:stop][::-1]
        return wire.ListMessagesResponse(messages=page, next_page_token=str(stop) if stop < len(ordered) else "")

    return answer


@pytest.mark.parametrize("shortest", [1000, 7])
@pytest.mark.parametrize("limit", [0, 1, 20, 23, 100, None])
def test_messages_are_the_newest_oldest_first_however_they_are_paged(
    client: Remora, server: ScriptedServer, limit: int | None, shortest: int
) -> None:
    server.answer("ListMessages", list_messages(stored(23), shortest))

    newest = [message.sequence for message in client.conversation("c").messages(limit)]
    oldest = [message.sequence for message in client.conversation("c").messages(limit, oldest_first=True)]

    everything = list(range(1, 24))
    assert newest == (everything if limit is None else everything[max(0, 23 - limit) :])
    assert oldest == everything[:limit]


def test_pages_of_one_list_differ_in_their_token_alone(client: Remora, server: ScriptedServer) -> None:
    server.answer("ListMessages", list_messages(stored(23), 7))

    client.conversation("c").messages(None)

    requests = server.requests(wire.ListMessagesRequest)
    assert len(requests) == 4
    for earlier, later in pairwise(requests):
        assert earlier.page_token != later.page_token
        earlier.page_token = later.page_token
        assert earlier == later


def test_messages_are_bounded_by_sequences_messages_and_times(client: Remora, server: ScriptedServer) -> None:
    chat = client.conversation("c", user_id="u")

    chat.messages(5, roles=["user"], before=17, received_after=NOON)
    chat.messages(after=Message("user", sequence=3), sent_after=NOON, sent_before=LATER, received_before=LATER)

    first, second = server.requests(wire.ListMessagesRequest)
    assert (first.user_id, list(first.roles), first.page_size) == ("u", ["user"], 5)
    assert first.received_after == stamp(NOON)
    assert first.before_sequence == 17
    assert not first.HasField("after_sequence")
    assert [field.name for field, _ in first.ListFields() if "sent" in field.name or "received" in field.name] == [
        "received_after"
    ]
    assert second.after_sequence == 3
    assert (second.sent_after, second.sent_before, second.received_before) == tuple(map(stamp, (NOON, LATER, LATER)))


@pytest.mark.parametrize("scope", ["conversation", "user_id", "tenant"])
def test_a_search_has_the_scope_of_its_handle(client: Remora, server: ScriptedServer, scope: str) -> None:
    searches = {
        "conversation": client.conversation("c", user_id="u").search,
        "user_id": client.user("u").search,
        "tenant": client.search_all_users,
    }

    searches[scope]("leave")

    request = server.request(memory_service_pb2.SearchMessagesRequest)
    assert request.WhichOneof("scope") == scope
    assert request.text == "leave"
    if scope == "conversation":
        assert (request.conversation.conversation_id, request.conversation.user_id) == ("c", "u")


def test_a_search_of_the_client_is_one_users(client: Remora, server: ScriptedServer) -> None:
    client.search("leave", user_id="u", k=3)

    request = server.request(memory_service_pb2.SearchMessagesRequest)
    assert (request.WhichOneof("scope"), request.user_id, request.options.k) == ("user_id", "u", 3)


def test_a_search_sends_how_to_rank_and_filter(client: Remora, server: ScriptedServer) -> None:
    client.search_all_users(
        "leave",
        k=3,
        profile="lexical",
        threshold=0.0,
        weights={"bm25": 0.5},
        roles=["user"],
        sent_after=NOON,
        received_before=LATER,
        where=[Condition("age", ">=", 18), Condition("topic", "in", "travel", None)],
        explain=True,
        index_wait=1.5,
    )

    request = server.request(memory_service_pb2.SearchMessagesRequest)
    assert request.explain
    assert request.index_wait.ToMilliseconds() == 1500
    assert request.options == memory_service_pb2.SearchOptions(
        k=3,
        profile=memory_service_pb2.PROFILE_LEXICAL,
        threshold=0.0,
        weights=memory_service_pb2.Weights(bm25=0.5),
        filter=memory_service_pb2.MessageFilter(
            roles=["user"],
            sent_after=stamp(NOON),
            received_before=stamp(LATER),
            where=filter_pb2.Filter(all_of=filter_pb2.Filters(filters=[AGE, TOPIC])),
        ),
    )


AGE = filter_pb2.Filter(
    condition=filter_pb2.Condition(key="age", operator=filter_pb2.OPERATOR_GTE, values=[scalar_pb2.Scalar(integer=18)])
)
TOPIC = filter_pb2.Filter(
    condition=filter_pb2.Condition(
        key="topic",
        operator=filter_pb2.OPERATOR_IN,
        values=[scalar_pb2.Scalar(text="travel"), scalar_pb2.Scalar(null_value=0)],  # type: ignore[arg-type]
    )
)


def test_conditions_are_joined_by_operators(client: Remora, server: ScriptedServer) -> None:
    age, topic = Condition("age", ">=", 18), Condition("topic", "in", "travel", None)

    client.search_all_users("leave", where=age & topic & age | ~(age | topic))

    where = server.request(memory_service_pb2.SearchMessagesRequest).options.filter.where
    both = filter_pb2.Filter(all_of=filter_pb2.Filters(filters=[AGE, TOPIC, AGE]))
    neither = filter_pb2.Filter(negated=filter_pb2.Filter(any_of=filter_pb2.Filters(filters=[AGE, TOPIC])))
    assert where == filter_pb2.Filter(any_of=filter_pb2.Filters(filters=[both, neither]))


def test_a_search_leaves_the_rest_to_the_server(client: Remora, server: ScriptedServer) -> None:
    client.search_all_users("leave", where={"team": 7})

    request = server.request(memory_service_pb2.SearchMessagesRequest)
    (team,) = request.options.filter.where.all_of.filters
    assert (team.condition.key, team.condition.operator) == ("team", filter_pb2.OPERATOR_EQ)
    assert not request.HasField("index_wait")
    assert not request.options.HasField("threshold")
    assert not request.options.HasField("weights")


def test_a_search_takes_a_vector(client: Remora, server: ScriptedServer) -> None:
    client.search_all_users(Embedding.of("mini", [1.0, 0.0]), profile="vector")

    request = server.request(memory_service_pb2.SearchMessagesRequest)
    assert request.WhichOneof("query") == "embedding"
    assert request.embedding == message_pb2.Embedding(model="mini", values=b"\x00\x00\x80\x3f" + bytes(4))


def test_hits_come_best_first_with_their_scores(client: Remora, server: ScriptedServer) -> None:
    component = memory_service_pb2.Component(name="bm25", value=2.0, weight=0.5)
    hits = [
        memory_service_pb2.Hit(
            message=message_pb2.Message(role="user", text="a"), conversation_id="c", score=1.0, components=[component]
        ),
        memory_service_pb2.Hit(message=message_pb2.Message(role="user", text="b"), conversation_id="d", score=0.5),
    ]
    index = memory_service_pb2.IndexState(model="mini", pending=3)
    server.answer(
        "SearchMessages",
        memory_service_pb2.SearchMessagesResponse(
            hits=hits, revision=4, index=index, profile=memory_service_pb2.PROFILE_VECTOR
        ),
    )

    result = client.search_all_users("leave")

    assert [hit.message.text for hit in result] == ["a", "b"]
    assert len(result) == 2
    assert isinstance(result[0], Hit)
    assert sum(part.value * part.weight for part in result[0].components) == result[0].score
    assert (result.profile, result.index.model, result.index.pending, result.revision) == ("vector", "mini", 3, 4)


def test_a_context_recalls_unless_told_not_to(client: Remora, server: ScriptedServer) -> None:
    chat = client.conversation("c", user_id="u")

    chat.context()
    chat.context(recall=False)
    chat.context(recall={"k": 3})

    by_default, without, with_options = server.requests(memory_service_pb2.AssembleContextRequest)
    assert by_default.max_tokens == 4000
    assert by_default.query == ""
    assert by_default.HasField("search")
    assert not without.HasField("search")
    assert with_options.search.k == 3


def test_a_context_sends_what_it_is_asked_for(client: Remora, server: ScriptedServer) -> None:
    client.conversation("c").context(
        900,
        query="leave",
        recall_scope="user",
        recent_messages=0,
        model="gpt-4o",
        merge="interleave",
        rendering="transcript",
        index_wait=0,
    )

    request = server.request(memory_service_pb2.AssembleContextRequest)
    assert (request.max_tokens, request.query, request.encoding.model) == (900, "leave", "gpt-4o")
    assert request.search_user_scope
    assert request.HasField("recent_messages")
    assert request.HasField("index_wait")
    assert request.merge == memory_service_pb2.MERGE_INTERLEAVE
    assert request.rendering == memory_service_pb2.RENDERING_TRANSCRIPT


def test_a_context_recalls_for_a_vector(client: Remora, server: ScriptedServer) -> None:
    client.conversation("c").context(query=Embedding.of("mini", [1.0, 0.0]))

    request = server.request(memory_service_pb2.AssembleContextRequest)
    assert request.query == ""
    assert request.query_embedding == message_pb2.Embedding(model="mini", values=b"\0\0\x80\x3f\0\0\0\0")


def test_an_encoding_and_a_model_are_not_given_together(client: Remora) -> None:
    with pytest.raises(ValueError, match="not both"):
        client.conversation("c").context(encoding="o200k_base", model="gpt-4o")


def test_a_context_gives_messages_ready_to_send(client: Remora, server: ScriptedServer) -> None:
    original = {"role": "user", "content": [{"type": "text", "text": "leave?"}]}
    items = [
        memory_service_pb2.Item(
            message=Message.from_openai(original).to_proto(),
            conversation_id="c",
            section=memory_service_pb2.SECTION_RECALLED,
            score=0.7,
            tokens=6,
            reason="resembles the query",
        ),
        memory_service_pb2.Item(
            message=Message("user", "hello").to_proto(), section=memory_service_pb2.SECTION_RECENT, tokens=5
        ),
    ]
    reply = memory_service_pb2.AssembleContextResponse(
        items=items, tokens_used=14, overhead_tokens=3, left_out=2, uncounted_parts=1, exact=True, revision=8
    )
    server.answer("AssembleContext", reply)

    context = client.conversation("c").context()

    assert context.messages == [original, HELLO]
    assert [(item.section, item.score, item.tokens) for item in context.items] == [
        ("recalled", 0.7, 6),
        ("recent", None, 5),
    ]
    assert (context.tokens_used, context.overhead_tokens, context.left_out) == (14, 3, 2)
    assert (context.uncounted_parts, context.exact, context.revision, context.text) == (1, True, 8, "")


def test_messages_are_deleted_by_id(client: Remora, server: ScriptedServer) -> None:
    server.answer("DeleteMessages", wire.DeleteMessagesResponse(deleted_messages=1))

    assert client.conversation("c", user_id="u").delete_messages("m1") == 1
    client.conversation("c").delete_messages(["m1", "m2"])

    one, several = server.requests(wire.DeleteMessagesRequest)
    assert (one.conversation_id, one.user_id, list(one.message_ids)) == ("c", "u", ["m1"])
    assert several.message_ids == ["m1", "m2"]


def test_clearing_is_of_one_conversation_or_all(client: Remora, server: ScriptedServer) -> None:
    server.answer("ClearMessages", wire.ClearMessagesResponse(deleted_messages=4))

    assert client.conversation("c", user_id="u").clear() == 4
    assert client.user("u").clear_messages() == 4

    one, every = server.requests(wire.ClearMessagesRequest)
    assert (one.conversation_id, one.user_id) == ("c", "u")
    assert (every.conversation_id, every.user_id) == ("", "u")


def test_edits_are_sent_in_order(client: Remora, server: ScriptedServer) -> None:
    server.answer("EditMessages", wire.EditMessagesResponse(deleted_messages=3, revision=5))

    edited = client.conversation("c").edit(
        [
            edits.Append(HELLO),
            edits.Replace(Message("user", "bye", id="m1")),
            edits.Remove("m2"),
            edits.RemoveAll(),
            edits.Keep(-20),
            edits.Keep(1, 3),
        ],
        allow_missing=True,
    )

    request = server.request(wire.EditMessagesRequest)
    assert [edit.WhichOneof("action") for edit in request.edits] == [
        "append",
        "replace",
        "remove",
        "remove_all",
        "keep",
        "keep",
    ]
    assert request.edits[1].replace.id == "m1"
    assert request.allow_missing
    assert (edited.deleted_messages, edited.revision) == (3, 5)


@given(st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.integers(-(2**63), 2**63 - 1))
def test_a_slice_keeps_its_bounds(start: int | None, stop: int | None) -> None:
    keep = edits.Keep(start, stop).to_proto().keep

    assert (getattr(keep, "from") if keep.HasField("from") else None) == start
    assert (keep.to if keep.HasField("to") else None) == stop


def test_an_update_names_the_fields_that_change(client: Remora, server: ScriptedServer) -> None:
    client.conversation("c", user_id="u").update(title="", metadata={"a": 1})
    client.conversation("c").update()

    changing, touching = server.requests(wire.UpdateConversationRequest)
    assert sorted(changing.update_mask.paths) == ["metadata", "title"]
    assert (changing.conversation.id, changing.user_id, changing.conversation.metadata) == ("c", "u", b'{"a":1}')
    assert list(touching.update_mask.paths) == []


def test_a_storage_limit_is_lifted_by_none(client: Remora, server: ScriptedServer) -> None:
    client.conversation("c").update(storage_limit=None)

    request = server.request(wire.UpdateConversationRequest)
    assert list(request.update_mask.paths) == ["storage_limit"]
    assert not request.conversation.HasField("storage_limit")


def test_deleting_a_conversation_may_allow_for_none(client: Remora, server: ScriptedServer) -> None:
    server.answer("DeleteConversation", wire.DeleteConversationResponse(deleted_messages=6, deleted=True))

    assert client.conversation("c").delete(allow_missing=True) == 6
    assert server.request(wire.DeleteConversationRequest).allow_missing


def test_deleting_a_user_says_how_many_messages_went(client: Remora, server: ScriptedServer) -> None:
    server.answer("DeleteUser", users.DeleteUserResponse(deleted_messages=6))

    assert client.user("u").delete() == 6
    assert server.request(users.DeleteUserRequest).user_id == "u"


def test_a_created_conversation_has_the_id_that_the_server_made(client: Remora, server: ScriptedServer) -> None:
    server.answer("CreateConversation", wire.CreateConversationResponse(conversation_id="made", revision=3))

    chat = client.create_conversation(user_id="u", title="Leave", attributes={"team": 7})

    assert (chat.id, chat.user_id, client.revision) == ("made", "u", 3)
    conversation = server.request(wire.CreateConversationRequest).conversation
    assert (conversation.id, conversation.title) == ("", "Leave")
    assert conversation.attributes["team"].integer == 7


def test_conversations_are_listed_page_by_page(client: Remora, server: ScriptedServer) -> None:
    first = wire.ListConversationsResponse(
        conversations=[conversation_pb2.Conversation(id="a", title="A", metadata=b"[1]", storage_limit=9)],
        next_page_token="next",
    )
    second = wire.ListConversationsResponse(conversations=[conversation_pb2.Conversation(id="b")])
    server.answer("ListConversations", first, second)

    found = client.list_conversations(user_id="u", order_by="title", descending=False, skip=2)

    assert [(record.id, record.title, record.metadata, record.storage_limit) for record in found] == [
        ("a", "A", [1], 9),
        ("b", "", None, None),
    ]
    request, following = server.requests(wire.ListConversationsRequest)
    assert (request.user_id, request.skip, following.page_token) == ("u", 2, "next")
    assert request.order_by == wire.CONVERSATION_ORDER_TITLE
    assert request.direction == wire.DIRECTION_ASCENDING


def test_steps_are_saved_for_the_handles_conversation(client: Remora, server: ScriptedServer) -> None:
    client.conversation("c", user_id="u").save_steps([Step("s1", "text", content="hm"), Step("s2", "tool_result")])

    steps = server.request(history.SaveStepsRequest).steps
    assert [(step.id, step.conversation_id, step.user_id) for step in steps] == [("s1", "c", "u"), ("s2", "c", "u")]


def test_the_last_steps_are_listed(client: Remora, server: ScriptedServer) -> None:
    step = Step("s1", "tool_call", arguments={"city": "Rome"})
    server.answer("ListSteps", history.ListStepsResponse(steps=[step.to_proto("c", "u")]))

    assert client.conversation("c").steps(operation_id="op", limit=5) == [step]

    request = server.request(history.ListStepsRequest)
    assert (request.operation_id, request.limit) == ("op", 5)


@pytest.mark.parametrize(
    ("content", "stored_bytes"), [("# Sarah", b"# Sarah"), (b"\xff", b"\xff"), ({"a": 1}, b'{"a":1}'), ("", b"")]
)
def test_working_memory_keeps_text_bytes_or_json(
    client: Remora, server: ScriptedServer, content: object, stored_bytes: bytes
) -> None:
    client.user("u").working_memory.set(content)

    request = server.request(memory_service_pb2.SetWorkingMemoryRequest)
    assert request.content == stored_bytes
    assert request.scope == WorkingMemoryScope(user_id="u")


def test_working_memory_of_a_conversation_is_read_and_deleted(client: Remora, server: ScriptedServer) -> None:
    server.answer(
        "GetWorkingMemory",
        memory_service_pb2.GetWorkingMemoryResponse(content=b'{"a":1}', found=True, update_time=stamp(NOON)),
        memory_service_pb2.GetWorkingMemoryResponse(),
    )
    server.answer("DeleteWorkingMemory", memory_service_pb2.DeleteWorkingMemoryResponse(deleted=True))
    working = client.conversation("c", user_id="u").working_memory

    found, missing = working.get(), working.get()

    assert found is not None
    assert (found.content, found.text, found.json(), found.update_time) == (b'{"a":1}', '{"a":1}', {"a": 1}, NOON)
    assert missing is None
    assert working.delete()
    request = server.request(memory_service_pb2.DeleteWorkingMemoryRequest)
    assert (request.scope.conversation_id, request.user_id) == ("c", "u")


def test_texts_and_messages_are_counted(client: Remora, server: ScriptedServer) -> None:
    server.answer("CountTokens", text_service_pb2.CountTokensResponse(counts=[2], total=2, exact=True))

    assert client.count_tokens("hello").total == 2
    client.count_tokens(["a", "b"], encoding="cl100k_base")
    client.count_tokens(HELLO, model="gpt-4o")
    client.count_tokens([HELLO, HELLO])

    one, texts, message, messages = server.requests(text_service_pb2.CountTokensRequest)
    assert (list(one.texts), list(texts.texts)) == (["hello"], ["a", "b"])
    assert (texts.encoding.name, message.encoding.model) == ("cl100k_base", "gpt-4o")
    assert (len(message.messages), len(messages.messages), len(message.texts)) == (1, 2, 0)


def test_the_stubs_are_there_for_the_rest(client: Remora) -> None:
    client.count_conversations()

    assert {"conversations", "memory", "text", "admin"} <= set(vars(Remora("unix:/tmp/none").stubs))


def test_records_are_exported_page_by_page(client: Remora, server: ScriptedServer) -> None:
    server.answer("ExportRecords", transfer_service_pb2.ExportRecordsResponse(next_page_token="next"))

    page = client.export_records(user_id="sarah", conversation_id="c", page_token="this")

    request = server.request(transfer_service_pb2.ExportRecordsRequest)
    assert (request.user_id, request.conversation_id, request.page_token) == ("sarah", "c", "this")
    assert page.next_page_token == "next"


def test_an_import_says_how_many_records_are_new(client: Remora, server: ScriptedServer) -> None:
    server.answer("ImportRecords", transfer_service_pb2.ImportRecordsResponse(imported_records=1, revision=8))
    records = [transfer_service_pb2.Record(message=transfer_service_pb2.MessageRecord(conversation_id="c"))] * 2

    assert client.import_records(records) == 1

    request = server.request(transfer_service_pb2.ImportRecordsRequest)
    assert list(request.records) == records
    assert request.request_id
    assert client.revision == 8


def test_a_backup_is_made_read_in_parts_and_deleted(client: Remora, server: ScriptedServer) -> None:
    server.answer("CreateBackup", admin_service_pb2.CreateBackupResponse(backup=admin_service_pb2.Backup(id="b1")))
    server.answer("ReadBackup", admin_service_pb2.ReadBackupResponse(data=b"part"))
    server.answer("DeleteBackup", admin_service_pb2.DeleteBackupResponse(deleted=True))

    made = client.create_backup()

    assert client.read_backup(made.id, 7) == b"part"
    assert client.delete_backup(made.id)
    request = server.request(admin_service_pb2.ReadBackupRequest)
    assert (request.backup_id, request.offset) == ("b1", 7)
