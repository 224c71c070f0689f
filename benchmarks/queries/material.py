"""What was written by hand: words that fill slots, groups of messages with their queries, sentences, facts.

In all files, a line that begins with "#" is a comment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("material")
MESSAGE, LATER = "m", "later"


@dataclass(frozen=True, slots=True)
class Group:
    """Ways to say one thing, ways to say months later that it has changed, and ways to ask for it, by slice."""

    messages: Sequence[str]
    later: Sequence[str]
    queries: Mapping[str, Sequence[str]]


@dataclass(slots=True)
class Fact:
    """A message, and what somebody types who looks for it, by the form of the query."""

    message: str
    queries: dict[str, str] = field(default_factory=dict)


FORMS = ("word", "keywords", "question", "statement", "command", "paraphrase")
"""The columns of facts.txt behind the message."""


@cache
def words() -> Mapping[str, Sequence[str]]:
    """The values of each slot."""
    slots: dict[str, Sequence[str]] = {}
    for line in _lines("words.txt"):
        slot, _, values = line.partition(" = ")
        slots[slot] = values.split(", ")
    return slots


@cache
def groups(name: str) -> Sequence[Group]:
    """The groups of a file; a blank line, or "~" in one of its own, ends a group."""
    return [_group(lines) for lines in _runs(name)]


@cache
def facts() -> Sequence[Fact]:
    """The facts, all different."""
    rows = [line.split(" | ") for line in _lines("facts.txt")]
    return [Fact(message, dict(zip(FORMS, forms, strict=True))) for message, *forms in rows]


@cache
def sections(name: str) -> Mapping[str, Sequence[str]]:
    """The lines of a file by the heading that they stand below."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in _lines(name):
        if line.startswith("[") and line.endswith("]"):
            heading = line[1:-1]
        else:
            found.setdefault(heading, []).append(line)
    return found


def _group(lines: Sequence[str]) -> Group:
    by_key: dict[str, list[str]] = {}
    for line in lines:
        key, _, text = line.partition(": ")
        by_key.setdefault(key, []).append(text)
    messages, later = by_key.pop(MESSAGE), by_key.pop(LATER, [])
    return Group(messages, later, by_key)


def _runs(name: str) -> Iterator[list[str]]:
    run: list[str] = []
    for line in (FOLDER / name).read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.strip(" ~"):
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _lines(name: str) -> Iterator[str]:
    for line in (FOLDER / name).read_text().splitlines():
        if line and not line.startswith("#"):
            yield line
