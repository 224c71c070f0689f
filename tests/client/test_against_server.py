"""The client and the server that it is for."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import grpc
import pytest
from google.rpc.code_pb2 import Code
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.client.test_chat_format import CHAT_MESSAGE, identical
from tests.patience import PATIENCE, eventually

from remora import AsyncRemora, Condition, Message, Remora, SearchResult, Step, Trim, edits, errors, testing
from remora_server.rpc.errors import ANSWERS, INTERNAL

pytest_plugins = ["pytester"]

memory, remora_server, remora_tenant = testing.memory, testing.remora_server, testing.remora_tenant

HELLO = {"role": "user", "content": "hello"}


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


def says(text: str, message_id: str = "") -> Message:
    return Message("user", text, id=message_id)


class EchoingModel:
    """A chat model of OpenAI's shape that answers with how many messages it got."""

    def __init__(self) -> None:
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, *, model: str, messages: list[dict[str, Any]]) -> SimpleNamespace:
        message = SimpleNamespace(role="assistant", content=f"{model} saw {len(messages)}", tool_calls=None)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


def test_an_agents_turn_is_three_calls(remora_server: str, remora_tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_ENDPOINT", remora_server)
    llm = EchoingModel()

    with Remora(tenant=remora_tenant, timeout=PATIENCE) as memory:
        chat = memory.conversation("support-42", user_id="sarah")
        chat.append({"role": "user", "content": "Can I work abroad?"})
        context = chat.context(max_tokens=4000)
        reply = llm.chat.completions.create(model="m", messages=context.messages)
        chat.append(reply.choices[0].message)

        assert [message.to_openai() for message in chat.messages()] == [
            {"role": "user", "content": "Can I work abroad?"},
            {"role": "assistant", "content": "m saw 1"},
        ]
        assert 0 < context.tokens_used <= 4000


def test_the_async_client_does_the_same(remora_server: str, remora_tenant: str) -> None:
    async def turn() -> list[Message]:
        async with AsyncRemora(remora_server, tenant=remora_tenant, timeout=PATIENCE) as memory:
            chat = memory.conversation("c", user_id="sarah")
            await chat.append([HELLO, {"role": "assistant", "content": "hi"}])
            return await chat.messages()

    assert texts(asyncio.run(turn())) == ["hello", "hi"]


WITH_A_ROLE: st.SearchStrategy[dict[str, Any]] = CHAT_MESSAGE.filter(lambda message: bool(message["role"]))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WITH_A_ROLE, min_size=1, max_size=5))
def test_chat_messages_come_back_as_they_went_in(memory: Remora, messages: list[dict[str, Any]]) -> None:
    chat = memory.conversation(uuid4().hex)

    chat.append(messages)

    assert identical([message.to_openai() for message in chat.messages()], messages)


def test_what_a_message_carries_comes_back(memory: Remora) -> None:
    sent = Message(
        "user",
        "hello",
        id="m1",
        name="Sarah",
        metadata={"source": "mail"},
        attributes={"team": 7, "urgent": True, "score": 0.5, "topic": "leave", "gone": None},
        sent_time=datetime(2026, 5, 8, 12, tzinfo=UTC),
        session_id="monday",
    )
    chat = memory.conversation("c", user_id="sarah")

    appended = chat.append(sent)
    (received,) = chat.messages()

    assert (received.id, received.name, received.session_id) == ("m1", "Sarah", "monday")
    assert (received.metadata, received.attributes) == (sent.metadata, sent.attributes)
    assert received.sent_time == sent.sent_time
    assert (received.user_id, received.sequence) == ("sarah", appended.sequences[0])
    assert received.create_time == appended.messages[0].create_time
    assert received.token_count == 1


