"""SummarizationNode in real graphs: what a model is given, what the conversation keeps, and who writes the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from tests.patience import PATIENCE, eventually
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_client

from remora import Remora, Summarize
from remora._sync.calls import Calls
from remora.errors import WrongTypeError
from remora.langgraph import SummarizationNode

HEAD = "CONVERSATION SUMMARY: "
CONFIG: RunnableConfig = {"configurable": {"thread_id": "trip", "user_id": "sarah"}}


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    summarized_messages: list[AnyMessage]


class Scribe(BaseChatModel):
    """Numbers its summaries, and remembers what it was asked."""

    asked: list[list[BaseMessage]] = []  # noqa: RUF012 - a field of pydantic

    @property
    def _llm_type(self) -> str:
        return "scribe"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ANN401
        self.asked.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"Summary {len(self.asked)}."))])


class Down(Scribe):
    """Does not work."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ANN401
        raise ConnectionError("the model is down")


def graph(node: SummarizationNode, given: list[list[AnyMessage]] | None = None) -> Any:  # noqa: ANN401 - of any graph
    """Answers what it is given, which it also puts into `given`."""

    def answer(state: State) -> State:
        if given is not None:
            given.append(state["summarized_messages"])
        return {"messages": [AIMessage("I see.")]}

    made: Any = StateGraph(State)
    made.add_node("summarize", node)
    made.add_node("answer", answer)
    made.add_edge(START, "summarize")
    made.add_edge("summarize", "answer")
    made.add_edge("answer", END)
    return made.compile(checkpointer=InMemorySaver())


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [str(message.text) for message in messages]


@pytest.fixture
def memory(server: Server, tenant: str) -> Iterator[Remora]:
    with patient_client(server.endpoint, tenant=tenant) as memory:
        yield memory


def node_of(server: Server, tenant: str, model: BaseChatModel | None, **given: Any) -> SummarizationNode:  # noqa: ANN401
    options = {"max_tokens": 60, "max_summary_tokens": 20, "keep_messages": 2, "timeout": PATIENCE, **given}
    return SummarizationNode(server.endpoint, tenant=tenant, model=model, **options)


SAID = [f"{number}: I would like to see the harbour of Lisbon before the train leaves." for number in range(6)]


def test_the_callers_model_summarises_what_leaves_and_nothing_is_lost(
    server: Server, tenant: str, memory: Remora
) -> None:
    scribe, given = Scribe(), []  # type: ignore[var-annotated]
    with node_of(server, tenant, scribe) as node:
        running = graph(node, given)
        for said in SAID:
            running.invoke({"messages": [("user", said)]}, CONFIG)

    assert texts(given[0]) == [SAID[0]]
    assert texts(given[-1])[0] == f"{HEAD}Summary {len(scribe.asked)}."
    assert given[-1][0].type == "human"
    assert texts(given[-1])[-1] == SAID[-1]
    chat = memory.conversation("trip", user_id="sarah")
    everything = [message.text for message in chat.messages(None, view="all")]
    assert everything == [text for said in SAID for text in (said, "I see.")][:-1]
    summary = chat.window().summary
    assert summary is not None
    assert summary.model == "Scribe"
    assert len(chat.messages(None)) + summary.covers_through_sequence == len(everything)
    assert "Summary 1." in scribe.asked[1][-1].text, "a later summary folds the one before in"


async def test_coroutines_get_the_same(server: Server, tenant: str) -> None:
    scribe, given = Scribe(), []  # type: ignore[var-annotated]
    async with node_of(server, tenant, scribe) as node:
        running = graph(node, given)
        for said in SAID:
            await running.ainvoke({"messages": [("user", said)]}, CONFIG)

    assert scribe.asked
    assert texts(given[-1])[0] == f"{HEAD}Summary {len(scribe.asked)}."
    assert texts(given[-1])[-1] == SAID[-1]


