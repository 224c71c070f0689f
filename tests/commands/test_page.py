"""What docs/commands.md shows is what the commands print."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.commands.terminal import remora
from tests.patience import PATIENCE, eventually

from remora import Message, Remora
from remora.testing import serve

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
ASKED = "where will Sarah be in spring"
SARAHS = [
    Message("user", "Can I work abroad?", name="Sarah"),
    Message("assistant", "Yes, for up to thirty days a year."),
    Message("user", "Then Lisbon in May, please.", name="Sarah"),
    Message("assistant", "Noted: Lisbon, from 4 to 29 May."),
]
SCORE = re.compile(r"-?\d\.\d{3}(?=  \S)")
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
VARYING = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "TIME"),
    (re.compile(r"revision \d+"), "revision N"),  # vectors are written by themselves
    (re.compile(r"[\d.]+ [KM]iB"), "SIZE"),
]


class Typed(NamedTuple):
    """A command of the page, and what is shown below it."""

    command: str
    shown: list[str]


def session() -> list[Typed]:
    found: list[Typed] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Typed(line.removeprefix("$ "), []))
            else:
                found[-1].shown.append(line)
    return found


def stable(line: str, ids: list[str]) -> str:
    """A line without what is another each time; an id is told by its place among the first of each."""
    for found in ID.findall(line):
        if found not in ids:
            ids.append(found)
        line = line.replace(found, f"id {ids.index(found)}")
    for pattern, word in VARYING:
        line = pattern.sub(word, line)
    return SCORE.sub("SCORE", line).rstrip()


def chats() -> str:
    """412 messages, and what the page says is left out."""
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day.", "weight": 0}]
    long = {"messages": turns[:1] * 407}
    lines = [{"messages": turns[:1]}, long, {"messages": turns}, *[{"messages": turns[:1]}] * 2, {"messages": []}]
    return "".join(json.dumps(line) + "\n" for line in [*lines, {"prompt": "Hello"}])


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The store that the page shows, with the model, and the files that it names in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("chats.jsonl").write_text(chats(), "utf-8")
    data = f"--data={tmp_path / 'data'}"
    with serve(data, "--model-dir", os.environ["REMORA_MODEL_DIR"]) as endpoint, Remora(endpoint) as memory:
        support = memory.conversation("support-42", user_id="sarah", title="Working abroad")
        support.append(SARAHS, timeout=PATIENCE)
        memory.conversation("billing-7", user_id="tom", title="An invoice").append(Message("user", "Paid?"))
        eventually(lambda: all(model.pending == 0 for model in memory.status().models))
        for budget in (100, 4_000):
            support.context(max_tokens=budget, query=ASKED, timeout=PATIENCE)
        yield endpoint


@pytest.mark.slow
def test_what_the_page_shows_is_what_is_printed(endpoint: str, tmp_path: Path) -> None:
    of_page: list[str] = []
    of_server: list[str] = []
    typed = session()

    assert len(typed) > 8
    for command, shown in typed:
        arguments = [word_here(word, tmp_path, dict(zip(of_page, of_server, strict=True))) for word in words(command)]
        code, output, said = remora(endpoint, *arguments, variables={"REMORA_DATA": str(tmp_path / "data")})
        printed = (output.decode() + said).replace(str(tmp_path), "").splitlines()

        assert code == 0, (command, said)
        assert [stable(line, of_server) for line in printed] == [stable(line, of_page) for line in shown], command
        assert scores(printed) == pytest.approx(scores(shown), abs=0.002), command


def words(command: str) -> list[str]:
    [name, *arguments] = shlex.split(command, comments=True)
    assert name == "remora"
    return arguments


def word_here(word: str, directory: Path, ids: Mapping[str, str]) -> str:
    """A word of a command with the id of this server, and a folder that may be written."""
    return re.sub(r"^/(backups|var)", rf"{directory}/\1", ids.get(word, word))


def scores(lines: Sequence[str]) -> list[float]:
    return [float(score) for line in lines for score in SCORE.findall(line)]
