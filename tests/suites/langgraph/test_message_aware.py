"""RemoraSaver with `messages`: the conversation of a thread has the messages of its newest checkpoint."""

from __future__ import annotations

import logging
import operator
import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer, add_messages
from tests.patience import PATIENCE
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_client, patient_saver

from remora import Remora
from remora.errors import ConversationNotFoundError, RemoraError
from remora.formats import to_langchain
from remora.langgraph import RemoraSaver
from remora.langgraph._conversations import Conversations, Offer
from remora.langgraph._server import Options
from remora.langgraph._server import Server as Connections

UPDATES = 120
LOGGER = "remora.langgraph._conversations"


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    answers: list[AnyMessage]


def answer(state: State) -> State:
    """Says what it was told to say."""
    return {"messages": state.get("answers", []), "answers": []}


def graph(saver: RemoraSaver) -> Any:  # noqa: ANN401 - of any graph
    made: Any = StateGraph(State)
    made.add_node("answer", answer)
    made.add_edge(START, "answer")
    made.add_edge("answer", END)
    return made.compile(checkpointer=saver)


def config(thread: str = "trip", **others: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **others}}


def say(said: Sequence[BaseMessage], *answers: BaseMessage) -> dict[str, Any]:
    return {"messages": list(said), "answers": list(answers)}


def following(server: Server, tenant: str | None = None, timeout: float = PATIENCE) -> RemoraSaver:
    return patient_saver(server.endpoint, tenant=tenant, timeout=timeout, messages="messages")


def held(memory: Remora, thread: str = "trip") -> list[tuple[str, str]]:
    return [(message.id, message.text) for message in memory.conversation(thread).messages(limit=None)]


def of_state(graph: Any, thread: str = "trip") -> list[tuple[str, str]]:  # noqa: ANN401 - of any graph
    return [(each.id, each.content) for each in graph.get_state(config(thread)).values.get("messages", [])]


@pytest.fixture
def saver(server: Server, tenant: str) -> Iterator[RemoraSaver]:
    with following(server, tenant) as opened:
        yield opened


@pytest.fixture
def memory(server: Server, tenant: str) -> Iterator[Remora]:
    with patient_client(server.endpoint, tenant=tenant) as opened:
        yield opened


def test_what_was_said_is_found_and_in_the_context(saver: RemoraSaver, memory: Remora) -> None:
    told = HumanMessage("I always travel with the night train to Lisbon", id="m1")
    graph(saver).invoke(say([told], AIMessage("Noted.", id="m2")), config(user_id="sarah"))
    saver.flush_messages()

    found = memory.user("sarah").search("how does she travel?")
    context = memory.conversation("trip").context(query="night train")

    assert found.hits[0].message.id == "m1"
    assert [message["content"] for message in context.messages] == [told.content, "Noted."]
    assert memory.conversation("trip").get().user_id == "sarah"


def test_a_conversation_without_a_user_is_the_default_users(saver: RemoraSaver, memory: Remora) -> None:
    graph(saver).invoke(say([HumanMessage("hello", id="m1")]), config())
    saver.flush_messages()

    assert memory.conversation("trip").get().user_id == "default"


def test_a_replacement_keeps_its_place_and_a_removal_removes(saver: RemoraSaver, memory: Remora) -> None:
    made = graph(saver)
    made.invoke(
        say([HumanMessage("tea", id="m1"), HumanMessage("cake", id="m2"), HumanMessage("bye", id="m3")]), config()
    )
    saver.flush_messages()
    before = {message.id: message.sequence for message in memory.conversation("trip").messages()}

    made.invoke(say([HumanMessage("coffee", id="m1"), RemoveMessage(id="m2")]), config())
    saver.flush_messages()

    after = memory.conversation("trip").messages()
    assert [(message.id, message.text) for message in after] == [("m1", "coffee"), ("m3", "bye")]
    assert [message.sequence for message in after] == [before["m1"], before["m3"]]


def test_a_message_that_a_node_changes_in_place_is_replaced(saver: RemoraSaver, memory: Remora) -> None:
    message = HumanMessage("tea", id="m1")
    made = graph(saver)
    made.invoke(say([message]), config())
    saver.flush_messages()

    message.content = "coffee"
    made.invoke(say([message]), config())
    saver.flush_messages()

    assert held(memory) == [("m1", "coffee")]