def test_the_server_summarises_where_no_model_is_given(server: Server, tenant: str, memory: Remora) -> None:
    given: list[list[AnyMessage]] = []
    with node_of(server, tenant, None) as node:
        running = graph(node, given)
        for said in SAID:
            running.invoke({"messages": [("user", said)]}, CONFIG)
        chat = memory.conversation("trip")
        eventually(lambda: chat.window().summary is not None)
        running.invoke({"messages": [("user", "And now?")]}, CONFIG)

    assert texts(given[-1])[0].startswith(HEAD)
    assert texts(given[-1])[-1] == "And now?"


def test_a_thread_without_a_user_is_that_of_the_default_user(server: Server, tenant: str, memory: Remora) -> None:
    with node_of(server, tenant, None) as node:
        running = graph(node)
        for said in SAID[:2]:
            running.invoke({"messages": [("user", said)]}, {"configurable": {"thread_id": "trip"}})

    kept = memory.conversation("trip", user_id="default").messages(None, view="all")
    assert [message.text for message in kept] == [SAID[0], "I see.", SAID[1]]


def test_the_system_message_stays_first_and_no_call_is_parted_from_its_result(server: Server, tenant: str) -> None:
    call = {"name": "harbour", "args": {"city": "Lisbon"}, "id": "c1"}
    asked = [
        SystemMessage("Be brief.", id="s"),
        HumanMessage(SAID[0], id="m0"),
        HumanMessage(SAID[1], id="m1"),
        HumanMessage(SAID[2], id="m2"),
        AIMessage("", tool_calls=[call], id="m3"),
        ToolMessage("It is open.", tool_call_id="c1", id="m4"),
    ]
    with node_of(server, tenant, Scribe(), max_tokens=40, keep_messages=1) as node:
        found = node.invoke({"messages": asked}, CONFIG)["summarized_messages"]

    assert [message.type for message in found] == ["system", "human", "ai", "tool"]
    assert found[2:] == asked[4:], "they are the caller's own"


def test_an_artifact_that_json_cannot_hold_stays_in_the_state_alone(
    server: Server, tenant: str, memory: Remora
) -> None:
    call = AIMessage("", id="call", tool_calls=[{"name": "plot", "args": {}, "id": "c1"}])
    result = ToolMessage("A chart.", id="result", tool_call_id="c1", artifact=b"\xff")
    node = node_of(server, tenant, Scribe())

    with node:
        update = node.invoke({"messages": [HumanMessage("Draw it.", id="asked"), call, result]}, CONFIG)

    assert update["summarized_messages"][-1] is result
    assert [message.text for message in memory.conversation("trip").messages()][-1] == "A chart."


def test_newest_messages_that_are_too_long_are_summarised_too(server: Server, tenant: str) -> None:
    asked = [HumanMessage(said, id=f"m{number}") for number, said in enumerate(SAID)]
    with node_of(server, tenant, Scribe(), keep_messages=100) as node:
        found = node.invoke({"messages": asked}, CONFIG)["summarized_messages"]

    assert found[0].text.startswith(HEAD)
    assert found[1:] == asked[-len(found) + 1 :]
    assert len(found) < len(asked)


def test_a_model_that_fails_fails_the_node_and_leaves_the_conversation_as_it_was(
    server: Server, tenant: str, memory: Remora
) -> None:
    asked = [HumanMessage(said, id=f"m{number}") for number, said in enumerate(SAID)]
    with node_of(server, tenant, Down()) as node, pytest.raises(ConnectionError):
        node.invoke({"messages": asked}, CONFIG)

    chat = memory.conversation("trip")
    assert [message.text for message in chat.messages(None)] == SAID
    assert chat.window().summary is None
    with node_of(server, tenant, Scribe()) as node:
        found = node.invoke({"messages": asked}, CONFIG)["summarized_messages"]
    assert texts(found) == [f"{HEAD}Summary 1.", *SAID[-len(found) + 1 :]]
    assert len(chat.messages(None, view="all")) == len(SAID), "what was appended before is not appended again"


