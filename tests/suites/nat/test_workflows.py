"""Workflows of the toolkit, from their YAML, with Remora as their memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from nat.builder.workflow_builder import WorkflowBuilder
from nat.cli.type_registry import GlobalTypeRegistry
from nat.runtime.loader import PluginTypes, discover_and_register_plugins, load_config, load_workflow
from nat.runtime.session import SessionManager
from tests.faults.sidecar import ROOT
from tests.patience import PATIENCE
from tests.suites.conftest import Server

from remora.nat import RemoraEditor, RemoraMemoryConfig

CONFIG = """
memory:
  saved:
    _type: {type}
    endpoint: {endpoint}
    tenant: {tenant}
    timeout: {timeout}
    fail_open: {fail_open}
llms:
  fake:
    _type: nat_test_llm
    response_seq: ["Noted."]
functions:
  inner:
    _type: test_echo
    use_openai_api: true
  remember:
    _type: add_memory
    memory: saved
    user_id: sarah
  recall:
    _type: get_memory
    memory: saved
    user_id: sarah
  forget:
    _type: delete_memory
    memory: saved
    user_id: sarah
workflow:
  _type: auto_memory_agent
  inner_agent_name: inner
  memory_name: saved
  llm_name: fake
  description: An agent that remembers.
  verbose: true
"""
RECALLED = "Relevant context from memory:\n"


@pytest.fixture
def written(tmp_path: Path, server: Server, tenant: str) -> Any:  # noqa: ANN401 - writes a configuration
    def write(**options: object) -> Path:
        given = {
            "type": "remora",
            "endpoint": server.endpoint,
            "tenant": tenant,
            "timeout": PATIENCE,
            "fail_open": False,
        }
        path = tmp_path / "workflow.yml"
        path.write_text(CONFIG.format(**{**given, **options}))
        return path

    return write


async def asked(workflow: SessionManager, text: str, user: str = "sarah") -> str:
    """What the workflow answers: its inner agent echoes the first message that it is sent."""
    async with workflow.session(user_id=user) as session, session.run(text) as runner:
        answer: str = await runner.result(to_type=str)
        return answer


def test_the_toolkit_finds_the_plugin_by_its_entry_point() -> None:
    discover_and_register_plugins(PluginTypes.COMPONENT)

    assert "remora.nat.register" in {point.value for point in entry_points(group="nat.plugins")}
    assert GlobalTypeRegistry.get().get_memory(RemoraMemoryConfig).full_type == "remora.nat/remora"


@pytest.mark.parametrize("name", ["remora", "remora.nat/remora"])
def test_both_spellings_of_the_type_are_understood(written: Any, name: str) -> None:  # noqa: ANN401
    config = load_config(written(type=name))

    assert isinstance(config.memory["saved"], RemoraMemoryConfig)


def test_a_misspelt_option_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "workflow.yml"
    path.write_text("memory:\n  saved:\n    _type: remora\n    fail_opened: true\n")

    with pytest.raises(ValueError, match=r"Extra inputs|memory"):
        load_config(path)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("ttl: .inf", "less than or equal to 3155760000"),
        ("ttl: 3155760001", "less than or equal to 3155760000"),
        ("ttl: 0.0001", "greater than or equal to 0.001"),
        ("timeout: .inf", "a finite number"),
    ],
)
def test_a_time_that_no_item_or_call_can_have_is_refused(tmp_path: Path, option: str, why: str) -> None:
    path = tmp_path / "workflow.yml"
    path.write_text(f"memory:\n  saved:\n    _type: remora\n    {option}\n")

    with pytest.raises(ValueError, match=why):
        load_config(path)


async def test_an_agent_recalls_what_its_user_said_before_a_restart(written: Any, own_server: Server) -> None:  # noqa: ANN401
    path = written(endpoint=own_server.endpoint)
    async with load_workflow(path) as workflow:
        assert await asked(workflow, "My dog is called Rex") == "My dog is called Rex"
        own_server.kill()
        own_server.start()
        recalled = await asked(workflow, "What is the name of my dog?")

    assert recalled.startswith(RECALLED)
    assert "user: My dog is called Rex" in recalled
    assert "What is the name" not in recalled
    async with load_workflow(path) as again:
        assert "Rex" in await asked(again, "Whom do I walk?")
        assert "Rex" not in await asked(again, "What is the name of my dog?", user="tom")


async def test_a_workflow_goes_on_without_its_memory_if_it_may(written: Any, own_server: Server) -> None:  # noqa: ANN401
    path = written(endpoint=own_server.endpoint, timeout=0.2, fail_open=True)
    own_server.kill()

    async with load_workflow(path) as workflow:
        assert await asked(workflow, "Hello") == "Hello"


async def test_a_workflow_fails_without_its_memory_if_it_may_not(written: Any, own_server: Server) -> None:  # noqa: ANN401
    path = written(endpoint=own_server.endpoint, timeout=0.2)
    own_server.kill()

    async with load_workflow(path) as workflow:
        assert await asked(workflow, "Hello") != "Hello"


@asynccontextmanager
async def tools(path: Path) -> AsyncIterator[tuple[Any, ...]]:
    async with WorkflowBuilder.from_config(config=load_config(path)) as builder:
        yield tuple([await builder.get_function(name) for name in ("remember", "recall", "forget")])


async def test_the_tools_add_get_and_delete(written: Any) -> None:  # noqa: ANN401
    async with tools(written()) as (remember, recall, forget):
        await remember.acall_invoke(memory="Sarah likes zinnia tea", tags=["drink"], metadata={"cups": 2})
        text = await recall.acall_invoke(query="What does she drink?", top_k=2)
        [found] = json.loads(text.removeprefix("Memories as a JSON: \n"))
        assert (found["memory"], found["tags"], found["metadata"]) == ("Sarah likes zinnia tea", ["drink"], {"cups": 2})
        assert found["conversation"] == [{"role": "user", "content": "Sarah likes zinnia tea"}]

        await forget.acall_invoke()

        assert await recall.acall_invoke(query="tea", top_k=2) == "Memories as a JSON: \n[]"


async def test_a_builder_gives_the_editor_of_a_name(written: Any) -> None:  # noqa: ANN401
    async with WorkflowBuilder.from_config(config=load_config(written())) as builder:
        assert isinstance(await builder.get_memory_client("saved"), RemoraEditor)


def test_the_example_recalls_what_its_user_said(server: Server) -> None:
    agent = ROOT / "examples" / "nemo" / "agent.py"
    environment = {**os.environ, "REMORA_ENDPOINT": server.endpoint}

    ended = subprocess.run([sys.executable, str(agent)], env=environment, capture_output=True, text=True, check=True)

    assert "sarah: My dog is called Rex." in ended.stdout
    assert "user: My dog is called Rex." in ended.stdout
    assert "tom: What is the name of my dog?" in ended.stdout
