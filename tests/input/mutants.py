"""Rules with one thing left out, or loosened by the least there is: a table of cases that is complete misses none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from types import CellType, FunctionType
from typing import Any

from remora_server.rpc.checks.rules import MessageRules, anything


@dataclass(frozen=True)
class Mutant:
    """What is changed, and the change, which lasts as long as it is entered."""

    what: str
    applied: Callable[[], AbstractContextManager[None]]


def mutants(name: str, rules: MessageRules, seen: set[int]) -> Iterator[Mutant]:
    """One for each rule and bound within the rules of a message that was not seen before."""
    if id(rules) in seen:
        return
    seen.add(id(rules))
    for field, rule in rules.of_fields.items():
        if not _is_empty(rule):
            yield Mutant(f"{name}.{field.name} is anything", partial(_entry, rules.of_fields, field, anything))
        yield from _within(f"{name}.{field.name}", rule, seen)
    for place, (part, *_) in enumerate(rules.required):
        missing = [*rules.required[:place], *rules.required[place + 1 :]]
        yield Mutant(f"{name}.{part} is not required", partial(_attribute, rules, "required", missing))
    for place, _ in enumerate(rules.together):
        missing_rule = [*rules.together[:place], *rules.together[place + 1 :]]
        yield Mutant(f"{name} is not seen together", partial(_attribute, rules, "together", missing_rule))


def _within(name: str, rule: object, seen: set[int]) -> Iterator[Mutant]:
    if isinstance(rule, MessageRules):
        yield from mutants(name, rule, seen)
    if not isinstance(rule, FunctionType) or id(rule) in seen:
        return
    seen.add(id(rule))
    for variable, cell in zip(rule.__code__.co_freevars, rule.__closure__ or (), strict=True):
        held = cell.cell_contents
        loosened = _loosened(variable, held)
        if loosened is not None and not _is_no_bound(rule, variable, held):
            yield Mutant(f"{name}: {variable} is loosened", partial(_cell, cell, loosened))
        yield from _within(name, held, seen)


def _is_empty(rule: object) -> bool:
    if isinstance(rule, MessageRules):
        return not (rule.required or rule.together) and all(map(_is_empty, rule.of_fields.values()))
    return rule is anything


def _loosened(variable: str, held: object) -> Any:  # noqa: ANN401
    match variable, held:
        case "maximum" | "most", int() | float():
            return held + 1
        case "minimum" | "least", int() | float():
            return held - 1
        case _, frozenset():
            return held | {max(held) + 1}
        case _, tuple():
            return (*held, "")
        case _ if isinstance(held, FunctionType) and held is not anything:
            return anything
    return None


def _is_no_bound(rule: FunctionType, variable: str, held: object) -> bool:
    """No text is shorter than none."""
    return rule.__qualname__.startswith("text.") and variable == "minimum" and held == 0


@contextmanager
def _entry(entries: dict[Any, Any], key: object, value: object) -> Iterator[None]:
    before = entries[key]
    entries[key] = value
    yield
    entries[key] = before


@contextmanager
def _attribute(holder: object, name: str, value: object) -> Iterator[None]:
    before = getattr(holder, name)
    setattr(holder, name, value)
    yield
    setattr(holder, name, before)


@contextmanager
def _cell(cell: CellType, value: object) -> Iterator[None]:
    before = cell.cell_contents
    cell.cell_contents = value
    yield
    cell.cell_contents = before
