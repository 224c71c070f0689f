"""The proposal for short-term memory of Ballerina's agents, line by line, from a real server with a chat model.

Where the proposal contradicts itself, or Ballerina shipped something else, the name says what holds here. Long-term
memory in blocks is in `test_blocks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from tests.engine.chat_server import ChatServer, completion, instruction_of, text_of
from tests.engine.endpoint_server import Answer, Asked, error
from tests.patience import PATIENCE, eventually

from remora import Conversation, DeleteOldest, Flush, Remora, Summarize, Trim
from remora.errors import ConversationNotFoundError, InvalidArgumentError
from remora.short_term import ShortTerm
from remora.testing import serve
from remora.v1 import conversation_pb2
from remora.v1.conversation_service_pb2 import CreateConversationRequest
from remora.v1.short_term_pb2 import ShortTermPolicy

HEAD = "CONVERSATION SUMMARY: "
TEN = " ".join(["tea"] * 10)
"""A text of ten tokens."""


@pytest.fixture(scope="module")
def model() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture(scope="module")
def endpoint(model: ChatServer) -> Iterator[str]:
    """All in memory, with the numbers of the proposal."""
    with serve(
        "--model=none", "--short-term-profile=ballerina", f"--chat-url={model.url}", "--chat-model=scribe"
    ) as endpoint:
        yield endpoint


@pytest.fixture
def memory(endpoint: str, model: ChatServer, request: pytest.FixtureRequest) -> Iterator[Remora]:
    model.behaviour = lambda _asked: None
    model.asked.clear()
    with Remora(endpoint, tenant=request.node.name[:60], timeout=PATIENCE) as memory:
        yield memory


def say(chat: Conversation, *ids: str, role: str = "user", text: str = TEN) -> None:
    chat.append([{"role": role, "content": text, "id": each} for each in ids])


def ids(chat: Conversation) -> list[str]:
    """Those of the window."""
    return [message.id for message in chat.messages(None)]


def everything(chat: Conversation) -> list[str]:
    return [message.id for message in chat.messages(None, view="all")]


# AgentMemory: init, get, update, delete, calculateTokenCount, handleMemoryOverflow


def test_init_without_a_configuration_summarises_all_but_two_messages_of_100_000_tokens(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="sarah")
    say(chat, "first")

    assert chat.get().short_term == Summarize(100_000, 1_000, keep_messages=2)


def test_init_with_memory_stores_keeps_nothing_on_a_disk(memory: Remora) -> None:
    assert memory.status().store.in_memory


def test_get_gives_the_newest_messages_within_the_limit_in_the_order_they_were_said(memory: Remora) -> None:
    chat = memory.conversation("c")
    say(chat, *"abcdefgh")

    context = chat.context(45, recall=False)

    assert [item.message.id for item in context.items] == list("fgh")
    assert context.tokens_used <= 45


def test_get_without_a_message_gives_the_whole_window(memory: Remora) -> None:
    chat = memory.conversation("c")
    say(chat, *"abc")

    assert ids(chat) == list("abc")


def test_get_adds_what_long_term_memory_knows_within_the_same_limit(memory: Remora) -> None:
    memory.static_facts.set(["Remote work: 3 days a week."])
    memory.user("sarah").blocks.update("another session", "I live in Colombo.")
    chat = memory.conversation("c", user_id="sarah")
    say(chat, "a", text="Where do I live?")

    context = chat.context(200, facts=True, static_facts=True)

    facts = [item.message.text for item in context.items if item.section in {"static_facts", "facts"}]
    assert facts == ["Remote work: 3 days a week.", "user lives in Colombo"]
    assert context.tokens_used <= 200


def test_update_takes_one_message_or_many_and_counts_their_tokens(memory: Remora) -> None:
    chat = memory.conversation("c")
    chat.append({"role": "user", "content": TEN})
    say(chat, "b", "c")

    assert [message.token_count for message in chat.messages()] == [10, 10, 10]


def test_calculate_token_count_is_that_of_the_encoding(memory: Remora) -> None:
    assert memory.count_tokens(TEN).total == 10
    assert memory.count_tokens(TEN, encoding="approximate").total == pytest.approx(10, abs=3)


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (Trim(40, keep_tokens=20), ["d", "e"]),
        (DeleteOldest(40, messages=3), ["d", "e"]),
        (Flush(80), ["d", "e"]),
        (Summarize(40, 20, keep_messages=2), ["d", "e"]),
    ],
)
def test_update_beyond_the_limit_runs_the_configured_strategy_on_the_older_messages(
    memory: Remora, policy: ShortTerm, left: list[str]
) -> None:
    chat = memory.conversation("c", short_term=policy)
    say(chat, *"abcde")

    eventually(lambda: ids(chat), until=left.__eq__)

    assert everything(chat) == list("abcde")


def test_a_policy_has_exactly_one_strategy(memory: Remora) -> None:
    conversation = conversation_pb2.Conversation(id="c", short_term=ShortTermPolicy(max_tokens=40))

    with pytest.raises(grpc.RpcError) as refused:
        memory.stubs.conversations.CreateConversation(CreateConversationRequest(conversation=conversation))

    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "overflow: is required" in str(refused.value.details())


def test_delete_clears_the_messages_the_system_message_the_summary_and_the_blocks_of_the_session(
    memory: Remora,
) -> None:
    chat = memory.conversation("c", user_id="sarah", short_term=Summarize(40, 20, keep_messages=2))
    say(chat, "rule", role="system")
    say(chat, *"abcde")
    blocks = memory.user("sarah").blocks
    blocks.update("c", "I live in Colombo.")
    eventually(lambda: chat.window().summary is not None)

    chat.delete()
    blocks.delete("c")

    with pytest.raises(ConversationNotFoundError):
        chat.window()
    content = blocks.get("c", "Where does the user live?")
    assert (content.extracted_facts, content.vector_matches) == ([], [])
    say(chat, "new")
    assert (ids(chat), chat.window().summary) == (["new"], None)


# FlushToLTMConfiguration


def test_flush_begins_beyond_half_of_the_maximum_and_leaves_half_of_that_as_it_was_said(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="sarah", short_term=Flush(80))
    say(chat, *"abcd")
    other = memory.conversation("other", short_term=Trim(5))
    say(other, "a", "b")
    eventually(lambda: ids(other), until=["b"].__eq__)  # windows move in turn: that of `chat` was looked at
    assert ids(chat) == list("abcd"), "40 tokens are half of 80, and not more"

    say(chat, "e")

    eventually(lambda: ids(chat), until=["d", "e"].__eq__)
    assert [message.text for message in chat.messages()] == [TEN, TEN]


def test_flush_gives_facts_to_the_blocks_before_the_messages_leave(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="sarah", short_term=Flush(40, extract_facts=True))
    say(chat, "a", text="I live in Colombo.")
    say(chat, "b", "c", "d")

    eventually(lambda: "a" not in ids(chat))

    found = memory.user("sarah").blocks.get("another session", "Where does the user live?")
    assert "user lives in Colombo" in [fact.text for fact in found.extracted_facts]


def test_flush_ends_facts_that_no_longer_hold(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="sarah", short_term=Flush(40, extract_facts=True))
    say(chat, "a", text="I live in Colombo.")
    say(chat, "b", text="I no longer live in Colombo.")
    say(chat, "c", "d", "e", "f")

    eventually(lambda: not {"a", "b"} & set(ids(chat)))

    facts = memory.user("sarah").facts
    assert "user lives in Colombo" not in [fact.text for fact in facts.list_facts()]
    assert "user lives in Colombo" in [fact.text for fact in facts.list_facts(at_any_time=True)]


def test_flush_without_blocks_leaves_older_messages_to_recall(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="sarah", short_term=Flush(40))
    say(chat, "a", text="The harbour of Lisbon is lovely in May.")
    say(chat, "b", "c", "d")

    eventually(lambda: "a" not in ids(chat))

    assert [hit.message.id for hit in chat.search("harbour of Lisbon", k=1)] == ["a"]


# STMSummarizeConfiguration


def test_summarize_puts_one_message_of_the_user_at_the_head(memory: Remora) -> None:
    chat = memory.conversation("c", short_term=Summarize(40, 20, keep_messages=2))
    say(chat, *"abcde")
    eventually(lambda: chat.window().summary is not None)

    first, *rest = chat.context(1_000, recall=False).messages

    assert first["role"] == "user"
    assert str(first["content"]).startswith(f"{HEAD}In short: ")
    assert [message["content"] for message in rest] == [TEN, TEN]


def test_summarize_folds_the_earlier_summary_into_the_next(memory: Remora, model: ChatServer) -> None:
    chat = memory.conversation("c", short_term=Summarize(40, 20, keep_messages=2))
    say(chat, *"abcde")
    first = eventually(lambda: chat.window().summary)
    assert first is not None

    say(chat, *"fghij")

    eventually(lambda: ids(chat), until=["i", "j"].__eq__)
    assert first.text in text_of(model.asked[-1])
    assert len([each for each in chat.context(1_000, recall=False).items if each.section == "summary"]) == 1


def test_summarize_has_a_prompt_of_its_own_that_a_policy_may_replace(memory: Remora, model: ChatServer) -> None:
    for prompt in ("", "Say it in verse."):
        chat = memory.conversation(f"c{prompt}", short_term=Summarize(40, 20, 2, prompt=prompt))
        say(chat, *"abcde")
        eventually(lambda chat=chat: chat.window().summary is not None)  # type: ignore[misc]

    own, replaced = (instruction_of(asked) for asked in model.asked)
    assert own.startswith("Summarise the conversation")
    assert replaced.startswith("Say it in verse.")


def test_summarize_bounds_the_summary_and_names_the_model_that_wrote_it(memory: Remora, model: ChatServer) -> None:
    model.behaviour = lambda _asked: completion(TEN * 10)
    chat = memory.conversation("c", short_term=Summarize(40, 15, keep_messages=2))
    say(chat, *"abcde")

    summary = eventually(lambda: chat.window().summary)

    assert summary is not None
    assert summary.token_count <= 15
    assert summary.model == "scribe"
    assert model.asked[0].body["max_tokens"] == 15


@pytest.mark.slow
def test_summarize_without_a_model_keeps_what_was_said_and_says_so() -> None:
    with serve("--model=none") as endpoint, Remora(endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", short_term=Summarize(40, 20, keep_messages=2))
        say(chat, *"abcde", text=f"{TEN}.")

        summary = eventually(lambda: chat.window().summary)

    assert summary is not None
    assert summary.model == "extractive"
    assert f"{TEN}." in summary.text
    assert summary.token_count <= 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [lambda _asked: error(500), lambda _asked: completion(None), lambda _asked: completion("  ")]
)
def test_summarize_with_a_model_that_fails_leaves_all_as_it_was_and_comes_again(
    memory: Remora, model: ChatServer, fault: Callable[[Asked], Answer]
) -> None:
    model.behaviour = fault
    chat = memory.conversation("c", short_term=Summarize(40, 20, keep_messages=2))
    say(chat, *"abcde")
    eventually(lambda: chat.window().failure)
    assert (ids(chat), chat.window().summary) == (list("abcde"), None)
    assert memory.status().overflow.failing == 1

    model.behaviour = lambda _asked: None

    eventually(lambda: ids(chat), until=["d", "e"].__eq__)
    eventually(lambda: memory.status().overflow.failing == 0)  # noted once the window has moved


def test_summarize_never_delays_an_append_while_the_model_hangs(memory: Remora, model: ChatServer) -> None:
    model.behaviour = lambda _asked: model.hang()
    chat = memory.conversation("c", short_term=Summarize(40, 20, keep_messages=2))
    say(chat, *"abcde")
    assert model.has_been_asked(1)

    say(chat, *"fghij")

    assert ids(chat) == list("abcdefghij")
    model.down()  # which ends what hangs
    model.behaviour = lambda _asked: None
    model.up()
    eventually(lambda: ids(chat), until=["i", "j"].__eq__)


# TrimLastMessagesConfiguration, and deletion


def test_trim_drops_the_oldest_until_500_tokens_remain(memory: Remora) -> None:
    chat = memory.conversation("c", short_term=Trim(1_000, keep_tokens=500))
    chat.append([{"role": "user", "content": TEN}] * 101)

    eventually(lambda: len(ids(chat)), until=lambda count: count == 50)


def test_delete_removes_the_given_number_again_and_again_until_the_window_fits(memory: Remora) -> None:
    chat = memory.conversation("c", short_term=DeleteOldest(40, messages=2))
    say(chat, *"abcdefghi")

    eventually(lambda: ids(chat), until=list("ghi").__eq__)


@pytest.mark.parametrize("count", [0, -1])
def test_delete_of_no_messages_is_refused_by_name(count: int) -> None:
    with pytest.raises(InvalidArgumentError, match="messages"):
        DeleteOldest(40, messages=count)


# What the proposal leaves open


def test_the_latest_system_message_wins_is_kept_apart_and_is_not_counted(memory: Remora) -> None:
    chat = memory.conversation("c", short_term=Trim(40, keep_tokens=20))
    say(chat, "old rule", role="system", text=TEN * 20)
    say(chat, "rule", role="system", text=TEN * 20)
    say(chat, *"abcd")
    other = memory.conversation("other", short_term=Trim(5))
    say(other, "a", "b")
    eventually(lambda: ids(other), until=["b"].__eq__)
    assert ids(chat) == ["old rule", "rule", *"abcd"]

    say(chat, "e")

    eventually(lambda: ids(chat), until=["rule", "d", "e"].__eq__)


def test_a_call_of_tools_and_its_result_leave_together(memory: Remora) -> None:
    chat = memory.conversation("c", short_term=Trim(40, keep_tokens=20))
    say(chat, *"ab")
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    chat.append({"role": "assistant", "content": TEN, "tool_calls": [call], "id": "call"})
    chat.append({"role": "tool", "content": TEN, "tool_call_id": "c1", "id": "result"})

    say(chat, "e")

    eventually(lambda: ids(chat), until=["e"].__eq__)


def test_sessions_do_not_see_each_other(memory: Remora) -> None:
    one, two = (memory.conversation(name, user_id=name, short_term=Trim(40, 20)) for name in ("one", "two"))
    say(one, *"abcde")
    say(two, "a")

    eventually(lambda: ids(one), until=["d", "e"].__eq__)

    assert ids(two) == ["a"]


def test_sixteen_writers_of_a_session_lose_nothing(memory: Remora) -> None:
    chat = memory.conversation("c", short_term=Summarize(40, 20, keep_messages=2))
    say(chat, "first")

    def write(writer: int) -> None:
        for number in range(10):
            say(chat, f"{writer}-{number}")

    with ThreadPoolExecutor(16) as writers:
        list(writers.map(write, range(16)))

    eventually(lambda: len(ids(chat)), until=lambda count: count <= 4)
    said = everything(chat)
    assert sorted(said) == sorted(["first", *(f"{writer}-{number}" for writer in range(16) for number in range(10))])
    summary = chat.window().summary
    assert summary is not None
    assert said[summary.covers_through_sequence :] == ids(chat)
