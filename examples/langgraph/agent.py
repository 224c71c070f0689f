"""An agent of LangGraph that remembers its threads and its users: python agent.py THREAD "What it is told."."""

import sys
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from remora.langgraph import RemoraSaver, RemoraStore

SAID = ("users", "ann", "said")


class Echo(SimpleChatModel):
    """Answers without a key: it repeats what it was given."""

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _call(self, messages: Sequence[BaseMessage], *_: object, **__: object) -> str:
        heard = (f"- {message.type}: {' '.join(message.text.split())}" for message in messages)
        return "\n".join(["I was given:", *heard])


MODEL = Echo()


def recalled(store: BaseStore, question: str) -> list[str]:
    """What the user said in any thread that has to do with what is said now."""
    found = store.search(SAID, query=question, limit=3)
    return [item.value["text"] for item in found if item.value["text"] != question]


def answer(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
    """The agent's only step: it recalls, asks the model and keeps what the user said."""
    message = state["messages"][-1]
    known = recalled(store, message.text)
    system = [SystemMessage(f"Earlier the user said: {' | '.join(known)}")] if known else []
    reply = MODEL.invoke([*system, *state["messages"]])
    store.put(SAID, str(message.id), {"text": message.text})
    return {"messages": [reply]}


def main(thread: str = "trip", told: str = "I am Ann, and I take the night train to Vienna.") -> None:
    """Tell the agent something in a thread, and print what it answers."""
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    with (
        RemoraSaver() as saver,
        RemoraStore(index={"fields": ["text"]}, user_label=1) as store,  # embedded by Remora's own model
    ):
        graph = builder.compile(checkpointer=saver, store=store)
        config: RunnableConfig = {"configurable": {"thread_id": thread, "user_id": "ann"}}
        print(graph.invoke({"messages": [HumanMessage(told)]}, config)["messages"][-1].text)


if __name__ == "__main__":
    main(*sys.argv[1:])