def test_a_message_with_a_known_id_replaces_it_in_its_place(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append([says("one", "m1"), says("two", "m2")])

    appended = chat.append(says("first", "m1"))

    assert appended.messages[0].replaced
    assert texts(chat.messages()) == ["first", "two"]


def test_long_conversations_are_paged(memory: Remora) -> None:
    chat = memory.conversation("c")
    everything = [str(number) for number in range(2300)]
    for start in range(0, len(everything), 1000):
        chat.append([says(text) for text in everything[start : start + 1000]], timeout=PATIENCE)

    assert texts(chat.messages(None, timeout=PATIENCE)) == everything
    assert texts(chat.messages(1500, timeout=PATIENCE)) == everything[-1500:]
    assert texts(chat.messages(1500, oldest_first=True, timeout=PATIENCE)) == everything[:1500]
    assert texts(chat.messages(3)) == everything[-3:]


def test_a_window_grows_no_larger_than_its_policy_says(memory: Remora) -> None:
    chat = memory.conversation("long", short_term=Trim(60, keep_tokens=20))
    for number in range(20):
        chat.append(says(f"This is message number {number}, and it is short."))

    kept = eventually(chat.messages, until=lambda found: len(found) <= 5)
    everything = chat.messages(None, view="all")
    assert [message.id for message in kept] == [message.id for message in everything[-len(kept) :]]
    assert len(everything) == 20
    window = chat.window()
    assert (window.first_sequence, window.failure) == (kept[0].sequence, "")
    assert window.window_revision > 0
    assert chat.get().short_term == Trim(60, keep_tokens=20)
    context = chat.context(max_tokens=1_000, recall=False)
    assert [item.message.id for item in context.items] == [message.id for message in kept]

    chat.update(short_term=None)
    assert chat.get().short_term is None


def test_messages_are_filtered_by_their_attributes(memory: Remora) -> None:
    chat = memory.conversation("trip")
    chat.append({"role": "user", "content": "Which train?", "attributes": {"topic": "trains", "stars": 3}})
    chat.append({"role": "user", "content": "Which hotel?", "attributes": {"topic": "hotels", "stars": 4}})
    chat.append({"role": "user", "content": "Thanks"})

    assert texts(chat.messages(where={"topic": "trains"})) == ["Which train?"]
    assert texts(chat.messages(where=Condition("stars", ">", 3))) == ["Which hotel?"]
    assert texts(chat.messages(1, where=Condition("stars", "present"))) == ["Which hotel?"]
    assert texts(chat.messages(None, where=~Condition("stars", "present"))) == ["Thanks"]


def test_messages_are_bounded_by_messages_and_roles(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append([says("a"), {"role": "assistant", "content": "b"}, says("c"), says("d")])
    first, *_, last = chat.messages()

    assert texts(chat.messages(after=first, before=last)) == ["b", "c"]
    assert texts(chat.messages(roles=["assistant"])) == ["b"]


def test_edits_apply_in_order_or_not_at_all(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append([says("a", "a"), says("b", "b"), says("c", "c")])

    chat.edit([edits.Remove("a"), edits.Replace(says("B", "b")), edits.Append(says("d", "d")), edits.Keep(-2)])
    with pytest.raises(errors.MessageNotFoundError):
        chat.edit([edits.RemoveAll(), edits.Remove("z")])

    assert texts(chat.messages()) == ["c", "d"]


def test_messages_are_deleted_and_cleared(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append([says("a", "a"), says("b", "b"), says("c", "c")])

    assert chat.delete_messages(["a", "unknown"]) == 1
    assert chat.clear() == 2
    assert chat.messages() == []


def test_what_edits_have_the_storage_limit_prune_is_counted(memory: Remora) -> None:
    chat = memory.create_conversation("c", user_id="sarah", storage_limit=2)
    chat.append([says("a", "a"), says("b", "b")])

    written = chat.edit([edits.Remove("b"), edits.Append(says("c", "c")), edits.Append(says("d", "d"))])

    assert [message.id for message in chat.messages()] == ["c", "d"]
    assert written.deleted_messages == 2


def test_a_conversation_is_created_updated_listed_and_deleted(memory: Remora) -> None:
    chat = memory.create_conversation(user_id="sarah", title="Leave", storage_limit=10, metadata={"a": 1})
    chat.update(title="Work abroad", storage_limit=None, attributes={"team": 7})
    memory.create_conversation("other", user_id="ben")

    record = chat.get()
    listed = memory.list_conversations(user_id="sarah")

    assert (record.title, record.storage_limit, record.metadata) == ("Work abroad", None, {"a": 1})
    assert record.attributes == {"team": 7}
    assert [found.id for found in listed] == [chat.id]
    assert memory.user("sarah").conversations() == listed
    assert memory.count_conversations() == 2
    assert chat.delete() == 0
    assert memory.count_conversations() == 1


def test_conversations_are_listed_in_the_order_asked_for(memory: Remora) -> None:
    for title in ["b", "a", "c"]:
        memory.create_conversation(title=title)

    assert [found.title for found in memory.list_conversations(order_by="title", descending=False)] == ["a", "b", "c"]
    assert [found.title for found in memory.list_conversations(order_by="create_time", limit=2)] == ["c", "a"]
    of_nobody = memory.user("default").conversations(order_by="title", descending=False, skip=1)
    assert [found.title for found in of_nobody] == ["b", "c"]


def test_working_memory_of_conversations_and_users(memory: Remora) -> None:
    chat = memory.create_conversation("c", user_id="sarah")
    chat.working_memory.set("# Notes")
    memory.user("sarah").working_memory.set({"name": "Sarah"})

    of_chat, of_user = chat.working_memory.get(), memory.user("sarah").working_memory.get()

    assert of_chat is not None
    assert of_user is not None
    assert (of_chat.text, of_user.json()) == ("# Notes", {"name": "Sarah"})
    assert chat.working_memory.delete()
    assert chat.working_memory.get() is None


def test_working_memory_is_edited_with_what_is_new(memory: Remora) -> None:
    notes, profile = (
        memory.create_conversation("c", user_id="sarah").working_memory,
        memory.user("sarah").working_memory,
    )
    schema = {"type": "object", "properties": {"likes": {"type": "array", "items": {"type": "string"}}}}

    for line in ("# Trip", "- Lisbon"):
        notes.edit(line, mode="append")
    for known in ({"likes": ["tea"], "home": {"city": "Porto"}}, {"likes": ["tea", "rain"], "home": {"zip": 4000}}):
        profile.edit(known, mode="append", schema=schema)
    with pytest.raises(errors.InvalidFieldError, match=r"content: does not match the schema at \$\.likes\[2\]"):
        profile.edit({"likes": [5]}, mode="append", schema=schema)

    of_chat, of_user = notes.get(), profile.get()
    assert of_chat is not None
    assert of_user is not None
    assert of_chat.text == "# Trip\n\n- Lisbon"
    assert of_user.json() == {"likes": ["tea", "rain"], "home": {"city": "Porto", "zip": 4000}}


def test_steps_come_back_in_order(memory: Remora) -> None:
    chat = memory.create_conversation("c", user_id="sarah")
    steps = [Step(f"s{index}", "text", content="hm", step_index=index, operation_id="op") for index in range(4)]
    chat.save_steps(list(reversed(steps)))

    assert [step.id for step in chat.steps(operation_id="op")] == ["s0", "s1", "s2", "s3"]
    assert [step.id for step in chat.steps(limit=2)] == ["s2", "s3"]


def test_a_deleted_user_leaves_nothing(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="sarah")
    chat.append([HELLO, HELLO])
    memory.user("sarah").working_memory.set("x")

    assert memory.user("sarah").delete() == 2
    assert memory.count_conversations() == 0
    assert memory.user("sarah").working_memory.get() is None


def found(result: SearchResult) -> list[str]:
    return [hit.message.text for hit in result]


def test_a_search_sees_what_its_handle_stands_for(memory: Remora) -> None:
    here, elsewhere = memory.conversation("a", user_id="sarah"), memory.conversation("b", user_id="sarah")
    here.append(says("The visa for Portugal is ready"))
    elsewhere.append(says("The visa for Norway is not"))
    memory.conversation("c", user_id="ben").append(says("A visa? Never heard of it"))

    assert found(here.search("visa", profile="lexical")) == ["The visa for Portugal is ready"]
    assert len(memory.user("sarah").search("visa", profile="lexical")) == 2
    assert len(memory.search_all_users("visa", profile="lexical")) == 3


def test_a_search_filters(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append(
        [
            Message("user", "visa one", attributes={"age": 17}),
            Message("user", "visa two", attributes={"age": 18}),
            Message("assistant", "visa three", attributes={"age": 19}),
        ]
    )

    adults = chat.search("visa", profile="lexical", where=[Condition("age", ">=", 18)], roles=["user"])

    assert found(adults) == ["visa two"]
    assert found(chat.search("visa", profile="lexical", where={"age": 19})) == ["visa three"]


def test_explained_scores_are_the_sum_of_their_components(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append([says("the visa for Portugal"), says("a table in Lisbon")])

    result = chat.search("visa", explain=True)

    assert found(result)[0] == "the visa for Portugal"
    assert result[0].components
    for hit in result:
        assert sum(part.value * part.weight for part in hit.components) == pytest.approx(hit.score)


def test_a_context_recalls_what_recent_messages_do_not_hold(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append([says("My passport number is X1234567"), *[says(f"and then {number}") for number in range(200)]])
    chat.append(says("Which passport do I have?"))

    context = chat.context(max_tokens=200, recent_messages=3, index_wait=10)

    recalled = [item.message.text for item in context.items if item.section == "recalled"]
    assert "My passport number is X1234567" in recalled
    assert context.messages[-1] == {"role": "user", "content": "Which passport do I have?"}
    assert context.tokens_used <= 200
    assert context.tokens_used == context.overhead_tokens + sum(item.tokens for item in context.items)
    assert context.tokens_used == memory.count_tokens(context.messages).total


def test_a_context_can_be_one_text(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append(Message("user", "hello", name="Sarah", sent_time=datetime(2026, 5, 8, tzinfo=UTC)))

    context = chat.context(rendering="transcript", recall=False)

    assert context.text.splitlines() == ["[2026-05-08]", "Sarah: hello"]
    assert context.tokens_used == memory.count_tokens(context.text).total


def test_tenants_do_not_see_each_other(memory: Remora, remora_server: str) -> None:
    memory.conversation("c").append(HELLO)

    with Remora(remora_server, tenant=uuid4().hex, timeout=PATIENCE) as other:
        assert other.count_conversations() == 0
        with pytest.raises(errors.ConversationNotFoundError):
            other.conversation("c").messages()


def test_another_client_sees_what_it_is_told_of(memory: Remora, remora_server: str, remora_tenant: str) -> None:
    memory.conversation("c").append(HELLO)

    with Remora(remora_server, tenant=remora_tenant, timeout=PATIENCE) as other:
        other.advance_to(memory.revision)
        assert texts(other.conversation("c").messages()) == ["hello"]


def test_tokens_are_counted(memory: Remora) -> None:
    assert memory.count_tokens("hello world").total == 2
    assert memory.count_tokens([HELLO]).total == 8


def test_the_status_tells_of_the_store(memory: Remora) -> None:
    status = memory.status()

    assert status.store.in_memory
    assert status.server.version


def test_failures_raise_their_reasons(memory: Remora) -> None:
    memory.create_conversation("c")

    with pytest.raises(errors.ConversationExistsError):
        memory.create_conversation("c")
    with pytest.raises(errors.ConversationNotFoundError):
        memory.conversation("missing").get()
    with pytest.raises(errors.InvalidFieldError) as refused:
        memory.conversation("c").append(Message(""))
    assert [violation.field for violation in refused.value.field_violations] == ["role"]


def test_a_budget_that_holds_nothing_is_too_small(memory: Remora) -> None:
    memory.conversation("c").append(HELLO)

    with pytest.raises(errors.BudgetTooSmallError):
        memory.conversation("c").context(max_tokens=1)


@pytest.fixture
def lonely_server() -> Iterator[str]:
    """A server that only one test uses."""
    with testing.serve("--model", "none") as endpoint:
        yield endpoint


def test_without_a_model_an_embedding_is_refused(lonely_server: str) -> None:
    told = "`remora model install`, and restart the server"
    with Remora(lonely_server, timeout=PATIENCE) as memory, pytest.raises(errors.ModelUnavailableError, match=told):
        memory.embed("hello")


def test_a_server_that_does_not_start_says_why() -> None:
    with (
        pytest.raises(errors.ServerNotStartedError, match=r"did not start; it says: .*threads"),
        testing.serve("--model-dir", "/nowhere", "--threads", "x"),
    ):
        pytest.fail("it started")


@pytest.mark.slow
def test_the_fixtures_are_a_plugin_of_pytest(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["remora.testing"]')
    pytester.makepyfile("def test_it(memory): assert memory.count_conversations() == 0")

    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_client_knows_every_reason_of_the_server() -> None:
    answers = [INTERNAL, *ANSWERS.values()]

    assert len(answers) > 10
    assert {answer.reason for answer in answers} <= errors.OF_REASON.keys()
    for answer in answers:
        code = grpc.StatusCode[Code.Name(answer.code)]
        assert issubclass(errors.class_of(code, answer.reason), errors.OF_CODE[code])
