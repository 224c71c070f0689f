"""`remora import --from`: what LangGraph's own SQLite classes wrote is read through Remora's as they read it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command, interrupt
from tests.faults.sidecar import ROOT
from tests.patience import PATIENCE
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_saver, patient_store
from typing_extensions import TypedDict

NS = ("users", "ana", "memories")
TEXTS = {"tea": "aab", "coffee": "bbc", "milk": "ccd", "water": "abd"}


class WithoutExtensions(sqlite3.Connection):
    """A connection for stores that only write: many builds of Python cannot load the extension that searches."""

    def enable_load_extension(self, *_: object) -> None:
        pass

    def load_extension(self, *_: object, **__: object) -> None:
        pass


def embed(texts: list[str]) -> list[list[float]]:
    """How often each of four letters is in a text."""
    return [[float(text.count(letter)) for letter in "abcd"] for text in texts]


INDEX: Any = {"dims": 4, "embed": embed, "fields": ["text"], "text_fields": ["text"]}


def imported(server: Server, tenant: str, file: Path, source: str) -> str:
    """What an import of a file says, which must do all that it has to."""
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "remora_server.main", "import", str(file)]
    options = ["--from", source, "--endpoint", server.endpoint, "--tenant", tenant]
    packages = f"{ROOT / 'server'}:{ROOT / 'clients' / 'python'}"
    ran = subprocess.run(
        [*command, *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": packages},
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


@pytest.fixture
def store_file(tmp_path: Path) -> Iterator[tuple[Path, SqliteStore]]:
    """A file with items, and the store that wrote it, still open."""
    file = tmp_path / "store.sqlite"
    with closing(
        sqlite3.connect(file, isolation_level=None, check_same_thread=False, factory=WithoutExtensions)
    ) as own:
        store = SqliteStore(own, index=INDEX, ttl={"default_ttl": 60.0})
        store.setup()
        for key, text in TEXTS.items():
            store.put(NS, key, {"text": text, "n": len(text)})
        store.put(("plain",), "søt", {"deep": {"list": [1, None, 2.5]}}, index=False, ttl=None)
        store.put(NS, "tea", {"text": "aaad", "n": 9})
        yield file, store


def test_items_are_read_as_before(server: Server, tenant: str, store_file: tuple[Path, SqliteStore]) -> None:
    file, before = store_file
    imported(server, tenant, file, "langgraph-store")

    with patient_store(server.endpoint, tenant=tenant) as after:
        assert after.list_namespaces() == before.list_namespaces()
        for namespace, key in [*((NS, key) for key in TEXTS), (("plain",), "søt")]:
            old, new = before.get(namespace, key, refresh_ttl=False), after.get(namespace, key, refresh_ttl=False)
            assert old is not None
            assert new is not None
            assert new.value == old.value
            assert new.created_at.replace(tzinfo=None) == old.created_at.replace(tzinfo=None)
        found = after.search(("users",), filter={"n": {"$gt": 3}})
        assert [item.key for item in found] == ["tea"]


def test_searches_by_meaning_find_them_with_their_own_vectors(
    server: Server, tenant: str, store_file: tuple[Path, SqliteStore]
) -> None:
    file, _ = store_file
    imported(server, tenant, file, "langgraph-store")
    memory = InMemoryStore(index=INDEX)
    for key, text in {**TEXTS, "tea": "aaad"}.items():
        memory.put(NS, key, {"text": text})

    with patient_store(server.endpoint, tenant=tenant, index=INDEX) as after:
        expected, found = memory.search(NS, query="aab"), after.search(NS, query="aab")

    assert [item.key for item in found] == [item.key for item in expected]
    assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-6)


def test_items_that_were_read_and_refreshed_since_are_the_same(
    server: Server, tenant: str, store_file: tuple[Path, SqliteStore]
) -> None:
    file, _ = store_file
    imported(server, tenant, file, "langgraph-store")
    with patient_store(server.endpoint, tenant=tenant) as after:
        after.get(NS, "coffee")

    assert imported(server, tenant, file, "langgraph-store") == (
        "0 items copied, 5 were there already; all are as in the file\n"
    )


def _extend(kept: list[str], given: list[list[str]]) -> list[str]:
    return [*kept, *(line for lines in given for line in lines)]


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], DeltaChannel(_extend, snapshot_frequency=3)]
    asked: str


def _inner() -> Any:  # noqa: ANN401 - a compiled graph
    def ask(_: State) -> dict[str, Any]:
        answer = interrupt({"question": "Which train?"})
        return {"asked": answer, "log": ["asked"]}

    builder: Any = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=True)


def _graph(saver: Any) -> Any:  # noqa: ANN401 - a compiled graph
    """A graph with messages, a DeltaChannel, and a subgraph that interrupts."""

    def model(state: State) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer {len(state['messages'])}", id=uuid.uuid4().hex)], "log": ["answered"]}

    builder = StateGraph(State)
    builder.add_node("model", model)
    builder.add_node("inner", _inner())
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda state: "inner" if len(state["messages"]) == 4 else END)
    return builder.compile(checkpointer=saver)


def _config(thread: str) -> Any:  # noqa: ANN401 - a RunnableConfig
    return {"configurable": {"thread_id": thread, "user_id": "ana"}}


@pytest.fixture
def checkpoint_file(tmp_path: Path) -> Iterator[tuple[Path, SqliteSaver]]:
    """A file with threads, one of which waits for an answer, and the saver that wrote it, still open."""
    file = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        graph = _graph(saver)
        for turn in range(2):
            graph.invoke(
                {"messages": [HumanMessage(f"turn {turn}", id=f"h{turn}")], "log": ["asked"]}, _config("waits")
            )
        for turn in range(6):
            graph.invoke({"messages": [HumanMessage(f"turn {turn}", id=f"h{turn}")] * 3, "log": ["a"]}, _config("done"))
        graph.update_state(_config("done"), {"messages": [RemoveMessage(id="h1")]})
        earlier = list(graph.get_state_history(_config("done")))[4].config
        graph.update_state(earlier, {"messages": [HumanMessage("another way", id="fork")]})
        yield file, saver


def test_checkpoints_are_read_as_before(server: Server, tenant: str, checkpoint_file: tuple[Path, SqliteSaver]) -> None:
    file, before = checkpoint_file
    said = imported(server, tenant, file, "langgraph-checkpoints")

    with patient_saver(server.endpoint, tenant=tenant) as after:
        for thread in ("waits", "done"):
            old, new = (list(saver.list(_config(thread))) for saver in (before, after))
            assert len(old) > 5
            assert new == old
            for each in old:
                assert after.get_tuple(each.config) == before.get_tuple(each.config)
        values, same = (
            [each.values for each in _graph(saver).get_state_history(_config("done"))] for saver in (before, after)
        )
        assert same == values
        assert len(values[0]["log"]) > 6
    assert said == f"{len(list(before.list(None)))} checkpoints copied; all are as in the file\n"


def test_a_thread_that_waits_goes_on_in_remora(
    server: Server, tenant: str, checkpoint_file: tuple[Path, SqliteSaver]
) -> None:
    file, before = checkpoint_file
    imported(server, tenant, file, "langgraph-checkpoints")

    with patient_saver(server.endpoint, tenant=tenant) as after:
        graph = _graph(after)
        waiting = graph.get_state(_config("waits"), subgraphs=True)
        assert waiting.interrupts == _graph(before).get_state(_config("waits")).interrupts != ()

        found = graph.invoke(Command(resume="the night train"), _config("waits"))

        assert found["asked"] == "the night train"
        assert imported(server, tenant, file, "langgraph-checkpoints").startswith("0 checkpoints copied, ")
        expected = _graph(before).invoke(Command(resume="the night train"), _config("waits"))
        assert found == expected


def test_a_second_import_of_checkpoints_copies_nothing(
    server: Server, tenant: str, checkpoint_file: tuple[Path, SqliteSaver]
) -> None:
    file, before = checkpoint_file
    imported(server, tenant, file, "langgraph-checkpoints")
    count = len(list(before.list(None)))

    assert imported(server, tenant, file, "langgraph-checkpoints") == (
        f"0 checkpoints copied, {count} were there already; all are as in the file\n"
    )