def test_tool_calls_and_their_results_come_back_as_they_were(saver: RemoraSaver, memory: Remora) -> None:
    call = AIMessage("", id="m2", tool_calls=[{"id": "c1", "name": "trains", "args": {"to": "Lisbon"}}])
    result = ToolMessage("at 21:25", tool_call_id="c1", id="m3")
    graph(saver).invoke(say([HumanMessage("When?", id="m1")], call, result), config())
    saver.flush_messages()

    messages = memory.conversation("trip").messages()

    assert [message.role for message in messages] == ["user", "assistant", "tool"]
    assert [each.name for each in messages[1].tool_calls] == ["trains"]
    assert messages[2].tool_result_ids == ("c1",)
    assert to_langchain(messages)[1:] == [call, result]


def test_a_summary_before_the_newest_messages_stands_before_them(saver: RemoraSaver, memory: Remora) -> None:
    made = graph(saver)
    several = [HumanMessage(f"text {number}", id=f"m{number}") for number in range(6)]
    made.invoke(say(several), config())
    saver.flush_messages()

    made.invoke(say([RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("summary", id="s"), *several[4:]]), config())
    saver.flush_messages()

    assert held(memory) == [("s", "summary"), ("m4", "text 4"), ("m5", "text 5")]


def drawn(choice: random.Random, state: Sequence[tuple[str, str]], number: int) -> BaseMessage:
    draw = choice.random()
    if draw < 0.3 and state:
        return RemoveMessage(id=choice.choice(state)[0])
    if draw < 0.35:
        return RemoveMessage(id=REMOVE_ALL_MESSAGES)
    name = choice.choice(state)[0] if draw < 0.55 and state else f"m{number}"
    return HumanMessage(f"text {number}", id=name)


def test_generated_updates_leave_what_the_state_has(
    server: Server, tenant: str, saver: RemoraSaver, memory: Remora
) -> None:
    choice = random.Random(5)
    with following(server, tenant) as other:
        graphs = [(each, graph(each)) for each in (saver, other)]
        for number in range(UPDATES):
            using, made = choice.choice(graphs)  # as two processes that serve one thread in turns
            made.invoke(say([drawn(choice, of_state(made), number)]), config())
            using.flush_messages()
            assert held(memory) == of_state(made), number


async def test_a_graph_in_asyncio_is_followed_too(server: Server, tenant: str, memory: Remora) -> None:
    async with following(server, tenant) as saver:
        made = graph(saver)
        await made.ainvoke(say([HumanMessage("tea", id="m1")], AIMessage("Yes.", id="m2")), config())
        await saver.aflush_messages()
        first = held(memory)
        await made.ainvoke(say([RemoveMessage(id="m1")]), config())

    assert first == [("m1", "tea"), ("m2", "Yes.")]
    assert held(memory) == [("m2", "Yes.")], "leaving the context waits for what is under way"


async def test_adelete_thread_deletes_the_conversation(server: Server, tenant: str, memory: Remora) -> None:
    async with following(server, tenant) as saver:
        await graph(saver).ainvoke(say([HumanMessage("tea", id="m1")]), config())
        await saver.adelete_thread("trip")

    with pytest.raises(ConversationNotFoundError):
        memory.conversation("trip").get()


def test_a_deleted_thread_has_no_conversation_until_it_begins_anew(saver: RemoraSaver, memory: Remora) -> None:
    made = graph(saver)
    made.invoke(say([HumanMessage("tea", id="m1")]), config())

    saver.delete_thread("trip")
    with pytest.raises(ConversationNotFoundError):
        memory.conversation("trip").get()
    made.invoke(say([HumanMessage("cake", id="m2")]), config())
    saver.flush_messages()

    assert held(memory) == [("m2", "cake")]


