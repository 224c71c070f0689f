"""The Dockerfile as tests read it: its instructions in order, lines joined, comments gone."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Instruction:
    """One instruction, and the stage that it stands in (empty before the first)."""

    stage: str
    name: str
    argument: str

    def words(self) -> list[str]:
        """The argument as a list: in the exec form, which needs no shell, or as words."""
        return json.loads(self.argument) if self.argument.startswith("[") else shlex.split(self.argument)

    def pairs(self) -> dict[str, str]:
        """The argument of ENV or LABEL."""
        return dict(word.split("=", 1) for word in self.words())


@cache
def instructions() -> tuple[Instruction, ...]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    stage, found = "", []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, argument = line.split(maxsplit=1)
        if name == "FROM":
            stage = argument.split(" AS ")[1]
        found.append(Instruction(stage, name, argument.strip()))
    return tuple(found)


def instruction(name: str, stage: str) -> Instruction:
    """The only instruction of a name in a stage."""
    [found] = [each for each in instructions() if (each.name, each.stage) == (name, stage)]
    return found