def test_under_the_inputs_own_key_the_window_replaces_the_messages(server: Server, tenant: str, memory: Remora) -> None:
    with node_of(server, tenant, Scribe(), output_messages_key="messages") as node:
        made: Any = StateGraph(State)
        made.add_node("summarize", node)
        made.add_edge(START, "summarize")
        made.add_edge("summarize", END)
        running = made.compile(checkpointer=InMemorySaver())
        for said in SAID:
            state = running.invoke({"messages": [("user", said)]}, CONFIG)

    assert texts(state["messages"])[0].startswith(HEAD)
    assert texts(state["messages"])[-1] == SAID[-1]
    everything = memory.conversation("trip").messages(None, view="all")
    assert [message.text for message in everything] == SAID, "a summary is no message of the conversation"


def test_a_conversation_that_is_there_gets_the_nodes_policy(server: Server, tenant: str, memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append({"role": "user", "content": "Hello", "id": "m0"})

    with node_of(server, tenant, Scribe()) as node:
        node.invoke({"messages": [HumanMessage("Hello", id="m0"), HumanMessage("Again", id="m1")]}, CONFIG)

    assert chat.get().short_term == Summarize(60, 20, 2, by_client=True)
    assert [message.id for message in chat.messages(None)] == ["m0", "m1"]


@pytest.mark.parametrize("max_tokens", [1, 60, 100_000])
def test_a_state_without_anything_new_writes_nothing(
    server: Server, tenant: str, memory: Remora, max_tokens: int
) -> None:
    said = {"messages": [HumanMessage("Hello", id="m0")]}
    with node_of(server, tenant, Scribe(), max_tokens=max_tokens, max_summary_tokens=None) as node:
        node.invoke(said, CONFIG)
        written = memory.conversation("trip").get().revision
        node.invoke(said, CONFIG)

    assert memory.conversation("trip").get().revision == written


@pytest.mark.parametrize(
    ("state", "config", "complaint"),
    [
        ({}, CONFIG, "the state has no 'messages'"),
        ({"messages": [HumanMessage("Hello")]}, CONFIG, "add_messages"),
        ({"messages": [HumanMessage("Hello", id="m0")]}, {}, "thread_id"),
        ({"messages": [HumanMessage("Hello", id="m0")]}, {"configurable": {"thread_id": None}}, "thread_id"),
    ],
)
def test_what_a_graph_lacks_is_named(
    server: Server, tenant: str, state: State, config: RunnableConfig, complaint: str
) -> None:
    with node_of(server, tenant, None) as node, pytest.raises(ValueError, match=complaint):
        node.invoke(state, config)


async def test_a_thread_in_which_nothing_was_said_yet_has_an_empty_window(server: Server, tenant: str) -> None:
    async with node_of(server, tenant, Scribe()) as node:
        found = node.invoke({"messages": []}, CONFIG)
        awaited = await node.ainvoke({"messages": []}, CONFIG)

    assert found == awaited == {"summarized_messages": []}


def test_a_model_is_no_name(server: Server, tenant: str) -> None:
    with pytest.raises(WrongTypeError, match=r"model is 'gpt' \(a str\); it must be a model of LangChain"):
        node_of(server, tenant, "gpt")  # type: ignore[arg-type]


def test_a_window_with_room_is_asked_about_once(server: Server, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of one's own is not told of tokens: the server says whether the window has too many."""
    asked: list[str] = []
    read = Calls.read

    def told(calls: Calls, method: Any, request: Any, *others: Any) -> Any:  # noqa: ANN401 - any read
        asked.append(type(request).__name__)
        return read(calls, method, request, *others)

    monkeypatch.setattr(Calls, "read", told)
    node = SummarizationNode(
        endpoint=server.endpoint, tenant=tenant, timeout=PATIENCE, max_tokens=4_000, model=Scribe()
    )
    with node:
        node.invoke({"messages": [HumanMessage("Hello", id="a")]}, CONFIG)

    assert asked.count("PlanSummaryRequest") == 1
