"""The Python of docs/langgraph.md runs as it stands."""

from __future__ import annotations

import re
import uuid
from functools import partialmethod
from typing import Any

import pytest
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langgraph.graph import START, MessagesState, StateGraph
from tests.faults.sidecar import ROOT
from tests.patience import PATIENCE
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_client, patient_store

from remora import Remora
from remora.langgraph import RemoraSaver, RemoraStore, SummarizationNode

PAGE = ROOT / "docs" / "langgraph.md"
TEXT = "I take the night train to Lisbon."


class Counts(SimpleChatModel):
    """Says how many messages it was given."""

    @property
    def _llm_type(self) -> str:
        return "counts"

    def _call(self, messages: list[BaseMessage], *_: object, **__: object) -> str:
        return f"{len(messages)} messages"


def block_with(words: str) -> str:
    """The one block that has these words."""
    [found] = [
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if words in block
    ]
    return str(found)


def ran(block: str, **names: object) -> dict[str, Any]:
    """The names after a block, which begins with these."""
    given: dict[str, Any] = dict(names)
    exec(compile(block, str(PAGE), "exec"), given)
    return given


def builder() -> Any:  # noqa: ANN401 - of any graph
    made: Any = StateGraph(MessagesState)
    made.add_node("answer", lambda state: {"messages": [Counts().invoke(state["messages"])]})
    made.add_edge(START, "answer")
    return made


@pytest.fixture(autouse=True)
def _found(server: Server, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the test is found as any other, and is given time."""
    monkeypatch.setenv("REMORA_ENDPOINT", server.endpoint)
    for kind in (Remora, RemoraSaver, RemoraStore, SummarizationNode):
        monkeypatch.setattr(kind, "__init__", partialmethod(kind.__init__, tenant=tenant, timeout=PATIENCE))


def test_a_store_finds_what_it_was_given(server: Server, tenant: str) -> None:
    ran(block_with("RemoraStore("))

    with patient_store(server.endpoint, tenant=tenant) as store:
        assert [item.key for item in store.search(("users", "sarah"))] == ["train"]


def test_updates_become_edits(server: Server, tenant: str) -> None:
    with patient_client(server.endpoint, tenant=tenant) as memory:
        conversation = memory.conversation("trip")
        conversation.append(
            [{"id": "m0", "role": "user", "content": "Hello"}, {"id": "m1", "role": "user", "content": "?"}]
        )

        ran(block_with("edits_of("), conversation=conversation)

        assert [message.text for message in conversation.messages()] == ["Hello", "Tea, please"]


def test_a_graph_that_summarizes_answers() -> None:
    made = ran(block_with("SummarizationNode("), model=Counts())

    graph = made["builder"].compile()
    answered = graph.invoke({"messages": [("user", TEXT)]}, {"configurable": {"thread_id": uuid.uuid4().hex}})

    assert answered["messages"][-1].text == "1 messages"


def test_a_checkpointer_keeps_a_thread(server: Server) -> None:
    thread = uuid.uuid4().hex  # from_conn_string has no tenant here
    block = block_with("from_conn_string").replace("unix:/run/remora.sock", server.endpoint).replace("trip", thread)

    made = ran(block, builder=builder(), state={"messages": [("user", TEXT)]})

    assert made["graph"].get_state({"configurable": {"thread_id": thread}}).values["messages"][0].text == TEXT


def test_what_is_said_in_a_graph_is_in_a_conversation(server: Server, tenant: str) -> None:
    ran(block_with("flush_messages"), builder=builder(), state={"messages": [("user", TEXT)]})

    with patient_client(server.endpoint, tenant=tenant) as memory:
        assert [message.text for message in memory.conversation("trip").messages()] == [TEXT, "1 messages"]
