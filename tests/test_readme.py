"""The README's Python runs as it stands, against a real server and a model that answers what it is told."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from remora import Remora
from remora.testing import serve
from remora_server.settings.settings import load

README = Path(__file__).resolve().parents[1] / "README.md"
ANSWER = {"role": "assistant", "content": "Yes, for up to thirty days a year."}


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def console_commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


class Model:
    """Stands in for OpenAI's client: keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, object]] = []
        self.chat = SimpleNamespace(completions=self)

    def create(self, *, messages: list[dict[str, object]], **_settings: object) -> SimpleNamespace:
        self.sent = messages
        return SimpleNamespace(choices=[SimpleNamespace(message=ANSWER)])


def test_the_readmes_python_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = python_blocks()
    llm = Model()
    with serve("--model", "none") as endpoint:
        monkeypatch.setenv("REMORA_ENDPOINT", endpoint)

        exec(compile(block, str(README), "exec"), {"llm": llm})

        with Remora() as memory:
            kept = memory.conversation("support-42", user_id="sarah").messages()
    assert llm.sent == [{"role": "user", "content": "Can I work abroad?"}]
    assert [message.to_openai() for message in kept] == [*llm.sent, ANSWER]


def test_the_readmes_settings_are_settings(tmp_path: Path) -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (tmp_path / "remora.yaml").write_text(block, "utf-8")

    models = load({}, {}, str(tmp_path / "remora.yaml")).settings.models

    assert (models.default, models.tenants) == ("large", {"acme": "builtin", "intern": "none"})
    assert models.endpoints["large"].vectors == "text-embedding-3-large/1024"


def test_the_readmes_first_two_commands_are_the_demo_and_the_tests() -> None:
    assert console_commands()[:2] == ["make demo", "make test"]
