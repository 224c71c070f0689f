"""Filling the slots of templates, so that each query has one answer among all messages."""

from __future__ import annotations

import random
import re
import string
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.queries import material

_SLOT = re.compile(r"\{([A-Za-z_]+)(2?)\}")
_DRAWN = {"#": string.digits, "&": string.ascii_uppercase, "~": "0123456789abcdef"}
ATTEMPTS = 200


class Exhausted(Exception):
    """The words do not suffice for one more query with an answer of its own."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Texts made of templates, with the values of the slots of each."""

    texts: Sequence[str]
    values: Sequence[frozenset[str]]


class Filler:
    """Draws values; a word of `word_rare` is drawn once."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._rare = list(material.words()["word_rare"])
        chance.shuffle(self._rare)

    def fill(self, templates: Sequence[str], fixed: Mapping[str, str] | None = None) -> Filled:
        """Fill templates with the same values; `fixed` are those that are not drawn. Raises Exhausted."""
        chosen = dict(fixed or {})
        texts, values = [], []
        for template in templates:
            texts.append(_SLOT.sub(lambda match: self._value(match[1], match[2], chosen), template))
            values.append(
                frozenset(chosen[(name.lower() + number)].lower() for name, number in _SLOT.findall(template))
            )
        return Filled(texts, values)

    def _value(self, name: str, number: str, chosen: dict[str, str]) -> str:
        slot = name.lower()
        if slot + number not in chosen:
            chosen[slot + number] = self._drawn(slot, chosen.get(slot) if number else None)
        value = chosen[slot + number]
        return value[0].upper() + value[1:] if name[0].isupper() else value

    def _drawn(self, slot: str, other_than: str | None) -> str:
        if slot == "word_rare":
            if not self._rare:
                raise Exhausted(slot)
            return self._rare.pop()
        pattern = self._chance.choice([value for value in material.words()[slot] if value != other_than])
        nested = _SLOT.sub(lambda match: self._chance.choice(material.words()[match[1]]).lower(), pattern)
        return self._expanded(nested) if any(mark in nested for mark in _DRAWN) else nested

    def _expanded(self, pattern: str) -> str:
        return "".join(self._chance.choice(_DRAWN[mark]) if mark in _DRAWN else mark for mark in pattern)


class Uniqueness:
    """What messages and queries have in common: no query may have a second answer.

    A message answers a query if it has all values that the query has.
    """

    def __init__(self) -> None:
        self._having: dict[str, set[int]] = defaultdict(set)
        self._asked: dict[str, list[frozenset[str]]] = defaultdict(list)
        self._messages = 0

    def admits_message(self, values: frozenset[str]) -> bool:
        """Whether a message with these values answers no query so far."""
        return not any(keys <= values for value in values for keys in self._asked.get(value, ()))

    def admits_query(self, keys: frozenset[str]) -> bool:
        """Whether no message so far answers a query with these values."""
        having = [self._having.get(key, set()) for key in keys]
        return not having or not set.intersection(*having)

    def add_message(self, values: frozenset[str]) -> None:
        """A message is there."""
        for value in values:
            self._having[value].add(self._messages)
        self._messages += 1

    def add_query(self, keys: frozenset[str]) -> None:
        """A query is asked."""
        if keys:
            self._asked[min(keys)].append(keys)
