"""Real graphs over RemoraSaver: interrupts, resuming, time travel and subgraphs, in threads and in asyncio."""

from __future__ import annotations

import operator
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_saver

from remora.langgraph import RemoraSaver


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    steps: Annotated[list[str], operator.add]
    approved: bool


class Inner(TypedDict, total=False):
    steps: Annotated[list[str], operator.add]
    noted: str


def think(state: State) -> State:
    return {"steps": ["think"], "messages": [AIMessage(f"I think about {state['messages'][-1].text}")]}


def ask(_: State) -> State:
    return {"approved": interrupt("May I?"), "steps": ["ask"]}


def act(state: State) -> State:
    return {"steps": ["act"], "messages": [AIMessage("done" if state["approved"] else "left")]}


def note(_: Inner) -> Inner:
    return {"noted": interrupt("What is it?"), "steps": ["note"]}


def graph(saver: BaseCheckpointSaver[str]) -> Any:  # noqa: ANN401 - of any graph
    """Three nodes, of which the second asks somebody, and a subgraph that asks, too."""
    inner: Any = StateGraph(Inner)
    inner.add_node("note", note)
    inner.add_edge(START, "note")
    inner.add_edge("note", END)
    outer: Any = StateGraph(State)
    outer.add_node("think", think)
    outer.add_node("ask", ask)
    outer.add_node("act", act)
    outer.add_node("sub", inner.compile())
    outer.add_edge(START, "think")
    outer.add_edge("think", "ask")
    outer.add_edge("ask", "act")
    outer.add_edge("act", "sub")
    outer.add_edge("sub", END)
    return outer.compile(checkpointer=saver)


@pytest.fixture
def saver(server: Server, tenant: str) -> Iterator[RemoraSaver]:
    with patient_saver(server.endpoint, tenant=tenant) as opened:
        yield opened


@pytest.fixture
async def asaver(server: Server, tenant: str) -> AsyncIterator[RemoraSaver]:
    async with patient_saver(server.endpoint, tenant=tenant) as opened:
        yield opened


def config() -> RunnableConfig:
    return {"configurable": {"thread_id": uuid.uuid4().hex, "user_id": "sarah"}}


def begin() -> State:
    return {"messages": [HumanMessage("trains")]}


def texts(values: Any) -> list[str]:  # noqa: ANN401 - of a state
    return [message.text for message in values["messages"]]


def journey(saver: BaseCheckpointSaver[str], durability: str) -> Iterator[object]:
    """What a graph shows that is interrupted, resumed and sent back in time."""
    app, of = graph(saver), config()
    first = app.invoke(begin(), of, durability=durability)
    yield first["__interrupt__"][0].value
    yield app.get_state(of).next
    second = app.invoke(Command(resume=True), of, durability=durability)
    yield second["__interrupt__"][0].value
    yield app.get_state(of, subgraphs=True).tasks[0].state.next
    last = app.invoke(Command(resume="a note"), of, durability=durability)
    yield texts(last), last["steps"]
    history = list(app.get_state_history(of))
    yield [(state.next, texts(state.values) if state.values.get("messages") else []) for state in history]
    if durability != "exit":
        asked = next(state for state in history if state.next == ("ask",))
        yield texts(app.invoke(Command(resume=False), asked.config, durability=durability))
        forked = app.update_state(asked.config, {"steps": ["edited"]})
        again = app.invoke(Command(resume=False), forked, durability=durability)
        yield texts(again), again["steps"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_graph_goes_on_as_with_langgraphs_own_saver(saver: RemoraSaver, durability: str) -> None:
    assert list(journey(saver, durability)) == list(journey(InMemorySaver(), durability))


async def test_the_same_in_asyncio(asaver: RemoraSaver) -> None:
    app, of = graph(asaver), config()

    await app.ainvoke(begin(), of)
    await app.ainvoke(Command(resume=True), of)
    last = await app.ainvoke(Command(resume="a note"), of)

    assert [message.text for message in last["messages"]] == ["trains", "I think about trains", "done"]
    history = [state async for state in app.aget_state_history(of)]
    asked = next(state for state in history if state.next == ("ask",))
    forked = await app.aupdate_state(asked.config, {"steps": ["edited"]})
    again = await app.ainvoke(Command(resume=False), forked)
    assert again["steps"][:2] == ["think", "edited"]
    assert again["messages"][-1].text == "left"


def test_messages_are_removed_and_replaced(saver: RemoraSaver) -> None:
    app, of = graph(saver), config()
    app.invoke(begin(), of)
    messages = app.get_state(of).values["messages"]

    app.update_state(of, {"messages": [RemoveMessage(messages[0].id), HumanMessage("boats", id=messages[1].id)]})

    assert [message.text for message in app.get_state(of).values["messages"]] == ["boats"]


def test_a_pruned_thread_goes_on(saver: RemoraSaver) -> None:
    app, of = graph(saver), config()
    thread = of["configurable"]["thread_id"]
    app.invoke(begin(), of)
    app.invoke(Command(resume=True), of)

    saver.prune([thread])
    last = app.invoke(Command(resume="a note"), of)

    assert [message.text for message in last["messages"]] == ["trains", "I think about trains", "done"]


def test_a_copied_thread_goes_its_own_way(saver: RemoraSaver) -> None:
    app, of = graph(saver), config()
    app.invoke(begin(), of)
    saver.copy_thread(of["configurable"]["thread_id"], "copy")

    copied = app.invoke(Command(resume=False), {"configurable": {"thread_id": "copy"}})

    assert copied["messages"][-1].text == "left"
    assert app.get_state(of).next == ("ask",)
