"""The Python and the configuration of docs/nemo.md do as they stand."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from nat.memory.models import MemoryItem
from nat.runtime.loader import load_config
from tests.faults.sidecar import ROOT

from remora.nat import RemoraEditor, RemoraMemoryConfig

PAGE = ROOT / "docs" / "nemo.md"
AROUND = """
functions:
  my_agent:
    _type: test_echo
llms:
  my_llm:
    _type: nat_test_llm
"""


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return str(found)


def test_the_configuration_is_one(tmp_path: Path) -> None:
    path = tmp_path / "workflow.yml"
    path.write_text(block("yaml") + AROUND)

    assert isinstance(load_config(path).memory["saved"], RemoraMemoryConfig)


async def test_the_editor_does_what_is_shown(editor: RemoraEditor) -> None:
    async def get_memory_client(name: str) -> RemoraEditor:
        assert name == "saved"
        return editor

    given: dict[str, Any] = {"MemoryItem": MemoryItem, "builder": SimpleNamespace(get_memory_client=get_memory_client)}
    body = textwrap.indent(block("python"), "    ")
    exec(compile(f"async def shown():\n{body}    return items, text", str(PAGE), "exec"), given)

    items, text = await given["shown"]()

    assert [item.memory for item in items] == ["Sarah is vegan"]
    assert text.startswith("Relevant memories (sorted by relevance):\n\n1. Sarah is vegan")
    assert await editor.search("what does she eat?", user_id="sarah") == []