def test_after_a_run_from_an_earlier_checkpoint_the_conversation_is_that_of_the_new_branch(
    saver: RemoraSaver, memory: Remora
) -> None:
    made = graph(saver)
    made.invoke(say([HumanMessage("tea", id="m1")]), config())
    earlier = made.get_state(config()).config
    made.invoke(say([HumanMessage("cake", id="m2")]), config())

    made.invoke(say([HumanMessage("pie", id="m3")]), earlier)
    saver.flush_messages()

    assert held(memory) == of_state(made) == [("m1", "tea"), ("m3", "pie")]


def test_an_older_checkpoint_that_is_saved_late_changes_nothing(
    server: Server, tenant: str, saver: RemoraSaver, memory: Remora
) -> None:
    late = empty_checkpoint()
    late["channel_versions"], late["channel_values"] = {"messages": "1"}, {"messages": [HumanMessage("old", id="m0")]}
    made = graph(saver)
    made.invoke(say([HumanMessage("tea", id="m1")]), config())
    saver.flush_messages()

    with following(server, tenant) as other:
        for each in (saver, other):
            each.put(config(checkpoint_ns=""), late, {}, {"messages": "1"})
            each.flush_messages()
            assert held(memory) == [("m1", "tea")]


def test_messages_of_a_subgraph_are_not_those_of_the_thread(saver: RemoraSaver, memory: Remora) -> None:
    inner: Any = StateGraph(State)
    inner.add_node("think", lambda _: {"messages": [AIMessage("a thought", id="t1")]})
    inner.add_edge(START, "think")
    outer: Any = StateGraph(State)
    compiled = inner.compile(checkpointer=True)
    outer.add_node(
        "sub", lambda _: {"messages": [AIMessage(compiled.invoke(say([]))["messages"][-1].content, id="m2")]}
    )
    outer.add_edge(START, "sub")

    outer.compile(checkpointer=saver).invoke(say([HumanMessage("tea", id="m1")]), config())
    saver.flush_messages()

    assert {each.config["configurable"]["checkpoint_ns"] for each in saver.list(config())} == {"", "sub"}
    assert held(memory) == [("m1", "tea"), ("m2", "a thought")]


def test_what_others_append_to_the_conversation_stays(
    server: Server, tenant: str, saver: RemoraSaver, memory: Remora
) -> None:
    graph(saver).invoke(say([HumanMessage("tea", id="m1")]), config())
    saver.flush_messages()
    memory.conversation("trip").append({"role": "user", "content": "by telephone", "id": "own"})

    with following(server, tenant) as other:
        graph(other).invoke(say([RemoveMessage(id="m1"), HumanMessage("cake", id="m2")]), config())

    assert held(memory) == [("own", "by telephone"), ("m2", "cake")]


def test_messages_without_an_id_get_one_that_stays(saver: RemoraSaver, memory: Remora) -> None:
    made: Any = StateGraph(TypedDict("Plain", {"messages": Annotated[list[Any], operator.add]}))  # type: ignore[operator]
    made.add_node("answer", lambda _: {"messages": [("assistant", "yes")]})
    made.add_edge(START, "answer")
    compiled = made.compile(checkpointer=saver)
    compiled.invoke({"messages": [("user", "tea?")]}, config())
    saver.flush_messages()
    before = held(memory)

    compiled.invoke({"messages": [("user", "tea?")]}, config())
    saver.flush_messages()

    assert [text for _, text in before] == ["tea?", "yes"]
    assert held(memory)[:2] == before
    assert [text for _, text in held(memory)] == ["tea?", "yes", "tea?", "yes"]


def delta_graph(saver: RemoraSaver) -> Any:  # noqa: ANN401 - of any graph
    reducer: Any = _messages_delta_reducer
    channel: DeltaChannel[Any] = DeltaChannel(reducer, snapshot_frequency=3)
    made: Any = StateGraph(TypedDict("Delta", {"messages": Annotated[list[Any], channel]}))  # type: ignore[operator]
    made.add_node("answer", lambda state: {"messages": [AIMessage("yes", id=f"a{len(state['messages'])}")]})
    made.add_edge(START, "answer")
    return made.compile(checkpointer=saver)


def ask(graph: Any, *numbers: int) -> None:  # noqa: ANN401 - of any graph
    for number in numbers:
        graph.invoke({"messages": [HumanMessage("tea?", id=f"m{number}")]}, config())


