"""The README's Python runs as it stands, against a real server and a model that answers what it is told."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from remora import Remora
from remora.testing import serve
from remora_server.commands import COMMANDS
from remora_server.commands.parsing import CommandParser
from remora_server.commands.root import root_parser
from remora_server.settings.settings import load

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
ANSWER = {"role": "assistant", "content": "Yes, for up to thirty days a year."}


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def console_lines(page: Path) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


class Model:
    """Stands in for OpenAI's client: keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, object]] = []
        self.chat = SimpleNamespace(completions=self)

    def create(self, *, messages: list[dict[str, object]], **_settings: object) -> SimpleNamespace:
        self.sent = messages
        return SimpleNamespace(choices=[SimpleNamespace(message=ANSWER)])


@pytest.mark.slow
def test_the_readmes_python_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = python_blocks()
    llm = Model()
    with serve("--model", "none") as endpoint:
        monkeypatch.setenv("REMORA_ENDPOINT", endpoint)

        made: dict[str, Any] = {"llm": llm}
        exec(compile(block, str(README), "exec"), made)

        with Remora() as memory:
            kept = memory.conversation("support-42", user_id="sarah").messages()
    assert llm.sent == [{"role": "user", "content": "I live in Berlin. Can I work abroad?"}]
    assert [message.to_openai() for message in kept] == [*llm.sent, ANSWER]
    assert made["facts"]
    assert [f'"{fact.text}"' for fact in made["facts"]] == re.findall(r"extract_from.*# .*: (.*)", block)


def test_the_settings_that_are_shown_are_settings(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "embedding.md").read_text("utf-8")
    [block] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "remora.yaml").write_text(block, "utf-8")

    models = load({}, {}, str(tmp_path / "remora.yaml")).settings.models

    assert (models.default, models.tenants) == ("large", {"acme": "builtin", "intern": "none"})
    assert models.endpoints["large"].vectors == "text-embedding-3-large/1024"


def test_the_readmes_first_two_commands_are_the_demo_and_the_tests() -> None:
    assert console_lines(README)[:2] == ["make demo", "make test"]


def test_who_is_shown_what_needs_the_model_is_told_to_install_it_before_the_server_starts() -> None:
    examples = {path.parent / "README.md": path.read_text("utf-8") for path in ROOT.glob("examples/*/agent.*")}
    pages = [*PAGES, *ROOT.glob("clients/typescript/packages/*/README.md")]
    shown = {**examples, **{page: page.read_text("utf-8") for page in pages}}
    needing = [page for page, text in shown.items() if re.search(r"RemoraStore\(.*\bindex\b|RemoraMemory\(", text)]

    serving = [page for page in needing if "remora serve" in "\n".join(console_lines(page))]
    assert {page.parent.name for page in serving} >= {"langgraph", "langgraph-js", "voltagent", "docs"}
    for page in serving:
        told = "\n".join(console_lines(page))
        assert -1 < told.find("remora model install") < told.find("remora serve"), page


def test_every_command_that_a_page_shows_is_understood() -> None:
    shown = [line.removeprefix("$ ").split("#")[0] for page in PAGES for line in console_lines(page)]
    commands = [shlex.split(line)[1:] for line in shown if line.startswith("remora ")]

    assert len(commands) > 10
    for command in commands:
        root_parser().parse_args(command)  # ends in SystemExit for what it does not know


def spans(page: Path) -> list[str]:
    """Code within sentences."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", page.read_text("utf-8"))


def options_of(command: str) -> set[str]:
    """The options of a command and of its own commands."""
    parsers, found = [subparsers(root_parser())[command]], set[str]()
    while parsers:
        parser = parsers.pop()
        if isinstance(parser, CommandParser):
            parser.load()
        found |= {option for action in parser._actions for option in action.option_strings}
        parsers += subparsers(parser).values()
    return found


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    choices = [each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return {name: each for group in choices for name, each in group.items()}


def test_every_command_that_a_sentence_names_exists_with_its_options() -> None:
    texts = [(page.name, text) for page in PAGES for text in spans(page)]
    named = [(name, found[1], found[2]) for name, text in texts if (found := re.search(r"\bremora ([a-z]+)(.*)", text))]

    assert len(named) > 15
    for place, command, rest in named:
        options = set(re.findall(r"(?<!\S)--[a-z-]+", rest))
        assert command in COMMANDS, f"{place}: remora {command}"
        assert options <= options_of(command), f"{place}: remora {command}{rest}"


def test_every_verb_of_make_that_a_page_names_exists() -> None:
    verbs = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    shown = [line for page in PAGES for line in (*spans(page), *console_lines(page)) if line.startswith("make ")]

    assert len(shown) > 5
    assert [line for line in shown if line.split()[1] not in verbs] == []


@pytest.mark.parametrize(
    "file", sorted(re.findall(r"kubectl apply -f (\S+)", (ROOT / "docs/kubernetes.md").read_text()))
)
def test_the_manifests_that_a_page_applies_are_there(file: str) -> None:
    assert (ROOT / file).is_file()


def test_the_job_that_restores_a_backup_runs_a_command_that_exists() -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "operation.md").read_text("utf-8"), re.DOTALL)
    pod = yaml.safe_load(block)["spec"]["template"]["spec"]
    [container] = pod["containers"]

    given = vars(root_parser().parse_args(container["args"]))

    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert mounts[str(given["data"])] == "data"
    assert mounts[str(Path(given["backup"]).parent)] == "backups"
    assert {volume["name"] for volume in pod["volumes"]} == {*mounts.values()}


def slug(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("*.md"))], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))

    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_section_finds_it(page: Path) -> None:
    links = re.findall(r"\]\(([^):#]*)#([^)]+)\)", page.read_text("utf-8"))

    for file, anchor in links:
        target = (page.parent / file) if file else page
        headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
        assert anchor in {slug(heading) for heading in headings}, f"{file}#{anchor}"
