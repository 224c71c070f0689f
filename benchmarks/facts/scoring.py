"""The statements of a part, and how many of their facts are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from remora_server.domain.fact_patterns import facts_in

FOLDER = Path(__file__).parent
Part: TypeAlias = Literal["development", "held_out"]
PARTS: tuple[Part, ...] = ("development", "held_out")
Fact: TypeAlias = tuple[str, str, str]
"""Subject, predicate and object, in one case and with single spaces."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What somebody says, and the facts it states: none if it only denies, asks, quotes or imagines."""

    text: str
    facts: frozenset[Fact]


@dataclass(frozen=True, slots=True)
class Mistake:
    """What was found without being stated, and what was stated without being found."""

    text: str
    wrong: frozenset[Fact]
    missed: frozenset[Fact]


@dataclass(frozen=True, slots=True)
class Quality:
    """How many statements there are, how many facts these state, how many are found, and the mistakes."""

    statements: int
    stated: int
    found: int
    right: int
    mistakes: Sequence[Mistake]

    @property
    def precision(self) -> float:
        """Of the facts that are found, the share that is stated."""
        return self.right / self.found

    @property
    def recall(self) -> float:
        """Of the facts that are stated, the share that is found."""
        return self.right / self.stated


def statements(part: Part) -> list[Statement]:
    """The statements of a part."""
    return list(_statements(FOLDER.joinpath(f"{part}.txt").read_text().splitlines()))


def _statements(lines: Sequence[str]) -> Iterator[Statement]:
    """A line in the first column is a statement, and the indented ones below it are its facts."""
    lines = [line for line in lines if line and not line.startswith("#")]
    starts = [number for number, line in enumerate(lines) if not line.startswith(" ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        facts = [line.split(" | ") for line in lines[start + 1 : end]]
        yield Statement(lines[start], frozenset(_same(*parts) for parts in facts))


def _same(subject: str, predicate: str, said: str) -> Fact:
    return _folded(subject), _folded(predicate), _folded(said)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def measure(stated: Sequence[Statement]) -> Quality:
    """Find the facts of each statement by itself."""
    pairs = [(each, frozenset(_found(each.text))) for each in stated]
    return Quality(
        statements=len(pairs),
        stated=sum(len(each.facts) for each, _ in pairs),
        found=sum(len(found) for _, found in pairs),
        right=sum(len(each.facts & found) for each, found in pairs),
        mistakes=[
            Mistake(each.text, found - each.facts, each.facts - found) for each, found in pairs if each.facts != found
        ],
    )


def _found(text: str) -> Iterator[Fact]:
    for fact in facts_in(text):
        yield _same(fact.subject, fact.predicate, fact.object)