def test_messages_of_a_delta_channel_are_sent_with_its_snapshots(saver: RemoraSaver, memory: Remora) -> None:
    compiled = delta_graph(saver)
    lengths = []
    for number in range(6):
        ask(compiled, number)
        saver.flush_messages()
        lengths.append(len(held(memory)) if memory.list_conversations() else 0)

    assert lengths == [0, 3, 6, 6, 9, 12]
    assert held(memory) == of_state(compiled)


@pytest.fixture
def until(saver: RemoraSaver, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """What is sent waits for this."""
    conversations, is_allowed = saver._conversations, threading.Event()
    assert conversations is not None
    send = conversations._send

    def send_late(offer: Offer) -> object:
        is_allowed.wait(PATIENCE)
        return send(offer)

    monkeypatch.setattr(conversations, "_send", send_late)
    return is_allowed


def test_a_snapshot_is_sent_after_checkpoints_that_go_on_from_it(
    saver: RemoraSaver, memory: Remora, until: threading.Event
) -> None:
    ask(delta_graph(saver), 0, 1)

    until.set()
    saver.flush_messages()

    assert [name for name, _ in held(memory)] == ["m0", "a1", "m1"]


def test_a_snapshot_of_a_branch_that_was_left_is_not_sent(
    saver: RemoraSaver, memory: Remora, until: threading.Event
) -> None:
    root = put(saver, config(checkpoint_ns=""), "1")
    put(saver, root, "2", HumanMessage("left", id="m1"))
    put(saver, root, "3")

    until.set()
    saver.flush_messages()

    assert memory.list_conversations() == []


def put(
    saver: RemoraSaver, parent: RunnableConfig, name: str, *messages: BaseMessage, says_new: bool = True
) -> RunnableConfig:
    """A checkpoint with another version of the messages, which are their snapshot; without any, only their writes are
    kept.
    """
    made = empty_checkpoint()
    made["id"], made["channel_versions"] = name, {"messages": name}
    made["channel_values"] = {"messages": list(messages)} if messages else {}
    return saver.put(parent, made, {}, {"messages": name} if says_new else {})


def test_messages_are_sent_where_nobody_says_which_channels_are_new(saver: RemoraSaver, memory: Remora) -> None:
    root = put(saver, config(checkpoint_ns=""), "1", HumanMessage("tea", id="m1"))
    saver.flush_messages()

    put(saver, root, "2", HumanMessage("tea", id="m1"), HumanMessage("cake", id="m2"), says_new=False)
    saver.flush_messages()

    assert held(memory) == [("m1", "tea"), ("m2", "cake")]


def test_a_message_that_is_too_long_is_left_out_and_named_once(
    saver: RemoraSaver, memory: Remora, caplog: pytest.LogCaptureFixture
) -> None:
    made = graph(saver)
    with caplog.at_level(logging.WARNING, LOGGER):
        made.invoke(say([HumanMessage("x" * (3 << 20), id="long"), HumanMessage("tea", id="m1")]), config())
        made.invoke(say([HumanMessage("cake", id="m2")]), config())
        saver.flush_messages()

    assert held(memory) == [("m1", "tea"), ("m2", "cake")]
    assert len([each for each in caplog.records if "'long'" in each.getMessage()]) == 1


def test_more_than_one_request_takes_is_sent_in_several(saver: RemoraSaver, memory: Remora) -> None:
    several = [HumanMessage(f"text {number} " + "x" * 4_000, id=f"m{number}") for number in range(1_500)]

    graph(saver).invoke(say(several), config())
    saver.flush_messages()

    assert [name for name, _ in held(memory)] == [message.id for message in several]


def test_checkpoints_do_not_fail_with_the_conversation(
    server: Server, tenant: str, memory: Remora, caplog: pytest.LogCaptureFixture
) -> None:
    thread = "x" * 600  # a thread may have such an id, a conversation not
    with (
        caplog.at_level(logging.WARNING, LOGGER),
        following(server, tenant) as saver,
    ):
        made = graph(saver)
        for number in range(5):
            made.invoke(say([HumanMessage("tea", id=f"m{number}")]), config(thread))
            saver.flush_messages()
        made.invoke(say([HumanMessage("tea", id="m1")]), config())

        assert len(of_state(made, thread)) == 5
    assert held(memory) == [("m1", "tea")]
    assert len([each for each in caplog.records if thread in each.getMessage()]) == 1


def test_what_could_not_be_sent_is_sent_with_the_next_checkpoint(saver: RemoraSaver, memory: Remora) -> None:
    made = graph(saver)
    made.invoke(say([HumanMessage("tea", id="m1")]), config())
    saver.flush_messages()
    memory.conversation("trip").delete()  # so that the next edit fails
    made.update_state(config(), {"messages": [HumanMessage("cake", id="m2")]})
    saver.flush_messages()
    with pytest.raises(ConversationNotFoundError):
        memory.conversation("trip").get()

    made.update_state(config(), {"answers": []})  # a checkpoint with the same messages
    saver.flush_messages()

    assert held(memory) == [("m1", "tea"), ("m2", "cake")]


def test_what_did_not_reach_the_server_is_sent_with_any_later_checkpoint(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = Conversations.offer

    def offer_to_nobody(self: Conversations, *checkpoint: Any) -> None:  # noqa: ANN401 - as it is given
        own_server.kill()
        offer(self, *checkpoint)

    with following(own_server) as saver, patient_client(own_server.endpoint) as memory:
        made = graph(saver)
        hurried = Connections(Options(own_server.endpoint, None, None, 0.2))
        with monkeypatch.context() as patched:
            patched.setattr(Conversations, "offer", offer_to_nobody)
            patched.setattr(saver._conversations, "_server", hurried)
            made.update_state(config(), {"messages": [HumanMessage("tea", id="m1")]})
            saver.flush_messages()
        hurried.close()
        own_server.start()

        made.invoke(say([HumanMessage("cake", id="m2")]), config("another"))
        saver.flush_messages()

        assert held(memory) == [("m1", "tea")]
        assert held(memory, "another") == [("m2", "cake")]


def test_what_does_not_reach_the_server_while_its_thread_is_deleted_is_not_sent(
    saver: RemoraSaver, memory: Remora, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_sending, is_deleted = threading.Event(), threading.Event()
    nobody = Connections(Options("localhost:1", None, None, 0.2))

    def fail_late(offer: Offer) -> None:
        is_sending.set()
        is_deleted.wait(PATIENCE)
        nobody.blocking.has_newest_value(offer.thread_id, offer.checkpoint_id, "messages")

    made, conversations = graph(saver), saver._conversations
    assert conversations is not None
    with monkeypatch.context() as patched:
        patched.setattr(conversations, "_send", fail_late)
        made.update_state(config(), {"messages": [HumanMessage("tea", id="m1")]})
        is_sending.wait(PATIENCE)
        deleting = conversations.delete("trip")
        is_deleted.set()
        deleting.result()
    nobody.close()

    made.invoke(say([HumanMessage("cake", id="m2")]), config("another"))
    saver.flush_messages()

    assert held(memory, "another") == [("m2", "cake")]
    with pytest.raises(ConversationNotFoundError):
        memory.conversation("trip").get()


def test_a_sidecar_that_is_killed_and_started_again_gets_what_it_missed(own_server: Server) -> None:
    with (
        following(own_server) as saver,
        following(own_server, timeout=0.2) as hurried,
        patient_client(own_server.endpoint) as memory,
    ):
        made = graph(saver)
        made.invoke(say([HumanMessage("tea", id="m1")], AIMessage("Yes.", id="m2")), config())
        saver.flush_messages()
        own_server.kill()
        with pytest.raises(RemoraError):
            graph(hurried).invoke(say([HumanMessage("lost", id="m3")]), config())
        own_server.start()

        made.invoke(say([RemoveMessage(id="m1"), HumanMessage("cake", id="m4")]), config())
        saver.flush_messages()

        assert held(memory) == of_state(made)
        assert held(memory)[0] == ("m2", "Yes.")


def test_a_new_process_continues_with_what_the_server_has(own_server: Server) -> None:
    usage = UsageMetadata(input_tokens=1, output_tokens=2, total_tokens=3)
    calls: list[ToolCall] = [{"id": "c1", "name": "t", "args": {"b": 1, "a": [2.5]}}]
    call = AIMessage("", id="m3", tool_calls=calls, usage_metadata=usage)
    result = ToolMessage("yes", tool_call_id="c1", id="m4", artifact={"k": 1})
    picture = HumanMessage([{"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}], id="m5")
    kept = [HumanMessage("cake", id="m2"), call, result, picture]
    with following(own_server) as saver:
        graph(saver).invoke(say([HumanMessage("tea", id="m1"), *kept]), config())
    own_server.kill()
    own_server.start()

    with following(own_server) as saver, patient_client(own_server.endpoint) as memory:
        before = {message.id: message.revision for message in memory.conversation("trip").messages()}
        graph(saver).invoke(say([RemoveMessage(id="m1"), HumanMessage("pie", id="m6")]), config())
        saver.flush_messages()
        after = {message.id: message.revision for message in memory.conversation("trip").messages()}

    assert list(after) == ["m2", "m3", "m4", "m5", "m6"]
    assert after.items() - before.items() == {("m6", after["m6"])}, "what stays is not written again"


def test_a_process_that_ends_without_closing_its_saver_sends_what_it_saved(
    server: Server, tenant: str, memory: Remora
) -> None:
    program = """if True:
        import sys
        from langgraph.checkpoint.base import empty_checkpoint
        from remora.langgraph import RemoraSaver

        made = empty_checkpoint()
        made["channel_versions"], made["channel_values"] = {"messages": "1"}, {"messages": [("user", "tea")]}
        saver = RemoraSaver(sys.argv[1], tenant=sys.argv[2], timeout=float(sys.argv[3]), messages="messages")
        saver.put({"configurable": {"thread_id": "trip"}}, made, {}, {"messages": "1"})
    """

    subprocess.run([sys.executable, "-c", program, server.endpoint, tenant, str(PATIENCE)], check=True)

    assert [text for _, text in held(memory)] == ["tea"]


def test_without_the_option_no_conversation_is_made(server: Server, tenant: str, memory: Remora) -> None:
    with patient_saver(server.endpoint, tenant=tenant) as saver:
        graph(saver).invoke(say([HumanMessage("tea", id="m1")]), config())
        saver.flush_messages()

    assert memory.list_conversations() == []


def test_many_threads_are_all_followed(saver: RemoraSaver, memory: Remora) -> None:
    made = graph(saver)
    for turn in range(2):
        made.batch(
            [say([HumanMessage(f"text {turn}", id=f"m{turn}")])] * 150, [config(f"t{number}") for number in range(150)]
        )
    saver.flush_messages()

    assert all(held(memory, f"t{number}") == [("m0", "text 0"), ("m1", "text 1")] for number in range(150))


def test_a_channel_that_the_graph_does_not_have_is_told_once(
    server: Server, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, LOGGER):
        with patient_saver(server.endpoint, tenant=tenant, messages="mesages") as misspelt:
            for thread in ("trip", "other"):
                graph(misspelt).invoke(say([HumanMessage("Trains")]), config(thread))
        with following(server, tenant) as named:
            graph(named).invoke(say([HumanMessage("Trains")], AIMessage("Yes")), config("third"))

    told = [record.getMessage() for record in caplog.records if "has no channel" in record.getMessage()]
    assert len(told) == 1
    assert all(each in told[0] for each in ("'trip'", "'mesages'", "'messages'"))


def test_a_channel_that_comes_after_the_input_is_not_missed(
    server: Server, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    state: Any = Annotated[list[AnyMessage], add_messages]
    builder: Any = StateGraph(state)
    builder.add_node("answer", lambda _: [AIMessage("Yes", id="a")])
    builder.add_edge(START, "answer")
    named = patient_saver(server.endpoint, tenant=tenant, messages="__root__")
    with caplog.at_level(logging.WARNING, LOGGER), named as saver:
        builder.compile(saver).invoke([HumanMessage("Trains", id="q")], config("root"))
        saver.flush_messages()

    assert "has no channel" not in caplog.text
