"""LangMem's tools and manager of memories on RemoraStore, with a model that says what the test wants."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.prebuilt import ToolNode
from langmem import (  # type: ignore[import-untyped]
    create_manage_memory_tool,
    create_memory_store_manager,
    create_search_memory_tool,
)
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_store


def embed(texts: list[str]) -> list[list[float]]:
    """How often each of four letters is in a text."""
    return [[float(text.count(letter)) + 0.01 for letter in "aest"] for text in texts]


INDEX: Any = {"dims": 4, "embed": embed, "fields": ["$"]}
CONFIG: Any = {"configurable": {"langgraph_user_id": "sarah"}}
NAMESPACE = ("memories", "{langgraph_user_id}")


class Remembers(BaseChatModel):
    """Asks for one new memory, whatever it reads, and then for nothing."""

    said: list[int] = []  # noqa: RUF012 - a field of pydantic

    @property
    def _llm_type(self) -> str:
        return "remembers"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Remembers:  # noqa: ANN401 - LangChain's
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ANN401
        self.said.append(len(messages))
        call = {"name": "Memory", "args": {"content": "Sarah prefers the night train."}, "id": "c1"}
        message = AIMessage(content="", tool_calls=[call] if len(self.said) == 1 else [])
        return ChatResult(generations=[ChatGeneration(message=message)])


def test_the_tools_keep_find_and_delete_memories(server: Server, tenant: str) -> None:
    with patient_store(server.endpoint, index=INDEX, tenant=tenant) as store:
        manage = create_manage_memory_tool(NAMESPACE, store=store)
        search = create_search_memory_tool(NAMESPACE, store=store)

        manage.invoke({"content": "Likes window seats.", "action": "create"}, CONFIG)
        [item] = store.search(("memories", "sarah"))
        found = search.invoke({"query": "seats"}, CONFIG)

        assert item.value["content"] == "Likes window seats."
        assert "window seats" in str(found)

        manage.invoke({"action": "delete", "id": item.key}, CONFIG)
        assert store.search(()) == []
        assert ToolNode([manage, search]).name == "tools"


async def test_the_manager_keeps_what_its_model_extracts(server: Server, tenant: str) -> None:
    async with patient_store(server.endpoint, index=INDEX, tenant=tenant) as store:
        manager = create_memory_store_manager(Remembers(), namespace=NAMESPACE, store=store)

        await manager.ainvoke({"messages": [{"role": "user", "content": "I prefer the night train."}]}, CONFIG)

        found = await store.asearch(("memories", "sarah"), query="train")
        assert [item.value["content"] for item in found] == [{"content": "Sarah prefers the night train."}]
